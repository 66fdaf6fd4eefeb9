-- name: projections_paid_tokens
-- Each attempt has the tokens that it paid for, so none are taken off for another one of the same source.

COMMENT ON TABLE daily_tokens IS
'Tokens that turns used, by the day (UTC) on which they were published: a row for each scope, and one for its tenant, '
'with neither user nor agent. Each attempt of a turn counts what it paid for.';

CREATE FUNCTION paid_tokens(
    of_tenant text, of_user text, of_agent text, of_app text, of_run text, day timestamptz
) RETURNS bigint LANGUAGE sql STABLE
RETURN (
    SELECT coalesce(sum(counted.tokens), 0)::bigint FROM daily_tokens AS counted
    WHERE
        (counted.tenant, counted.user_id, counted.agent_id, counted.app_id, counted.run_id)
        = (of_tenant, of_user, of_agent, of_app, of_run)
        AND counted.day = (paid_tokens.day AT TIME ZONE 'UTC')::date
);
COMMENT ON FUNCTION paid_tokens IS 'Tokens that the sources of a scope, or of a tenant, paid for on a day.';

CREATE FUNCTION reserved_tokens(
    of_tenant text, day timestamptz, but_owner text, but_source text
) RETURNS bigint LANGUAGE sql STABLE
RETURN (
    SELECT coalesce(sum(reserved.tokens), 0)::bigint FROM open_reservations AS reserved
    WHERE
        reserved.tenant = of_tenant
        AND reserved.published_at >= reserved_tokens.day
        AND reserved.published_at < reserved_tokens.day + interval '24 hours'
        AND (reserved.owner <> but_owner OR reserved.source_id <> but_source)
);
COMMENT ON FUNCTION reserved_tokens IS
'Tokens that turns of a tenant are about to use on a day, but the given one, until their commits are in the tables.';
