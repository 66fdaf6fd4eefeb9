-- Views and functions of a schema, and what depends on them.

-- name: functions
-- The functions of these names, each with the transaction that wrote it and its signature: other types of parameters make
-- another function.
SELECT p.oid, p.xmin::text AS written_by, p.oid::regprocedure::text AS signature
FROM pg_proc AS p
WHERE p.pronamespace = to_regnamespace(%(schema)s) AND p.proname = ANY(%(names)s);

-- name: objects
-- The views and functions of these names, each with the statement that drops it.
SELECT c.oid, format('DROP VIEW IF EXISTS %%s CASCADE', c.oid::regclass) AS statement
FROM pg_class AS c
WHERE c.relnamespace = to_regnamespace(%(schema)s) AND c.relkind = 'v' AND c.relname = ANY(%(names)s)
UNION ALL
SELECT p.oid, format('DROP FUNCTION IF EXISTS %%s CASCADE', p.oid::regprocedure)
FROM pg_proc AS p
WHERE p.pronamespace = to_regnamespace(%(schema)s) AND p.proname = ANY(%(names)s);

-- name: dependents
-- What needs one of these views and functions, or the type of a view's rows, and is none of them.
WITH asked AS (
    SELECT unnest(%(oids)s::oid []) AS oid
),
needed AS (
    SELECT oid FROM asked
    UNION ALL
    SELECT t.oid FROM asked INNER JOIN pg_type AS t ON t.typrelid = asked.oid
    UNION ALL
    SELECT t.typarray FROM asked INNER JOIN pg_type AS t ON t.typrelid = asked.oid
)
SELECT DISTINCT coalesce(v.oid::regclass::text, p.oid::regprocedure::text, pg_describe_object(d.classid, d.objid, 0)) AS name
FROM pg_depend AS d
LEFT JOIN pg_rewrite AS r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
LEFT JOIN pg_class AS v ON v.oid = CASE d.classid WHEN 'pg_class'::regclass THEN d.objid ELSE r.ev_class END
LEFT JOIN pg_proc AS p ON d.classid = 'pg_proc'::regclass AND p.oid = d.objid
WHERE d.refobjid IN (SELECT oid FROM needed)
    AND d.refclassid IN ('pg_class'::regclass, 'pg_proc'::regclass, 'pg_type'::regclass)
    AND d.classid <> 'pg_type'::regclass
    AND coalesce(v.oid, p.oid, 0) NOT IN (SELECT oid FROM asked)
ORDER BY 1;

-- name: content
-- Some of the tables, views and functions that a schema has.
SELECT found.name
FROM (
    SELECT c.relname::text AS name FROM pg_class AS c WHERE c.relnamespace = to_regnamespace(%(schema)s)
    UNION ALL
    SELECT p.proname::text FROM pg_proc AS p WHERE p.pronamespace = to_regnamespace(%(schema)s)
) AS found
ORDER BY found.name
LIMIT 3;
