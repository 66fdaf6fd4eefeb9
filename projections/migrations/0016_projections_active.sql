-- name: projections_active
-- A scan of a scope reads its facts in the order of this index. With the category in it, no query of which looked for
-- one, the scan went through the pages of the scope once for each category.

CREATE INDEX facts_active_scan ON facts (tenant, user_id, agent_id, app_id, run_id) WHERE status = 'active';
DROP INDEX facts_active;
ALTER INDEX facts_active_scan RENAME TO facts_active;
