-- name: tables
-- The tables of a schema: the columns that are compared and those of the primary key.
-- Generated columns follow from others. Vectors and bytes are compared without writing them as text, which is slow.
SELECT
    c.relname::text AS name,
    array_agg(a.attname::text ORDER BY a.attnum) FILTER (WHERE a.attgenerated = '') AS columns,
    coalesce(array_agg(a.attname::text ORDER BY a.attnum) FILTER (WHERE t.typname = 'halfvec'), '{}') AS vectors,
    coalesce(array_agg(a.attname::text ORDER BY a.attnum) FILTER (WHERE t.typname = 'bytea'), '{}') AS bytes,
    (
        SELECT array_agg(k.attname::text ORDER BY array_position(i.indkey::smallint [], k.attnum))
        FROM pg_index AS i
        INNER JOIN pg_attribute AS k ON k.attrelid = i.indrelid AND k.attnum = ANY(i.indkey)
        WHERE i.indrelid = c.oid AND i.indisprimary
    ) AS key
FROM pg_class AS c
INNER JOIN pg_namespace AS n ON n.oid = c.relnamespace
INNER JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
INNER JOIN pg_type AS t ON t.oid = a.atttypid
WHERE n.nspname = %(schema)s AND c.relkind IN ('r', 'p')
GROUP BY c.oid, c.relname
ORDER BY c.relname;

-- name: settings
-- The text of a row must not depend on who asks.
SELECT
    set_config('TimeZone', 'UTC', true),
    set_config('DateStyle', 'ISO, YMD', true),
    set_config('IntervalStyle', 'iso_8601', true),
    set_config('extra_float_digits', '1', true),
    set_config('bytea_output', 'hex', true),
    set_config('statement_timeout', '0', true);

-- name: compare
-- Both digests of a table and the rows that differ, every row against the one of the same key.
-- The digest is SHA-256 over the sorted SHA-256 of all rows, in 256 parts: one string of all would end at 1 GB.
WITH live AS MATERIALIZED (
    SELECT ROW({key})::text AS key, sha256(convert_to(ROW({columns})::text, 'UTF8')) AS hash
    FROM {live}
),
rebuilt AS MATERIALIZED (
    SELECT ROW({key})::text AS key, sha256(convert_to(ROW({columns})::text, 'UTF8')) AS hash
    FROM {rebuilt}
),
live_parts AS (
    SELECT get_byte(hash, 0) AS part, sha256(string_agg(hash, ''::bytea ORDER BY hash)) AS hash, count(*) AS rows
    FROM live
    GROUP BY part
),
rebuilt_parts AS (
    SELECT get_byte(hash, 0) AS part, sha256(string_agg(hash, ''::bytea ORDER BY hash)) AS hash, count(*) AS rows
    FROM rebuilt
    GROUP BY part
),
differing AS MATERIALIZED (
    SELECT
        coalesce(live.key, rebuilt.key) AS key,
        CASE
            WHEN live.hash IS NULL THEN 'missing'
            WHEN rebuilt.hash IS NULL THEN 'unfounded'
            ELSE 'changed'
        END AS kind
    FROM live
    FULL JOIN rebuilt ON live.key = rebuilt.key
    WHERE live.hash IS DISTINCT FROM rebuilt.hash
),
examples AS (
    SELECT key, kind
    FROM differing
    ORDER BY key, kind
    LIMIT %(examples)s
)
SELECT
    (SELECT coalesce(sum(rows), 0)::bigint FROM live_parts) AS live_rows,
    (SELECT coalesce(sum(rows), 0)::bigint FROM rebuilt_parts) AS rebuilt_rows,
    (
        SELECT encode(sha256(coalesce(string_agg(hash, ''::bytea ORDER BY part), ''::bytea)), 'hex')
        FROM live_parts
    ) AS live_digest,
    (
        SELECT encode(sha256(coalesce(string_agg(hash, ''::bytea ORDER BY part), ''::bytea)), 'hex')
        FROM rebuilt_parts
    ) AS rebuilt_digest,
    (SELECT count(*) FROM differing) AS differing,
    (SELECT coalesce(jsonb_agg(to_jsonb(examples)), '[]'::jsonb) FROM examples) AS examples;

-- name: compare_alone
-- The digest of a rebuilt table whose live twin is missing or has other columns: every row differs.
WITH rebuilt AS MATERIALIZED (
    SELECT sha256(convert_to(ROW({columns})::text, 'UTF8')) AS hash
    FROM {rebuilt}
),
parts AS (
    SELECT get_byte(hash, 0) AS part, sha256(string_agg(hash, ''::bytea ORDER BY hash)) AS hash, count(*) AS rows
    FROM rebuilt
    GROUP BY part
)
SELECT
    0::bigint AS live_rows,
    (SELECT coalesce(sum(rows), 0)::bigint FROM parts) AS rebuilt_rows,
    '' AS live_digest,
    (
        SELECT encode(sha256(coalesce(string_agg(hash, ''::bytea ORDER BY part), ''::bytea)), 'hex') FROM parts
    ) AS rebuilt_digest,
    (SELECT coalesce(sum(rows), 0)::bigint FROM parts) AS differing,
    '[]'::jsonb AS examples;
