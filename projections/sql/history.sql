-- name: versions
-- A fact, everything it came from and everything that came from it, in the order in which they were learned.
WITH RECURSIVE earlier AS (
    SELECT fact_id, supersedes
    FROM facts
    WHERE fact_id = %(fact_id)s AND tenant = %(tenant)s
    UNION
    SELECT older.fact_id, older.supersedes
    FROM earlier
    INNER JOIN facts AS older ON older.fact_id = ANY(earlier.supersedes)
),
later AS (
    SELECT fact_id, superseded_by
    FROM facts
    WHERE fact_id = %(fact_id)s AND tenant = %(tenant)s
    UNION
    SELECT newer.fact_id, newer.superseded_by
    FROM later
    INNER JOIN facts AS newer ON newer.fact_id = later.superseded_by
)
SELECT {fact}
FROM facts AS f
WHERE f.tenant = %(tenant)s AND f.fact_id IN (SELECT fact_id FROM earlier UNION SELECT fact_id FROM later)
ORDER BY f.believed_from, f.fact_id;

-- name: events
-- Every event of one scope that made or touched one of these facts, in the order of the log.
SELECT
    event_id,
    event,
    fact_id,
    targets,
    source_id,
    occurred_at,
    decided_at,
    decided_by,
    reason,
    stale,
    payload -> 'decision' -> 'candidates' AS candidates
FROM memory_events
WHERE (tenant, user_id, agent_id, app_id, run_id) = (%(tenant)s, %(user_id)s, %(agent_id)s, %(app_id)s, %(run_id)s)
    AND (fact_id = ANY(%(fact_ids)s) OR (targets <> '{}' AND targets && %(fact_ids)s))
ORDER BY decided_at, partition, log_offset, ordinal;

-- name: changes
-- The events of a scope decided in a half-open interval, each with the new text and the texts it ended.
SELECT
    e.event,
    e.decided_at AS at,
    e.fact_id,
    f.text,
    e.reason,
    e.decided_by,
    e.stale,
    coalesce(old.facts, '[]'::jsonb) AS old
FROM memory_events AS e
LEFT JOIN facts AS f ON e.fact_id = f.fact_id
LEFT JOIN LATERAL (
    SELECT
        jsonb_agg(
            jsonb_build_object('fact_id', t.fact_id, 'text', t.text) ORDER BY t.believed_from, t.fact_id
        ) AS facts
    FROM facts AS t
    WHERE t.fact_id = ANY(e.targets)
        AND t.fact_id <> e.fact_id
        AND (t.tenant, t.user_id, t.agent_id, t.app_id, t.run_id)
        = (e.tenant, e.user_id, e.agent_id, e.app_id, e.run_id)
) AS old ON true
WHERE e.tenant = %(tenant)s
    AND e.user_id = coalesce(%(user_id)s::text, e.user_id)
    AND e.agent_id = coalesce(%(agent_id)s::text, e.agent_id)
    AND e.app_id = coalesce(%(app_id)s::text, e.app_id)
    AND e.run_id = coalesce(%(run_id)s::text, e.run_id)
    AND e.event <> 'fact_skipped'
    AND e.decided_at >= %(since)s
    AND e.decided_at < %(until)s
ORDER BY e.decided_at, e.partition, e.log_offset, e.ordinal
LIMIT %(bound)s;

-- name: count_skipped
-- How many statements of the interval repeated what was known.
SELECT count(*) AS skipped
FROM memory_events AS e
WHERE e.tenant = %(tenant)s
    AND e.user_id = coalesce(%(user_id)s::text, e.user_id)
    AND e.agent_id = coalesce(%(agent_id)s::text, e.agent_id)
    AND e.app_id = coalesce(%(app_id)s::text, e.app_id)
    AND e.run_id = coalesce(%(run_id)s::text, e.run_id)
    AND e.event = 'fact_skipped'
    AND e.decided_at >= %(since)s
    AND e.decided_at < %(until)s;
