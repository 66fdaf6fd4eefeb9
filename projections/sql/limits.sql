-- name: usage
-- What a scope and its tenant have of that which limits count; NULL for what is not asked for.
-- A turn refused for a limit does not count toward turns_per_minute; what each attempt of it paid for counts.
SELECT
    CASE WHEN %(scope_facts)s THEN coalesce((SELECT facts FROM scopes WHERE {{in_scope}}), 0) END AS scope_facts,
    CASE WHEN %(scope_turns)s THEN (
        SELECT count(*) FROM commits
        WHERE {{in_scope}}
            AND published_at >= %(minute)s
            AND published_at < %(minute)s::timestamptz + interval '1 minute'
            AND source_kind = 'turn'
            AND limit_hit IS NULL
    ) END AS scope_turns,
    CASE WHEN %(scope_tokens)s THEN paid_tokens({{scope_values}}, %(day)s) END AS scope_tokens,
    CASE WHEN %(tenant_facts)s THEN tenant_facts(%(tenant)s, %(owner)s, %(source_id)s) END AS tenant_facts,
    CASE WHEN %(tenant_turns)s THEN tenant_turns(%(tenant)s, %(minute)s, %(owner)s, %(source_id)s) END AS tenant_turns,
    CASE
        WHEN %(tenant_tokens)s
            THEN
                paid_tokens(%(tenant)s, '', '', '', '', %(day)s)
                + reserved_tokens(%(tenant)s, %(day)s, %(owner)s, %(source_id)s)
    END AS tenant_tokens;

-- name: is_received
-- Whether publishing a turn again does nothing: it is under way, or was decided and neither failed nor was over a limit.
SELECT
    EXISTS (SELECT FROM turn_journal WHERE owner = %(owner)s AND source_id = %(source_id)s)
    AND coalesce((
        SELECT limit_hit IS NULL AND outcome <> 'failed' FROM commits
        WHERE owner = %(owner)s AND source_id = %(source_id)s
        ORDER BY attempt DESC
        LIMIT 1
    ), true);

-- name: lock_tenant
-- One reservation of a tenant at a time. A statement of its own: the next one has to see what was reserved meanwhile.
SELECT pg_advisory_xact_lock(%(lock)s, hashtext(%(tenant)s));

-- name: reserve
-- Let a turn through where it fits under its tenant's limits, and reserve what it uses; give what others use.
-- The same turn again takes the place of its own reservation. Those whose commit is projected are removed.
WITH used AS (
    SELECT
        CASE WHEN %(max_facts)s::bigint IS NOT NULL THEN tenant_facts(%(tenant)s, %(owner)s, %(source_id)s) END AS facts,
        CASE
            WHEN %(max_turns)s::bigint IS NOT NULL
                THEN tenant_turns(%(tenant)s, %(minute)s, %(owner)s, %(source_id)s)
        END AS turns,
        CASE
            WHEN %(max_tokens)s::bigint IS NOT NULL
                THEN
                    paid_tokens(%(tenant)s, '', '', '', '', %(day)s)
                    + reserved_tokens(%(tenant)s, %(day)s, %(owner)s, %(source_id)s)
        END AS tokens
),

made AS (
    INSERT INTO limit_reservations (owner, source_id, attempt, tenant, published_at, facts, tokens)
    SELECT
        %(owner)s, %(source_id)s,
        1 + coalesce((
            SELECT max(attempt) FROM commits
            WHERE owner = %(owner)s AND source_id = %(source_id)s
        ), 0),
        %(tenant)s,
        -- What is no turn was published in no minute.
        CASE WHEN %(turns)s > 0 THEN %(published_at)s::timestamptz ELSE '-infinity' END,
        %(facts)s, %(tokens)s
    FROM used
    WHERE (%(facts)s = 0 OR used.facts IS NULL OR used.facts + %(facts)s <= %(max_facts)s)
        AND (%(turns)s = 0 OR used.turns IS NULL OR used.turns + %(turns)s <= %(max_turns)s)
        AND (%(tokens)s = 0 OR used.tokens IS NULL OR used.tokens + %(tokens)s <= %(max_tokens)s)
    ON CONFLICT (owner, source_id, attempt) DO UPDATE
    SET
        published_at = excluded.published_at,
        facts = excluded.facts,
        tokens = excluded.tokens,
        reserved_at = excluded.reserved_at
    RETURNING 1
),

removed AS (
    DELETE FROM limit_reservations AS old
    WHERE old.tenant = %(tenant)s
        AND (old.owner <> %(owner)s OR old.source_id <> %(source_id)s)
        AND (
            old.reserved_at < now() - %(retention)s::interval
            OR EXISTS (
                SELECT FROM commits
                WHERE commits.owner = old.owner
                    AND commits.source_id = old.source_id
                    AND commits.attempt = old.attempt
            )
        )
)

SELECT
    used.facts, used.turns, used.tokens,
    EXISTS (SELECT FROM made) AS reserved
FROM used;
