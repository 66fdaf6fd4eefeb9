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

CREATE OR REPLACE FUNCTION relations_of_scope(
    tenant text, user_id text, agent_id text, app_id text, run_id text
) RETURNS TABLE (
    subject_id uuid,
    predicate text,
    object_id uuid,
    is_mirror boolean,
    is_active boolean,
    strength text,
    since timestamptz,
    until timestamptz,
    recorded_at timestamptz,
    ordinal integer,
    evidence uuid [],
    endings uuid []
) LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
WITH RECURSIVE named AS (
    SELECT
        known.relation_id,
        said.fact_id AS said_by,
        ends.subject_id,
        known.predicate,
        ends.object_id,
        known.inverse,
        known.recorded_at,
        known.ordinal
    FROM relationships AS known
    INNER JOIN current_evidence AS said ON known.relation_id = said.relation_id
    CROSS JOIN LATERAL (
        SELECT
            min(now_named.entity_id::text) FILTER (WHERE given.entity_id = known.subject_id)::uuid AS subject_id,
            min(now_named.entity_id::text) FILTER (WHERE given.entity_id = known.object_id)::uuid AS object_id
        FROM unnest(ARRAY[known.subject_id, known.object_id]) AS given (entity_id)
        LEFT JOIN fact_entities AS link
            ON link.fact_id = said.fact_id AND given.entity_id = link.entity_id AND link.moved_to IS NOT NULL
        INNER JOIN entities AS told ON coalesce(link.moved_to, given.entity_id) = told.entity_id
        INNER JOIN entities AS now_named ON coalesce(told.merged_into, told.entity_id) = now_named.entity_id
        WHERE now_named.status = 'active'
    ) AS ends
    WHERE (known.tenant, known.user_id, known.agent_id, known.app_id, known.run_id) = (
        relations_of_scope.tenant,
        relations_of_scope.user_id,
        relations_of_scope.agent_id,
        relations_of_scope.app_id,
        relations_of_scope.run_id
    ) AND ends.subject_id <> ends.object_id
),

directed AS (
    SELECT named.relation_id, named.said_by, named.subject_id, named.predicate, named.object_id, false AS is_mirror,
        named.recorded_at, named.ordinal
    FROM named
    UNION ALL
    SELECT named.relation_id, named.said_by, named.object_id, named.inverse, named.subject_id, true,
        named.recorded_at, named.ordinal
    FROM named
    WHERE named.inverse IS NOT NULL
),

carried AS (
    SELECT said.relation_id, said.fact_id AS said_by, said.fact_id, said.strength, said.ended_at
    FROM current_evidence AS said
    WHERE said.relation_id IN (SELECT directed.relation_id FROM directed)
    UNION
    SELECT carried.relation_id, carried.said_by, old.superseded_by, carried.strength, carried.ended_at
    FROM carried
    CROSS JOIN LATERAL (SELECT * FROM facts WHERE facts.fact_id = carried.fact_id OFFSET 0) AS old
    WHERE old.status = 'superseded' AND old.believed_to IS NOT NULL
        AND EXISTS (
            SELECT FROM memory_events AS merge
            WHERE merge.fact_id = old.superseded_by AND merge.event = 'facts_merged'
        )
),

said AS (
    SELECT
        directed.subject_id,
        directed.predicate,
        directed.object_id,
        directed.is_mirror,
        directed.recorded_at,
        directed.ordinal,
        carried.said_by,
        carried.strength,
        carried.ended_at,
        fact.true_from,
        least(fact.true_to, fact.valid_until) AS true_to,
        fact.status = 'active' AND coalesce(least(fact.true_to, fact.valid_until) > now(), true) AS lasts,
        fact.believed_from IS NOT NULL AND fact.believed_to IS NULL AS is_believed
    FROM directed
    INNER JOIN carried ON directed.relation_id = carried.relation_id AND directed.said_by = carried.said_by
    CROSS JOIN LATERAL (SELECT * FROM facts WHERE facts.fact_id = carried.fact_id OFFSET 0) AS fact
),

evidence AS (
    SELECT
        said.*,
        ending.ended_at AS over_at,
        coalesce(
            said.strength IS NOT NULL AND said.is_believed AND (said.lasts OR said.strength = 'medium')
            AND said.true_from <= now() AND coalesce(ending.ended_at > now(), true),
            false
        ) AS counts
    FROM said
    CROSS JOIN LATERAL (
        SELECT min(over.ended_at) AS ended_at
        FROM said AS over
        WHERE over.subject_id = said.subject_id AND over.predicate = said.predicate AND over.object_id = said.object_id
            AND over.is_believed AND over.ended_at >= said.true_from
    ) AS ending
)

SELECT
    found.subject_id,
    found.predicate,
    found.object_id,
    bool_and(found.is_mirror),
    bool_or(found.counts),
    (ARRAY['strong', 'medium', 'weak'])[coalesce(
        min(array_position(ARRAY['strong', 'medium', 'weak'], found.strength)) FILTER (WHERE found.counts),
        min(array_position(ARRAY['strong', 'medium', 'weak'], found.strength))
    )],
    min(found.true_from) FILTER (WHERE found.strength IS NOT NULL AND found.is_believed),
    CASE WHEN NOT bool_or(found.counts) THEN
        max(coalesce(least(found.over_at, found.true_to), found.over_at, found.true_to))
        FILTER (WHERE found.strength IS NOT NULL AND found.is_believed)
    END,
    min(found.recorded_at),
    min(found.ordinal),
    coalesce(
        array_agg(DISTINCT found.said_by) FILTER (WHERE found.counts),
        array_agg(DISTINCT found.said_by) FILTER (WHERE found.strength IS NOT NULL)
    ),
    coalesce(array_agg(DISTINCT found.said_by) FILTER (WHERE found.ended_at IS NOT NULL AND found.is_believed), '{}')
FROM evidence AS found
GROUP BY found.subject_id, found.predicate, found.object_id
HAVING bool_or(found.strength IS NOT NULL);
END;
