-- name: accounts
-- Turns accepted, ended and in flight. A turn is accepted by its row in the journal, or by its end where the
-- journal has not caught up.
SELECT
    (SELECT count(*) FROM turn_journal) AS journaled,
    ended.unjournaled, ended.unjournaled_overdue, pending.in_flight, pending.overdue, pending.oldest
FROM (
    SELECT
        count(*) AS unjournaled,
        count(*) FILTER (WHERE c.decided_at < %(overdue_before)s) AS unjournaled_overdue
    FROM commits AS c
    WHERE c.source_kind = 'turn'
        AND c.attempt = 1
        AND NOT EXISTS (SELECT FROM turn_journal AS j WHERE j.owner = c.owner AND j.source_id = c.source_id)
) AS ended
CROSS JOIN (
    SELECT
        count(*) AS in_flight,
        count(*) FILTER (WHERE j.published_at < %(overdue_before)s) AS overdue,
        min(j.published_at) AS oldest
    FROM turn_journal AS j
    WHERE NOT EXISTS (SELECT FROM commits AS c WHERE c.owner = j.owner AND c.source_id = j.source_id)
) AS pending;

-- name: ends
-- How many turns came to each end: the last one, where a turn failed or was refused for a limit and came again.
SELECT c.outcome, count(*) AS turns
FROM commits AS c
WHERE c.source_kind = 'turn'
    AND NOT EXISTS (
        SELECT FROM commits AS later
        WHERE later.owner = c.owner AND later.source_id = c.source_id AND later.attempt > c.attempt
    )
GROUP BY c.outcome
ORDER BY c.outcome;

-- name: partitions
-- Per partition: every offset below the next one must be accounted for exactly once, as a commit or as a rejected
-- record; and none at or beyond it.
WITH places AS (
    SELECT partition, log_offset FROM commits
    UNION ALL
    SELECT partition, log_offset FROM rejections WHERE item = 0
),
counted AS (
    SELECT
        p.partition,
        count(*) AS records,
        count(DISTINCT p.log_offset) AS offsets,
        count(*) FILTER (WHERE p.log_offset >= coalesce(o.next_offset, 0)) AS beyond
    FROM places AS p
    LEFT JOIN projection_offsets AS o ON p.partition = o.partition
    GROUP BY p.partition
)
SELECT
    partition,
    coalesce(o.next_offset, 0) AS next_offset,
    coalesce(c.records, 0) AS records,
    coalesce(c.offsets, 0) AS offsets,
    coalesce(c.beyond, 0) AS beyond
FROM projection_offsets AS o
FULL JOIN counted AS c USING (partition)
ORDER BY partition;

-- name: broken_links
-- Rows that lack what they stem from. An undo and a policy are about no single fact; a stale event may name what
-- never was.
SELECT
    (
        SELECT count(*)
        FROM memory_events AS e
        WHERE NOT EXISTS (
            SELECT FROM commits AS c WHERE c.partition = e.partition AND c.log_offset = e.log_offset
        )
    ) AS events_without_commit,
    (
        SELECT count(*)
        FROM commits AS c
        WHERE c.outcome = 'stored'
            AND NOT EXISTS (
                SELECT FROM memory_events AS e WHERE e.partition = c.partition AND e.log_offset = c.log_offset
            )
    ) AS commits_without_events,
    (
        SELECT count(*)
        FROM facts AS f
        WHERE NOT EXISTS (
            SELECT
            FROM memory_events AS e
            WHERE e.fact_id = f.fact_id AND jsonb_typeof(e.payload -> 'fact') = 'object'
        )
    ) AS facts_without_event,
    (
        SELECT count(*)
        FROM memory_events AS e
        WHERE e.fact_id IS NOT NULL
            AND (NOT e.stale OR jsonb_typeof(e.payload -> 'fact') = 'object')
            AND NOT EXISTS (SELECT FROM facts AS f WHERE f.fact_id = e.fact_id)
    ) AS events_without_fact,
    (
        SELECT count(*)
        FROM (SELECT fact_id FROM pending_confirmations WHERE settled_at IS NULL) AS held
        FULL JOIN (SELECT fact_id FROM facts WHERE status = 'pending_confirmation') AS waiting USING (fact_id)
        WHERE held.fact_id IS NULL OR waiting.fact_id IS NULL
    ) AS pending_astray,
    (
        SELECT count(*)
        FROM former_states AS s
        WHERE NOT EXISTS (SELECT FROM facts AS f WHERE f.fact_id = s.fact_id)
            OR NOT EXISTS (SELECT FROM memory_events AS e WHERE e.event_id = s.event_id)
    ) AS former_states_astray,
    (
        SELECT count(*)
        FROM undone AS u
        WHERE NOT EXISTS (SELECT FROM memory_events AS e WHERE e.event_id = u.undone_by)
    ) AS undone_astray;

-- name: table_counts
-- What the tables hold in all: turns that came and those under way, facts, and what waits for a person.
SELECT
    (SELECT count(*) FROM turn_journal) AS turns,
    (
        SELECT count(*)
        FROM turn_journal AS j
        WHERE NOT EXISTS (SELECT FROM commits AS c WHERE c.owner = j.owner AND c.source_id = j.source_id)
    ) AS in_flight,
    (SELECT max(published_at) FROM turn_journal) AS last_turn_at,
    (SELECT count(*) FROM facts WHERE status = 'active') AS active_facts,
    (SELECT count(*) FROM facts WHERE status = 'pending_confirmation') AS pending_facts,
    (
        SELECT count(*)
        FROM commits AS c
        WHERE {{unmended c}}
    ) AS failed_turns;

-- name: failed_turns
-- Turns whose last end is failed or rejected, the newest first, and whether the journal has them to publish again.
-- A record that named no scope belongs to no tenant: it is among those of a whole tenant.
SELECT
    c.source_id AS turn_id,
    c.outcome AS status,
    c.reason, c.detail, {{shown_scope c}}, c.attempt, c.published_at, c.decided_at,
    c.origin_topic || '/' || c.origin_partition || '/' || c.origin_offset AS position,
    (c.outcome = 'failed' OR c.limit_hit IS NOT NULL)
    AND EXISTS (
        SELECT FROM turn_journal AS j
        WHERE j.owner = c.owner AND j.source_id = c.source_id AND j.refusal IS NULL
    ) AS can_retry
FROM commits AS c
WHERE {{unmended c}}
    AND (
        ({scope})
        OR (c.tenant = '' AND %(user_id)s = '**' AND %(agent_id)s = '**' AND %(app_id)s = '**' AND %(run_id)s = '**')
    )
    AND (%(turn_id)s::text IS NULL OR c.source_id = %(turn_id)s)
    AND (%(reason)s::text IS NULL OR c.reason = %(reason)s)
    AND (%(since)s::timestamptz IS NULL OR c.decided_at >= %(since)s)
ORDER BY c.decided_at DESC, c.partition, c.log_offset DESC
LIMIT %(limit)s;

-- name: drop_turns
-- Note that nobody is to try these attempts of turns again.
INSERT INTO mnemolog_journal.dropped_turns (owner, source_id, attempt, actor, why)
SELECT c.owner, c.source_id, c.attempt, %(actor)s, %(why)s
FROM commits AS c
INNER JOIN unnest(
    %(tenant)s::text [], %(user_id)s::text [], %(agent_id)s::text [], %(turn_id)s::text [], %(attempt)s::integer []
) AS t (tenant, user_id, agent_id, source_id, attempt) USING (tenant, user_id, agent_id, source_id, attempt)
ON CONFLICT DO NOTHING;

-- name: unended_turns
-- Valid turns of a tenant that were published before a time and never ended, the oldest first.
SELECT j.body
FROM turn_journal AS j
WHERE j.tenant = %(tenant)s
    AND j.refusal IS NULL
    AND j.published_at < %(before)s
    AND (%(user_id)s::text IS NULL OR j.user_id = %(user_id)s)
    AND NOT EXISTS (SELECT FROM commits AS c WHERE c.owner = j.owner AND c.source_id = j.source_id)
ORDER BY j.published_at, j.partition, j.log_offset
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
