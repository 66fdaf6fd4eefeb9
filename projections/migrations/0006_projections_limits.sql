-- name: projections_limits
-- What a tenant has of that which its limits count: the projected, and the reserved that is not projected yet.
-- Both come from one snapshot, that of the statement that calls: the functions have to stay STABLE.

CREATE INDEX commits_published ON commits (tenant, published_at)
INCLUDE (owner, source_id, attempt, source_kind, limit_hit, input_tokens, output_tokens);

CREATE VIEW open_reservations AS
SELECT reservations.*
FROM mnemolog_journal.limit_reservations AS reservations
WHERE NOT EXISTS (
    SELECT FROM commits
    WHERE
        commits.owner = reservations.owner
        AND commits.source_id = reservations.source_id
        AND commits.attempt = reservations.attempt
);
COMMENT ON VIEW open_reservations IS 'What was let through under limits and is not projected yet.';

CREATE FUNCTION tenant_facts(of_tenant text, but_owner text, but_source text) RETURNS bigint LANGUAGE sql STABLE
RETURN (SELECT count(*) FROM facts WHERE status = 'active' AND tenant = of_tenant)
    + (SELECT count(*) FROM facts WHERE status = 'pending_confirmation' AND tenant = of_tenant)
    + (
        SELECT coalesce(sum(reserved.facts), 0) FROM open_reservations AS reserved
        WHERE reserved.tenant = of_tenant AND (reserved.owner <> but_owner OR reserved.source_id <> but_source)
    );
COMMENT ON FUNCTION tenant_facts IS
'Active and pending facts of a tenant, with those that sources other than the given one are about to add.';

CREATE FUNCTION tenant_turns(
    of_tenant text, minute timestamptz, but_owner text, but_source text
) RETURNS bigint LANGUAGE sql STABLE
RETURN (
    SELECT count(*) FROM commits
    WHERE
        tenant = of_tenant
        AND published_at >= minute
        AND published_at < minute + interval '1 minute'
        AND source_kind = 'turn'
        AND limit_hit IS NULL
) + (
    SELECT count(*) FROM open_reservations AS reserved
    WHERE
        reserved.tenant = of_tenant
        AND reserved.published_at >= minute
        AND reserved.published_at < minute + interval '1 minute'
        AND (reserved.owner <> but_owner OR reserved.source_id <> but_source)
);
COMMENT ON FUNCTION tenant_turns IS
'Turns of a tenant that were published in a minute, but those refused for a limit.';

CREATE FUNCTION tenant_tokens(
    of_tenant text, day timestamptz, but_owner text, but_source text
) RETURNS bigint LANGUAGE sql STABLE
RETURN (
    SELECT coalesce(sum(spent.input_tokens + spent.output_tokens), 0) FROM commits AS spent
    WHERE
        spent.tenant = of_tenant
        AND spent.published_at >= day
        AND spent.published_at < day + interval '24 hours'
        AND (spent.owner <> but_owner OR spent.source_id <> but_source)
        AND (
            spent.limit_hit IS NULL
            OR NOT EXISTS (
                SELECT FROM commits AS later
                WHERE
                    later.owner = spent.owner
                    AND later.source_id = spent.source_id
                    AND later.attempt > spent.attempt
            )
        )
) + (
    SELECT coalesce(sum(reserved.tokens), 0) FROM open_reservations AS reserved
    WHERE
        reserved.tenant = of_tenant
        AND reserved.published_at >= day
        AND reserved.published_at < day + interval '24 hours'
        AND (reserved.owner <> but_owner OR reserved.source_id <> but_source)
);
COMMENT ON FUNCTION tenant_tokens IS
'Tokens that sources of a day used; those of a turn refused for a limit count until it comes again.';
