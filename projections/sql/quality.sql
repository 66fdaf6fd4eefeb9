-- name: overwrites
-- What models decided to overwrite in an interval, by model, prompt and event, and what was undone, rejected or corrected.
SELECT
    o.model,
    o.prompt_version,
    o.event,
    count(*) AS overwrites,
    count(*) FILTER (WHERE o.taken_back = 'undone') AS undone,
    count(*) FILTER (WHERE o.taken_back = 'rejected') AS rejected,
    count(*) FILTER (WHERE o.taken_back = 'corrected') AS corrected
FROM overwrites AS o
WHERE {scope}
    AND o.decided_at >= %(since)s
    AND o.decided_at < %(until)s
GROUP BY o.model, o.prompt_version, o.event
ORDER BY o.model, o.prompt_version, o.event;

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
