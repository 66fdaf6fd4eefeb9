-- name: tables
-- The tables of a schema: the columns that are compared and those of the primary key.
-- Generated columns follow from others.
SELECT
    c.relname::text AS name,
    pg_relation_size(c.oid) / current_setting('block_size')::bigint AS blocks,
    array_agg(a.attname::text ORDER BY a.attnum) FILTER (WHERE a.attgenerated = '') AS columns,
    (
        SELECT array_agg(k.attname::text ORDER BY array_position(i.indkey::smallint [], k.attnum))
        FROM pg_index AS i
        INNER JOIN pg_attribute AS k ON k.attrelid = i.indrelid AND k.attnum = ANY(i.indkey)
        WHERE i.indrelid = c.oid AND i.indisprimary
    ) AS key
FROM pg_class AS c
INNER JOIN pg_namespace AS n ON n.oid = c.relnamespace
INNER JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE n.nspname = %(schema)s AND c.relkind IN ('r', 'p')
GROUP BY c.oid, c.relname
ORDER BY c.relname;

-- name: export_snapshot
-- Let other connections see what this transaction sees.
SELECT pg_export_snapshot();

-- name: import_snapshot
-- See what the transaction sees that has exported the snapshot.
SET TRANSACTION SNAPSHOT {snapshot};

-- name: digest
-- The rows of some blocks of a table: how many, and the exclusive or of their hashes, 64 bits each.
-- A row is hashed as the bytes that Postgres sends for it: they do not depend on who asks. Rows have keys, so none is twice.
SELECT
    count(*) AS rows,
    coalesce(bit_xor(hashbyteaextended(record_send(ROW({columns})), 0)), 0) AS hash
FROM {table}
WHERE ctid >= %(start)s::tid AND (%(stop)s::tid IS NULL OR ctid < %(stop)s::tid);

-- name: settings
-- The text of a key must not depend on who asks.
SELECT
    set_config('TimeZone', 'UTC', true),
    set_config('DateStyle', 'ISO, YMD', true),
    set_config('IntervalStyle', 'iso_8601', true),
    set_config('bytea_output', 'hex', true);

-- name: differences
-- The rows that differ, every row against the one of the same key: how many, and some of them.
WITH live AS MATERIALIZED (
    SELECT ROW({key})::text AS key, sha256(record_send(ROW({columns}))) AS hash
    FROM {live}
),
rebuilt AS MATERIALIZED (
    SELECT ROW({key})::text AS key, sha256(record_send(ROW({columns}))) AS hash
    FROM {rebuilt}
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
    (SELECT count(*) FROM differing) AS differing,
    (SELECT coalesce(jsonb_agg(to_jsonb(examples)), '[]'::jsonb) FROM examples) AS examples;
