-- name: promoted
-- Those of some facts that were promoted into one of several scopes: what they were promoted to stands for them there,
-- whatever has become of it since.
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

-- name: lasting_facts
-- The facts of one scope that a context holds whatever the question is, as far as its profile has them: at most the
-- fifty surest of a section. They hold at an instant, or begin later. Of health, what happened at a time is none of them.
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
