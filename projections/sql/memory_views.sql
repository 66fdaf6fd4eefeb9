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

-- name: facts
-- All versions.
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

-- name: pending
-- What waits for a confirmation.
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

-- name: events
-- What happened, and why.
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

-- name: turns
-- Every turn with its end.
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
    strength text,
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
CROSS JOIN LATERAL mnemolog.shown_relations_of_scope({{scope_ids s}}) AS r
$$;
COMMENT ON FUNCTION memory.relationship_rows IS 'The rows of the view memory.relationships.';

-- name: relationships
-- What people, places and things are to each other.
CREATE OR REPLACE VIEW memory.relationships AS SELECT * FROM memory.relationship_rows();
COMMENT ON VIEW memory.relationships IS
'What people, places and things that facts name are to each other, in both directions: the object is the subject''s '
'predicate. It holds where is_active is true, which follows from the facts in evidence.';

-- name: fact_types
-- The types of the columns of a fact.
fact_id uuid,
{{scope_types}},
text text,
key text,
value text,
category text,
importance double precision,
certainty text,
confidence double precision,
subject text,
speaker text,
excerpt text,
status text,
unresolved boolean,
stale boolean,
event_time timestamptz,
valid_until timestamptz,
true_from timestamptz,
true_to timestamptz,
closed_at timestamptz,
believed_from timestamptz,
believed_to timestamptz,
recorded_at timestamptz,
state_since timestamptz,
authority text,
action_hint text,
mention_count integer,
last_confirmed_at timestamptz,
supersedes uuid [],
superseded_by uuid,
source_id text,
embedding_model text,
metadata jsonb,
begins_later boolean
