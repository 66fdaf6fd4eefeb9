-- name: become_sole
-- Whether this session may rebuild; it keeps the right until it ends.
SELECT pg_try_advisory_lock(%(lock)s);

-- name: limit_lock_wait
-- How long the next statements may wait for a lock, in milliseconds.
SELECT set_config('lock_timeout', %(milliseconds)s::text, false);

-- name: take_lock
-- Wait until nobody holds this advisory lock, and let nobody take it. For the projectors': readers go on.
SELECT pg_advisory_lock(%(lock)s);

-- name: share_lock
-- Hold an advisory lock together with others, until the session ends.
SELECT pg_advisory_lock_shared(%(lock)s);

-- name: release_lock
-- Give an advisory lock of this session back.
SELECT pg_advisory_unlock(%(lock)s);

-- name: live_table
-- The live offsets, or NULL where they are not there: broken tables are what a rebuild is for.
SELECT to_regclass(%(table)s);

-- name: live_offsets
-- How far the live tables hold the log.
SELECT partition, next_offset FROM {offsets};

-- name: grants
-- What the owner has granted on the live schema and its tables, as statements for the rebuilt ones.
SELECT
    format(
        'GRANT %%s ON SCHEMA %%I TO %%s%%s',
        acl.privilege_type,
        %(rebuilt)s::text,
        CASE acl.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(acl.grantee)) END,
        CASE WHEN acl.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END
    ) AS statement
FROM pg_namespace AS n
CROSS JOIN LATERAL aclexplode(n.nspacl) AS acl
WHERE n.nspname = %(live)s AND acl.grantee <> n.nspowner
UNION ALL
SELECT
    format(
        'GRANT %%s ON %%I.%%I TO %%s%%s',
        acl.privilege_type,
        %(rebuilt)s::text,
        c.relname,
        CASE acl.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(acl.grantee)) END,
        CASE WHEN acl.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END
    )
FROM pg_class AS c
INNER JOIN pg_namespace AS n ON n.oid = c.relnamespace
CROSS JOIN LATERAL aclexplode(c.relacl) AS acl
WHERE n.nspname = %(live)s AND c.relkind IN ('r', 'p', 'v') AND acl.grantee <> c.relowner;

-- name: dependents
-- Views and the like of other schemas that depend on the live tables: a swap would leave them with the old ones.
SELECT DISTINCT format('%%I.%%I', nd.nspname, d.relname) AS dependent
FROM pg_depend AS link
INNER JOIN pg_rewrite AS r ON r.oid = link.objid AND link.classid = 'pg_rewrite'::regclass
INNER JOIN pg_class AS d ON d.oid = r.ev_class
INNER JOIN pg_namespace AS nd ON nd.oid = d.relnamespace
INNER JOIN pg_class AS c ON c.oid = link.refobjid AND link.refclassid = 'pg_class'::regclass
INNER JOIN pg_namespace AS nc ON nc.oid = c.relnamespace
WHERE nc.nspname = %(live)s AND nd.nspname <> %(live)s
ORDER BY dependent;

-- name: log_page
-- The next records of a partition, applied and rejected ones alike, in the order of the log.
SELECT log_offset, record
FROM (
    SELECT partition, log_offset, record FROM commits
    UNION ALL
    SELECT partition, log_offset, record FROM rejections WHERE item = 0
) AS log
WHERE partition = %(partition)s AND log_offset >= %(start)s AND log_offset < %(stop)s
ORDER BY log_offset
LIMIT %(page)s;

-- name: log_ends
-- The partitions that the tables hold and where each ends.
SELECT partition, next_offset FROM projection_offsets ORDER BY partition;

-- name: take_snapshot
-- Fix what the transaction sees.
SELECT pg_current_snapshot();

-- name: analyze
-- Tell the planner about a new table before anybody queries it.
ANALYZE {table};

-- name: rename_schema
-- Swap by name: sees neither rows nor readers.
ALTER SCHEMA {old} RENAME TO {new};

-- name: ensure_schema
-- A live schema that was dropped as a whole is mended too.
CREATE SCHEMA IF NOT EXISTS {schema};

-- name: drop_schema
-- Remove what a rebuild has left over.
DROP SCHEMA IF EXISTS {schema} CASCADE;

-- name: plain_indexes
-- The indexes of a schema that hold no constraint: name, table, and the statement that makes each.
SELECT c.relname::text AS name, t.relname::text AS of_table, pg_get_indexdef(i.indexrelid) AS definition
FROM pg_index AS i
INNER JOIN pg_class AS c ON c.oid = i.indexrelid
INNER JOIN pg_class AS t ON t.oid = i.indrelid
INNER JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = %(schema)s AND NOT EXISTS (SELECT FROM pg_constraint AS k WHERE k.conindid = i.indexrelid)
ORDER BY name;

-- name: drop_index
-- Filling a table is quicker without its indexes.
DROP INDEX {index};

-- name: schema_comment
-- What is noted about a schema; no row where there is none, or none of ours.
SELECT d.description
FROM pg_namespace AS n
INNER JOIN pg_description AS d ON d.objoid = n.oid AND d.classoid = 'pg_namespace'::regclass
WHERE n.nspname = %(schema)s;

-- name: set_schema_comment
-- Note something about a schema.
COMMENT ON SCHEMA {schema} IS {comment};
