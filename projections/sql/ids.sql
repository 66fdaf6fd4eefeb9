-- name: facts
-- The facts of some scopes whose ids lie in each of several ranges, a few of each.
SELECT asked.number, found.*
FROM unnest(%(low)s::uuid [], %(high)s::uuid []) WITH ORDINALITY AS asked (low, high, number)
CROSS JOIN LATERAL (
    SELECT f.fact_id::text AS id, f.text, {{scope_ids f}}
    FROM facts AS f
    WHERE f.fact_id BETWEEN asked.low AND asked.high AND {scope}
    ORDER BY f.fact_id
    LIMIT %(bound)s
) AS found
ORDER BY asked.number, found.id;

-- name: facts_and_merges
-- The same for facts and proposed merges of entities.
SELECT asked.number, found.*
FROM unnest(%(low)s::uuid [], %(high)s::uuid []) WITH ORDINALITY AS asked (low, high, number)
CROSS JOIN LATERAL (
    (
        SELECT f.fact_id::text AS id, f.text, {{scope_ids f}}
        FROM facts AS f
        WHERE f.fact_id BETWEEN asked.low AND asked.high AND {scope}
        ORDER BY f.fact_id
        LIMIT %(bound)s
    )
    UNION ALL
    (
        SELECT f.event_id::text AS id, f.event AS text, {{scope_ids f}}
        FROM entity_changes AS f
        WHERE f.event_id BETWEEN asked.low AND asked.high AND f.event = 'merge_proposed' AND {scope}
        ORDER BY f.event_id
        LIMIT %(bound)s
    )
) AS found
ORDER BY asked.number, found.id;

-- name: events
-- The same for events, about facts and about entities.
SELECT asked.number, found.*
FROM unnest(%(low)s::uuid [], %(high)s::uuid []) WITH ORDINALITY AS asked (low, high, number)
CROSS JOIN LATERAL (
    (
        SELECT e.event_id::text AS id, e.event AS text, {{scope_ids e}}
        FROM memory_events AS e
        WHERE e.event_id BETWEEN asked.low AND asked.high AND {scope}
        ORDER BY e.event_id
        LIMIT %(bound)s
    )
    UNION ALL
    (
        SELECT e.event_id::text AS id, e.event AS text, {{scope_ids e}}
        FROM entity_changes AS e
        WHERE e.event_id BETWEEN asked.low AND asked.high AND {scope}
        ORDER BY e.event_id
        LIMIT %(bound)s
    )
) AS found
ORDER BY asked.number, found.id;

-- name: turns
-- The turns and commands of some scopes with this id, or, where there is none, with ids that begin so.
WITH mine AS (
    SELECT c.source_id, c.source_kind, {{scope_ids c}}
    FROM commits AS c
    WHERE c.tenant = %(tenant)s AND c.source_id ^@ %(beginning)s
    UNION
    SELECT j.source_id, 'turn', {{scope_ids j}}
    FROM turn_journal AS j
    WHERE j.tenant = %(tenant)s AND j.source_id ^@ %(beginning)s
)
SELECT 1 AS number, t.source_id AS id, t.source_kind AS text, {{scope_ids t}}
FROM mine AS t
WHERE {scope}
ORDER BY t.source_id <> %(beginning)s, t.source_id, t.user_id, t.agent_id, t.app_id, t.run_id
LIMIT %(bound)s;

-- name: neighbours
-- The facts and events whose ids are the next ones before and after each id: those that share the most characters.
SELECT
    asked.id,
    ARRAY[
        (SELECT f.fact_id FROM facts AS f WHERE f.fact_id < asked.id ORDER BY f.fact_id DESC LIMIT 1),
        (SELECT f.fact_id FROM facts AS f WHERE f.fact_id > asked.id ORDER BY f.fact_id LIMIT 1),
        (SELECT e.event_id FROM memory_events AS e WHERE e.event_id < asked.id ORDER BY e.event_id DESC LIMIT 1),
        (SELECT e.event_id FROM memory_events AS e WHERE e.event_id > asked.id ORDER BY e.event_id LIMIT 1)
    ] AS others
FROM unnest(%(ids)s::uuid []) AS asked (id);
