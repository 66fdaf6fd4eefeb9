-- name: projections_readers
-- The views for SQL users show an id that is not set as NULL, and the tables keep it as ''. These indexes find the scopes
-- by what the views show; the facts and events of a scope have indexes of their own.

CREATE INDEX scopes_user ON scopes (nullif(user_id, ''), tenant);
CREATE INDEX scopes_agent ON scopes (nullif(agent_id, ''), tenant);
CREATE INDEX scopes_run ON scopes (nullif(run_id, ''), tenant);
