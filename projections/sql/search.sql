-- name: hybrid
-- The best facts of a scope by vector and by words, fused by reciprocal rank, in one round trip: those that are active
-- and those that wait for a confirmation, which of equals come last. What has no word in common needs the similarity
-- floor, unless that is 0. Without a vector only the words decide.
-- The vector scan is exact: an index with a filter on the scope would return too few of its facts.
WITH live AS NOT MATERIALIZED (
    -- Two branches, because each status has an index of its own.
    SELECT f.fact_id, f.embedding, f.embedding_model, f.words, f.status
    FROM facts AS f
    WHERE f.status = 'active'
        AND {scope}
        AND (f.valid_until IS NULL OR f.valid_until > %(at)s)
        AND (f.true_to IS NULL OR f.true_to > %(at)s)
    UNION ALL
    SELECT f.fact_id, f.embedding, f.embedding_model, f.words, f.status
    FROM facts AS f
    WHERE f.status = 'pending_confirmation'
        AND {scope}
        AND (f.valid_until IS NULL OR f.valid_until > %(at)s)
        AND (f.true_to IS NULL OR f.true_to > %(at)s)
),
words AS (
    SELECT lexeme FROM unnest(to_tsvector('simple', %(text)s))
),
language AS (
    -- The one with the most stop words in the question; two at the least, since "hat" and "son" are English too.
    SELECT known.stemmer
    FROM (
        VALUES
        ('english_stem'::regdictionary, 0),
        ('german_stem', 2),
        ('french_stem', 2),
        ('spanish_stem', 2),
        ('italian_stem', 2),
        ('portuguese_stem', 2)
    ) AS known (stemmer, least)
    CROSS JOIN LATERAL (
        SELECT count(*) AS stop_words FROM words WHERE ts_lexize(known.stemmer, words.lexeme) = '{{}}'
    ) AS found
    WHERE found.stop_words >= known.least
    ORDER BY found.stop_words DESC, known.least, known.stemmer
    LIMIT 1
),
meaningful AS (
    SELECT words.lexeme FROM words, language WHERE ts_lexize(language.stemmer, words.lexeme) <> '{{}}'
),
said AS (
    SELECT lexeme FROM meaningful
    UNION ALL
    SELECT lexeme FROM words WHERE NOT EXISTS (SELECT FROM meaningful)
),
chosen AS (
    SELECT lexeme FROM said
    UNION
    SELECT stem FROM said CROSS JOIN LATERAL unnest(ts_lexize('english_stem', said.lexeme)) AS stem
    ORDER BY lexeme
    LIMIT %(max_lexemes)s
),
asked AS (
    SELECT string_agg('''' || replace(replace(lexeme, '\', '\\'), '''', '''''') || '''', ' | ')::tsquery AS query
    FROM chosen
),
nearest AS (
    SELECT fact_id, status, embedding <=> %(vector)s::halfvec AS distance
    FROM live
    WHERE embedding_model = %(model)s AND vector_dims(embedding) = %(dimensions)s
    ORDER BY distance, status, fact_id
    LIMIT %(candidates)s
),
by_vector AS (
    SELECT
        fact_id,
        1 - distance AS similarity,
        row_number() OVER (ORDER BY distance, status, fact_id) AS place
    FROM nearest
    WHERE distance < 'NaN'
),
best_worded AS (
    SELECT fact_id, status, ts_rank(words, query) AS score
    FROM live, asked
    WHERE words @@ query
    ORDER BY score DESC, status, fact_id
    LIMIT %(candidates)s
),
by_words AS (
    SELECT
        fact_id,
        score,
        row_number() OVER (ORDER BY score DESC, status, fact_id) AS place
    FROM best_worded
),
fused AS (
    SELECT
        fact_id,
        by_vector.place AS vector_rank,
        by_vector.similarity,
        coalesce(1.0::float8 / (%(k)s + by_vector.place), 0) AS vector_part,
        by_words.place AS text_rank,
        by_words.score AS text_score,
        coalesce(1.0::float8 / (%(k)s + by_words.place), 0) AS text_part
    FROM by_vector
    FULL JOIN by_words USING (fact_id)
    WHERE by_words.place IS NOT NULL OR %(floor)s::float8 = 0 OR by_vector.similarity >= %(floor)s::float8
)
SELECT
    vector_rank,
    similarity,
    vector_part,
    text_rank,
    text_score::float8 AS text_score,
    text_part,
    vector_part + text_part AS total,
    {fact}
FROM fused
INNER JOIN facts AS f USING (fact_id)
ORDER BY total DESC, f.status, f.importance DESC, f.confidence DESC, f.fact_id
LIMIT %(limit)s;

-- name: count_by_ids
-- How many facts a scope holds, active or waiting for a confirmation, by the ids that they name.
SELECT
    array_remove(
        ARRAY[
            CASE WHEN f.user_id <> '' THEN 'user_id' END,
            CASE WHEN f.agent_id <> '' THEN 'agent_id' END,
            CASE WHEN f.app_id <> '' THEN 'app_id' END,
            CASE WHEN f.run_id <> '' THEN 'run_id' END
        ],
        NULL
    ) AS ids,
    count(*) AS facts
FROM facts AS f
WHERE f.status IN ('active', 'pending_confirmation')
    AND {scope}
    AND (f.valid_until IS NULL OR f.valid_until > %(at)s)
    AND (f.true_to IS NULL OR f.true_to > %(at)s)
GROUP BY 1;
