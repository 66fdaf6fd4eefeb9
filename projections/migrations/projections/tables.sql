-- The tables that are a function of the log. Names have no schema: a rebuild makes these tables in a schema of its own.

-- The log as it was applied.

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
    {{scope_columns}},
    outcome text NOT NULL CHECK (outcome IN ('stored', 'nothing_stored', 'rejected', 'failed', 'done')),
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
    attempt integer NOT NULL DEFAULT 1,
    order_kind text,
    actor text,
    limit_hit jsonb,
    PRIMARY KEY (partition, log_offset),
    CONSTRAINT commits_source_attempt UNIQUE (owner, source_id, attempt)
);
-- Vectors in base64 hardly compress: trying costs more time than the space is worth.
ALTER TABLE commits ALTER COLUMN record SET STORAGE EXTERNAL;
CREATE INDEX commits_deletions ON commits (tenant, user_id, agent_id, app_id, run_id) WHERE order_kind = 'delete_all';
CREATE INDEX commits_feedback ON commits (decided_at) WHERE order_kind = 'feedback';
CREATE INDEX commits_published ON commits (tenant, published_at)
INCLUDE (owner, source_id, attempt, source_kind, limit_hit, input_tokens, output_tokens);
-- By the minute in which turns were published, which limits count.
CREATE INDEX commits_scope ON commits (tenant, user_id, agent_id, app_id, run_id, published_at);
CREATE INDEX commits_source ON commits (tenant, source_id);
-- What was said before a person's deletion is shown to no later extraction.
CREATE INDEX commits_taken_back ON commits (owner, published_at)
WHERE order_kind IN ('delete', 'delete_all', 'reject', 'undo', 'forget_entity');
COMMENT ON TABLE commits IS
'The end of every source: one row per applied record of memory_events, with the exact bytes of that record.';
COMMENT ON COLUMN commits.attempt IS
'A source refused for a limit may be published again: its last attempt is its end.';

CREATE TABLE memory_events (
    event_id uuid PRIMARY KEY,
    partition integer NOT NULL,
    log_offset bigint NOT NULL,
    ordinal integer NOT NULL,
    owner text NOT NULL,
    source_id text NOT NULL,
    {{scope_columns}},
    event text NOT NULL,
    fact_id uuid,
    targets uuid [] NOT NULL DEFAULT '{}',
    occurred_at timestamptz NOT NULL,
    decided_at timestamptz NOT NULL,
    decided_by text NOT NULL,
    reason text NOT NULL,
    stale boolean NOT NULL DEFAULT false,
    payload jsonb NOT NULL,
    model text,
    prompt_version text,
    guard text,
    undoes uuid,
    promoted_from uuid,
    UNIQUE (partition, log_offset, ordinal)
);
CREATE INDEX memory_events_changes ON memory_events (
    tenant, user_id, agent_id, app_id, run_id, decided_at, log_offset, ordinal
)
WHERE event IN (
    'facts_merged', 'fact_replaced', 'fact_contradicted', 'fact_retracted', 'fact_expired', 'fact_corrected',
    'pending_confirmed', 'conflict_resolved'
);
CREATE INDEX memory_events_fact ON memory_events (fact_id);
CREATE INDEX memory_events_model ON memory_events (tenant, model, decided_at) WHERE model IS NOT NULL;
CREATE INDEX memory_events_overwrites ON memory_events (decided_at)
WHERE event IN (
    'facts_merged', 'fact_replaced', 'fact_contradicted', 'fact_retracted', 'fact_expired', 'fact_corrected',
    'fact_pending', 'conflict_resolved'
);
CREATE INDEX memory_events_promoted ON memory_events (promoted_from) WHERE promoted_from IS NOT NULL;
CREATE INDEX memory_events_scope ON memory_events (tenant, user_id, agent_id, app_id, run_id, decided_at);
CREATE INDEX memory_events_source ON memory_events (owner, source_id);
CREATE INDEX memory_events_targets ON memory_events USING gin (targets) WHERE targets <> '{}';
CREATE INDEX memory_events_undoes ON memory_events (undoes) WHERE undoes IS NOT NULL;
CREATE TRIGGER memory_events_append_only
BEFORE UPDATE OR DELETE ON memory_events
FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER memory_events_no_truncate
BEFORE TRUNCATE ON memory_events
FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
COMMENT ON TABLE memory_events IS
'What happened, one row per event, append-only. fact_id is the new fact, or the target of a skip or confirmation; '
'payload is the event without the data of vectors; stale says that a target no longer stood as the decision saw it.';
COMMENT ON COLUMN memory_events.fact_id IS
'The fact that the event is about: the new one, or the target where it brings none; NULL for a policy and an undo.';
COMMENT ON COLUMN memory_events.targets IS
'The other facts that the event names; of a retraction or an expiry all that it ends.';

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

-- Facts.

CREATE TABLE facts (
    fact_id uuid PRIMARY KEY,
    owner text NOT NULL,
    {{scope_columns}},
    text text NOT NULL,
    search_text text NOT NULL,
    key text,
    value text,
    value_json jsonb,
    category text NOT NULL,
    more_categories text [] NOT NULL DEFAULT '{}',
    importance_category text,
    importance double precision NOT NULL,
    certainty text NOT NULL,
    confidence double precision NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    subject text,
    speaker text,
    excerpt text NOT NULL,
    status text NOT NULL CHECK (
        status IN ('active', 'superseded', 'archived', 'pending_confirmation', 'expired', 'retracted', 'undone')
    ),
    unresolved boolean NOT NULL,
    event_time timestamptz,
    valid_until timestamptz,
    true_from timestamptz NOT NULL,
    true_to timestamptz,
    closed_at timestamptz,
    believed_from timestamptz,
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
    words tsvector NOT NULL,
    authority text NOT NULL DEFAULT 'extracted' CHECK (authority IN ('extracted', 'human')),
    single_valued boolean NOT NULL DEFAULT false,
    said_at timestamptz NOT NULL,
    recorded_at timestamptz NOT NULL,
    state_since timestamptz NOT NULL,
    ordinal integer NOT NULL,
    action_hint text NOT NULL DEFAULT 'new' CHECK (action_hint IN ('new', 'update', 'retract')),
    is_hidden boolean NOT NULL DEFAULT false,
    disputed boolean NOT NULL DEFAULT false
)
-- Two facts with vectors of 1536 dimensions share a page. An exact scan of a scope reads vectors and words: they stay in
-- the row as long as it fits into a page, and other values leave it first.
WITH (toast_tuple_target = 4080);
ALTER TABLE facts
ALTER COLUMN embedding SET STORAGE MAIN,
ALTER COLUMN words SET STORAGE MAIN,
ALTER COLUMN content_hash SET STORAGE MAIN;
CREATE INDEX facts_active ON facts (tenant, user_id, agent_id, app_id, run_id) WHERE status = 'active';
CREATE INDEX facts_disputed ON facts (tenant, user_id, agent_id, app_id, run_id) WHERE disputed;
CREATE INDEX facts_ended ON facts (tenant, user_id, agent_id, app_id, run_id, true_to)
WHERE status IN ('superseded', 'retracted', 'expired') AND believed_to IS NULL;
CREATE INDEX facts_ending ON facts (least(valid_until, true_to))
WHERE status IN ('active', 'pending_confirmation') AND (valid_until IS NOT NULL OR true_to IS NOT NULL);
CREATE INDEX facts_key ON facts (tenant, user_id, agent_id, app_id, run_id, key)
WHERE key IS NOT NULL AND status IN ('active', 'pending_confirmation');
CREATE INDEX facts_names ON facts (tenant, user_id, agent_id, app_id, run_id)
WHERE key IN ('name', 'full_name', 'first_name', 'nickname');
CREATE INDEX facts_pending ON facts (tenant, user_id, agent_id, app_id, run_id) WHERE status = 'pending_confirmation';
CREATE INDEX facts_profile ON facts (
    tenant, user_id, agent_id, app_id, run_id,
    profile_section(category), confidence DESC, true_from DESC, recorded_at, ordinal, fact_id
)
WHERE status = 'active';
CREATE INDEX facts_scope ON facts (tenant, user_id, agent_id, app_id, run_id, recorded_at);
CREATE INDEX facts_single_valued ON facts (tenant, user_id, agent_id, app_id, run_id)
WHERE status = 'active' AND single_valued;
CREATE INDEX facts_source ON facts (owner, source_id);
CREATE INDEX facts_superseded_by ON facts (superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX facts_unresolved ON facts (tenant, user_id, agent_id, app_id, run_id) WHERE unresolved;
CREATE TRIGGER facts_words
BEFORE INSERT OR UPDATE OF text, search_text, key, value, excerpt ON facts
FOR EACH ROW EXECUTE FUNCTION fill_fact_words();
COMMENT ON TABLE facts IS
'Every version of every fact. true_from/true_to: when it was so; believed_from/believed_to: when we held it so (from '
'is NULL for what was never held: a pending one); said_at: when it was said; recorded_at: when it came; state_since: '
'since when the row stands as it does; closed_at: when we learned true_to. supersedes names the versions that this one really ended.';
COMMENT ON COLUMN facts.ordinal IS
'The place among the events of its commit of the one that added it: the order of the facts of one turn.';
COMMENT ON COLUMN facts.is_hidden IS 'fact_is_hidden, as the projector keeps it.';
COMMENT ON COLUMN facts.disputed IS
'Whether an overwrite that is held back would end or deny the fact, as the projector keeps it: it is believed, and no rule.';
COMMENT ON COLUMN facts.action_hint IS
'What the statement does: new; update, where something takes the place of what was so; retract, where it only ends or '
'denies something: then it is no value of its key.';

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
    true_from timestamptz,
    PRIMARY KEY (fact_id, event_id)
);
CREATE INDEX former_states_event ON former_states (event_id);
COMMENT ON TABLE former_states IS
'How a fact stood from since until, when event_id changed it. With facts: every belief at every instant.';
COMMENT ON COLUMN former_states.true_from IS 'NULL means: as the fact has it.';

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
    {{scope_columns}},
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
CREATE INDEX pending_confirmations_open ON pending_confirmations (tenant, user_id, agent_id, app_id, run_id, since)
WHERE settled_at IS NULL;
CREATE INDEX pending_confirmations_targets ON pending_confirmations USING gin (targets) WHERE settled_at IS NULL;
COMMENT ON TABLE pending_confirmations IS
'Overwrites that were held back, and what became of them. settled_by is the event that settled it.';

CREATE TABLE undone (
    event_id uuid PRIMARY KEY,
    undone_by uuid NOT NULL,
    since timestamptz NOT NULL
);
COMMENT ON TABLE undone IS 'Events that are not in effect: taken back, and not reinstated since.';

-- Scopes: their versions, profiles and policies.

CREATE TABLE scopes (
    {{scope_columns}},
    owner text NOT NULL,
    version bigint NOT NULL CHECK (version > 0),
    facts bigint NOT NULL DEFAULT 0,
    speakers text [] NOT NULL DEFAULT '{}',
    PRIMARY KEY (tenant, user_id, agent_id, app_id, run_id)
);
-- The views for SQL users show an id that is not set as NULL, and the tables keep it as ''.
CREATE INDEX scopes_agent ON scopes (nullif(agent_id, ''), tenant);
CREATE INDEX scopes_run ON scopes (nullif(run_id, ''), tenant);
CREATE INDEX scopes_user ON scopes (nullif(user_id, ''), tenant);
COMMENT ON TABLE scopes IS
'How many commits with events or a speaker each scope has seen, no row is version 0; how many facts it has, active or '
'pending; and its first speakers, at most 8, in the order of the log.';

CREATE TABLE profiles (
    {{scope_columns}},
    owner text NOT NULL,
    sections jsonb NOT NULL,
    recent_changes jsonb NOT NULL,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (tenant, user_id, agent_id, app_id, run_id)
);
COMMENT ON TABLE profiles IS
'One row per scope, from its active facts: each is in the one section of its category, or in other. Every section is an '
'array of at most 50 entries {key, value, text, category, confidence, at, valid_until, fact_id, unresolved, disputed}, '
'surest first, and an empty one is left out; '
'recent_changes holds the last 10 changes {event, text, fact_id, at, old: [{text, fact_id}]}, latest first. No clock: '
'who reads it filters by valid_until, and by at for what begins later.';

CREATE TABLE policies (
    {{scope_columns}},
    policy jsonb NOT NULL,
    event_id uuid NOT NULL,
    since timestamptz NOT NULL,
    PRIMARY KEY (tenant, user_id, agent_id, app_id, run_id)
);
COMMENT ON TABLE policies IS
'The policy that holds for a scope, or, where only the tenant is named, for the whole tenant.';

-- Limits and costs.

-- A row for each partition: the projectors of two partitions never wait for each other.
CREATE TABLE tenant_facts (
    tenant text NOT NULL,
    partition integer NOT NULL,
    facts bigint NOT NULL,
    PRIMARY KEY (tenant, partition)
);
COMMENT ON TABLE tenant_facts IS
'How many facts of a tenant, active or pending, the commits of a partition have added, less those that they ended.';

CREATE TABLE daily_tokens (
    {{scope_columns}},
    day date NOT NULL,
    partition integer NOT NULL,
    tokens bigint NOT NULL,
    PRIMARY KEY (tenant, user_id, agent_id, app_id, run_id, day, partition)
);
COMMENT ON TABLE daily_tokens IS
'Tokens that turns used, by the day (UTC) on which they were published: a row for each scope, and one for its tenant, '
'with neither user nor agent. Each attempt of a turn counts what it paid for.';

CREATE TABLE daily_usage (
    {{scope_columns}},
    day date NOT NULL,
    model text NOT NULL,
    partition integer NOT NULL,
    input_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    uncounted bigint NOT NULL,
    PRIMARY KEY (tenant, user_id, agent_id, app_id, run_id, day, model, partition)
);
CREATE INDEX daily_usage_tenant ON daily_usage (tenant, day) WHERE user_id || agent_id = '';
COMMENT ON TABLE daily_usage IS
'Tokens that each model took for turns and commands, by the day (UTC) on which these were published: a row for each '
'scope, and one for its tenant, with neither user nor agent. Cached tokens are a part of the input; uncounted are calls '
'whose server counts no tokens.';

-- Entities, their names, and the facts that name them.

CREATE TABLE entities (
    entity_id uuid PRIMARY KEY,
    owner text NOT NULL,
    {{scope_columns}},
    name text NOT NULL,
    type text NOT NULL,
    possible_twins uuid [] NOT NULL,
    event_id uuid NOT NULL,
    source_id text NOT NULL,
    recorded_at timestamptz NOT NULL,
    ordinal integer NOT NULL,
    registered_name text,
    merged_into uuid,
    status text NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'merged', 'forgotten', 'undone')),
    registered_type text,
    head_id uuid NOT NULL GENERATED ALWAYS AS (coalesce(merged_into, entity_id)) STORED,
    shown_name text
);
CREATE INDEX entities_head ON entities (head_id);
CREATE INDEX entities_scope ON entities (tenant, user_id, agent_id, app_id, run_id, recorded_at);
CREATE INDEX entities_twins ON entities USING gin (possible_twins) WHERE possible_twins <> '{}';
COMMENT ON TABLE entities IS
'People, places and things that facts of exactly this scope name. possible_twins are entities that may be the same: in '
'doubt a name is a new entity. One that was merged stands for merged_into; one is undone when all facts that named it are.';
COMMENT ON COLUMN entities.shown_name IS
'The name under which readers see the entity, NULL where they do not. They see the user, and an entity that a fact names '
'which was not taken back; its name is the oldest of its shown names where none of them has its own in it.';

CREATE TABLE entity_aliases (
    entity_id uuid NOT NULL,
    kind text NOT NULL CHECK (kind IN ('name', 'tie', 'user')),
    key text NOT NULL,
    head text NOT NULL,
    alias text NOT NULL,
    place integer NOT NULL,
    event_id uuid NOT NULL,
    recorded_at timestamptz NOT NULL,
    {{scope_columns}},
    owner text NOT NULL DEFAULT '',
    source_id text NOT NULL DEFAULT '',
    log_offset bigint NOT NULL DEFAULT 0,
    is_own boolean NOT NULL DEFAULT false,
    told_by uuid,
    current_id uuid,
    current_key text NOT NULL,
    shown text,
    PRIMARY KEY (entity_id, kind, key, event_id)
);
CREATE INDEX entity_aliases_current ON entity_aliases (current_id);
CREATE INDEX entity_aliases_ends ON entity_aliases (
    tenant, user_id, agent_id, app_id, run_id,
    ((left(split_part(split_part(key, ' (', 1), ' ', -1), 1) || right(split_part(key, ' (', 1), 1)))
);
CREATE INDEX entity_aliases_head ON entity_aliases (tenant, user_id, agent_id, app_id, run_id, head);
CREATE INDEX entity_aliases_holder ON entity_aliases (holder_of_tie(key)) WHERE kind = 'tie';
CREATE INDEX entity_aliases_shown ON entity_aliases (tenant, user_id, agent_id, app_id, run_id, lower(shown));
CREATE INDEX entity_aliases_source ON entity_aliases (owner, source_id);
CREATE INDEX entity_aliases_told ON entity_aliases (told_by) WHERE told_by IS NOT NULL;
COMMENT ON TABLE entity_aliases IS
'The names of an entity, as they were said first: a name ("Ana"), what it is to somebody ("my wife"), or the user. Equal '
'keys of one kind are the same name; head is what a name is looked up by. One that a repetition told (told_by, its event) '
'has the source of the fact that was repeated.';
COMMENT ON COLUMN entity_aliases.current_id IS
'The entity that has the name now: after a merge the other one, NULL for a name that was undone or moved.';
COMMENT ON COLUMN entity_aliases.current_key IS
'The key, where a tie to an entity that was merged, or from which a split moved what told it, is one to the other.';
COMMENT ON COLUMN entity_aliases.shown IS
'What readers see of the name: itself where the user speaks by it, a person gave it, or a fact tells it that was not taken '
'back; of the user otherwise "the user"; NULL for a name that they do not see.';

CREATE TABLE name_vectors (
    entity_id uuid NOT NULL,
    key text NOT NULL,
    event_id uuid NOT NULL,
    model text NOT NULL,
    embedding halfvec NOT NULL,
    {{scope_columns}},
    PRIMARY KEY (entity_id, key, event_id)
);
ALTER TABLE name_vectors ALTER COLUMN embedding SET STORAGE MAIN;
CREATE INDEX name_vectors_scope ON name_vectors (tenant, user_id, agent_id, app_id, run_id);
COMMENT ON TABLE name_vectors IS
'The vectors of names in entity_aliases, by the same entity, key and event: those that have a meaning and that turns told.';

CREATE TABLE fact_entities (
    fact_id uuid NOT NULL,
    entity_id uuid NOT NULL,
    role text NOT NULL CHECK (role IN ('subject', 'object', 'mention')),
    event_id uuid NOT NULL,
    moved_to uuid,
    told_by uuid,
    type text,
    current_id uuid,
    PRIMARY KEY (fact_id, entity_id, role, event_id)
);
CREATE INDEX fact_entities_current ON fact_entities (current_id);
CREATE INDEX fact_entities_entity ON fact_entities (entity_id);
CREATE INDEX fact_entities_moved ON fact_entities (moved_to) WHERE moved_to IS NOT NULL;
CREATE INDEX fact_entities_told ON fact_entities (told_by) WHERE told_by IS NOT NULL;
CREATE INDEX fact_entities_types ON fact_entities (entity_id) WHERE type IS NOT NULL;
COMMENT ON TABLE fact_entities IS
'Which entities a fact names: whom it is about (subject), what it says of them (object), or named besides (mention). A '
'split has moved the fact to moved_to. told_by is the event of a repetition that told it. type is what the fact told '
'that the entity is, where nobody had told it. current_id is the entity that the fact names now, NULL where it names none: '
'the entity was forgotten, or the repetition undone.';

CREATE TABLE entity_changes (
    event_id uuid PRIMARY KEY,
    partition integer NOT NULL,
    log_offset bigint NOT NULL,
    ordinal integer NOT NULL,
    owner text NOT NULL,
    source_id text NOT NULL,
    {{scope_columns}},
    event text NOT NULL,
    entity_ids uuid [] NOT NULL,
    payload jsonb NOT NULL,
    decided_at timestamptz NOT NULL,
    original_id uuid NOT NULL,
    undone_by uuid
);
CREATE INDEX entity_changes_entities ON entity_changes USING gin (entity_ids);
CREATE INDEX entity_changes_original ON entity_changes (original_id);
CREATE INDEX entity_changes_proposals ON entity_changes (tenant, user_id, agent_id, app_id, run_id)
WHERE event = 'merge_proposed';
CREATE INDEX entity_changes_source ON entity_changes (owner, source_id);
CREATE INDEX entity_changes_summaries ON entity_changes ((entity_ids[1])) WHERE event = 'entity_summarised';
CREATE INDEX entity_changes_summarised_at ON entity_changes (decided_at) WHERE event = 'entity_summarised';
COMMENT ON TABLE entity_changes IS
'What persons decided about entities, and what of it was undone: the names, merged_into and status of entities, '
'the current names and moved_to of links are derived from it. original_id is the change that an undo is about.';

-- Relations between entities.

CREATE TABLE relationships (
    relation_id uuid PRIMARY KEY,
    owner text NOT NULL,
    {{scope_columns}},
    subject_id uuid NOT NULL,
    predicate text NOT NULL,
    object_id uuid NOT NULL,
    inverse text,
    event_id uuid NOT NULL,
    source_id text NOT NULL,
    recorded_at timestamptz NOT NULL,
    ordinal integer NOT NULL,
    UNIQUE (subject_id, predicate, object_id)
);
CREATE INDEX relationships_object ON relationships (object_id);
CREATE INDEX relationships_scope
ON relationships (tenant, user_id, agent_id, app_id, run_id, recorded_at, ordinal, relation_id);
COMMENT ON TABLE relationships IS
'Relations between two entities of exactly this scope: the object is the subject''s predicate (spouse, employer), the '
'subject is the object''s inverse. Whether one holds follows from relationship_evidence and the states of its facts.';

CREATE TABLE relationship_evidence (
    relation_id uuid NOT NULL,
    fact_id uuid NOT NULL,
    strength text CHECK (strength IN ('strong', 'medium', 'weak')),
    ended_at timestamptz,
    event_id uuid NOT NULL,
    recorded_at timestamptz NOT NULL,
    told_by uuid,
    PRIMARY KEY (relation_id, fact_id, event_id),
    CHECK ((strength IS NULL) <> (ended_at IS NULL))
);
CREATE INDEX relationship_evidence_fact ON relationship_evidence (fact_id);
COMMENT ON TABLE relationship_evidence IS
'What a fact says of a relation: with a strength that it is so (strong: the fact says it; medium: in passing; weak: the '
'fact suggests it), with ended_at that it is over since then. told_by is the event of a repetition that told it.';
