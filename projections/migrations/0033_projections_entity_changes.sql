-- name: projections_entity_changes
-- What persons decide about entities: they are renamed, merged, split and forgotten, and get names.

CREATE TABLE entity_changes (
    event_id uuid PRIMARY KEY,
    partition integer NOT NULL,
    log_offset bigint NOT NULL,
    ordinal integer NOT NULL,
    owner text NOT NULL,
    source_id text NOT NULL,
    tenant text NOT NULL DEFAULT '',
    user_id text NOT NULL DEFAULT '',
    agent_id text NOT NULL DEFAULT '',
    app_id text NOT NULL DEFAULT '',
    run_id text NOT NULL DEFAULT '',
    event text NOT NULL,
    entity_ids uuid [] NOT NULL,
    payload jsonb NOT NULL,
    decided_at timestamptz NOT NULL,
    original_id uuid NOT NULL,
    undone_by uuid
);
CREATE INDEX entity_changes_source ON entity_changes (owner, source_id);
CREATE INDEX entity_changes_entities ON entity_changes USING gin (entity_ids);
CREATE INDEX entity_changes_original ON entity_changes (original_id);
COMMENT ON TABLE entity_changes IS
'What persons decided about entities, and what of it was undone: the names, merged_into and status of entities, '
'is_current of their names and moved_to of links are derived from it. original_id is the change that an undo is about.';

ALTER TABLE entities
ADD COLUMN registered_name text,
ADD COLUMN merged_into uuid,
ADD COLUMN status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'merged', 'forgotten', 'undone'));
UPDATE entities SET registered_name = name;
CREATE INDEX entities_current ON entities (coalesce(merged_into, entity_id));
COMMENT ON TABLE entities IS
'People, places and things that facts of exactly this scope name. possible_twins are entities that may be the same: in '
'doubt a name is a new entity. One that was merged stands for merged_into; one is undone when all facts that named it are.';

ALTER TABLE entity_aliases
ADD COLUMN owner text NOT NULL DEFAULT '',
ADD COLUMN source_id text NOT NULL DEFAULT '',
ADD COLUMN log_offset bigint NOT NULL DEFAULT 0,
ADD COLUMN is_own boolean NOT NULL DEFAULT false,
ADD COLUMN is_current boolean NOT NULL DEFAULT true,
DROP CONSTRAINT entity_aliases_pkey,
ADD PRIMARY KEY (entity_id, kind, key, event_id);
CREATE INDEX entity_aliases_source ON entity_aliases (owner, source_id);
COMMENT ON TABLE entity_aliases IS
'The names of an entity, as they were said first: a name ("Ana"), what it is to somebody ("my wife"), or the user. Equal '
'keys of one kind are the same name; head is what a name is looked up by. One that is not current was undone or moved.';

ALTER TABLE fact_entities ADD COLUMN moved_to uuid;
CREATE INDEX fact_entities_moved ON fact_entities (moved_to) WHERE moved_to IS NOT NULL;
COMMENT ON TABLE fact_entities IS
'Which entities a fact names: whom it is about (subject), what it says of them (object), or named besides (mention). A '
'split has moved the fact to moved_to.';

CREATE VIEW current_entity_names AS
SELECT
    coalesce(e.merged_into, e.entity_id) AS entity_id,
    a.kind,
    a.key,
    a.head,
    a.alias,
    a.place,
    a.event_id,
    a.recorded_at,
    a.tenant,
    a.user_id,
    a.agent_id,
    a.app_id,
    a.run_id,
    CASE
        WHEN a.kind = 'tie' AND right(a.key, 36) ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN coalesce(
            (
                SELECT left(a.key, -36) || holder.merged_into::text
                FROM entities AS holder
                WHERE holder.entity_id = right(a.key, 36)::uuid AND holder.merged_into IS NOT NULL
            ),
            a.key
        )
        ELSE a.key
    END AS current_key
FROM entity_aliases AS a
INNER JOIN entities AS e ON a.entity_id = e.entity_id
WHERE a.is_current;
COMMENT ON VIEW current_entity_names IS
'The names of entities as they are now: those of a merged one are of the other. In current_key a tie to a merged entity '
'("wife of <id>") is one to the other.';

CREATE VIEW current_entity_links AS
SELECT
    l.fact_id,
    coalesce(e.merged_into, e.entity_id) AS entity_id,
    l.role,
    l.event_id
FROM fact_entities AS l
INNER JOIN entities AS e ON l.entity_id = e.entity_id
WHERE l.moved_to IS NULL AND e.status <> 'forgotten'
UNION ALL
SELECT
    l.fact_id,
    coalesce(e.merged_into, e.entity_id) AS entity_id,
    l.role,
    l.event_id
FROM fact_entities AS l
INNER JOIN entities AS e ON l.moved_to = e.entity_id
WHERE e.status <> 'forgotten';
COMMENT ON VIEW current_entity_links IS 'Which entities facts name now: links to a merged one are to the other.';

CREATE VIEW current_entity_twins AS
SELECT
    coalesce(member.merged_into, member.entity_id) AS entity_id,
    twin.entity_id AS twin_id,
    min(member.recorded_at) AS since
FROM entities AS member
CROSS JOIN LATERAL unnest(member.possible_twins) AS named (entity_id)
INNER JOIN entities AS registered ON named.entity_id = registered.entity_id
INNER JOIN entities AS twin ON coalesce(registered.merged_into, registered.entity_id) = twin.entity_id
WHERE twin.status = 'active' AND twin.entity_id <> coalesce(member.merged_into, member.entity_id)
GROUP BY coalesce(member.merged_into, member.entity_id), twin.entity_id;
COMMENT ON VIEW current_entity_twins IS 'The entities that may be the same as another one, as both are now.';

DROP INDEX commits_taken_back;
CREATE INDEX commits_taken_back ON commits (owner, published_at)
WHERE order_kind IN ('delete', 'delete_all', 'reject', 'undo', 'forget_entity');
