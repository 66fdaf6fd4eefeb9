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
-- The exact scopes within a wider one in which a model or prompt version decided something that is still in effect, or
-- extracted its statement.
SELECT DISTINCT happened.tenant, happened.user_id, happened.agent_id, happened.app_id, happened.run_id
FROM memory_events AS happened
WHERE
    happened.tenant = %(tenant)s
    AND happened.user_id = coalesce(%(user_id)s::text, happened.user_id)
    AND happened.agent_id = coalesce(%(agent_id)s::text, happened.agent_id)
    AND happened.app_id = coalesce(%(app_id)s::text, happened.app_id)
    AND happened.run_id = coalesce(%(run_id)s::text, happened.run_id)
    AND happened.decided_at >= %(since)s
    AND happened.decided_at < %(until)s
    AND NOT EXISTS (SELECT FROM undone WHERE undone.event_id = happened.event_id)
    AND (
        (
            (%(model)s::text IS NULL OR happened.model = %(model)s)
            AND (%(prompt_version)s::text IS NULL OR happened.prompt_version = %(prompt_version)s)
        )
        OR EXISTS (
            SELECT
            FROM commits
            CROSS JOIN LATERAL jsonb_array_elements(commits.provenance -> 'steps') AS step
            WHERE
                commits.partition = happened.partition
                AND commits.log_offset = happened.log_offset
                AND step ->> 'stage' = 'extract'
                AND (%(model)s::text IS NULL OR step ->> 'model' = %(model)s)
                AND (%(prompt_version)s::text IS NULL OR step ->> 'prompt_version' = %(prompt_version)s)
        )
    )
ORDER BY happened.tenant, happened.user_id, happened.agent_id, happened.app_id, happened.run_id;
