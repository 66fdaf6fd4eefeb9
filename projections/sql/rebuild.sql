-- name: become_sole
-- Whether this session may rebuild; it keeps the right until it ends.
SELECT pg_try_advisory_lock(%(lock)s);

-- name: limit_lock_wait
-- How long the next statements may wait for a lock, in milliseconds; those of a transaction alone, or of the session.
SELECT set_config('lock_timeout', %(milliseconds)s::text, %(in_transaction)s);

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
-- What the owner has granted on the live schema, its tables and their columns, as statements for the rebuilt ones.
SELECT
    format(
        'GRANT %%s%%s ON %%s TO %%s%%s',
        acl.privilege_type, given.columns, given.target,
        CASE acl.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(acl.grantee)) END,
        CASE WHEN acl.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END
    ) AS statement
FROM pg_namespace AS n
CROSS JOIN LATERAL (
    SELECT n.nspacl AS acl, n.nspowner AS owner, '' AS columns, format('SCHEMA %%I', %(rebuilt)s::text) AS target
    UNION ALL
    SELECT c.relacl, c.relowner, '', format('%%I.%%I', %(rebuilt)s::text, c.relname)
    FROM pg_class AS c
    WHERE c.relnamespace = n.oid AND c.relkind IN ('r', 'p', 'v')
    UNION ALL
    SELECT a.attacl, c.relowner, format(' (%%I)', a.attname), format('%%I.%%I', %(rebuilt)s::text, c.relname)
    FROM pg_class AS c
    INNER JOIN pg_attribute AS a ON a.attrelid = c.oid AND NOT a.attisdropped
    WHERE c.relnamespace = n.oid AND c.relkind IN ('r', 'p', 'v')
) AS given
CROSS JOIN LATERAL aclexplode(given.acl) AS acl
WHERE n.nspname = %(live)s AND acl.grantee <> given.owner;

-- name: objects
-- All that a schema holds and all that hangs on it, whosever it is: a name, and a digest of how it is defined, both
-- without the name of the schema. What other schemas of a rebuild hold and indexes of large scopes are left out.
WITH held AS (
    SELECT 'pg_namespace'::regclass AS classid, n.oid AS objid, n.oid AS schema
    FROM pg_namespace AS n
    UNION ALL
    SELECT 'pg_class'::regclass, c.oid, c.relnamespace FROM pg_class AS c
    UNION ALL
    SELECT 'pg_type'::regclass, t.oid, t.typnamespace FROM pg_type AS t
    UNION ALL
    SELECT 'pg_proc'::regclass, p.oid, p.pronamespace FROM pg_proc AS p
),
hanging AS (
    -- The rule of a view is the view.
    SELECT DISTINCT
        CASE WHEN r.oid IS NULL THEN link.classid ELSE 'pg_class'::regclass END AS classid,
        coalesce(r.ev_class, link.objid) AS objid,
        link.objsubid
    FROM held
    INNER JOIN pg_depend AS link ON (held.classid, held.objid) = (link.refclassid, link.refobjid)
    LEFT JOIN pg_rewrite AS r ON link.classid = 'pg_rewrite'::regclass AND link.objid = r.oid
    WHERE held.schema = to_regnamespace(%(schema)s) AND link.deptype <> 'i'
),
named AS (
    SELECT
        concat_ws(' ', o.type, o.identity) AS name,
        CASE hanging.classid
            WHEN 'pg_proc'::regclass THEN
                (SELECT pg_get_functiondef(p.oid) FROM pg_proc AS p WHERE p.oid = hanging.objid AND p.prokind <> 'a')
            WHEN 'pg_constraint'::regclass THEN pg_get_constraintdef(hanging.objid)
            WHEN 'pg_trigger'::regclass THEN
                (SELECT pg_get_triggerdef(t.oid) || t.tgenabled::text FROM pg_trigger AS t WHERE t.oid = hanging.objid)
            WHEN 'pg_class'::regclass THEN (
                SELECT
                    CASE c.relkind
                        WHEN 'i' THEN pg_get_indexdef(c.oid) WHEN 'v' THEN pg_get_viewdef(c.oid)
                        ELSE c.reloptions::text
                    END
                FROM pg_class AS c
                WHERE c.oid = hanging.objid
            )
        END AS definition
    FROM hanging
    CROSS JOIN LATERAL pg_identify_object(hanging.classid, hanging.objid, hanging.objsubid) AS o
    WHERE o.schema IS NULL OR o.schema = %(schema)s OR o.schema <> ALL(%(own)s)
    UNION ALL
    SELECT
        format('column %%I.%%I', c.relname, a.attname),
        concat_ws(
            ' ',
            format_type(a.atttypid, a.atttypmod), a.attnotnull,
            (SELECT pg_get_expr(d.adbin, d.adrelid) FROM pg_attrdef AS d WHERE d.adrelid = c.oid AND d.adnum = a.attnum)
        )
    FROM pg_class AS c
    INNER JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE c.relnamespace = to_regnamespace(%(schema)s) AND c.relkind IN ('r', 'p')
    UNION ALL
    SELECT format('row security of %%I', c.relname), ''
    FROM pg_class AS c
    WHERE c.relnamespace = to_regnamespace(%(schema)s) AND c.relrowsecurity
)
SELECT
    replace(named.name, quote_ident(%(schema)s) || '.', '') AS name,
    -- Without brackets: what was dumped and restored has fewer of them.
    coalesce(md5(translate(replace(named.definition, quote_ident(%(schema)s) || '.', ''), '()', '')), '') AS digest
FROM named
WHERE named.name !~ 'facts_(near|words)_[0-9a-f]{32}$'
ORDER BY name;

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

-- name: plain_indexes
-- The indexes of a schema that hold no constraint: name, table, and the statement that makes each.
SELECT c.relname::text AS name, t.relname::text AS of_table, pg_get_indexdef(i.indexrelid) AS definition
FROM pg_index AS i
INNER JOIN pg_class AS c ON c.oid = i.indexrelid
INNER JOIN pg_class AS t ON t.oid = i.indrelid
INNER JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = %(schema)s AND NOT EXISTS (SELECT FROM pg_constraint AS k WHERE k.conindid = i.indexrelid)
ORDER BY name;

-- name: schema_comment
-- What is noted about a schema; NULL where there is none, or nothing of ours.
SELECT obj_description(to_regnamespace(%(schema)s), 'pg_namespace');

-- name: table_structure
-- How a table is made: columns, constraints, indexes and triggers, without the name of its schema; nothing where there
-- is no such table.
SELECT replace(part.definition, quote_ident(n.nspname) || '.', '') AS definition
FROM pg_class AS c
INNER JOIN pg_namespace AS n ON n.oid = c.relnamespace
CROSS JOIN LATERAL (
    SELECT
        format(
            'column %%s %%s %%s %%s %%s',
            row_number() OVER (ORDER BY a.attnum), a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
            (SELECT pg_get_expr(d.adbin, d.adrelid) FROM pg_attrdef AS d WHERE d.adrelid = c.oid AND d.adnum = a.attnum)
        ) AS definition
    FROM pg_attribute AS a
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL
    SELECT format('%%s %%s %%s', k.conname, pg_get_constraintdef(k.oid), k.convalidated)
    FROM pg_constraint AS k
    WHERE k.conrelid = c.oid
    UNION ALL
    SELECT format('%%s %%s', pg_get_indexdef(i.indexrelid), i.indisvalid)
    FROM pg_index AS i
    WHERE i.indrelid = c.oid
    UNION ALL
    SELECT format('%%s %%s', pg_get_triggerdef(t.oid), t.tgenabled)
    FROM pg_trigger AS t
    WHERE t.tgrelid = c.oid AND NOT t.tgisinternal
) AS part
WHERE n.nspname = %(schema)s AND c.relname = %(table)s AND c.relkind = 'r'
ORDER BY definition;

-- name: show_live_rows
-- Show in the schema of a rebuild the rows of a live table up to the offsets that it has reached itself.
CREATE VIEW {view} AS
SELECT kept.*
FROM {table} AS kept
WHERE kept.log_offset < (SELECT o.next_offset FROM {offsets} AS o WHERE o.partition = kept.partition);

-- name: relation_kind
-- Whether a relation is a table (r) or a view (v); no row where there is none.
SELECT c.relkind::text AS kind
FROM pg_class AS c
INNER JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = %(schema)s AND c.relname = %(relation)s;

-- name: readers_of
-- Statements that define the views and functions of a schema that read one of these relations of it.
-- They name the relations without the schema where that comes first in the search path.
SELECT DISTINCT found.definition
FROM pg_class AS c
INNER JOIN pg_namespace AS n ON n.oid = c.relnamespace
INNER JOIN pg_depend AS link ON link.refobjid = c.oid AND link.refclassid = 'pg_class'::regclass
CROSS JOIN LATERAL (
    SELECT format('CREATE OR REPLACE VIEW %%I.%%I AS %%s', n.nspname, v.relname, pg_get_viewdef(v.oid)) AS definition
    FROM pg_rewrite AS r
    INNER JOIN pg_class AS v ON v.oid = r.ev_class AND v.relnamespace = n.oid
    WHERE r.oid = link.objid AND link.classid = 'pg_rewrite'::regclass AND v.relname <> ALL(%(relations)s)
    UNION ALL
    SELECT pg_get_functiondef(p.oid)
    FROM pg_proc AS p
    WHERE p.oid = link.objid AND link.classid = 'pg_proc'::regclass AND p.pronamespace = n.oid
) AS found
WHERE n.nspname = %(schema)s AND c.relname = ANY(%(relations)s)
ORDER BY found.definition;

-- name: trigger_functions
-- The functions of their own schema that triggers of these tables call.
SELECT DISTINCT p.proname::text AS name
FROM pg_trigger AS t
INNER JOIN pg_class AS c ON c.oid = t.tgrelid
INNER JOIN pg_namespace AS n ON n.oid = c.relnamespace
INNER JOIN pg_proc AS p ON p.oid = t.tgfoid AND p.pronamespace = n.oid
WHERE n.nspname = %(schema)s AND c.relname = ANY(%(tables)s)
ORDER BY name;

-- name: kept_rows
-- The rows of a table of the copy of the log between two offsets of a partition, in the order of the log.
SELECT {columns}
FROM {table}
WHERE partition = %(partition)s AND log_offset >= %(start)s AND log_offset < %(stop)s
ORDER BY {order};

-- name: row_outside_log
-- A row, if any, of an offset that no record of the log has.
SELECT kept.partition, kept.log_offset
FROM {table} AS kept
LEFT JOIN {offsets} AS o ON kept.partition = o.partition
WHERE kept.log_offset < 0 OR kept.log_offset >= coalesce(o.next_offset, 0)
LIMIT 1;
