-- name: this_value
-- The rows of {row} with this value of an id.
{row}.{id} = {value}

-- name: this_value_unseen
-- The same, hidden from the planner: for a question about one scope it makes one plan, and keeps it. By their values it
-- would plan anew for each.
{row}.{id} = (SELECT {value}::text)

-- name: any_value
-- The rows of {row} that set an id.
{row}.{id} <> ''

-- name: delete_all
-- The exact scopes within a wider one that hold active or pending facts that a filter lets through, of one key or category
-- where that is given.
SELECT DISTINCT f.tenant, f.user_id, f.agent_id, f.app_id, f.run_id
FROM facts AS f
WHERE
    f.status IN ('active', 'pending_confirmation')
    AND {scope}
    AND (%(key)s::text IS NULL OR f.key = %(key)s)
    AND (%(category)s::text IS NULL OR f.category = %(category)s)
    AND {filter}
ORDER BY f.tenant, f.user_id, f.agent_id, f.app_id, f.run_id;

-- name: undo
-- The exact scopes within a wider one in which a model or prompt version decided something that is still in effect, or
-- extracted its statement.
SELECT DISTINCT happened.tenant, happened.user_id, happened.agent_id, happened.app_id, happened.run_id
FROM memory_events AS happened
WHERE
    {scope}
    AND {decided}
ORDER BY happened.tenant, happened.user_id, happened.agent_id, happened.app_id, happened.run_id;
