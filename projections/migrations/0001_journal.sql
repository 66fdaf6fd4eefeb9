-- name: journal
-- What is not derived from the log and survives every rebuild: the turns as they came in, and the replies of models.

CREATE EXTENSION IF NOT EXISTS vector SCHEMA public;

CREATE SCHEMA IF NOT EXISTS mnemolog_journal;

CREATE TABLE mnemolog_journal.turn_journal (
    owner text NOT NULL,
    source_id text NOT NULL,
    tenant text NOT NULL DEFAULT '',
    user_id text NOT NULL DEFAULT '',
    agent_id text NOT NULL DEFAULT '',
    app_id text NOT NULL DEFAULT '',
    run_id text NOT NULL DEFAULT '',
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
    PRIMARY KEY (owner, source_id)
);
CREATE INDEX turn_journal_position ON mnemolog_journal.turn_journal (topic, partition, log_offset);
CREATE INDEX turn_journal_source ON mnemolog_journal.turn_journal (tenant, source_id);
COMMENT ON TABLE mnemolog_journal.turn_journal IS
'Every record of conversation_turns: its first delivery, admitted or refused. Body is the turn, or what a refused '
'record said where that was JSON; a dimension of the scope that is not set is the empty string.';

CREATE TABLE mnemolog_journal.model_replies (
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
    PRIMARY KEY (owner, source_id, stage, version, attempt)
);
CREATE INDEX model_replies_created_at ON mnemolog_journal.model_replies (created_at);
COMMENT ON TABLE mnemolog_journal.model_replies IS
'What a model answered, stored before it is used, so that a second delivery of the turn makes no second call. '
'Rows are purged once the turn cannot be delivered again.';

-- SQL users need no prefixes. An account that does not own the database goes on without this convenience.
DO $$
BEGIN
    EXECUTE format('ALTER DATABASE %I SET search_path = mnemolog, mnemolog_journal, public', current_database());
EXCEPTION WHEN insufficient_privilege THEN
    RAISE WARNING 'the search_path of database % stays as it is: only its owner can set it', current_database();
END
$$;
