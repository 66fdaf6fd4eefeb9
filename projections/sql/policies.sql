-- name: set_for
-- The policy of a scope's tenant and that of the scope itself.
SELECT
    (
        SELECT policy::text FROM policies
        WHERE tenant = %(tenant)s AND user_id = '' AND agent_id = '' AND app_id = '' AND run_id = ''
    ) AS tenant_policy,
    (
        SELECT policy::text FROM policies
        WHERE
            (tenant, user_id, agent_id, app_id, run_id)
            = (%(tenant)s, %(user_id)s, %(agent_id)s, %(app_id)s, %(run_id)s)
            AND (user_id <> '' OR agent_id <> '')
    ) AS scope_policy;

-- name: may_have_limits
-- Whether one of a tenant's policies sets a limit, or there are too many of them to look at.
SELECT coalesce(bool_or(one.policy_number > 100 OR jsonb_strip_nulls(one.policy -> 'limits') <> '{}'), false)
FROM (
    SELECT
        policies.policy,
        row_number() OVER () AS policy_number
    FROM policies
    WHERE policies.tenant = %(tenant)s
    LIMIT 101
) AS one;
