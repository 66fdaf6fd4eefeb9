-- name: projections_entities
-- The people, places and things that facts name, with their names and the facts that name them.

CREATE TABLE entities (
    entity_id uuid PRIMARY KEY,
    owner text NOT NULL,
    tenant text NOT NULL DEFAULT '',
    user_id text NOT NULL DEFAULT '',
    agent_id text NOT NULL DEFAULT '',
    app_id text NOT NULL DEFAULT '',
    run_id text NOT NULL DEFAULT '',
    name text NOT NULL,
    type text NOT NULL,
    possible_twins uuid [] NOT NULL,
    event_id uuid NOT NULL,
    source_id text NOT NULL,
    recorded_at timestamptz NOT NULL,
    ordinal integer NOT NULL
);
CREATE INDEX entities_scope ON entities (tenant, user_id, agent_id, app_id, run_id, recorded_at);
COMMENT ON TABLE entities IS
'People, places and things that facts of exactly this scope name. possible_twins are entities that may be the same: in '
'doubt a name is a new entity.';

CREATE TABLE entity_aliases (
    entity_id uuid NOT NULL,
    kind text NOT NULL CHECK (kind IN ('name', 'tie', 'user')),
    key text NOT NULL,
    head text NOT NULL,
    alias text NOT NULL,
    place integer NOT NULL,
    event_id uuid NOT NULL,
    recorded_at timestamptz NOT NULL,
    tenant text NOT NULL DEFAULT '',
    user_id text NOT NULL DEFAULT '',
    agent_id text NOT NULL DEFAULT '',
    app_id text NOT NULL DEFAULT '',
    run_id text NOT NULL DEFAULT '',
    PRIMARY KEY (entity_id, kind, key)
);
CREATE INDEX entity_aliases_head ON entity_aliases (tenant, user_id, agent_id, app_id, run_id, head);
COMMENT ON TABLE entity_aliases IS
'The names of an entity, as they were said first: a name ("Ana"), what it is to somebody ("my wife"), or the user. Equal '
'keys of one kind are the same name; head is what a name is looked up by.';

CREATE TABLE fact_entities (
    fact_id uuid NOT NULL,
    entity_id uuid NOT NULL,
    role text NOT NULL CHECK (role IN ('subject', 'object', 'mention')),
    event_id uuid NOT NULL,
    PRIMARY KEY (fact_id, entity_id, role)
);
CREATE INDEX fact_entities_entity ON fact_entities (entity_id);
COMMENT ON TABLE fact_entities IS
'Which entities a fact names: whom it is about (subject), what it says of them (object), or named besides (mention).';
