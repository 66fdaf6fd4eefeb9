-- name: delete_all
-- The exact scopes within a wider one that hold active or pending facts, of one key or category where that is given.
SELECT DISTINCT tenant, user_id, agent_id, app_id, run_id
FROM facts
WHERE
    status IN ('active', 'pending_confirmation')
    AND tenant = %(tenant)s
    AND user_id = coalesce(%(user_id)s::text, user_id)
    AND agent_id = coalesce(%(agent_id)s::text, agent_id)
    AND app_id = coalesce(%(app_id)s::text, app_id)
    AND run_id = coalesce(%(run_id)s::text, run_id)
    AND (%(key)s::text IS NULL OR key = %(key)s)
    AND (%(category)s::text IS NULL OR category = %(category)s)
ORDER BY tenant, user_id, agent_id, app_id, run_id;

-- name: undo
-- The exact scopes within a wider one in which a model or prompt version decided something that is still in effect.
SELECT DISTINCT tenant, user_id, agent_id, app_id, run_id
FROM memory_events
WHERE
    tenant = %(tenant)s
    AND user_id = coalesce(%(user_id)s::text, user_id)
    AND agent_id = coalesce(%(agent_id)s::text, agent_id)
    AND app_id = coalesce(%(app_id)s::text, app_id)
    AND run_id = coalesce(%(run_id)s::text, run_id)
    AND (%(model)s::text IS NULL OR model = %(model)s)
    AND (%(prompt_version)s::text IS NULL OR prompt_version = %(prompt_version)s)
    AND decided_at >= %(since)s
    AND decided_at < %(until)s
    AND NOT EXISTS (SELECT 1 FROM undone WHERE undone.event_id = memory_events.event_id)
ORDER BY tenant, user_id, agent_id, app_id, run_id;
