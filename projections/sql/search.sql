-- name: scanned
-- All facts of a scope that may be found. Two branches, because each status has an index of its own.
SELECT f.*
FROM facts AS f
WHERE f.status = 'active'
    AND {scope}
    AND (f.valid_until IS NULL OR f.valid_until > %(at)s)
    AND (f.true_to IS NULL OR f.true_to > %(at)s)
UNION ALL
SELECT f.*
FROM facts AS f
WHERE f.status = 'pending_confirmation'
    AND {scope}
    AND (f.valid_until IS NULL OR f.valid_until > %(at)s)
    AND (f.true_to IS NULL OR f.true_to > %(at)s)

-- name: from_indexes
-- The facts of an indexed scope that may be among the best by vector or by words.
SELECT f.*
FROM (
    SELECT DISTINCT found.fact_id
    FROM indexed_candidates(
        %(tenant)s, %(user_id)s, %(agent_id)s, %(app_id)s, %(run_id)s, %(model)s, %(dimensions)s, %(vector)s,
        asked.query, %(at)s, %(candidates)s
    ) AS found
) AS candidate
CROSS JOIN LATERAL (SELECT * FROM facts WHERE facts.fact_id = candidate.fact_id LIMIT 1) AS f

-- name: hybrid
-- The best facts of a scope by vector and by words, fused by reciprocal rank, in one round trip: those that are active
-- and those that wait for a confirmation, which of equals come last. What has no word in common needs the similarity
-- floor, unless that is 0. Without a vector only the words decide.
-- Either all facts of the scope are scanned, or those that its indexes find; where it is the other way round there is no
-- hit. Each fact is read once; only hits are read whole.
WITH asked AS MATERIALIZED (
    SELECT search_words(%(text)s, %(max_lexemes)s) AS query
    WHERE %(indexed)s = EXISTS (
        SELECT FROM indexed_scopes AS known
        WHERE known.tenant = %(tenant)s
            AND known.user_id = %(user_id)s
            AND known.agent_id = %(agent_id)s
            AND known.app_id = %(app_id)s
            AND known.run_id = %(run_id)s
            AND (%(vector)s::halfvec IS NULL OR (known.model = %(model)s AND known.dimensions = %(dimensions)s))
    )
),
scored AS MATERIALIZED (
    SELECT
        live.fact_id,
        live.status,
        live.importance,
        live.confidence,
        CASE
            WHEN live.embedding_model = %(model)s AND vector_dims(live.embedding) = %(dimensions)s
                THEN live.embedding <=> %(vector)s::halfvec
        END AS distance,
        CASE WHEN live.words @@ asked.query THEN ts_rank(live.words, asked.query) END AS score
    FROM asked
    CROSS JOIN LATERAL ({live}) AS live
),
by_vector AS (
    SELECT
        nearest.fact_id,
        1 - nearest.distance AS similarity,
        row_number() OVER (ORDER BY nearest.distance, nearest.status, nearest.fact_id) AS place
    FROM (
        SELECT fact_id, status, distance
        FROM scored
        WHERE distance IS NOT NULL
        ORDER BY distance, status, fact_id
        LIMIT %(candidates)s
    ) AS nearest
    WHERE nearest.distance < 'NaN'
),
by_words AS (
    SELECT
        best.fact_id,
        best.score,
        row_number() OVER (ORDER BY best.score DESC, best.status, best.fact_id) AS place
    FROM (
        SELECT fact_id, status, score
        FROM scored
        WHERE score IS NOT NULL
        ORDER BY score DESC, status, fact_id
        LIMIT %(candidates)s
    ) AS best
),
hits AS (
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
),
first AS MATERIALIZED (
    SELECT hits.*, hits.vector_part + hits.text_part AS total
    FROM hits
    INNER JOIN scored USING (fact_id)
    ORDER BY total DESC, scored.status, scored.importance DESC, scored.confidence DESC, fact_id
    LIMIT %(limit)s
)
SELECT
    vector_rank,
    similarity,
    vector_part,
    text_rank,
    text_score::float8 AS text_score,
    text_part,
    total,
    {fact}
FROM first
CROSS JOIN LATERAL (SELECT * FROM facts WHERE facts.fact_id = first.fact_id LIMIT 1) AS f
ORDER BY total DESC, f.status, f.importance DESC, f.confidence DESC, f.fact_id;

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
