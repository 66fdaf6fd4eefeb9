-- name: conflicting_fact
-- A known fact, as JSON, that a new fact would overwrite or was added beside.
jsonb_build_object(
    'fact_id', t.fact_id,
    'text', t.text,
    'status', t.status,
    'confidence', t.confidence,
    'authority', t.authority,
    'excerpt', t.excerpt,
    'source_id', t.source_id,
    'true_from', utc_text(t.true_from)
)

-- name: open
-- What waits for a confirmation in a scope, the oldest first: the new fact, what a confirmation would overwrite, what
-- it would stand beside because a target has become that, and why it waits.
SELECT
    waiting.action, waiting.ended_at, waiting.guard, waiting.needs_human, waiting.since, e.event_id, e.reason,
    e.decided_by, e.model,
    e.payload -> 'decision' ->> 'verdict' AS verdict,
    coalesce(old.facts, '[]'::jsonb) AS conflicting,
    coalesce(old.successors, '[]'::jsonb) AS successors,
    {fact}
FROM pending_confirmations AS waiting
INNER JOIN facts AS f ON waiting.fact_id = f.fact_id
INNER JOIN memory_events AS e ON waiting.event_id = e.event_id
LEFT JOIN LATERAL (
    SELECT
        jsonb_agg(
            {conflicting} ORDER BY t.recorded_at, t.ordinal, t.fact_id
        ) FILTER (WHERE NOT challenged.is_successor) AS facts,
        jsonb_agg(
            {conflicting} ORDER BY t.recorded_at, t.ordinal, t.fact_id
        ) FILTER (WHERE challenged.is_successor) AS successors
    FROM challenged_facts(ARRAY[waiting.fact_id]) AS challenged
    INNER JOIN facts AS t ON challenged.fact_id = t.fact_id
    WHERE {{same_scope t waiting}}
) AS old ON true
WHERE waiting.settled_at IS NULL
    AND {scope}
ORDER BY waiting.since, f.ordinal, waiting.fact_id;

-- name: merges
-- The merges of entities of a scope that wait for a person, the oldest first.
SELECT
    proposed.event_id, {{shown_scope proposed}}, proposed.merged,
    proposed.into_id AS "into",
    proposed.merged_name, proposed.into_name, proposed.reason,
    names_in_change(ARRAY[proposed.merged, proposed.into_id]) AS names,
    proposed.decided_by, proposed.source_id,
    proposed.decided_at AS since
FROM merge_proposals AS proposed
WHERE proposed.is_pending
    AND {scope}
ORDER BY proposed.decided_at, proposed.partition, proposed.log_offset, proposed.ordinal;

-- name: unresolved
-- The unresolved active facts of a scope, the oldest first, and the facts that they were put beside, the likeliest
-- first, as far as these are active or pending.
-- A fact that is open again because its end has moved stands beside other values of its key.
SELECT
    e.event_id, e.reason, e.model,
    coalesce(known.facts, '[]'::jsonb) AS conflicting,
    {fact}
FROM facts AS f
INNER JOIN LATERAL (
    SELECT asked.*
    FROM (
        SELECT
            happened.event_id, happened.reason, happened.model, happened.partition, happened.log_offset,
            coalesce(happened.payload -> 'decision' -> 'shown', '[]'::jsonb) AS shown
        FROM memory_events AS happened
        WHERE happened.fact_id = f.fact_id
            AND happened.event IN ('fact_added', 'pending_confirmed')
            AND (happened.payload ->> 'unresolved')::boolean
        UNION ALL
        SELECT
            happened.event_id, happened.reason, happened.model, happened.partition, happened.log_offset,
            coalesce(moved.ending -> 'beside', '[]'::jsonb) AS shown
        FROM former_states AS former
        INNER JOIN memory_events AS happened ON former.event_id = happened.event_id
        CROSS JOIN LATERAL jsonb_array_elements(happened.payload -> 'moved_ends') AS moved (ending)
        WHERE former.fact_id = f.fact_id
            AND (moved.ending ->> 'fact_id')::uuid = f.fact_id
            AND (moved.ending ->> 'unresolved')::boolean
    ) AS asked
    ORDER BY asked.shown = '[]', asked.partition DESC, asked.log_offset DESC
    LIMIT 1
) AS e ON true
LEFT JOIN LATERAL (
    SELECT jsonb_agg({conflicting} ORDER BY shown.place) AS facts
    FROM jsonb_array_elements_text(e.shown) WITH ORDINALITY AS shown (fact_id, place)
    INNER JOIN facts AS t ON t.fact_id = shown.fact_id::uuid
    WHERE t.status IN ('active', 'pending_confirmation')
        AND {{same_scope t f}}
) AS known ON true
WHERE f.unresolved
    AND f.status = 'active'
    AND {scope}
ORDER BY f.recorded_at, f.ordinal, f.fact_id;
