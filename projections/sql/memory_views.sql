-- name: state_at
-- One word for status and times. Postgres puts this expression into the statement that calls it.
CREATE OR REPLACE FUNCTION memory.state_at(
    at timestamptz, status text, true_from timestamptz, true_to timestamptz, valid_until timestamptz
) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
SELECT CASE
    WHEN status = 'pending_confirmation' THEN 'pending'
    WHEN status <> 'active' THEN status
    WHEN least(true_to, valid_until) <= at THEN 'ended'
    WHEN true_from > at THEN 'upcoming'
    ELSE 'current'
END
$$;
COMMENT ON FUNCTION memory.state_at IS
'The state of a version of a fact at an instant in one word: current (it holds), upcoming (it is known and begins '
'later), ended (its time is over), pending (it waits for a confirmation and is not believed), or its status: '
'superseded (another fact took its place), archived (it was contradicted, rejected, or lost its conflict), expired (its end '
'came), retracted (deleted, or ended with nothing in its place), undone (the decision that brought it was taken back).';

-- name: fact_rows
-- What the view facts shows. Postgres puts this query into the statement that reads the view, so that its conditions
-- find the scopes by an index, and their facts by another.
CREATE OR REPLACE FUNCTION memory.fact_rows() RETURNS TABLE ({fact_types}, state text)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 100000 AS $$
SELECT {fact}, memory.state_at(now(), f.status, f.true_from, f.true_to, f.valid_until)
FROM mnemolog.scopes AS s
INNER JOIN mnemolog.facts AS f USING ({{scope_ids}})
$$;
COMMENT ON FUNCTION memory.fact_rows IS 'The rows of the view memory.facts.';
CREATE OR REPLACE VIEW memory.facts AS SELECT * FROM memory.fact_rows();
COMMENT ON VIEW memory.facts IS
'Every version of every fact, also those that do not hold: superseded, contradicted, deleted, pending. The column state '
'says in one word which they are; memory.current_facts has only what holds now.';

-- name: current_facts
-- What holds now.
CREATE OR REPLACE VIEW memory.current_facts AS
SELECT *
FROM memory.facts
WHERE status = 'active'
    AND true_from <= now()
    AND (true_to IS NULL OR true_to > now())
    AND (valid_until IS NULL OR valid_until > now());
COMMENT ON VIEW memory.current_facts IS
'What holds now: no fact that was deleted, contradicted, replaced or corrected, none that has ended or begins later, '
'none that waits for a confirmation. Where two facts contradict each other and no decision could be had, both are here, '
'and unresolved is true.';

-- name: pending_rows
-- What the view pending shows.
CREATE OR REPLACE FUNCTION memory.pending_rows() RETURNS TABLE (
    {fact_types},
    action text,
    ended_at timestamptz,
    guard text,
    needs_human boolean,
    since timestamptz,
    event_id uuid,
    reason text,
    decided_by text,
    model text,
    verdict text,
    challenged jsonb,
    beside jsonb
)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 1000 AS $$
SELECT
    {fact},
    waiting.action, waiting.ended_at, waiting.guard, waiting.needs_human, waiting.since, e.event_id, e.reason,
    e.decided_by, e.model,
    e.payload -> 'decision' ->> 'verdict',
    coalesce(old.facts, '[]'),
    coalesce(old.successors, '[]')
FROM mnemolog.scopes AS s
INNER JOIN mnemolog.pending_confirmations AS waiting USING ({{scope_ids}})
INNER JOIN mnemolog.facts AS f ON waiting.fact_id = f.fact_id
INNER JOIN mnemolog.memory_events AS e ON waiting.event_id = e.event_id
CROSS JOIN LATERAL (
    SELECT
        jsonb_agg(
            {conflicting} ORDER BY t.recorded_at, t.ordinal, t.fact_id
        ) FILTER (WHERE NOT challenged.is_successor) AS facts,
        jsonb_agg(
            {conflicting} ORDER BY t.recorded_at, t.ordinal, t.fact_id
        ) FILTER (WHERE challenged.is_successor) AS successors
    FROM mnemolog.challenged_facts(ARRAY[waiting.fact_id]) AS challenged
    INNER JOIN mnemolog.facts AS t ON challenged.fact_id = t.fact_id
    WHERE {{same_scope t waiting}}
) AS old
WHERE waiting.settled_at IS NULL
$$;
COMMENT ON FUNCTION memory.pending_rows IS 'The rows of the view memory.pending.';
CREATE OR REPLACE VIEW memory.pending AS SELECT * FROM memory.pending_rows();
COMMENT ON VIEW memory.pending IS
'The facts that wait for a confirmation and are not believed, each with the facts that a confirmation would overwrite. '
'Those stay current until then.';

-- name: event_rows
-- What the view events shows.
CREATE OR REPLACE FUNCTION memory.event_rows() RETURNS TABLE (
    event_id uuid,
    {{scope_types}},
    event text,
    fact_id uuid,
    text text,
    targets uuid [],
    source_id text,
    occurred_at timestamptz,
    decided_at timestamptz,
    decided_by text,
    reason text,
    model text,
    prompt_version text,
    guard text,
    stale boolean,
    undone boolean,
    payload jsonb
)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 100000 AS $$
SELECT
    e.event_id, {{shown_scope s}}, e.event, e.fact_id,
    coalesce(f.text, e.payload -> 'statement' ->> 'text'),
    e.targets, e.source_id, e.occurred_at, e.decided_at, e.decided_by, e.reason, e.model, e.prompt_version, e.guard,
    e.stale,
    EXISTS (SELECT FROM mnemolog.undone AS u WHERE u.event_id = e.event_id),
    e.payload
FROM mnemolog.scopes AS s
INNER JOIN mnemolog.memory_events AS e USING ({{scope_ids}})
LEFT JOIN mnemolog.facts AS f ON e.fact_id = f.fact_id
$$;
COMMENT ON FUNCTION memory.event_rows IS 'The rows of the view memory.events.';
CREATE OR REPLACE VIEW memory.events AS SELECT * FROM memory.event_rows();
COMMENT ON VIEW memory.events IS 'What happened to facts and why: one row for each event, with its decision.';

-- name: turn_rows
-- What the view turns shows.
CREATE OR REPLACE FUNCTION memory.turn_rows() RETURNS TABLE (
    turn_id text,
    {{scope_types}},
    status text,
    end_reason text,
    end_detail text,
    occurred_at timestamptz,
    published_at timestamptz,
    decided_at timestamptz,
    infer boolean,
    messages jsonb,
    "position" text,
    emotion text,
    intensity double precision,
    energy text
)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 100000 AS $$
SELECT
    j.source_id, {{shown_scope j}}, j.status, j.end_reason, j.end_detail, j.occurred_at, j.published_at, j.decided_at,
    j.infer,
    j.body -> 'messages',
    j.topic || '/' || j.partition || '/' || j.log_offset,
    j.mood ->> 'emotion',
    (j.mood ->> 'intensity')::double precision,
    j.mood ->> 'energy'
FROM mnemolog.turns AS j
$$;
COMMENT ON FUNCTION memory.turn_rows IS 'The rows of the view memory.turns.';
CREATE OR REPLACE VIEW memory.turns AS SELECT * FROM memory.turn_rows();
COMMENT ON VIEW memory.turns IS 'Every turn as it was received, with how it ended, or pending.';

-- name: relationship_rows
-- What the view relationships shows.
CREATE OR REPLACE FUNCTION memory.relationship_rows() RETURNS TABLE (
    {{scope_types}},
    subject_id uuid,
    subject text,
    predicate text,
    object_id uuid,
    object text,
    is_active boolean,
    is_mirror boolean,
    strength double precision,
    since timestamptz,
    until timestamptz,
    recorded_at timestamptz,
    evidence uuid [],
    endings uuid []
)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 10000 AS $$
SELECT
    {{shown_scope s}}, r.subject_id, r.subject, r.predicate, r.object_id, r.object, r.is_active, r.is_mirror,
    r.strength, r.since, r.until, r.recorded_at, r.evidence, r.endings
FROM mnemolog.scopes AS s
CROSS JOIN LATERAL mnemolog.shown_relations(
    ARRAY(SELECT known.relation_id FROM mnemolog.relationships AS known WHERE {{same_scope known s}})
) AS r
$$;
COMMENT ON FUNCTION memory.relationship_rows IS 'The rows of the view memory.relationships.';
CREATE OR REPLACE VIEW memory.relationships AS SELECT * FROM memory.relationship_rows();
COMMENT ON VIEW memory.relationships IS
'What people, places and things that facts name are to each other, in both directions: the object is the subject''s '
'predicate. It holds where is_active is true, which follows from the facts in evidence.';

-- name: entity_rows
-- What the view entities shows.
CREATE OR REPLACE FUNCTION memory.entity_rows() RETURNS TABLE (
    entity_id uuid,
    {{scope_types}},
    name text,
    type text,
    is_user boolean,
    possible_twins uuid [],
    source_id text,
    recorded_at timestamptz,
    summary text,
    summary_version integer,
    summary_stale boolean
)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 100000 AS $$
SELECT
    e.entity_id, {{shown_scope s}}, e.shown_name, e.type,
    EXISTS (
        SELECT FROM mnemolog.entity_aliases AS n
        WHERE n.current_id = e.entity_id AND n.kind = 'user'
    ),
    ARRAY(
        SELECT t.twin_id FROM mnemolog.current_entity_twins AS t WHERE t.entity_id = e.entity_id AND t.is_shown
        ORDER BY t.twin_id
    ),
    e.source_id, e.recorded_at, written.summary, written.version,
    written.changed > 0
FROM mnemolog.scopes AS s
INNER JOIN mnemolog.entities AS e USING ({{scope_ids}})
LEFT JOIN LATERAL mnemolog.summary_of_entity(e.entity_id) AS written ON true
WHERE e.shown_name IS NOT NULL
$$;
COMMENT ON FUNCTION memory.entity_rows IS 'The rows of the view memory.entities.';
CREATE OR REPLACE VIEW memory.entities AS SELECT * FROM memory.entity_rows();
COMMENT ON VIEW memory.entities IS
'The people, places and things that facts of each scope name, as they are now: without those that were merged into '
'another one or forgotten, and those that only facts name that were deleted or undone.';

-- name: entity_alias_rows
-- What the view entity_aliases shows.
CREATE OR REPLACE FUNCTION memory.entity_alias_rows() RETURNS TABLE (
    entity_id uuid,
    {{scope_types}},
    alias text,
    kind text,
    recorded_at timestamptz
)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 100000 AS $$
SELECT e.entity_id, {{shown_scope s}}, n.shown, n.kind, n.recorded_at
FROM mnemolog.scopes AS s
INNER JOIN mnemolog.entities AS e USING ({{scope_ids}})
INNER JOIN mnemolog.entity_aliases AS n ON e.entity_id = n.current_id
WHERE e.shown_name IS NOT NULL AND n.shown IS NOT NULL
$$;
COMMENT ON FUNCTION memory.entity_alias_rows IS 'The rows of the view memory.entity_aliases.';
CREATE OR REPLACE VIEW memory.entity_aliases AS SELECT * FROM memory.entity_alias_rows();
COMMENT ON VIEW memory.entity_aliases IS 'All names of each entity, its own among them, and since when it is called so.';

-- name: fact_entity_rows
-- What the view fact_entities shows.
CREATE OR REPLACE FUNCTION memory.fact_entity_rows() RETURNS TABLE (
    fact_id uuid,
    entity_id uuid,
    {{scope_types}},
    role text
)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 100000 AS $$
SELECT DISTINCT link.fact_id, e.entity_id, {{shown_scope s}}, link.role
FROM mnemolog.scopes AS s
INNER JOIN mnemolog.entities AS e USING ({{scope_ids}})
INNER JOIN mnemolog.fact_entities AS link ON e.entity_id = link.current_id
WHERE e.shown_name IS NOT NULL
$$;
COMMENT ON FUNCTION memory.fact_entity_rows IS 'The rows of the view memory.fact_entities.';
CREATE OR REPLACE VIEW memory.fact_entities AS SELECT * FROM memory.fact_entity_rows();
COMMENT ON VIEW memory.fact_entities IS
'Which entity a fact, in any version, names: whom it is about (subject), what it says of them (object), or named besides '
'(mention).';

-- name: column_comments
-- What the columns of the views hold: under their name in all of them, or in one of them.
DO $$
DECLARE
    told record;
BEGIN
    FOR told IN
        SELECT DISTINCT ON (c.relname, a.attname) c.relname, a.attname, known.comment
        FROM (
            VALUES
            (NULL, 'fact_id', 'The id of this version of the fact.'),
            ('events', 'fact_id', 'The new fact, or the one that the event is about; NULL for an undo and a policy.'),
            (NULL, 'tenant', 'The customer of the installation.'),
            (NULL, 'user_id', 'The user of the scope; NULL where it is not set.'),
            (NULL, 'agent_id', 'The agent of the scope; NULL where it is not set.'),
            (NULL, 'app_id', 'The app of the scope; NULL where it is not set.'),
            (NULL, 'run_id', 'The run (session) of the scope; NULL where it is not set.'),
            (NULL, 'text', 'The fact as a sentence.'),
            (NULL, 'key', 'What the fact is about, for example home_city; NULL where it has no key.'),
            (NULL, 'value', 'The value of the key.'),
            (NULL, 'value_json', 'The value as an application gave it in an import or an edit.'),
            (NULL, 'category', 'The category, by which the profile has its sections.'),
            (NULL, 'more_categories', 'The other categories, where the fact is of several.'),
            (NULL, 'importance', 'From 0 to 1.'),
            (NULL, 'certainty', 'How certainly it was said.'),
            (NULL, 'confidence', 'From 0 to 1.'),
            (NULL, 'subject', 'The person or thing that the fact is about; NULL for the user.'),
            (NULL, 'speaker', 'Who said it.'),
            (NULL, 'excerpt', 'The words of the turn that it was taken from.'),
            (NULL, 'status', 'active, pending_confirmation, superseded, archived, expired, retracted or undone.'),
            ('turns', 'status', 'How the turn ended: stored, nothing_stored, rejected or failed; or pending.'),
            (NULL, 'unresolved', 'Whether it contradicts another fact and no decision could be had: both are current.'),
            (NULL, 'disputed', 'Whether what waits for a confirmation would end or deny it: it is current, and no rule to follow.'),
            (NULL, 'stale', 'Whether a target was no longer as the decision saw it.'),
            (NULL, 'event_time', 'The time that the fact names, where it names one.'),
            (NULL, 'valid_until', 'The end that was said with the fact.'),
            (NULL, 'true_from', 'Since when it is so.'),
            (NULL, 'true_to', 'Until when it was so: NULL while no end is known.'),
            (NULL, 'closed_at', 'When true_to became known.'),
            (NULL, 'believed_from', 'Since when it is held to be true; NULL for a pending fact.'),
            (NULL, 'believed_to', 'Until when it was held to be true: it turned out that it never was.'),
            (NULL, 'recorded_at', 'When it was added.'),
            (NULL, 'state_since', 'Since when it has its present state.'),
            (NULL, 'authority', 'extracted by a model, or given by a human.'),
            (NULL, 'action_hint', 'new, update, or retract: a sentence that only ends or denies something.'),
            (NULL, 'mention_count', 'How often it was said.'),
            (NULL, 'last_confirmed_at', 'When it was said again.'),
            (NULL, 'supersedes', 'The versions that this one ended.'),
            (NULL, 'superseded_by', 'The version that took its place.'),
            (NULL, 'source_id', 'The turn or command that it came from.'),
            (NULL, 'embedding_model', 'The model of its vector.'),
            (NULL, 'metadata', 'What the application gave with the turn.'),
            (NULL, 'begins_later', 'Whether it is known and not so yet.'),
            (NULL, 'state', 'The state in one word: see the function memory.state_at.'),
            ('pending', 'action', 'What a confirmation would do to the challenged facts.'),
            ('pending', 'ended_at', 'The end that it would give them.'),
            ('pending', 'guard', 'The rule that held it back.'),
            ('pending', 'needs_human', 'Whether no further statement can confirm it.'),
            ('pending', 'since', 'Since when it waits.'),
            (NULL, 'event_id', 'The event.'),
            (NULL, 'reason', 'Why it was decided so.'),
            (NULL, 'decided_by', 'Who decided: model, rule, person (by a command, also of an application) or timer.'),
            (NULL, 'model', 'The model that decided; NULL where none did.'),
            ('pending', 'verdict', 'What the model said.'),
            ('pending', 'challenged', 'The facts that a confirmation would overwrite; they are current until then.'),
            ('pending', 'beside', 'The facts that it would leave as they are, and stand beside.'),
            ('events', 'event', 'What happened, for example fact_added.'),
            ('events', 'text', 'What that fact says.'),
            ('events', 'targets', 'The facts that it ended or touched.'),
            (NULL, 'occurred_at', 'When it was said.'),
            (NULL, 'decided_at', 'When it was decided.'),
            ('events', 'prompt_version', 'The prompt that the model was asked with.'),
            ('events', 'guard', 'The rule that held it back.'),
            ('events', 'undone', 'Whether it is not in effect any more.'),
            ('events', 'payload', 'The whole event.'),
            ('turns', 'turn_id', 'The id that the application gave to the turn.'),
            ('turns', 'end_reason', 'Why it was rejected, or failed.'),
            ('turns', 'end_detail', 'More about that.'),
            ('turns', 'published_at', 'When Kafka had it.'),
            ('turns', 'infer', 'Whether a model extracts facts, or each message is one.'),
            ('turns', 'messages', 'What was said: [{"role", "content", "name"}].'),
            ('turns', 'emotion', 'How the user sounds, where the mood of turns is asked for.'),
            ('turns', 'intensity', 'How strong the emotion is, from 0 to 1.'),
            ('turns', 'energy', 'How much energy is in it: low, medium or high.'),
            ('entities', 'entity_id', 'The entity.'),
            ('entities', 'name', 'Its own name.'),
            ('entities', 'type', 'person, place, organisation, product, event, animal or other.'),
            ('entities', 'is_user', 'Whether it is the user.'),
            ('entities', 'possible_twins', 'Entities that may be the same.'),
            ('entities', 'recorded_at', 'When it was named first.'),
            ('entities', 'summary', 'What a model wrote about it from its facts, if a policy allows that; no evidence.'),
            ('entities', 'summary_version', 'Which of the summaries of the entity it is, from 1.'),
            ('entities', 'summary_stale', 'Whether facts of the entity are new since.'),
            ('entity_aliases', 'entity_id', 'The entity that is called so.'),
            ('entity_aliases', 'alias', 'How it was said first.'),
            ('entity_aliases', 'kind', 'name, tie (what it is to somebody), or user.'),
            ('entity_aliases', 'recorded_at', 'Since when it is called so.'),
            ('fact_entities', 'entity_id', 'The entity that the fact names.'),
            ('fact_entities', 'role', 'subject, object or mention.'),
            ('turns', 'position', 'Its place in Kafka: topic/partition/offset.'),
            ('relationships', 'subject_id', 'The entity from which the relation is read.'),
            ('relationships', 'subject', 'Its name.'),
            ('relationships', 'predicate', 'What the object is to the subject: spouse, parent, employer, lives_in.'),
            ('relationships', 'object_id', 'The entity that is so.'),
            ('relationships', 'object', 'Its name.'),
            ('relationships', 'is_active', 'Whether it holds now.'),
            ('relationships', 'is_mirror', 'Whether it was stated in the other direction only.'),
            ('relationships', 'strength', '0 to 1: 0.8 where a fact says it, 0.6 in passing, 0.4 suggested; more with each repetition.'),
            ('relationships', 'since', 'When the first of its evidence began to be true.'),
            ('relationships', 'until', 'When a relation that holds no longer ended.'),
            ('relationships', 'recorded_at', 'When it was stated first.'),
            ('relationships', 'evidence', 'The facts by which it holds, or that stated one that holds no longer.'),
            ('relationships', 'endings', 'The facts that say that it is over.')
        ) AS known (of_view, name, comment)
        INNER JOIN pg_attribute AS a ON a.attname = known.name
        INNER JOIN pg_class AS c ON c.oid = a.attrelid AND c.relkind = 'v' AND c.relname = coalesce(known.of_view, c.relname)
        WHERE c.relnamespace = 'memory'::regnamespace
        ORDER BY c.relname, a.attname, known.of_view NULLS LAST
    LOOP
        EXECUTE format('COMMENT ON COLUMN memory.%I.%I IS %L', told.relname, told.attname, told.comment);
    END LOOP;
END
$$;
