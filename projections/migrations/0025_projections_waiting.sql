-- name: projections_waiting
-- The turns that wait for the budget of their tenant or scope.

CREATE TABLE waiting_turns (
    owner text NOT NULL,
    source_id text NOT NULL,
    attempt integer NOT NULL,
    tenant text NOT NULL,
    user_id text NOT NULL,
    agent_id text NOT NULL,
    app_id text NOT NULL,
    run_id text NOT NULL,
    partition integer NOT NULL,
    published_at timestamptz NOT NULL,
    decided_at timestamptz NOT NULL,
    PRIMARY KEY (owner, source_id, attempt)
);
CREATE INDEX waiting_turns_order ON waiting_turns (published_at, owner, source_id);
COMMENT ON TABLE waiting_turns IS
'A turn whose last end says that it waits for the budget of its tenant or scope: it is published again by itself.';
