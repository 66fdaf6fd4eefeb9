-- name: schema_comment
-- What is noted about the schema; no row where there is none.
SELECT d.description
FROM pg_namespace AS n
INNER JOIN pg_description AS d ON d.objoid = n.oid AND d.classoid = 'pg_namespace'::regclass
WHERE n.nspname = 'memory';

-- name: content
-- Some of the tables, views and functions that the schema has.
SELECT found.name
FROM (
    SELECT c.relname::text AS name FROM pg_class AS c WHERE c.relnamespace = to_regnamespace('memory')
    UNION ALL
    SELECT p.proname::text FROM pg_proc AS p WHERE p.pronamespace = to_regnamespace('memory')
) AS found
ORDER BY found.name
LIMIT 3;

-- name: create_schema
-- Make it where there is none.
CREATE SCHEMA IF NOT EXISTS memory;

-- name: set_comment
-- Note which definitions it has.
COMMENT ON SCHEMA memory IS {comment};

-- name: rename_schema
-- Out of the way of a new one, in a transaction that is rolled back.
ALTER SCHEMA memory RENAME TO memory_before;

-- name: functions
-- The functions of the schema, each with the types of its parameters: other types make another function.
SELECT p.oid, p.proname::text AS name, i.identity
FROM pg_proc AS p
CROSS JOIN LATERAL pg_identify_object('pg_proc'::regclass, p.oid, 0) AS i
WHERE p.pronamespace = 'memory'::regnamespace;

-- name: relations
-- The views of the schema, and tables that somebody has made in it.
SELECT c.relname::text FROM pg_class AS c WHERE c.relnamespace = 'memory'::regnamespace AND c.relkind IN ('v', 'm', 'r', 'p');

-- name: dependents
-- Views, functions and the like that would be lost with these functions, or, without them, outside of the schema with it.
SELECT DISTINCT coalesce(v.oid::regclass::text, p.oid::regprocedure::text, pg_describe_object(link.classid, link.objid, 0))
FROM pg_depend AS link
LEFT JOIN pg_rewrite AS r ON link.classid = 'pg_rewrite'::regclass AND r.oid = link.objid
LEFT JOIN pg_class AS v ON v.oid = CASE link.classid WHEN 'pg_class'::regclass THEN link.objid ELSE r.ev_class END
LEFT JOIN pg_proc AS p ON link.classid = 'pg_proc'::regclass AND p.oid = link.objid
WHERE (
    (link.refclassid = 'pg_class'::regclass AND link.refobjid IN (
        SELECT oid FROM pg_class WHERE relnamespace = 'memory'::regnamespace
    ))
    OR (link.refclassid = 'pg_proc'::regclass AND link.refobjid IN (
        SELECT oid FROM pg_proc WHERE pronamespace = 'memory'::regnamespace
    ))
    OR (link.refclassid = 'pg_type'::regclass AND link.refobjid IN (
        SELECT oid FROM pg_type WHERE typnamespace = 'memory'::regnamespace
    ))
)
AND link.classid <> 'pg_type'::regclass
AND CASE
    WHEN %(functions)s::oid[] IS NULL THEN coalesce(v.relnamespace, p.pronamespace, 0) <> 'memory'::regnamespace
    ELSE link.refclassid = 'pg_proc'::regclass AND link.refobjid = ANY(%(functions)s)
END
ORDER BY 1;

-- name: drop_schema
-- Remove all of it.
DROP SCHEMA memory CASCADE;
