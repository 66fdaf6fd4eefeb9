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
                    WHEN f.category = 'hard_preference' OR (f.category = 'health' AND once.is_lasting) THEN 'constraints'
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
