-- What is not derived from the log and survives every rebuild: the turns as they came in, and the replies of models.

-- Turns as they came in.

CREATE TABLE turn_journal (
    owner text NOT NULL,
    source_id text NOT NULL,
    {{scope_columns}},
    topic text NOT NULL,
    partition integer NOT NULL,
    log_offset bigint NOT NULL,
    published_at timestamptz NOT NULL,
    occurred_at timestamptz,
    infer boolean,
    body jsonb,
    refusal text,
    detail text,
    received_at timestamptz NOT NULL DEFAULT now(),
    words tsvector GENERATED ALWAYS AS (CASE WHEN refusal IS NULL THEN turn_words(body) END) STORED,
    speakers text [] GENERATED ALWAYS AS (CASE WHEN refusal IS NULL THEN turn_speakers(body) END) STORED,
    PRIMARY KEY (owner, source_id)
);
-- A scan of a scope reads the words of each turn: the messages leave the row first.
ALTER TABLE turn_journal ALTER COLUMN words SET STORAGE MAIN;
-- An extraction is shown what its scope said before the turn: the last turns of an owner by when they were said.
CREATE INDEX turn_journal_conversation ON turn_journal (owner, occurred_at, log_offset)
WHERE refusal IS NULL AND body IS NOT NULL;
CREATE INDEX turn_journal_position ON turn_journal (topic, partition, log_offset);
CREATE INDEX turn_journal_scope ON turn_journal (tenant, user_id, agent_id, app_id, run_id, published_at);
CREATE INDEX turn_journal_source ON turn_journal (tenant, source_id);
-- SQL users find turns by what the view memory.turns shows: an id that is not set is NULL there.
CREATE INDEX turn_journal_user ON turn_journal (nullif(user_id, ''), tenant, published_at);
COMMENT ON TABLE turn_journal IS
'Every record of conversation_turns: its first delivery, admitted or refused. Body is the turn, or what a refused '
'record said where that was JSON; a dimension of the scope that is not set is the empty string.';
COMMENT ON COLUMN turn_journal.words IS
'The words that people said, by which a search finds the turn; NULL for a refused record.';
COMMENT ON COLUMN turn_journal.speakers IS 'Who said something, as far as names are given; NULL where none is.';

-- Turns that operators have given up.

CREATE TABLE dropped_turns (
    owner text NOT NULL,
    source_id text NOT NULL,
    attempt integer NOT NULL,
    actor text NOT NULL,
    why text NOT NULL,
    dropped_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (owner, source_id, attempt)
);
COMMENT ON TABLE dropped_turns IS
'Failed and rejected turns that nobody is to try again, with who said so and why. Their ends in the log stay.';

-- Replies of models.

CREATE TABLE model_replies (
    owner text NOT NULL,
    source_id text NOT NULL,
    stage text NOT NULL,
    version text NOT NULL,
    attempt integer NOT NULL CHECK (attempt >= 0),
    reply text NOT NULL,
    model text NOT NULL,
    input_tokens integer NOT NULL DEFAULT 0,
    output_tokens integer NOT NULL DEFAULT 0,
    milliseconds double precision NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now(),
    cached_tokens integer,
    shared jsonb,
    paid_by text,
    endpoint text,
    PRIMARY KEY (owner, source_id, stage, version, attempt)
);
CREATE INDEX model_replies_created_at ON model_replies (created_at);
COMMENT ON TABLE model_replies IS
'What a model answered, stored before it is used, so that a second delivery of the turn makes no second call. '
'Rows are purged once the turn cannot be delivered again.';

-- Limits of tenants.

CREATE TABLE limit_reservations (
    owner text NOT NULL,
    source_id text NOT NULL,
    attempt integer NOT NULL CHECK (attempt > 0),
    tenant text NOT NULL,
    published_at timestamptz NOT NULL,
    facts integer NOT NULL CHECK (facts >= 0),
    tokens bigint NOT NULL CHECK (tokens >= 0),
    reserved_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (owner, source_id, attempt)
);
CREATE INDEX limit_reservations_tenant ON limit_reservations (tenant, reserved_at);
COMMENT ON TABLE limit_reservations IS
'A turn that was let through under the limits of its tenant: the facts it adds and the tokens it used. It counts until '
'commits has that attempt of its source, and is removed by a later turn of the tenant.';

-- Large scopes have indexes of their own, for which no other scope pays. They outlive every rebuild, which makes their
-- indexes on the new tables.

CREATE TABLE indexed_scopes (
    {{scope_columns}},
    model text NOT NULL,
    dimensions integer NOT NULL CHECK (dimensions > 0),
    PRIMARY KEY (tenant, user_id, agent_id, app_id, run_id)
);
COMMENT ON TABLE indexed_scopes IS
'The large scopes that have an index of their vectors, of this model and number of dimensions, and one of their words.';


-- What fails in workers at the moment: a model whose server refuses the key, a loop without Postgres.

CREATE TABLE worker_problems (
    worker text NOT NULL,
    part text NOT NULL,
    problem text NOT NULL,
    seen_at timestamptz NOT NULL,
    PRIMARY KEY (worker, part)
);
COMMENT ON TABLE worker_problems IS
'What fails in a worker at the moment, by part: a worker writes it every few seconds, for whoever waits for a turn.';

-- Who may use the HTTP server.

CREATE TABLE api_keys (
    key_id text PRIMARY KEY,
    name text NOT NULL,
    tenant text NOT NULL,
    users text NOT NULL,
    rights text [] NOT NULL,
    digest bytea NOT NULL,
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz
);
COMMENT ON TABLE api_keys IS
'A key of the HTTP server: what it may, for which users (an id, the beginning of ids with *, or *), until when, and the '
'SHA-256 of its text, which is not stored.';
