-- name: carried_out
-- The overwrites that these events carried out, by event and by who proposed them; what was held back is carried out by
-- its first confirmation, and not once more by another one after an undo.
WITH done AS (
    SELECT e.event_id AS proposal, e.event
    FROM memory_events AS e
    WHERE e.event_id = ANY(%(event_ids)s::uuid []) AND e.event NOT IN ('fact_pending', 'pending_confirmed')
    UNION ALL
    SELECT held.event_id, e.event
    FROM memory_events AS e
    INNER JOIN pending_confirmations AS held ON e.fact_id = held.fact_id
    WHERE e.event_id = ANY(%(event_ids)s::uuid [])
        AND e.event = 'pending_confirmed'
        AND EXISTS (
            SELECT FROM former_states AS ended
            WHERE ended.event_id = e.event_id AND ended.fact_id = ANY(e.targets)
        )
        AND NOT EXISTS (
            SELECT
            FROM memory_events AS earlier
            INNER JOIN former_states AS ended ON earlier.event_id = ended.event_id
            WHERE earlier.event = 'pending_confirmed'
                AND earlier.fact_id = e.fact_id
                AND (earlier.log_offset, earlier.ordinal) < (e.log_offset, e.ordinal)
                AND ended.fact_id = ANY(earlier.targets)
        )
)
SELECT
    done.event,
    o.decided_by AS by,
    coalesce(o.model, '') AS model,
    coalesce(o.prompt_version, '') AS prompt_version,
    count(*) AS overwrites
FROM done
INNER JOIN overwrites AS o ON done.proposal = o.event_id
GROUP BY done.event, o.decided_by, o.model, o.prompt_version;

-- name: taken_back
-- The overwrites of models and rules that these events took back, by how, model and prompt.
WITH named AS (
    SELECT e.undoes AS event_id
    FROM memory_events AS e
    WHERE e.event_id = ANY(%(event_ids)s::uuid []) AND e.undoes IS NOT NULL
    UNION
    SELECT held.event_id
    FROM memory_events AS e
    INNER JOIN memory_events AS confirmation ON e.undoes = confirmation.event_id
    INNER JOIN pending_confirmations AS held ON confirmation.fact_id = held.fact_id
    WHERE e.event_id = ANY(%(event_ids)s::uuid []) AND confirmation.event = 'pending_confirmed'
    UNION
    SELECT held.event_id
    FROM memory_events AS e
    INNER JOIN pending_confirmations AS held ON e.fact_id = held.fact_id
    WHERE e.event_id = ANY(%(event_ids)s::uuid []) AND e.event = 'pending_rejected'
    UNION
    SELECT disbelieved.event_id
    FROM memory_events AS e
    CROSS JOIN unnest(e.targets) AS target (fact_id)
    INNER JOIN memory_events AS disbelieved ON target.fact_id = disbelieved.fact_id
    WHERE e.event_id = ANY(%(event_ids)s::uuid [])
        AND e.event IN ('fact_corrected', 'pending_confirmed', 'conflict_resolved')
        AND e.decided_by = 'person'
)
SELECT
    o.taken_back AS how,
    coalesce(o.model, '') AS model,
    coalesce(o.prompt_version, '') AS prompt_version,
    count(*) AS overwrites
FROM named
INNER JOIN overwrites AS o ON named.event_id = o.event_id
WHERE o.decided_by IN ('model', 'rule') AND o.taken_back IS NOT NULL
GROUP BY o.taken_back, o.model, o.prompt_version;
