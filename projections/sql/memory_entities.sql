-- name: entity_rows
-- What the view entities shows.
CREATE OR REPLACE FUNCTION memory.entity_rows() RETURNS TABLE (
    entity_id uuid,
    {{scope_types}},
    name text,
    type text,
    is_user boolean,
    possible_twins uuid [],
    source_id text,
    recorded_at timestamptz,
    summary text,
    summary_version integer,
    summary_stale boolean
)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 100000 AS $$
SELECT
    e.entity_id, {{shown_scope s}}, e.name, e.type,
    EXISTS (
        SELECT FROM mnemolog.current_entity_names AS n
        WHERE n.entity_id = e.entity_id AND n.kind = 'user'
    ),
    ARRAY(SELECT t.twin_id FROM mnemolog.shown_entity_twins AS t WHERE t.entity_id = e.entity_id ORDER BY t.twin_id),
    e.source_id, e.recorded_at, written.summary, written.version,
    written.changed > 0
FROM mnemolog.scopes AS s
INNER JOIN mnemolog.shown_entities AS e USING ({{scope_ids}})
LEFT JOIN LATERAL mnemolog.summary_of_entity(e.entity_id) AS written ON true
$$;
COMMENT ON FUNCTION memory.entity_rows IS 'The rows of the view memory.entities.';

-- name: entities
-- Whom and what facts name.
CREATE OR REPLACE VIEW memory.entities AS SELECT * FROM memory.entity_rows();
COMMENT ON VIEW memory.entities IS
'The people, places and things that facts of each scope name, as they are now: without those that were merged into '
'another one or forgotten, and those that only facts name that were deleted or undone.';

-- name: entity_alias_rows
-- What the view entity_aliases shows.
CREATE OR REPLACE FUNCTION memory.entity_alias_rows() RETURNS TABLE (
    entity_id uuid,
    {{scope_types}},
    alias text,
    kind text,
    recorded_at timestamptz
)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 100000 AS $$
SELECT n.entity_id, {{shown_scope s}}, n.alias, n.kind, n.recorded_at
FROM mnemolog.scopes AS s
INNER JOIN mnemolog.shown_entities AS e USING ({{scope_ids}})
INNER JOIN mnemolog.shown_entity_names AS n ON e.entity_id = n.entity_id
$$;
COMMENT ON FUNCTION memory.entity_alias_rows IS 'The rows of the view memory.entity_aliases.';

-- name: entity_aliases
-- What entities are called.
CREATE OR REPLACE VIEW memory.entity_aliases AS SELECT * FROM memory.entity_alias_rows();
COMMENT ON VIEW memory.entity_aliases IS 'All names of each entity, its own among them, and since when it is called so.';

-- name: fact_entity_rows
-- What the view fact_entities shows.
CREATE OR REPLACE FUNCTION memory.fact_entity_rows() RETURNS TABLE (
    fact_id uuid,
    entity_id uuid,
    {{scope_types}},
    role text
)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 100000 AS $$
SELECT link.fact_id, e.entity_id, {{shown_scope s}}, link.role
FROM mnemolog.scopes AS s
INNER JOIN mnemolog.shown_entities AS e USING ({{scope_ids}})
INNER JOIN mnemolog.current_entity_links AS link ON e.entity_id = link.entity_id
$$;
COMMENT ON FUNCTION memory.fact_entity_rows IS 'The rows of the view memory.fact_entities.';

-- name: fact_entities
-- Which entities facts name.
CREATE OR REPLACE VIEW memory.fact_entities AS SELECT * FROM memory.fact_entity_rows();
COMMENT ON VIEW memory.fact_entities IS
'Which entity a fact, in any version, names: whom it is about (subject), what it says of them (object), or named besides '
'(mention).';
