-- name: usage
-- What each model took on each day.
SELECT
    u.model, u.day,
    sum(u.input_tokens)::bigint AS input_tokens,
    sum(u.cached_tokens)::bigint AS cached_tokens,
    sum(u.output_tokens)::bigint AS output_tokens,
    sum(u.uncounted)::bigint AS uncounted
FROM daily_usage AS u
WHERE {rows}
    AND {scope}
GROUP BY u.model, u.day
ORDER BY u.model, u.day;

-- name: of_tenants
-- The rows of an interval for whole tenants.
u.user_id || u.agent_id = '' AND u.day BETWEEN %(first)s AND %(last)s

-- name: of_scopes
-- The same for scopes.
u.user_id || u.agent_id <> '' AND u.day BETWEEN %(first)s AND %(last)s

-- name: of_day
-- Those of one day.
u.day = %(day)s

-- name: of_one_scope
-- Those of one scope, or of a whole tenant, whose other ids are empty.
{{in_scope u}}

-- name: turns
-- How many turns that were published in the interval have ended, each once.
SELECT count(*) AS turns
FROM commits AS c
WHERE c.source_kind = 'turn'
    AND c.attempt = 1
    AND c.published_at >= %(first)s::date::timestamp AT TIME ZONE 'UTC'
    AND c.published_at < (%(last)s::date + 1)::timestamp AT TIME ZONE 'UTC'
    AND {scope};
