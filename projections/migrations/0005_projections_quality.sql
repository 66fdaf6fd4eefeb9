-- name: projections_quality
-- How often memory is overwritten, and how often wrongly.

CREATE INDEX memory_events_overwrites ON memory_events (decided_at)
WHERE
    decided_by = 'model'
    AND event IN ('facts_merged', 'fact_replaced', 'fact_contradicted', 'fact_retracted', 'fact_expired', 'fact_pending');

CREATE VIEW overwrites AS
SELECT
    e.event_id,
    e.tenant,
    e.user_id,
    e.agent_id,
    e.app_id,
    e.run_id,
    e.event,
    e.decided_at,
    e.model,
    e.prompt_version,
    e.guard,
    e.stale,
    CASE
        WHEN EXISTS (SELECT FROM undone WHERE undone.event_id = e.event_id) THEN 'undone'
        WHEN held.settlement = 'rejected' THEN 'rejected'
        WHEN EXISTS (
            SELECT
            FROM memory_events AS c
            WHERE c.event = 'fact_corrected'
                AND c.targets @> ARRAY[e.fact_id]
                AND c.targets <> '{}'
                AND NOT EXISTS (SELECT FROM undone WHERE undone.event_id = c.event_id)
        ) THEN 'corrected'
    END AS taken_back
FROM memory_events AS e
LEFT JOIN pending_confirmations AS held ON e.event_id = held.event_id
WHERE
    e.decided_by = 'model'
    AND e.event IN (
        'facts_merged', 'fact_replaced', 'fact_contradicted', 'fact_retracted', 'fact_expired', 'fact_pending'
    );
COMMENT ON VIEW overwrites IS
'Every decision of a model to end a known fact, carried out or held back (fact_pending). taken_back says that it was '
'wrong, by whoever knew better: undone, rejected while it was pending, or its fact corrected by a human; NULL else.';
