-- name: asked_policies
-- Columns for a row of `asked`: the policy of the tenant, and that of the scope.
(
    SELECT policies.policy::text FROM policies
    WHERE policies.tenant = asked.tenant
        AND policies.user_id = ''
        AND policies.agent_id = ''
        AND policies.app_id = ''
        AND policies.run_id = ''
) AS tenant_policy,
(
    SELECT policies.policy::text FROM policies
    WHERE {{same_scope policies asked}}
        AND (policies.user_id <> '' OR policies.agent_id <> '')
) AS scope_policy

-- name: set_for
-- Per scope, in the order in which they were asked for, the policy of its tenant and its own.
SELECT {asked_policies}
FROM unnest(
    {{scope_arrays}}
) WITH ORDINALITY AS asked ({{scope_ids}}, place)
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
