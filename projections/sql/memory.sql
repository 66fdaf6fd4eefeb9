-- name: check_scope
-- Refuses what finds nothing, or what a query may not ask for.
CREATE OR REPLACE FUNCTION memory.check_scope(
    {{scope_types}}
) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF '' IN ({{scope_ids}}) THEN
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
    PERFORM memory.check_scope({{scope_ids}});
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
    PERFORM memory.check_scope({{scope_ids}});
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
        happened.event, happened.fact_id, happened.text, happened.old, happened.reason, happened.decided_by,
        happened.stale, happened.undone, happened.reverted, happened.moved
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
    disputed boolean,
    event text,
    old jsonb
) LANGUAGE plpgsql STABLE ROWS 100
{settings}
AS $$
#variable_conflict use_column
BEGIN
    PERFORM memory.check_scope({{scope_ids}});
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
        shown.at, shown.valid_until, shown.fact_id,
        (shown.entry ->> 'unresolved')::boolean,
        (shown.entry ->> 'disputed')::boolean,
        shown.entry ->> 'event',
        shown.entry -> 'old'
    FROM (
        SELECT
            CASE WHEN dated.at > now() AND NOT dated.is_change THEN 'upcoming' ELSE sections.section END AS section,
            CASE WHEN dated.at > now() AND NOT dated.is_change THEN 0 ELSE sections.number END AS number,
            entries.place, entries.entry, dated.at, dated.valid_until,
            (entries.entry ->> 'fact_id')::uuid AS fact_id
        FROM ({query}) AS stored
        CROSS JOIN unnest(ARRAY[
            'identity', 'work', 'relationships', 'sensitive_topics', 'hard_preferences', 'soft_preferences',
            'current_tasks', 'other', 'recent_changes'
        ]) WITH ORDINALITY AS sections (section, number)
        CROSS JOIN LATERAL jsonb_array_elements((stored.sections || to_jsonb(stored)) -> sections.section)
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
    PERFORM memory.check_scope({{scope_ids}});
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
    PERFORM memory.check_scope({{scope_ids}});
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
                context.query, context.vector, {{scope_ids context}}, context.top_k, context.threshold, context.model
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
            SELECT DISTINCT ON (wanted.fact_id)
                wanted.*,
                bool_or(NOT wanted.is_hit) OVER (PARTITION BY wanted.fact_id) AS is_lasting
            FROM wanted
            ORDER BY wanted.fact_id, wanted.number
        ),
        known AS (
            SELECT
                f.*,
                once.number,
                CASE
                    WHEN f.action_hint = 'retract' THEN 'relevant'
                    WHEN
                        'hard_preference' = ANY(f.category || f.more_categories)
                        OR ('health' = ANY(f.category || f.more_categories) AND once.is_lasting)
                        THEN CASE WHEN f.disputed OR f.status = 'pending_confirmation' THEN 'relevant' ELSE 'constraints' END
                    WHEN 'task_context' = ANY(f.category || f.more_categories) THEN 'task'
                    WHEN 'soft_preference' = ANY(f.category || f.more_categories) AND NOT once.is_hit THEN 'preferences'
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
                        CASE WHEN known.disputed THEN 'disputed' END,
                        CASE WHEN known.unresolved OR known.stale THEN 'unresolved' END,
                        CASE WHEN known.confidence < context.min_confidence THEN 'low_confidence' END,
                        CASE
                            WHEN
                                NOT known.category || known.more_categories
                                && ARRAY['identity', 'hard_preference', 'health', 'relationship']
                                AND now() - known.mentioned_at > CASE
                                    WHEN 'task_context' = ANY(known.category || known.more_categories) THEN interval '30 days'
                                    ELSE interval '365 days'
                                END
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
                    judged.section_place, judged.number,
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
found.total, found.similarity,
found.text_score::double precision,
found.fact_id, found.text, found.key, found.value, found.category, found.importance, found.confidence, found.subject,
found.speaker, found.excerpt, found.status, found.unresolved, found.event_time, found.valid_until, found.true_from,
found.true_to, found.recorded_at, found.source_id, found.metadata,
memory.state_at(now(), found.status, found.true_from, found.true_to, found.valid_until)
