-- name: due
-- Turns that wait for a budget and may have room: their day is over, or a policy of theirs was set since.
SELECT
    w.attempt,
    w.published_at,
    j.body::text AS body
FROM waiting_turns AS w
INNER JOIN turn_journal AS j ON w.owner = j.owner AND w.source_id = j.source_id
WHERE w.partition = ANY(%(partitions)s::integer [])
    AND j.refusal IS NULL
    AND j.body IS NOT NULL
    AND (
        %(published_at)s::timestamptz IS NULL
        OR (w.published_at, w.owner, w.source_id) > (%(published_at)s::timestamptz, %(owner)s, %(source_id)s)
    )
    AND (
        w.published_at < date_trunc('day', %(now)s::timestamptz, 'UTC')
        OR EXISTS (
            SELECT FROM policies AS p
            WHERE p.tenant = w.tenant
                AND p.since > w.decided_at
                AND (
                    (p.user_id, p.agent_id, p.app_id, p.run_id) = ('', '', '', '')
                    OR (p.user_id, p.agent_id, p.app_id, p.run_id) = (w.user_id, w.agent_id, w.app_id, w.run_id)
                )
        )
    )
ORDER BY w.published_at, w.owner, w.source_id
LIMIT %(limit)s;

-- name: count
-- How many turns wait for a budget.
SELECT count(*) AS turns FROM waiting_turns;
