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
-- where that is given; where all is deleted, also those that have turns alone.
SELECT f.tenant, f.user_id, f.agent_id, f.app_id, f.run_id
FROM facts AS f
WHERE
    f.status IN ('active', 'pending_confirmation')
    AND {scope}
    AND (%(key)s::text IS NULL OR f.key = %(key)s)
    AND (%(category)s::text IS NULL OR f.category = %(category)s)
    AND {filter}
UNION
SELECT of_turns.tenant, of_turns.user_id, of_turns.agent_id, of_turns.app_id, of_turns.run_id
FROM ({of_turns}) AS of_turns
WHERE %(key)s::text IS NULL AND %(category)s::text IS NULL AND %(all)s
ORDER BY tenant, user_id, agent_id, app_id, run_id;

-- name: of_turns
-- The scopes with a turn that no "delete all" came after.
SELECT f.tenant, f.user_id, f.agent_id, f.app_id, f.run_id
FROM turn_journal AS f
WHERE f.refusal IS NULL AND {scope}
GROUP BY f.tenant, f.user_id, f.agent_id, f.app_id, f.run_id
HAVING max(f.published_at) > ALL(
    SELECT deleting.published_at
    FROM commits AS deleting
    WHERE deleting.order_kind = 'delete_all'
        AND deleting.outcome = 'done'
        AND deleting.reason IS DISTINCT FROM 'nothing_selected'
        AND (deleting.tenant, deleting.user_id, deleting.agent_id, deleting.app_id, deleting.run_id)
        = (f.tenant, f.user_id, f.agent_id, f.app_id, f.run_id)
)

-- name: undo
-- The exact scopes within a wider one in which a model or prompt version decided something that is still in effect, or
-- extracted its statement.
SELECT DISTINCT happened.tenant, happened.user_id, happened.agent_id, happened.app_id, happened.run_id
FROM memory_events AS happened
WHERE
    {scope}
    AND {decided}
ORDER BY happened.tenant, happened.user_id, happened.agent_id, happened.app_id, happened.run_id;

-- name: named_ids
-- The values of one id in scopes that hold active or pending facts, each with how many those are: all, or some of those
-- that follow another value.
SELECT
    {name} AS id,
    sum(known.facts)::bigint AS facts,
    count(*) AS scopes
FROM scopes AS known
WHERE
    {scope}
    AND known.facts > 0
    AND {name} <> ''
    AND (%(after)s::text IS NULL OR {name} > %(after)s)
GROUP BY {name}
ORDER BY {name}
LIMIT %(limit)s;

-- name: user_id
-- The users.
known.user_id

-- name: agent_id
-- The agents.
known.agent_id

-- name: run_id
-- The runs.
known.run_id
