-- name: usage_of_tenants
-- What each model took on each day of an interval, for whole tenants.
SELECT
    u.model,
    u.day,
    sum(u.input_tokens)::bigint AS input_tokens,
    sum(u.cached_tokens)::bigint AS cached_tokens,
    sum(u.output_tokens)::bigint AS output_tokens,
    sum(u.uncounted)::bigint AS uncounted
FROM daily_usage AS u
WHERE u.user_id || u.agent_id = ''
    AND u.day BETWEEN %(first)s AND %(last)s
    AND {scope}
GROUP BY u.model, u.day
ORDER BY u.model, u.day;

-- name: usage_of_scopes
-- The same for scopes.
SELECT
    u.model,
    u.day,
    sum(u.input_tokens)::bigint AS input_tokens,
    sum(u.cached_tokens)::bigint AS cached_tokens,
    sum(u.output_tokens)::bigint AS output_tokens,
    sum(u.uncounted)::bigint AS uncounted
FROM daily_usage AS u
WHERE u.user_id || u.agent_id <> ''
    AND u.day BETWEEN %(first)s AND %(last)s
    AND {scope}
GROUP BY u.model, u.day
ORDER BY u.model, u.day;

-- name: turns
-- How many turns that were published in the interval have ended, each once.
SELECT count(*) AS turns
FROM commits AS c
WHERE c.source_kind = 'turn'
    AND c.attempt = 1
    AND c.published_at >= %(first)s::date::timestamp AT TIME ZONE 'UTC'
    AND c.published_at < (%(last)s::date + 1)::timestamp AT TIME ZONE 'UTC'
    AND {scope};

-- name: used_on_day
-- What each model took for a scope, or a whole tenant, on one day.
SELECT
    u.model,
    u.day,
    sum(u.input_tokens)::bigint AS input_tokens,
    sum(u.cached_tokens)::bigint AS cached_tokens,
    sum(u.output_tokens)::bigint AS output_tokens,
    sum(u.uncounted)::bigint AS uncounted
FROM daily_usage AS u
WHERE (u.tenant, u.user_id, u.agent_id, u.app_id, u.run_id)
    = (%(tenant)s, %(user_id)s, %(agent_id)s, %(app_id)s, %(run_id)s)
    AND u.day = %(day)s
GROUP BY u.model, u.day
ORDER BY u.model, u.day;
