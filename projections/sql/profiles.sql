-- name: profile
-- The profile of exactly one scope.
SELECT
    identity, work, relationships, sensitive_topics, hard_preferences, soft_preferences, current_tasks, other,
    recent_changes, updated_at
FROM profiles
WHERE {{in_scope}};

-- name: published_at
-- When the profile of a scope was last published: at the last end of a session, or at the last turn whose number in the
-- scope is a multiple of `every`; with a NULL there, at ends of sessions alone.
SELECT max(ended.decided_at)
FROM (
    SELECT
        c.decided_at, c.source_kind,
        row_number() OVER (PARTITION BY c.source_kind ORDER BY c.log_offset) AS number
    FROM commits AS c
    WHERE {{in_scope c}}
        AND (
            (c.source_kind = 'turn' AND c.outcome IN ('facts', 'no_facts'))
            OR (c.order_kind = 'end_session' AND c.outcome = 'done')
        )
) AS ended
WHERE ended.source_kind = 'command' OR mod(ended.number, %(every)s::bigint) = 0;

-- name: entries_at
-- What a profile had at an instant, with the state of each fact of that time, the surest first; what has ended by
-- another instant is left out, and so is what was deleted or retracted since.
WITH mine AS (
    SELECT f.*
    FROM facts AS f
    WHERE {{in_scope f}}
        AND f.recorded_at <= %(published_at)s
        AND f.status <> 'retracted'
        AND (f.valid_until IS NULL OR f.valid_until > %(at)s)
),
states AS (
    SELECT mine.fact_id, mine.status, mine.confidence, mine.true_from, mine.true_to, mine.unresolved
    FROM mine
    WHERE mine.state_since <= %(published_at)s
    UNION ALL
    SELECT
        former.fact_id, former.status, former.confidence, former.true_from, former.true_to,
        former.unresolved
    FROM mine
    INNER JOIN former_states AS former ON mine.fact_id = former.fact_id
    WHERE mine.state_since > %(published_at)s
        AND former.since <= %(published_at)s
        AND former.until > %(published_at)s
)
SELECT
    profile_section(mine.category) AS section,
    mine.key, mine.value, mine.text, mine.category, states.confidence,
    utc_text(states.true_from) AS at,
    utc_text(least(mine.valid_until, states.true_to)) AS valid_until,
    mine.fact_id::text AS fact_id,
    states.unresolved
FROM states
INNER JOIN mine ON states.fact_id = mine.fact_id
WHERE states.status = 'active'
    AND (states.true_to IS NULL OR states.true_to > %(at)s)
ORDER BY states.confidence DESC, states.true_from DESC, mine.recorded_at, mine.ordinal, mine.fact_id;

-- name: changes_at
-- The last changes that a profile had at an instant, the latest first, but for those to what was deleted or retracted
-- since.
SELECT had.event, had.text, had.fact_id, had.at, had.old
FROM (
    SELECT
        happened.event, about.text,
        happened.fact_id::text AS fact_id,
        utc_text(happened.decided_at) AS at,
        ended.old,
        about.status = 'retracted' AND about.state_since > %(published_at)s AS is_deleted
    FROM memory_events AS happened
    INNER JOIN facts AS about ON happened.fact_id = about.fact_id
    CROSS JOIN LATERAL (
        SELECT
            jsonb_agg(
                jsonb_build_object('text', old.text, 'fact_id', old.fact_id)
                ORDER BY old.recorded_at, old.ordinal, old.fact_id
            ) AS old
        FROM former_states AS former
        INNER JOIN facts AS old ON former.fact_id = old.fact_id
        WHERE former.event_id = happened.event_id
            AND old.fact_id = any(happened.fact_id || happened.targets)
            AND (
                old.fact_id <> happened.fact_id
                OR happened.event IN ('fact_retracted', 'fact_expired')
                OR happened.payload ->> 'action' = 'keep_old'
            )
    ) AS ended
    WHERE {{in_scope happened}}
        AND happened.event IN (
            'facts_merged', 'fact_replaced', 'fact_contradicted', 'fact_retracted', 'fact_expired', 'fact_corrected',
            'pending_confirmed', 'conflict_resolved'
        )
        AND ended.old IS NOT NULL
        AND happened.decided_at <= %(published_at)s
        AND NOT EXISTS (
            SELECT
            FROM undone
            WHERE undone.event_id = happened.event_id AND undone.since <= %(published_at)s
        )
    ORDER BY happened.decided_at DESC, happened.log_offset DESC, happened.ordinal DESC
    LIMIT 10
) AS had
WHERE NOT had.is_deleted;

-- name: sources
-- The turn or command that brought each of these facts, and what it said.
SELECT f.fact_id, f.source_id, f.excerpt
FROM facts AS f
WHERE f.fact_id = any(%(fact_ids)s);

-- name: lasting_facts
-- The facts of one scope that a context holds whatever the question is, as far as its profile has them: at most the
-- fifty surest of a section. They hold at an instant, or begin later. Of health, what happened at a time is none of
-- them.
SELECT {fact}
FROM profiles AS p
CROSS JOIN LATERAL jsonb_array_elements(
    p.hard_preferences || p.sensitive_topics || p.current_tasks || p.soft_preferences
) AS entry
INNER JOIN facts AS f ON f.fact_id = (entry ->> 'fact_id')::uuid
WHERE {{in_scope p}}
    AND f.status = 'active'
    AND f.category = any(%(categories)s)
    AND NOT (
        f.category = 'health'
        AND f.event_time IS NOT NULL
        AND coalesce(f.importance_category = any(%(events)s), false)
    )
    AND {{holds f %(at)s}};

-- name: promoted
-- The facts, of some given ones, that were promoted into one of several scopes: the promoted copy stands for them
-- there, whatever has become of it since.
SELECT promoted.promoted_from
FROM memory_events AS promoted
INNER JOIN facts AS f ON promoted.fact_id = f.fact_id
LEFT JOIN undone ON promoted.event_id = undone.event_id
WHERE promoted.promoted_from = ANY(%(fact_ids)s)
    AND undone.event_id IS NULL
    AND f.believed_from IS NOT NULL
    AND f.tenant = %(tenant)s
    AND (f.user_id, f.agent_id, f.app_id, f.run_id) IN (
        SELECT * FROM unnest(%(user_ids)s::text [], %(agent_ids)s::text [], %(app_ids)s::text [], %(run_ids)s::text [])
    );
