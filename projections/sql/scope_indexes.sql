-- name: large_scopes
-- The scopes that are to have indexes of their own, the largest first: with the model and dimensions of their newest
-- vector, of which an index holds 4000. What has indexes keeps them down to a half of the size. An id that is a
-- wildcard in queries has none.
SELECT
    {{scope_ids large}},
    newest.embedding_model AS model,
    vector_dims(newest.embedding) AS dimensions,
    large.facts
FROM scopes AS large
LEFT JOIN indexed_scopes AS known USING ({{scope_ids}})
CROSS JOIN LATERAL (
    SELECT f.embedding_model, f.embedding
    FROM facts AS f
    WHERE f.status = 'active'
        AND {{same_scope f large}}
    ORDER BY f.believed_from DESC
    LIMIT 1
) AS newest
WHERE large.facts >= CASE WHEN known.tenant IS NULL THEN %(least)s ELSE %(least)s / 2 END
    AND vector_dims(newest.embedding) <= 4000
    AND NOT ARRAY[large.user_id, large.agent_id, large.app_id, large.run_id] && ARRAY['*', '**']
ORDER BY large.facts DESC, {{scope_ids large}}
LIMIT %(most)s;

-- name: indexed_scopes
-- The scopes that have indexes of their own, with the number of their facts.
SELECT
    {{scope_ids known}}, known.model, known.dimensions,
    coalesce(scopes.facts, 0) AS facts
FROM indexed_scopes AS known
LEFT JOIN scopes USING ({{scope_ids}})
ORDER BY facts DESC;

-- name: definitions
-- The indexes of a scope: the name of each and the statement that makes it.
SELECT made.name, format('CREATE INDEX %%s%%I ON facts %%s', %(how)s::text, made.name, made.definition) AS statement
FROM (
    SELECT
        scope_condition({{scope_values}}) AS of_scope,
        vector_condition(%(model)s, %(dimensions)s) AS of_model
) AS given
CROSS JOIN LATERAL (
    VALUES
    (
        'facts_near_' || md5(concat_ws(' AND ', given.of_scope, given.of_model)),
        format(
            'USING hnsw ((embedding::public.halfvec(%%s)) public.halfvec_cosine_ops) WHERE %%s AND %%s',
            %(dimensions)s::integer, given.of_scope, given.of_model
        )
    ),
    (
        'facts_words_' || md5(given.of_scope),
        format('USING gin (words) WITH (fastupdate = off) WHERE %%s', given.of_scope)
    )
) AS made (name, definition);

-- name: present_indexes
-- The indexes of scopes that a schema has, and whether they are complete.
SELECT c.relname::text AS name, i.indisvalid AS is_valid
FROM pg_index AS i
INNER JOIN pg_class AS c ON c.oid = i.indexrelid
INNER JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = %(schema)s AND c.relname ~ '^facts_(near|words)_[0-9a-f]{32}$';

-- name: limit_memory
-- An index of vectors is made many times faster in memory: 2 bytes for each number and some 700 for the neighbours, up
-- to 2 GiB. One process makes it: several would need as much shared memory, which containers have little of.
SELECT
    set_config(
        'maintenance_work_mem', greatest(65536, least(2097152, %(facts)s::bigint * (2 * %(dimensions)s + 700) / 1024))::text,
        false
    ),
    set_config('max_parallel_maintenance_workers', '0', false);

-- name: add_scope
-- Let searches use the indexes of a scope.
INSERT INTO indexed_scopes ({{scope_ids}}, model, dimensions)
VALUES ({{scope_values}}, %(model)s, %(dimensions)s)
ON CONFLICT ({{scope_ids}}) DO UPDATE SET
    model = excluded.model,
    dimensions = excluded.dimensions;

-- name: remove_scope
-- Let searches scan a scope again.
DELETE FROM indexed_scopes
WHERE {{in_scope}};
