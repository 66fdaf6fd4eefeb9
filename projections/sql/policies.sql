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
            tenant = %(tenant)s
            AND user_id = %(user_id)s
            AND agent_id = %(agent_id)s
            AND app_id = %(app_id)s
            AND run_id = %(run_id)s
            AND (user_id <> '' OR agent_id <> '')
    ) AS scope_policy;
