-- name: filter
-- The rows of {row} in the scopes that a query asks for: '*' is any value that is set, '**' any value or none.
CASE %(tenant)s::text WHEN '**' THEN true ELSE {row}.tenant = %(tenant)s END
AND CASE %(user_id)s::text WHEN '**' THEN true WHEN '*' THEN {row}.user_id <> '' ELSE {row}.user_id = %(user_id)s END
AND CASE %(agent_id)s::text WHEN '**' THEN true WHEN '*' THEN {row}.agent_id <> '' ELSE {row}.agent_id = %(agent_id)s END
AND CASE %(app_id)s::text WHEN '**' THEN true WHEN '*' THEN {row}.app_id <> '' ELSE {row}.app_id = %(app_id)s END
AND CASE %(run_id)s::text WHEN '**' THEN true WHEN '*' THEN {row}.run_id <> '' ELSE {row}.run_id = %(run_id)s END

-- name: delete_all
-- The exact scopes within a wider one that hold active or pending facts, of one key or category where that is given.
SELECT DISTINCT f.tenant, f.user_id, f.agent_id, f.app_id, f.run_id
FROM facts AS f
WHERE
    f.status IN ('active', 'pending_confirmation')
    AND {scope}
    AND (%(key)s::text IS NULL OR f.key = %(key)s)
    AND (%(category)s::text IS NULL OR f.category = %(category)s)
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
