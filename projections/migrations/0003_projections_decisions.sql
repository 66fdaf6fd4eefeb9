-- name: projections_decisions
-- What decisions can do beyond adding and replacing: wait for a confirmation, end, be undone; and what was before.

ALTER TABLE commits
ADD COLUMN attempt integer NOT NULL DEFAULT 1,
ADD COLUMN order_kind text,
ADD COLUMN actor text,
ADD COLUMN limit_hit jsonb,
DROP CONSTRAINT commits_outcome_check,
ADD CONSTRAINT commits_outcome_check CHECK (outcome IN ('facts', 'no_facts', 'rejected', 'failed', 'done')),
DROP CONSTRAINT commits_owner_source_id_key,
ADD CONSTRAINT commits_source_attempt UNIQUE (owner, source_id, attempt);
COMMENT ON COLUMN commits.attempt IS
'A source refused for a limit may be published again: its last attempt is its end.';

ALTER TABLE memory_events
ALTER COLUMN fact_id DROP NOT NULL,
ADD COLUMN model text,
ADD COLUMN prompt_version text,
ADD COLUMN guard text,
ADD COLUMN undoes uuid;
CREATE INDEX memory_events_undoes ON memory_events (undoes) WHERE undoes IS NOT NULL;
CREATE INDEX memory_events_model ON memory_events (tenant, model, decided_at) WHERE model IS NOT NULL;
CREATE INDEX memory_events_changes ON memory_events (
    tenant, user_id, agent_id, app_id, run_id, decided_at, log_offset, ordinal
)
WHERE event IN (
    'facts_merged',
    'fact_replaced',
    'fact_contradicted',
    'fact_retracted',
    'fact_expired',
    'fact_corrected',
    'pending_confirmed',
    'conflict_resolved'
);
ALTER TABLE memory_events DISABLE TRIGGER memory_events_append_only;
UPDATE memory_events
SET
    model = payload #>> '{decision,model}',
    prompt_version = payload #>> '{decision,prompt_version}'
WHERE payload #>> '{decision,model}' IS NOT NULL;
ALTER TABLE memory_events ENABLE TRIGGER memory_events_append_only;
COMMENT ON COLUMN memory_events.fact_id IS
'The fact that the event is about: the new one, or the target where it brings none; NULL for a policy and an undo.';
COMMENT ON COLUMN memory_events.targets IS
'The other facts that the event names; of a retraction or an expiry all that it ends.';

ALTER TABLE facts
DROP CONSTRAINT facts_status_check,
ADD CONSTRAINT facts_status_check CHECK (
    status IN ('active', 'superseded', 'archived', 'pending_confirmation', 'expired', 'retracted', 'undone')
),
ALTER COLUMN believed_from DROP NOT NULL,
ADD COLUMN authority text NOT NULL DEFAULT 'extracted' CHECK (authority IN ('extracted', 'human')),
ADD COLUMN single_valued boolean NOT NULL DEFAULT false,
ADD COLUMN said_at timestamptz,
ADD COLUMN recorded_at timestamptz,
ADD COLUMN state_since timestamptz;
UPDATE facts
SET
    recorded_at = believed_from,
    state_since = coalesce(closed_at, believed_to, believed_from),
    said_at = (
        SELECT commits.occurred_at
        FROM commits
        WHERE commits.owner = facts.owner AND commits.source_id = facts.source_id
    );
ALTER TABLE facts
ALTER COLUMN said_at SET NOT NULL,
ALTER COLUMN recorded_at SET NOT NULL,
ALTER COLUMN state_since SET NOT NULL;
DROP INDEX facts_scope;
DROP INDEX facts_changes;
CREATE INDEX facts_scope ON facts (tenant, user_id, agent_id, app_id, run_id, recorded_at);
CREATE INDEX facts_key ON facts (tenant, user_id, agent_id, app_id, run_id, key)
WHERE key IS NOT NULL AND status IN ('active', 'pending_confirmation');
CREATE INDEX facts_bygone ON facts (tenant, user_id, agent_id, app_id, run_id, true_to, key)
WHERE key IS NOT NULL AND status IN ('superseded', 'retracted', 'expired') AND believed_to IS NULL;
CREATE INDEX facts_pending ON facts (tenant, user_id, agent_id, app_id, run_id) WHERE status = 'pending_confirmation';
CREATE INDEX facts_superseded_by ON facts (superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX facts_unresolved ON facts (tenant, user_id, agent_id, app_id, run_id) WHERE unresolved;
CREATE INDEX facts_ending ON facts (least(valid_until, true_to))
WHERE status = 'active' AND (valid_until IS NOT NULL OR true_to IS NOT NULL);
COMMENT ON TABLE facts IS
'Every version of every fact. true_from/true_to: when it was so; believed_from/believed_to: when we held it so (from '
'is NULL for what was never held: a pending one); said_at: when it was said; recorded_at: when it came; state_since: since when the row stands '
'as it does; closed_at: when we learned true_to. supersedes names the versions that this one really ended.';

CREATE TABLE former_states (
    fact_id uuid NOT NULL,
    event_id uuid NOT NULL,
    since timestamptz NOT NULL,
    until timestamptz NOT NULL,
    status text NOT NULL,
    confidence double precision NOT NULL,
    mention_count integer NOT NULL,
    last_confirmed_at timestamptz,
    true_to timestamptz,
    closed_at timestamptz,
    believed_from timestamptz,
    believed_to timestamptz,
    superseded_by uuid,
    unresolved boolean NOT NULL,
    PRIMARY KEY (fact_id, event_id)
);
CREATE INDEX former_states_event ON former_states (event_id);
-- Ended facts did not change any more: how they stand is how they stood, but for the end. A rebuild adds the mentions.
INSERT INTO former_states (
    fact_id, event_id, since, until, status, confidence, mention_count, last_confirmed_at, believed_from, unresolved
)
SELECT
    facts.fact_id,
    ending.event_id,
    facts.recorded_at,
    facts.state_since,
    'active',
    facts.confidence,
    facts.mention_count,
    facts.last_confirmed_at,
    facts.believed_from,
    facts.unresolved
FROM facts
INNER JOIN memory_events AS ending
    ON facts.superseded_by = ending.fact_id AND ending.targets @> ARRAY[facts.fact_id] AND ending.targets <> '{}';
UPDATE facts SET unresolved = false WHERE status <> 'active' AND unresolved;
COMMENT ON TABLE former_states IS
'How a fact stood from since until, when event_id changed it. With facts: every belief at every instant.';

CREATE TABLE fact_relations (
    fact_id uuid NOT NULL,
    related_id uuid NOT NULL,
    relation text NOT NULL CHECK (relation IN ('extends', 'similar')),
    event_id uuid NOT NULL,
    since timestamptz NOT NULL,
    PRIMARY KEY (fact_id, related_id, relation)
);
CREATE INDEX fact_relations_related ON fact_relations (related_id);
COMMENT ON TABLE fact_relations IS
'fact_id extends, or is similar to, related_id. A relation holds while both facts do.';

CREATE TABLE pending_confirmations (
    fact_id uuid PRIMARY KEY,
    owner text NOT NULL,
    tenant text NOT NULL DEFAULT '',
    user_id text NOT NULL DEFAULT '',
    agent_id text NOT NULL DEFAULT '',
    app_id text NOT NULL DEFAULT '',
    run_id text NOT NULL DEFAULT '',
    event_id uuid NOT NULL,
    targets uuid [] NOT NULL,
    action text NOT NULL CHECK (action IN ('merge', 'replace', 'contradict', 'retract', 'expire')),
    ended_at timestamptz,
    guard text NOT NULL,
    needs_human boolean NOT NULL,
    since timestamptz NOT NULL,
    settled_at timestamptz,
    settlement text CHECK (settlement IN ('confirmed', 'rejected', 'overtaken', 'deleted', 'undone')),
    settled_by uuid,
    CHECK ((settled_at IS NULL) = (settlement IS NULL))
);
CREATE INDEX pending_confirmations_open ON pending_confirmations (
    tenant, user_id, agent_id, app_id, run_id, since
) WHERE settled_at IS NULL;
CREATE INDEX pending_confirmations_targets ON pending_confirmations USING gin (targets) WHERE settled_at IS NULL;
COMMENT ON TABLE pending_confirmations IS
'Overwrites that were held back, and what became of them. settled_by is the event that settled it.';

CREATE TABLE undone (
    event_id uuid PRIMARY KEY,
    undone_by uuid NOT NULL,
    since timestamptz NOT NULL
);
COMMENT ON TABLE undone IS 'Events that are not in effect: taken back, and not reinstated since.';

CREATE TABLE policies (
    tenant text NOT NULL,
    user_id text NOT NULL DEFAULT '',
    agent_id text NOT NULL DEFAULT '',
    app_id text NOT NULL DEFAULT '',
    run_id text NOT NULL DEFAULT '',
    policy jsonb NOT NULL,
    event_id uuid NOT NULL,
    since timestamptz NOT NULL,
    PRIMARY KEY (tenant, user_id, agent_id, app_id, run_id)
);
COMMENT ON TABLE policies IS
'The policy that holds for a scope, or, where only the tenant is named, for the whole tenant.';

CREATE OR REPLACE VIEW turns AS
SELECT
    journal.*,
    coalesce(ending.outcome, 'pending') AS status,
    ending.reason AS end_reason,
    ending.detail AS end_detail,
    ending.decided_at
FROM mnemolog_journal.turn_journal AS journal
LEFT JOIN LATERAL (
    SELECT commits.outcome, commits.reason, commits.detail, commits.decided_at
    FROM commits
    WHERE commits.owner = journal.owner AND commits.source_id = journal.source_id
    ORDER BY commits.attempt DESC
    LIMIT 1
) AS ending ON true;
