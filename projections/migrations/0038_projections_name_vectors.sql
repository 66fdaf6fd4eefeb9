-- name: projections_name_vectors
-- What the names of things mean: entities of one type that are called otherwise may be the same.

CREATE TABLE name_vectors (
    entity_id uuid NOT NULL,
    key text NOT NULL,
    event_id uuid NOT NULL,
    model text NOT NULL,
    embedding halfvec NOT NULL,
    tenant text NOT NULL DEFAULT '',
    user_id text NOT NULL DEFAULT '',
    agent_id text NOT NULL DEFAULT '',
    app_id text NOT NULL DEFAULT '',
    run_id text NOT NULL DEFAULT '',
    PRIMARY KEY (entity_id, key, event_id)
);
ALTER TABLE name_vectors ALTER COLUMN embedding SET STORAGE MAIN;
CREATE INDEX name_vectors_scope ON name_vectors (tenant, user_id, agent_id, app_id, run_id);
COMMENT ON TABLE name_vectors IS
'The vectors of names in entity_aliases, by the same entity, key and event: those that have a meaning and that turns told.';
