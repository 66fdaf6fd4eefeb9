-- name: projections
-- The tables that are a function of the log. Names are unqualified: a rebuild runs this file in a schema of its own.

CREATE TABLE projection_offsets (
    partition integer PRIMARY KEY,
    next_offset bigint NOT NULL CHECK (next_offset >= 0)
);
COMMENT ON TABLE projection_offsets IS 'Per partition of memory_events the offset of the next commit to fold.';

CREATE TABLE commits (
    partition integer NOT NULL,
    log_offset bigint NOT NULL,
    owner text NOT NULL,
    source_id text NOT NULL,
    source_kind text NOT NULL,
    tenant text NOT NULL DEFAULT '',
    user_id text NOT NULL DEFAULT '',
    agent_id text NOT NULL DEFAULT '',
    app_id text NOT NULL DEFAULT '',
    run_id text NOT NULL DEFAULT '',
    outcome text NOT NULL CHECK (outcome IN ('facts', 'no_facts', 'rejected', 'failed')),
    reason text,
    detail text NOT NULL DEFAULT '',
    occurred_at timestamptz NOT NULL,
    published_at timestamptz NOT NULL,
    decided_at timestamptz NOT NULL,
    origin_topic text NOT NULL,
    origin_partition integer NOT NULL,
    origin_offset bigint NOT NULL,
    based_on bigint NOT NULL,
    llm_calls integer NOT NULL,
    embedding_calls double precision NOT NULL,
    input_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    reprompts integer NOT NULL,
    provenance jsonb NOT NULL,
    metadata jsonb NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (partition, log_offset),
    UNIQUE (owner, source_id)
);
-- Vectors in base64 hardly compress: trying costs more time than the space is worth.
ALTER TABLE commits ALTER COLUMN record SET STORAGE EXTERNAL;
CREATE INDEX commits_source ON commits (tenant, source_id);
CREATE INDEX commits_scope ON commits (tenant, user_id, agent_id, app_id, run_id, decided_at);
COMMENT ON TABLE commits IS
'The end of every source: one row per applied record of memory_events, with the exact bytes of that record.';

CREATE TABLE memory_events (
    event_id uuid PRIMARY KEY,
    partition integer NOT NULL,
    log_offset bigint NOT NULL,
    ordinal integer NOT NULL,
    owner text NOT NULL,
    source_id text NOT NULL,
    tenant text NOT NULL DEFAULT '',
    user_id text NOT NULL DEFAULT '',
    agent_id text NOT NULL DEFAULT '',
    app_id text NOT NULL DEFAULT '',
    run_id text NOT NULL DEFAULT '',
    event text NOT NULL,
    fact_id uuid NOT NULL,
    targets uuid [] NOT NULL DEFAULT '{}',
    occurred_at timestamptz NOT NULL,
    decided_at timestamptz NOT NULL,
    decided_by text NOT NULL,
    reason text NOT NULL,
    stale boolean NOT NULL DEFAULT false,
    payload jsonb NOT NULL,
    UNIQUE (partition, log_offset, ordinal)
);
CREATE INDEX memory_events_scope ON memory_events (tenant, user_id, agent_id, app_id, run_id, decided_at);
CREATE INDEX memory_events_source ON memory_events (owner, source_id);
CREATE INDEX memory_events_fact ON memory_events (fact_id);
CREATE INDEX memory_events_targets ON memory_events USING gin (targets) WHERE targets <> '{}';
COMMENT ON TABLE memory_events IS
'What happened, one row per event, append-only. fact_id is the new fact, or the target of a skip or confirmation; '
'payload is the event without the data of vectors; stale says that a target no longer stood as the decision saw it.';

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only: % is refused', TG_TABLE_NAME, TG_OP
    USING ERRCODE = 'restrict_violation',
          HINT = 'The table mirrors the log. To mend it, rebuild the projections.';
END
$$;
CREATE TRIGGER memory_events_append_only
BEFORE UPDATE OR DELETE ON memory_events
FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER memory_events_no_truncate
BEFORE TRUNCATE ON memory_events
FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE TABLE facts (
    fact_id uuid PRIMARY KEY,
    owner text NOT NULL,
    tenant text NOT NULL DEFAULT '',
    user_id text NOT NULL DEFAULT '',
    agent_id text NOT NULL DEFAULT '',
    app_id text NOT NULL DEFAULT '',
    run_id text NOT NULL DEFAULT '',
    text text NOT NULL,
    search_text text NOT NULL,
    key text,
    value text,
    category text NOT NULL,
    importance_category text,
    importance double precision NOT NULL,
    certainty text NOT NULL,
    confidence double precision NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    subject text,
    speaker text,
    excerpt text NOT NULL,
    status text NOT NULL CHECK (
        status IN ('active', 'superseded', 'archived', 'pending_confirmation', 'expired', 'retracted')
    ),
    unresolved boolean NOT NULL,
    event_time timestamptz,
    valid_until timestamptz,
    true_from timestamptz NOT NULL,
    true_to timestamptz,
    closed_at timestamptz,
    believed_from timestamptz NOT NULL,
    believed_to timestamptz,
    mention_count integer NOT NULL DEFAULT 1,
    last_confirmed_at timestamptz,
    supersedes uuid [] NOT NULL DEFAULT '{}',
    superseded_by uuid,
    source_id text NOT NULL,
    stale boolean NOT NULL,
    content_hash text NOT NULL,
    embedding_model text NOT NULL,
    embedding halfvec NOT NULL,
    metadata jsonb NOT NULL,
    -- Any language is findable by its words, English by its stems too. A tsvector holds 1 MiB, hence the bounds.
    words tsvector NOT NULL GENERATED ALWAYS AS (
        to_tsvector(
            'english'::regconfig,
            left(text, 20000) || ' ' || left(search_text, 20000) || ' ' || left(coalesce(value, ''), 20000)
        )
        || to_tsvector(
            'simple'::regconfig,
            left(text, 20000) || ' ' || left(search_text, 20000) || ' ' || left(coalesce(value, ''), 20000)
        )
    ) STORED
);
-- An exact scan reads every vector of a scope: it stays in the row as long as the row fits into a page.
ALTER TABLE facts ALTER COLUMN embedding SET STORAGE MAIN;
CREATE INDEX facts_active ON facts (tenant, user_id, agent_id, app_id, run_id, category) WHERE status = 'active';
CREATE INDEX facts_scope ON facts (tenant, user_id, agent_id, app_id, run_id, believed_from);
CREATE INDEX facts_changes ON facts (tenant, user_id, agent_id, app_id, run_id, believed_from, fact_id)
WHERE supersedes <> '{}';
CREATE INDEX facts_source ON facts (owner, source_id);
CREATE INDEX facts_words ON facts USING gin (words);
COMMENT ON TABLE facts IS
'Every version of every fact. true_from/true_to: when it was so; believed_from/believed_to: when we held it so; '
'closed_at: when we learned true_to. supersedes names the versions that this one really ended.';

CREATE TABLE profiles (
    tenant text NOT NULL DEFAULT '',
    user_id text NOT NULL DEFAULT '',
    agent_id text NOT NULL DEFAULT '',
    app_id text NOT NULL DEFAULT '',
    run_id text NOT NULL DEFAULT '',
    owner text NOT NULL,
    identity jsonb NOT NULL,
    hard_preferences jsonb NOT NULL,
    soft_preferences jsonb NOT NULL,
    current_tasks jsonb NOT NULL,
    recent_changes jsonb NOT NULL,
    sensitive_topics jsonb NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, user_id, agent_id, app_id, run_id)
);
COMMENT ON TABLE profiles IS
'One row per scope, from its active facts. Every section is an array of at most 50 entries {key, value, text, '
'category, confidence, at, valid_until, fact_id}, surest first; recent_changes holds the last 10 changes {event, '
'text, fact_id, at, old: [{text, fact_id}]}, latest first. No clock: who reads it filters by valid_until.';

CREATE TABLE scopes (
    tenant text NOT NULL DEFAULT '',
    user_id text NOT NULL DEFAULT '',
    agent_id text NOT NULL DEFAULT '',
    app_id text NOT NULL DEFAULT '',
    run_id text NOT NULL DEFAULT '',
    owner text NOT NULL,
    version bigint NOT NULL CHECK (version > 0),
    PRIMARY KEY (tenant, user_id, agent_id, app_id, run_id)
);
COMMENT ON TABLE scopes IS 'How many commits with events each scope has seen: no row is version 0.';

CREATE TABLE rejections (
    partition integer NOT NULL,
    log_offset bigint NOT NULL,
    item integer NOT NULL CHECK (item >= 0),
    owner text,
    source_id text,
    reason text NOT NULL,
    detail text NOT NULL,
    record bytea,
    PRIMARY KEY (partition, log_offset, item)
);
ALTER TABLE rejections ALTER COLUMN record SET STORAGE EXTERNAL;
CREATE INDEX rejections_source ON rejections (owner, source_id);
COMMENT ON TABLE rejections IS
'What the fold did not do as the log said, and why. Item 0 is the whole record (its bytes are in record), '
'n is event n - 1 of an applied commit.';

-- Times inside JSON must not depend on the time zone of a session.
CREATE FUNCTION utc_text(moment timestamptz) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
RETURN to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');

CREATE VIEW turns AS
SELECT
    journal.*,
    coalesce(commits.outcome, 'pending') AS status,
    commits.reason AS end_reason,
    commits.detail AS end_detail,
    commits.decided_at
FROM mnemolog_journal.turn_journal AS journal
LEFT JOIN commits ON journal.owner = commits.owner AND journal.source_id = commits.source_id;
COMMENT ON VIEW turns IS 'Every turn with its end, or pending.';
