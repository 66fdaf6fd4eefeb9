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
