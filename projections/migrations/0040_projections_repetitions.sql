-- name: projections_repetitions
-- What a repetition tells of entities belongs to the fact that it repeats, and goes with the undo of the repetition.

ALTER TABLE fact_entities
ADD COLUMN told_by uuid,
DROP CONSTRAINT fact_entities_pkey,
ADD PRIMARY KEY (fact_id, entity_id, role, event_id);
CREATE INDEX fact_entities_told ON fact_entities (told_by) WHERE told_by IS NOT NULL;
COMMENT ON TABLE fact_entities IS
'Which entities a fact names: whom it is about (subject), what it says of them (object), or named besides (mention). A '
'split has moved the fact to moved_to. told_by is the event of a repetition that told it.';

ALTER TABLE entity_aliases ADD COLUMN told_by uuid;
CREATE INDEX entity_aliases_told ON entity_aliases (told_by) WHERE told_by IS NOT NULL;
COMMENT ON TABLE entity_aliases IS
'The names of an entity, as they were said first: a name ("Ana"), what it is to somebody ("my wife"), or the user. Equal '
'keys of one kind are the same name; head is what a name is looked up by. One that is not current was undone or moved. '
'One that a repetition told (told_by, its event) has the source of the fact that was repeated.';

ALTER TABLE relationship_evidence
ADD COLUMN told_by uuid,
DROP CONSTRAINT relationship_evidence_pkey,
ADD PRIMARY KEY (relation_id, fact_id, event_id);
COMMENT ON TABLE relationship_evidence IS
'What a fact says of a relation: with a strength that it is so (strong: the fact says it; medium: in passing; weak: the '
'fact suggests it), with ended_at that it is over since then. told_by is the event of a repetition that told it.';

CREATE VIEW links_in_effect AS
SELECT
    l.fact_id,
    l.entity_id,
    l.role,
    l.event_id,
    l.moved_to
FROM fact_entities AS l
WHERE l.told_by IS NULL
    OR NOT (
        EXISTS (SELECT FROM undone WHERE undone.event_id = l.told_by)
        OR EXISTS (
            SELECT FROM fact_entities AS other
            WHERE (other.fact_id, other.entity_id, other.role) = (l.fact_id, l.entity_id, l.role)
                AND (
                    other.told_by IS NULL
                    OR (
                        other.event_id < l.event_id
                        AND NOT EXISTS (SELECT FROM undone WHERE undone.event_id = other.told_by)
                    )
                )
        )
    );
COMMENT ON VIEW links_in_effect IS
'Which entities facts name, each once in a role, without what only a repetition told that was undone.';

CREATE OR REPLACE VIEW current_entity_links AS
SELECT
    l.fact_id,
    coalesce(e.merged_into, e.entity_id) AS entity_id,
    l.role,
    l.event_id
FROM links_in_effect AS l
INNER JOIN entities AS e ON l.entity_id = e.entity_id
WHERE l.moved_to IS NULL AND e.status <> 'forgotten'
UNION ALL
SELECT
    l.fact_id,
    coalesce(e.merged_into, e.entity_id) AS entity_id,
    l.role,
    l.event_id
FROM links_in_effect AS l
INNER JOIN entities AS e ON l.moved_to = e.entity_id
WHERE e.status <> 'forgotten';

CREATE VIEW current_evidence AS
SELECT
    said.relation_id,
    said.fact_id,
    said.strength,
    said.ended_at,
    said.event_id,
    said.recorded_at
FROM relationship_evidence AS said
WHERE said.told_by IS NULL OR NOT EXISTS (SELECT FROM undone WHERE undone.event_id = said.told_by);
COMMENT ON VIEW current_evidence IS 'What facts say of relations, without what only a repetition told that was undone.';
