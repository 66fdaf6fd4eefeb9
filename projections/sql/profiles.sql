-- name: profile
-- The profile of exactly one scope.
SELECT sections, recent_changes, updated_at
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
            (c.source_kind = 'turn' AND c.outcome IN ('stored', 'nothing_stored'))
            OR (c.order_kind = 'end_session' AND c.outcome = 'done')
        )
) AS ended
WHERE ended.source_kind = 'command' OR mod(ended.number, %(every)s::bigint) = 0;

-- name: published
-- What a profile had when it was published, as far as it may be shown now.
SELECT
    sections, recent_changes, %(published_at)s AS updated_at, %(published_at)s AS published_at
FROM profile_of_scope({{scope_values}}, %(published_at)s);

-- name: sources
-- The turn or command that brought each of these facts, and what it said.
SELECT f.fact_id, f.source_id, f.excerpt
FROM facts AS f
WHERE f.fact_id = any(%(fact_ids)s);

-- name: lasting_facts
-- The facts of one scope that a context holds whatever the question is, as far as its profile has them: at most the
-- fifty surest of a section. They hold at an instant, or begin later. What only ends or denies something is none of them,
-- and neither is what happened to one's health at a time.
SELECT {fact}
FROM profiles AS p
CROSS JOIN LATERAL jsonb_each(p.sections) AS section
CROSS JOIN LATERAL jsonb_array_elements(section.value) AS entry
INNER JOIN facts AS f ON f.fact_id = (entry ->> 'fact_id')::uuid
WHERE {{in_scope p}}
    AND f.status = 'active'
    AND f.category || f.more_categories && %(categories)s::text []
    AND f.action_hint <> 'retract'
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
