-- name: failed_turns
-- Turns whose last end is failed or rejected, the newest first, and whether the journal has them to publish again.
-- A record that named no scope belongs to no tenant: it is among those of a whole tenant.
SELECT
    c.source_id AS turn_id,
    c.outcome AS status,
    c.reason,
    c.detail,
    c.tenant,
    nullif(c.user_id, '') AS user_id,
    nullif(c.agent_id, '') AS agent_id,
    nullif(c.app_id, '') AS app_id,
    nullif(c.run_id, '') AS run_id,
    c.attempt,
    c.published_at,
    c.decided_at,
    c.origin_topic || '/' || c.origin_partition || '/' || c.origin_offset AS position,
    (c.outcome = 'failed' OR c.limit_hit IS NOT NULL)
    AND EXISTS (
        SELECT FROM turn_journal AS j
        WHERE j.owner = c.owner AND j.source_id = c.source_id AND j.refusal IS NULL
    ) AS can_retry
FROM commits AS c
WHERE c.source_kind = 'turn'
    AND c.outcome IN ('failed', 'rejected')
    AND (
        ({scope})
        OR (c.tenant = '' AND %(user_id)s = '**' AND %(agent_id)s = '**' AND %(app_id)s = '**' AND %(run_id)s = '**')
    )
    AND NOT EXISTS (
        SELECT FROM commits AS later
        WHERE later.owner = c.owner AND later.source_id = c.source_id AND later.attempt > c.attempt
    )
ORDER BY c.decided_at DESC, c.partition, c.log_offset DESC
LIMIT %(limit)s;

-- name: received_turn
-- A turn as it was first received; none where that was no valid turn.
SELECT j.owner, j.body
FROM turn_journal AS j
WHERE j.source_id = %(turn_id)s
    AND j.tenant = %(tenant)s
    AND j.refusal IS NULL
    AND (%(user_id)s::text IS NULL OR j.user_id = %(user_id)s)
ORDER BY j.owner
LIMIT 2;
