-- name: asked_policies
-- Columns for a row of `asked`: the policy of the tenant, and that of the scope.
(
    SELECT policies.policy::text FROM policies
    WHERE
        policies.tenant = asked.tenant
        AND policies.user_id = ''
        AND policies.agent_id = ''
        AND policies.app_id = ''
        AND policies.run_id = ''
) AS tenant_policy,
(
    SELECT policies.policy::text FROM policies
    WHERE
        policies.tenant = asked.tenant
        AND policies.user_id = asked.user_id
        AND policies.agent_id = asked.agent_id
        AND policies.app_id = asked.app_id
        AND policies.run_id = asked.run_id
        AND (policies.user_id <> '' OR policies.agent_id <> '')
) AS scope_policy

-- name: set_for
-- Per scope, in the order in which they were asked for, the policy of its tenant and its own.
SELECT
    {asked_policies}
FROM unnest(
    %(tenant)s::text [],
    %(user_id)s::text [],
    %(agent_id)s::text [],
    %(app_id)s::text [],
    %(run_id)s::text []
) WITH ORDINALITY AS asked (tenant, user_id, agent_id, app_id, run_id, place)
ORDER BY asked.place;

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
