-- name: check_scope
-- Refuses what finds nothing, or what a query may not ask for.
CREATE OR REPLACE FUNCTION memory.check_scope(
    tenant text, user_id text, agent_id text, app_id text, run_id text
) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF '' IN (tenant, user_id, agent_id, app_id, run_id) THEN
        RAISE EXCEPTION 'an id in the scope is empty'
        USING ERRCODE = 'invalid_parameter_value', HINT = 'Leave it out, or give NULL, to mean "not set".';
    ELSIF tenant IS NULL OR tenant IN ('*', '**') THEN
        RAISE EXCEPTION 'a query sees one tenant, and this one names %', coalesce(quote_literal(tenant), 'none')
        USING ERRCODE = 'invalid_parameter_value', HINT = 'Name the tenant, or leave it out for ''default''.';
    ELSIF user_id IS NULL AND agent_id IS NULL THEN
        RAISE EXCEPTION 'the scope names neither a user_id nor an agent_id'
        USING ERRCODE = 'invalid_parameter_value',
            HINT = 'Every fact has at least one of them: name it, for example user_id => ''alice'', or ''*'' for any.';
    END IF;
END
$$;
COMMENT ON FUNCTION memory.check_scope IS
'Raises an error for a scope that can find nothing: the other functions call it.';

-- name: check_given
-- Refuses a parameter that is NULL.
CREATE OR REPLACE FUNCTION memory.check_given(parameter text, is_given boolean) RETURNS void LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
    IF NOT is_given THEN
        RAISE EXCEPTION '% is NULL', parameter
        USING ERRCODE = 'null_value_not_allowed', HINT = format('Give a value for %s.', parameter);
    END IF;
END
$$;
COMMENT ON FUNCTION memory.check_given IS 'Raises an error for a parameter that is NULL: the other functions call it.';

-- name: check_search
-- Refuses a question without any character, and options out of their bounds.
CREATE OR REPLACE FUNCTION memory.check_search(
    question text, top_k integer, threshold double precision
) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF coalesce(question, '') = '' THEN
        RAISE EXCEPTION 'the text to search for is empty'
        USING ERRCODE = 'invalid_parameter_value',
            HINT = 'Say in a few words what to look for, or read memory.current_facts.';
    ELSIF top_k IS NULL OR top_k NOT BETWEEN 1 AND 100 THEN
        RAISE EXCEPTION 'top_k is %', coalesce(top_k::text, 'NULL')
        USING ERRCODE = 'invalid_parameter_value', HINT = 'Choose 1 to 100.';
    ELSIF threshold IS NULL OR threshold NOT BETWEEN 0 AND 1 THEN
        RAISE EXCEPTION 'threshold is %', coalesce(threshold::text, 'NULL')
        USING ERRCODE = 'invalid_parameter_value', HINT = 'Choose 0 (no threshold) to 1, a cosine similarity.';
    END IF;
END
$$;
COMMENT ON FUNCTION memory.check_search IS
'Raises an error for a question without any character and for options out of their bounds: the other functions call it.';

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
INNER JOIN mnemolog.facts AS f USING (tenant, user_id, agent_id, app_id, run_id)
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
WHERE
    status = 'active'
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
    waiting.action,
    waiting.ended_at,
    waiting.guard,
    waiting.needs_human,
    waiting.since,
    e.event_id,
    e.reason,
    e.decided_by,
    e.model,
    e.payload -> 'decision' ->> 'verdict',
    coalesce(old.facts, '[]'),
    coalesce(old.successors, '[]')
FROM mnemolog.scopes AS s
INNER JOIN mnemolog.pending_confirmations AS waiting USING (tenant, user_id, agent_id, app_id, run_id)
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
    WHERE (t.tenant, t.user_id, t.agent_id, t.app_id, t.run_id)
        = (waiting.tenant, waiting.user_id, waiting.agent_id, waiting.app_id, waiting.run_id)
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
    tenant text,
    user_id text,
    agent_id text,
    app_id text,
    run_id text,
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
    e.event_id,
    s.tenant,
    nullif(s.user_id, ''),
    nullif(s.agent_id, ''),
    nullif(s.app_id, ''),
    nullif(s.run_id, ''),
    e.event,
    e.fact_id,
    coalesce(f.text, e.payload -> 'statement' ->> 'text'),
    e.targets,
    e.source_id,
    e.occurred_at,
    e.decided_at,
    e.decided_by,
    e.reason,
    e.model,
    e.prompt_version,
    e.guard,
    e.stale,
    EXISTS (SELECT FROM mnemolog.undone AS u WHERE u.event_id = e.event_id),
    e.payload
FROM mnemolog.scopes AS s
INNER JOIN mnemolog.memory_events AS e USING (tenant, user_id, agent_id, app_id, run_id)
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
    tenant text,
    user_id text,
    agent_id text,
    app_id text,
    run_id text,
    status text,
    end_reason text,
    end_detail text,
    occurred_at timestamptz,
    published_at timestamptz,
    decided_at timestamptz,
    infer boolean,
    messages jsonb,
    "position" text
)
LANGUAGE sql STABLE PARALLEL SAFE ROWS 100000 AS $$
SELECT
    j.source_id,
    j.tenant,
    nullif(j.user_id, ''),
    nullif(j.agent_id, ''),
    nullif(j.app_id, ''),
    nullif(j.run_id, ''),
    j.status,
    j.end_reason,
    j.end_detail,
    j.occurred_at,
    j.published_at,
    j.decided_at,
    j.infer,
    j.body -> 'messages',
    j.topic || '/' || j.partition || '/' || j.log_offset
FROM mnemolog.turns AS j
$$;
COMMENT ON FUNCTION memory.turn_rows IS 'The rows of the view memory.turns.';

-- name: turns
-- Every turn with its end.
CREATE OR REPLACE VIEW memory.turns AS SELECT * FROM memory.turn_rows();
COMMENT ON VIEW memory.turns IS 'Every turn as it was received, with how it ended, or pending.';

-- name: facts_as_of
-- The client's query of the same name.
CREATE OR REPLACE FUNCTION memory.facts_as_of(
    believed_at timestamptz DEFAULT now(),
    true_at timestamptz DEFAULT NULL,
    {scope_parameters}
) RETURNS SETOF memory.facts LANGUAGE plpgsql STABLE ROWS 100
{settings}
AS $$
#variable_conflict use_column
BEGIN
    PERFORM memory.check_scope(tenant, user_id, agent_id, app_id, run_id);
    PERFORM memory.check_given('believed_at', believed_at IS NOT NULL);
    true_at := coalesce(true_at, believed_at);
    RETURN QUERY
    SELECT known.*, memory.state_at(facts_as_of.true_at, known.status, known.true_from, known.true_to, known.valid_until)
    FROM ({query}) AS known;
END
$$;
COMMENT ON FUNCTION memory.facts_as_of IS
'What was known at believed_at to be true at true_at, each fact with its state of that time, in the order in which it was '
'learned. Without believed_at it is what is known now, and true_at is believed_at where it is not given.';

-- name: history
-- The client's query of the versions.
CREATE OR REPLACE FUNCTION memory.history(
    fact uuid, tenant text DEFAULT 'default'
) RETURNS SETOF memory.facts LANGUAGE plpgsql STABLE ROWS 10
{settings}
AS $$
#variable_conflict use_column
BEGIN
    PERFORM memory.check_given('fact', fact IS NOT NULL);
    RETURN QUERY
    SELECT version.*, memory.state_at(now(), version.status, version.true_from, version.true_to, version.valid_until)
    FROM ({query}) AS version;
END
$$;
COMMENT ON FUNCTION memory.history IS
'A fact, what it came from and what came from it, in the order in which they were learned. No row where the tenant has no '
'such fact.';

-- name: changes_between
-- The client's query of changes, with the word for each.
CREATE OR REPLACE FUNCTION memory.changes_between(
    since timestamptz,
    until timestamptz DEFAULT now(),
    {scope_parameters}
) RETURNS TABLE (
    at timestamptz,
    kind text,
    event text,
    fact_id uuid,
    text text,
    old jsonb,
    reason text,
    decided_by text,
    stale boolean,
    undone boolean,
    reverted jsonb,
    moved jsonb
) LANGUAGE plpgsql STABLE ROWS 100
{settings}
AS $$
#variable_conflict use_column
BEGIN
    PERFORM memory.check_scope(tenant, user_id, agent_id, app_id, run_id);
    PERFORM memory.check_given('since', since IS NOT NULL);
    PERFORM memory.check_given('until', until IS NOT NULL);
    IF since > until THEN
        RAISE EXCEPTION 'since (%) is after until (%)', since, until
        USING ERRCODE = 'invalid_parameter_value', HINT = 'Give an earlier since, or a later until.';
    END IF;
    RETURN QUERY
    SELECT
        happened.at,
        CASE
            WHEN happened.event IN ('pending_confirmed', 'conflict_resolved') THEN
                CASE happened.action
                    WHEN 'merge' THEN 'merged'
                    WHEN 'replace' THEN 'replaced'
                    WHEN 'contradict' THEN 'contradicted'
                    WHEN 'retract' THEN 'retracted'
                    WHEN 'expire' THEN 'expired'
                    ELSE 'resolved'
                END
            WHEN happened.event = 'fact_skipped' THEN 'end_moved'
            ELSE split_part(happened.event, '_', 2)
        END,
        happened.event,
        happened.fact_id,
        happened.text,
        happened.old,
        happened.reason,
        happened.decided_by,
        happened.stale,
        happened.undone,
        happened.reverted,
        happened.moved
    FROM ({query}) AS happened;
END
$$;
COMMENT ON FUNCTION memory.changes_between IS
'What was decided from since on and before until, in order: the new fact, and in old the facts that it ended or touched. '
'Of an undo, reverted has every fact with its status from then on; moved has the facts whose end the event moved.';

-- name: profile
-- The client's query of a profile, a row for each entry.
CREATE OR REPLACE FUNCTION memory.profile(
    {scope_parameters}
) RETURNS TABLE (
    section text,
    place bigint,
    key text,
    value text,
    text text,
    category text,
    confidence double precision,
    at timestamptz,
    valid_until timestamptz,
    fact_id uuid,
    unresolved boolean,
    event text,
    old jsonb
) LANGUAGE plpgsql STABLE ROWS 100
{settings}
AS $$
#variable_conflict use_column
BEGIN
    PERFORM memory.check_scope(tenant, user_id, agent_id, app_id, run_id);
    IF ARRAY[user_id, agent_id, app_id, run_id] && ARRAY['*', '**'] THEN
        RAISE EXCEPTION 'a profile belongs to one scope, and this one has a wildcard'
        USING ERRCODE = 'invalid_parameter_value', HINT = 'Name each id, or leave it out, instead of ''*''.';
    END IF;
    RETURN QUERY
    SELECT
        shown.section,
        row_number() OVER (
            PARTITION BY shown.number
            ORDER BY CASE WHEN shown.section = 'upcoming' THEN shown.at END, shown.place, shown.fact_id
        ),
        shown.entry ->> 'key',
        shown.entry ->> 'value',
        shown.entry ->> 'text',
        shown.entry ->> 'category',
        (shown.entry ->> 'confidence')::double precision,
        shown.at,
        shown.valid_until,
        shown.fact_id,
        (shown.entry ->> 'unresolved')::boolean,
        shown.entry ->> 'event',
        shown.entry -> 'old'
    FROM (
        SELECT
            CASE WHEN dated.at > now() AND NOT dated.is_change THEN 'upcoming' ELSE sections.section END AS section,
            CASE WHEN dated.at > now() AND NOT dated.is_change THEN 0 ELSE sections.number END AS number,
            entries.place,
            entries.entry,
            dated.at,
            dated.valid_until,
            (entries.entry ->> 'fact_id')::uuid AS fact_id
        FROM ({query}) AS stored
        CROSS JOIN unnest(ARRAY[
            'identity', 'work', 'relationships', 'sensitive_topics', 'hard_preferences', 'soft_preferences',
            'current_tasks', 'other', 'recent_changes'
        ]) WITH ORDINALITY AS sections (section, number)
        CROSS JOIN LATERAL jsonb_array_elements(to_jsonb(stored) -> sections.section)
            WITH ORDINALITY AS entries (entry, place)
        CROSS JOIN LATERAL (
            SELECT
                (entries.entry ->> 'at')::timestamptz AS at,
                (entries.entry ->> 'valid_until')::timestamptz AS valid_until,
                sections.section = 'recent_changes' AS is_change
        ) AS dated
        WHERE dated.valid_until IS NULL OR dated.valid_until > now()
    ) AS shown
    ORDER BY shown.number = 0, shown.number, 2;
END
$$;
COMMENT ON FUNCTION memory.profile IS
'What is known of exactly one scope in brief, a row for each entry, by section: identity, work, relationships, '
'sensitive_topics, hard_preferences, soft_preferences, current_tasks, other, recent_changes, and upcoming for what begins '
'later. No row where nothing is known.';

-- name: explain
-- The client's query of the events of a fact, with what was said.
CREATE OR REPLACE FUNCTION memory.explain(
    fact uuid, tenant text DEFAULT 'default'
) RETURNS TABLE (
    at timestamptz,
    event text,
    text text,
    reason text,
    decided_by text,
    model text,
    prompt_version text,
    guard text,
    undone boolean,
    event_id uuid,
    fact_id uuid,
    targets uuid [],
    candidates jsonb,
    source_id text,
    excerpt text,
    messages jsonb
) LANGUAGE plpgsql STABLE ROWS 10
{settings}
AS $$
#variable_conflict use_column
DECLARE
    asked record;
BEGIN
    PERFORM memory.check_given('fact', fact IS NOT NULL);
    SELECT f.tenant, f.user_id, f.agent_id, f.app_id, f.run_id, ARRAY[f.fact_id] AS fact_ids
    INTO asked
    FROM facts AS f
    WHERE f.fact_id = explain.fact AND f.tenant = explain.tenant;
    RETURN QUERY
    SELECT
        happened.decided_at,
        happened.event,
        coalesce(about.text, happened.statement ->> 'text'),
        happened.reason,
        happened.decided_by,
        happened.model,
        happened.prompt_version,
        happened.guard,
        happened.undone,
        happened.event_id,
        happened.fact_id,
        happened.targets,
        happened.candidates,
        happened.source_id,
        coalesce(about.excerpt, happened.statement ->> 'excerpt'),
        journal.body -> 'messages'
    FROM (
        SELECT told.*, stored.owner, stored.payload -> 'statement' AS statement
        FROM (SELECT events.*, row_number() OVER () AS number FROM ({query}) AS events) AS told
        INNER JOIN memory_events AS stored ON told.event_id = stored.event_id
    ) AS happened
    LEFT JOIN facts AS about ON happened.fact_id = about.fact_id
    LEFT JOIN turn_journal AS journal
        ON happened.owner = journal.owner AND happened.source_id = journal.source_id
    ORDER BY happened.number;
END
$$;
COMMENT ON FUNCTION memory.explain IS
'How a fact came about and what happened to it since, an event a row in the order of the log: who decided it and why, and '
'the words and messages that it came from. No row where the tenant has no such fact.';

-- name: search
-- The client's query of a search, by a scan or by the indexes of a large scope.
CREATE OR REPLACE FUNCTION memory.search(
    query text,
    vector public.halfvec DEFAULT NULL,
    {scope_parameters},
    top_k integer DEFAULT 20,
    threshold double precision DEFAULT 0.1,
    model text DEFAULT NULL
) RETURNS TABLE (
    score double precision,
    similarity double precision,
    text_score double precision,
    fact_id uuid,
    text text,
    key text,
    value text,
    category text,
    importance double precision,
    confidence double precision,
    subject text,
    speaker text,
    excerpt text,
    status text,
    unresolved boolean,
    event_time timestamptz,
    valid_until timestamptz,
    true_from timestamptz,
    true_to timestamptz,
    recorded_at timestamptz,
    source_id text,
    metadata jsonb,
    state text
) LANGUAGE plpgsql STABLE ROWS 20
{settings}
AS $$
#variable_conflict use_column
DECLARE
    question CONSTANT text := trim(E' \t\n\r' FROM left(search.query, 10000));
    known record;
BEGIN
    PERFORM memory.check_scope(tenant, user_id, agent_id, app_id, run_id);
    PERFORM memory.check_search(question, top_k, threshold);
    IF vector IS NOT NULL THEN
        SELECT f.embedding_model AS model, vector_dims(f.embedding) AS dimensions
        INTO known
        FROM facts AS f
        WHERE {scope} AND (search.model IS NULL OR f.embedding_model = search.model)
        ORDER BY f.recorded_at DESC
        LIMIT 1;
        IF known.dimensions <> vector_dims(vector) THEN
            RAISE EXCEPTION 'the vector has % dimensions, and those of the facts (model %) have %',
                vector_dims(vector), known.model, known.dimensions
            USING ERRCODE = 'data_exception', HINT = 'Embed the query by the model that embedded the facts.';
        END IF;
        model := coalesce(model, known.model);
    END IF;
    IF {is_indexed} THEN
        RETURN QUERY
        SELECT {hit_columns}
        FROM ({query_by_indexes}) AS found
        WHERE found.fact_id IS NOT NULL;
    ELSE
        RETURN QUERY
        SELECT {hit_columns}
        FROM ({query}) AS found
        WHERE found.fact_id IS NOT NULL;
    END IF;
END
$$;
COMMENT ON FUNCTION memory.search IS
'The best facts for a question by its words, and by its vector where it is given; those that hold now or begin later, and '
'those that wait for a confirmation, which the column state says; best first. The vector is the embedding of the '
'question by the model of the facts. A fact without a word in common needs the similarity threshold.';

-- name: context
-- The order of the client's context, as rows.
CREATE OR REPLACE FUNCTION memory.context(
    query text,
    vector public.halfvec DEFAULT NULL,
    {scope_parameters},
    budget_tokens integer DEFAULT 800,
    top_k integer DEFAULT 20,
    threshold double precision DEFAULT 0.1,
    min_confidence double precision DEFAULT 0.5,
    model text DEFAULT NULL
) RETURNS TABLE (
    place bigint,
    section text,
    text text,
    state text,
    doubts text [],
    tokens integer,
    fits boolean,
    fact_id uuid,
    category text,
    confidence double precision,
    true_from timestamptz,
    valid_until timestamptz,
    source_id text
) LANGUAGE plpgsql STABLE ROWS 50
{settings}
AS $$
#variable_conflict use_column
DECLARE
    one record;
    used bigint := 0;
BEGIN
    PERFORM memory.check_scope(tenant, user_id, agent_id, app_id, run_id);
    IF ARRAY[user_id, agent_id, app_id, run_id] && ARRAY['*', '**'] THEN
        RAISE EXCEPTION 'a context belongs to one scope, and this one has a wildcard'
        USING ERRCODE = 'invalid_parameter_value', HINT = 'Name each id, or leave it out, instead of ''*''.';
    ELSIF budget_tokens IS NULL OR budget_tokens < 1 OR min_confidence IS NULL OR min_confidence NOT BETWEEN 0 AND 1 THEN
        RAISE EXCEPTION 'budget_tokens is %, and min_confidence %',
            coalesce(budget_tokens::text, 'NULL'), coalesce(min_confidence::text, 'NULL')
        USING ERRCODE = 'invalid_parameter_value', HINT = 'Choose 1 token or more, and 0 to 1.';
    END IF;
    IF query IS NOT NULL THEN
        PERFORM memory.check_search(trim(E' \t\n\r' FROM query), top_k, threshold);
    END IF;
    FOR one IN
        WITH wanted AS (
            SELECT found.fact_id, found.number, true AS is_hit
            FROM memory.search(
                context.query, context.vector, context.tenant, context.user_id, context.agent_id, context.app_id,
                context.run_id, context.top_k, context.threshold, context.model
            ) WITH ORDINALITY AS found (
                score, similarity, text_score, fact_id, text, key, value, category, importance, confidence, subject,
                speaker, excerpt, status, unresolved, event_time, valid_until, true_from, true_to, recorded_at,
                source_id, metadata, state, number
            )
            WHERE context.query IS NOT NULL
            UNION ALL
            SELECT lasting.fact_id, NULL, false
            FROM ({query}) AS lasting
        ),
        once AS (
            SELECT DISTINCT ON (wanted.fact_id) wanted.*
            FROM wanted
            ORDER BY wanted.fact_id, wanted.number
        ),
        known AS (
            SELECT
                f.*,
                once.number,
                CASE
                    WHEN f.category IN ('hard_preference', 'health') THEN 'constraints'
                    WHEN f.category = 'task_context' THEN 'task'
                    WHEN f.category = 'soft_preference' AND NOT once.is_hit THEN 'preferences'
                    ELSE 'relevant'
                END AS section,
                greatest(
                    CASE WHEN f.event_time IS NULL THEN f.true_from ELSE f.recorded_at END, f.last_confirmed_at
                ) AS mentioned_at,
                (octet_length(f.text) + 2) / 3 + 2 AS tokens
            FROM once
            INNER JOIN facts AS f ON once.fact_id = f.fact_id
        ),
        judged AS (
            SELECT
                known.*,
                array_position(ARRAY['constraints', 'task', 'relevant', 'preferences'], known.section) AS section_place,
                array_remove(
                    ARRAY[
                        CASE WHEN known.status = 'pending_confirmation' THEN 'pending' END,
                        CASE WHEN known.unresolved OR known.stale THEN 'unresolved' END,
                        CASE WHEN known.confidence < context.min_confidence THEN 'low_confidence' END,
                        CASE
                            WHEN
                                known.category NOT IN ('identity', 'hard_preference', 'health', 'relationship')
                                AND now() - known.mentioned_at
                                > CASE known.category WHEN 'task_context' THEN interval '30 days' ELSE interval '365 days' END
                                THEN 'old'
                        END
                    ],
                    NULL
                ) AS doubts
            FROM known
        )
        SELECT
            judged.*,
            row_number() OVER (
                ORDER BY
                    judged.section_place,
                    judged.number,
                    judged.importance DESC,
                    judged.confidence DESC,
                    judged.mentioned_at DESC,
                    judged.fact_id
            ) AS place
        FROM judged
        ORDER BY judged.doubts <> '{{}}', place
    LOOP
        place := one.place;
        section := one.section;
        text := one.text;
        state := memory.state_at(now(), one.status, one.true_from, one.true_to, one.valid_until);
        doubts := one.doubts;
        tokens := one.tokens;
        fits := used + one.tokens <= budget_tokens;
        fact_id := one.fact_id;
        category := one.category;
        confidence := one.confidence;
        true_from := one.true_from;
        valid_until := one.valid_until;
        source_id := one.source_id;
        used := used + CASE WHEN fits THEN one.tokens ELSE 0 END;
        RETURN NEXT;
    END LOOP;
END
$$;
COMMENT ON FUNCTION memory.context IS
'What is known of one scope and matters to a question, in the order in which facts get room in a prompt: what must be '
'respected, the current task, what the search finds, preferences; those with doubts last. place is the order of the text. '
'tokens estimates the text of the fact alone, a token for three bytes; fits says whether there is room for it. Without a '
'query (NULL) nothing is searched.';

-- name: hit_columns
-- What is told of a hit.
found.total,
found.similarity,
found.text_score::double precision,
found.fact_id,
found.text,
found.key,
found.value,
found.category,
found.importance,
found.confidence,
found.subject,
found.speaker,
found.excerpt,
found.status,
found.unresolved,
found.event_time,
found.valid_until,
found.true_from,
found.true_to,
found.recorded_at,
found.source_id,
found.metadata,
memory.state_at(now(), found.status, found.true_from, found.true_to, found.valid_until)

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
            (NULL, 'category', 'The category, by which the profile has its sections.'),
            (NULL, 'importance', 'From 0 to 1.'),
            (NULL, 'certainty', 'How certainly it was said.'),
            (NULL, 'confidence', 'From 0 to 1.'),
            (NULL, 'subject', 'The person or thing that the fact is about; NULL for the user.'),
            (NULL, 'speaker', 'Who said it.'),
            (NULL, 'excerpt', 'The words of the turn that it was taken from.'),
            (NULL, 'status', 'active, pending_confirmation, superseded, archived, expired, retracted or undone.'),
            ('turns', 'status', 'How the turn ended: facts, no_facts, rejected or failed; or pending.'),
            (NULL, 'unresolved', 'Whether it contradicts another fact and no decision could be had: both are current.'),
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
            (NULL, 'decided_by', 'Who decided: a rule, the model or a human.'),
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
            ('turns', 'position', 'Its place in Kafka: topic/partition/offset.')
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

-- name: scope_parameters
-- Whose facts: an id that is NULL finds rows that do not set it, '*' any value, '**' both.
tenant text DEFAULT 'default',
user_id text DEFAULT NULL,
agent_id text DEFAULT NULL,
app_id text DEFAULT NULL,
run_id text DEFAULT NULL

-- name: id_condition
-- What an id of a row has to be. As its value is known when the statement is planned, one comparison is left of it.
({row}.{id} = coalesce({value}, '') OR (coalesce({value}, '') = '*' AND {row}.{id} <> '') OR coalesce({value}, '') = '**')

-- name: settings
-- Names are looked up at each call, since a rebuild makes other tables; a plan is made for the values of each call.
SET search_path = mnemolog, mnemolog_journal, public, pg_temp
SET plan_cache_mode = force_custom_plan

-- name: fact_types
-- The types of the columns of a fact.
fact_id uuid,
tenant text,
user_id text,
agent_id text,
app_id text,
run_id text,
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
