-- name: overwrites
-- The overwrites proposed in an interval, by who proposed them and event, and what became of them.
SELECT
    o.decided_by AS by,
    o.model, o.prompt_version, o.event,
    count(*) AS overwrites,
    count(o.carried_out_at) AS carried_out,
    count(*) FILTER (WHERE o.result = 'kept') AS kept,
    count(*) FILTER (WHERE o.result = 'undone') AS undone,
    count(*) FILTER (WHERE o.result = 'rejected') AS rejected,
    count(*) FILTER (WHERE o.result = 'corrected') AS corrected,
    count(*) FILTER (WHERE o.result = 'open') AS open,
    count(*) FILTER (WHERE o.result = 'overtaken') AS overtaken
FROM overwrites AS o
WHERE {scope}
    AND o.decided_at >= %(since)s
    AND o.decided_at < %(until)s
GROUP BY o.decided_by, o.model, o.prompt_version, o.event
ORDER BY o.decided_by, o.model, o.prompt_version, o.event;

-- name: decisions
-- The decisions on statements in an interval: all events but those of commands and of the timer.
SELECT count(*) AS decisions
FROM memory_events AS e
WHERE e.decided_by IN ('model', 'rule')
    AND e.decided_at >= %(since)s
    AND e.decided_at < %(until)s
    AND {scope};

-- name: pending
-- Overwrites held back in an interval and what became of them; ages in seconds, the oldest of all that are open.
SELECT
    count(*) FILTER (WHERE p.since >= %(since)s) AS held,
    count(*) FILTER (WHERE p.since >= %(since)s AND p.settlement = 'confirmed') AS confirmed,
    count(*) FILTER (WHERE p.since >= %(since)s AND p.settlement = 'rejected') AS rejected,
    count(*) FILTER (WHERE p.since >= %(since)s AND p.settlement NOT IN ('confirmed', 'rejected')) AS overtaken,
    count(*) FILTER (WHERE p.settled_at IS NULL) AS open,
    coalesce(extract(EPOCH FROM %(until)s - min(p.since) FILTER (WHERE p.settled_at IS NULL)), 0)::float8
    AS oldest_seconds,
    coalesce(
        percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(EPOCH FROM p.settled_at - p.since))
        FILTER (WHERE p.since >= %(since)s AND p.settled_at IS NOT NULL), 0
    )::float8 AS median_seconds
FROM pending_confirmations AS p
WHERE (p.since >= %(since)s OR p.settled_at IS NULL)
    AND p.since < %(until)s
    AND {scope};

-- name: unresolved
-- Facts kept beside others because no valid decision was available, as of now.
SELECT count(*) AS facts
FROM facts AS f
WHERE f.unresolved
    AND f.status = 'active'
    AND {scope};

-- name: stale
-- Decisions of an interval that met a target which was no longer as they saw it.
SELECT count(*) AS decisions
FROM memory_events AS e
WHERE e.stale
    AND e.decided_at >= %(since)s
    AND e.decided_at < %(until)s
    AND {scope};

-- name: used_at_rank
-- How many facts that feedback of an interval names as used had been shown at each rank; rank 0 is of those not shown.
SELECT
    coalesce(shown.rank, 0)::integer AS rank,
    count(*) AS used
FROM commits AS c
CROSS JOIN LATERAL (SELECT convert_from(c.record, 'UTF8')::jsonb -> 'order' AS feedback) AS given
CROSS JOIN LATERAL jsonb_array_elements_text(given.feedback -> 'used') AS used (fact_id)
LEFT JOIN LATERAL jsonb_array_elements_text(given.feedback -> 'shown') WITH ORDINALITY AS shown (fact_id, rank)
    ON used.fact_id = shown.fact_id
WHERE c.order_kind = 'feedback'
    AND c.outcome = 'done'
    AND c.decided_at >= %(since)s
    AND c.decided_at < %(until)s
    AND {scope}
GROUP BY 1
ORDER BY 1;

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
-- The rows of one day.
u.day = %(day)s

-- name: of_one_scope
-- The rows of one scope, or of a whole tenant, whose other ids are empty.
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
