-- name: decided
-- What is in effect, was decided in [since, until), and by a model or a prompt version, or extracted by it, or is of a
-- turn in which it found whom a name means. A prompt version stands for its variants too: extract-6-turns-1 is extract-6
-- for several turns of one call.
happened.decided_at >= %(since)s
AND happened.decided_at < %(until)s
AND NOT EXISTS (SELECT FROM undone WHERE undone.event_id = happened.event_id)
AND (
    (
        (%(model)s::text IS NULL OR happened.model = %(model)s)
        AND (
            %(prompt_version)s::text IS NULL
            OR starts_with(happened.prompt_version || '-', %(prompt_version)s || '-')
        )
    )
    OR EXISTS (
        SELECT
        FROM commits
        CROSS JOIN LATERAL jsonb_array_elements(commits.provenance -> 'steps') AS step
        WHERE commits.partition = happened.partition
            AND commits.log_offset = happened.log_offset
            AND (
                step ->> 'stage' = 'extract'
                OR jsonb_path_exists(step, '$.answered_names[*].entity_id')
            )
            AND (%(model)s::text IS NULL OR step ->> 'model' = %(model)s)
            AND (
                %(prompt_version)s::text IS NULL
                OR starts_with((step ->> 'prompt_version') || '-', %(prompt_version)s || '-')
                OR step ->> 'instructions' = %(prompt_version)s
            )
    )
)

-- name: by_event
-- One event, if it is of exactly this scope.
SELECT event_id
FROM memory_events
WHERE event_id = %(event_id)s
    AND {{in_scope}};

-- name: by_source
-- The events of one turn or command, if it is of exactly this scope.
SELECT event_id
FROM memory_events
WHERE owner = %(owner)s
    AND source_id = %(source_id)s
    AND {{in_scope}}
LIMIT %(limit)s;

-- name: by_model
-- The events in effect of exactly this scope, decided in [since, until), that a model or a prompt version decided, or
-- whose statement it extracted.
SELECT happened.event_id
FROM memory_events AS happened
WHERE {{in_scope happened}}
    AND {decided}
LIMIT %(limit)s;

-- name: events_touching
-- The events of a scope that brought, changed or named one of these facts; with those that undid or
-- reinstated them.
WITH touching AS (
    SELECT event_id
    FROM memory_events
    WHERE fact_id = ANY(%(fact_ids)s::uuid [])
    UNION
    SELECT event_id
    FROM memory_events
    WHERE targets <> '{}' AND targets && %(fact_ids)s::uuid []
    UNION
    SELECT event_id
    FROM former_states
    WHERE fact_id = ANY(%(fact_ids)s::uuid [])
    UNION
    -- Late news names the fact that ended it.
    SELECT happened.event_id
    FROM facts AS late
    INNER JOIN memory_events AS happened ON late.fact_id = happened.fact_id AND happened.event = 'fact_added'
    WHERE late.superseded_by = ANY(%(fact_ids)s::uuid [])
        AND {{in_scope late}}
),
undoing AS (
    SELECT undo.event_id
    FROM touching
    INNER JOIN memory_events AS undo ON touching.event_id = undo.undoes
)
SELECT event_id FROM touching
UNION
SELECT event_id FROM undoing
UNION
SELECT undo.event_id
FROM undoing
INNER JOIN memory_events AS undo ON undoing.event_id = undo.undoes;

-- name: events
-- These events in the order of the log: the fact that each brought, those it changed, and all that it names; and the
-- decision that it made, undid or reinstated, with the last event that did so.
SELECT
    happened.event_id, happened.event,
    ARRAY[happened.partition, happened.log_offset, happened.ordinal] AS position,
    happened.source_id, happened.occurred_at,
    happened.payload -> 'decision' ->> 'by' AS decided_by,
    coalesce(happened.payload -> 'fact' ->> 'text', happened.payload -> 'statement' ->> 'text') AS statement_text,
    (happened.payload -> 'fact' ->> 'fact_id')::uuid AS new_fact_id,
    changed.fact_ids AS changed_fact_ids,
    array_remove(
        happened.fact_id
        || happened.targets
        || changed.fact_ids
        || root.fact_id
        || root.targets
        || (root.payload ->> 'ended_by')::uuid, NULL
    ) AS named_fact_ids,
    root.event_id AS original_id,
    root.event AS original_event,
    ARRAY[root.partition, root.log_offset, root.ordinal] AS original_position,
    happened.undoes IS NULL OR happened.payload ->> 'reinstated' IS NOT NULL AS enables,
    coalesce(turned.event_id, root.event_id) AS latest_id
FROM memory_events AS happened
INNER JOIN memory_events AS root
    ON root.event_id = coalesce((happened.payload ->> 'reinstated')::uuid, happened.undoes, happened.event_id)
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(former.fact_id ORDER BY former.fact_id), '{}') AS fact_ids
    FROM former_states AS former
    WHERE former.event_id = happened.event_id
) AS changed
LEFT JOIN LATERAL (
    SELECT undo.event_id
    FROM memory_events AS undo
    -- As a list, since with OR every event would be read for each.
    WHERE undo.undoes = ANY(
        root.event_id || ARRAY(SELECT first.event_id FROM memory_events AS first WHERE first.undoes = root.event_id)
    )
    ORDER BY undo.log_offset DESC, undo.ordinal DESC
    LIMIT 1
) AS turned ON true
WHERE happened.event_id = ANY(%(event_ids)s::uuid [])
ORDER BY happened.partition, happened.log_offset, happened.ordinal;

-- name: former_states
-- The states of these facts before each event that changed them, in the order of the log.
SELECT former.fact_id, former.event_id, {{state_of former}}
FROM former_states AS former
INNER JOIN memory_events AS happened ON former.event_id = happened.event_id
WHERE former.fact_id = ANY(%(fact_ids)s::uuid [])
ORDER BY former.fact_id, happened.partition, happened.log_offset, happened.ordinal;
