-- name: delete_all
-- The exact scopes within a wider one that hold active or pending facts that a filter lets through, of one key or category
-- where that is given; where all is deleted, also those that have turns alone.
SELECT {{scope_ids f}}
FROM facts AS f
WHERE f.status IN ('active', 'pending_confirmation')
    AND {scope}
    AND (%(key)s::text IS NULL OR f.key = %(key)s)
    AND (%(category)s::text IS NULL OR %(category)s = ANY(f.category || f.more_categories))
    AND {filter}
UNION
SELECT {{scope_ids of_turns}}
FROM ({of_turns}) AS of_turns
WHERE %(key)s::text IS NULL AND %(category)s::text IS NULL AND %(all)s
ORDER BY {{scope_ids}};

-- name: of_turns
-- The scopes with a turn that no "delete all" came after.
SELECT {{scope_ids f}}
FROM turn_journal AS f
WHERE f.refusal IS NULL AND {scope}
GROUP BY {{scope_ids f}}
HAVING max(f.published_at) > ALL(
    SELECT deleting.published_at
    FROM commits AS deleting
    WHERE deleting.order_kind = 'delete_all'
        AND deleting.outcome = 'done'
        AND deleting.reason IS DISTINCT FROM 'nothing_selected'
        AND {{same_scope deleting f}}
)

-- name: undo
-- The exact scopes within a wider one in which a model or prompt version decided something that is still in effect, or
-- extracted its statement.
SELECT DISTINCT {{scope_ids happened}}
FROM memory_events AS happened
WHERE {scope}
    AND {decided}
ORDER BY {{scope_ids happened}};

-- name: named_ids
-- The values of one id in scopes that hold active or pending facts, each with how many those are: all, or some of those
-- that follow another value.
SELECT
    {name} AS id,
    sum(known.facts)::bigint AS facts,
    count(*) AS scopes
FROM scopes AS known
WHERE {scope}
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
