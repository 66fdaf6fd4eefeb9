-- name: scanned
-- All facts of a scope that may be found. Two branches, because each status has an index of its own.
SELECT f.*
FROM facts AS f
WHERE f.status = 'active'
    AND {scope}
    AND (f.valid_until IS NULL OR f.valid_until > %(at)s)
    AND (f.true_to IS NULL OR f.true_to > %(at)s)
    AND {filter}
UNION ALL
SELECT f.*
FROM facts AS f
WHERE f.status = 'pending_confirmation'
    AND {scope}
    AND (f.valid_until IS NULL OR f.valid_until > %(at)s)
    AND (f.true_to IS NULL OR f.true_to > %(at)s)
    AND {filter}

-- name: in_states
-- The facts of a scope in some states, or in any. One whose end has passed counts as expired, as it will be.
SELECT f.*
FROM facts AS f
WHERE {scope}
    AND (
        %(states)s::text [] IS NULL
        OR CASE
            WHEN
                f.status IN ('active', 'pending_confirmation')
                AND least(f.valid_until, f.true_to) <= %(at)s
                THEN 'expired'
            ELSE f.status
        END = ANY(%(states)s::text [])
    )
    AND {filter}

-- name: as_of
-- What was known at one instant to be true at another, each fact with its state of that time.
SELECT f.*
FROM (
    SELECT
        f.fact_id, f.tenant, f.user_id, f.agent_id, f.app_id, f.run_id, f.text, f.key, f.value, f.category, f.importance,
        f.subject, f.speaker, f.event_time, f.valid_until, f.recorded_at, f.source_id, f.metadata, f.words,
        f.embedding_model, f.embedding, s.*
    FROM facts AS f
    CROSS JOIN LATERAL ({state_at}) AS s
    WHERE {scope}
        AND f.recorded_at <= %(believed_at)s
        AND (f.valid_until IS NULL OR f.valid_until > %(at)s)
        AND s.believed_from <= %(believed_at)s
        AND (s.believed_to IS NULL OR s.believed_to > %(believed_at)s)
        AND s.true_from <= %(at)s
        AND (s.true_to IS NULL OR s.true_to > %(at)s)
        AND (%(states)s::text [] IS NULL OR s.status = ANY(%(states)s::text []))
) AS f
WHERE {filter}

-- name: state_at
-- The state that a fact had at the time %(believed_at)s. A state holds from its since up to, but not at, its until.
SELECT
    f.status, f.confidence, f.mention_count, f.last_confirmed_at, f.true_to, f.closed_at, f.believed_from,
    f.believed_to, f.superseded_by, f.unresolved, f.true_from, f.state_since
WHERE f.state_since <= %(believed_at)s
UNION ALL
SELECT
    former.status, former.confidence, former.mention_count, former.last_confirmed_at, former.true_to,
    former.closed_at, former.believed_from, former.believed_to, former.superseded_by, former.unresolved,
    coalesce(former.true_from, f.true_from), former.since
FROM former_states AS former
WHERE former.fact_id = f.fact_id
    AND f.state_since > %(believed_at)s
    AND former.since <= %(believed_at)s
    AND former.until > %(believed_at)s

-- name: hit_state
-- The same for a hit.
CROSS JOIN LATERAL ({state_at}) AS s

-- name: of_scopes
-- The facts of several scopes. One after the other, each by its index.
SELECT mine.*
FROM unnest(%(user_ids)s::text [], %(agent_ids)s::text [], %(app_ids)s::text [], %(run_ids)s::text [])
AS named (user_id, agent_id, app_id, run_id)
CROSS JOIN LATERAL ({live} OFFSET 0) AS mine

-- name: of_named_scope
-- The facts of one of several scopes.
f.tenant = (SELECT %(tenant)s::text) AND f.user_id = named.user_id AND f.agent_id = named.agent_id
AND f.app_id = named.app_id AND f.run_id = named.run_id

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
WHERE {filter}

-- name: by_indexes_or_not
-- Whether this statement answers: an indexed scope is asked by its indexes, another one by a scan; null scans any.
%(indexed)s::boolean IS NULL OR %(indexed)s::boolean = EXISTS (
    SELECT FROM indexed_scopes AS known
    WHERE known.tenant = %(tenant)s
        AND known.user_id = %(user_id)s
        AND known.agent_id = %(agent_id)s
        AND known.app_id = %(app_id)s
        AND known.run_id = %(run_id)s
        AND (%(vector)s::halfvec IS NULL OR (known.model = %(model)s AND known.dimensions = %(dimensions)s))
)

-- name: any_route
-- Several scopes are always scanned.
%(indexed)s::boolean IS NULL

-- name: hybrid
-- The best facts of a scope by vector, by words and by the names in the question, fused in one round trip: those that
-- are active and those that wait for a confirmation, which of equals come last. What has no word in common needs the
-- similarity threshold, unless that is 0. Without a vector the words and names decide.
-- Either all facts of the scope are scanned, or those that its indexes find; where it is the other way round there is no
-- row, else at least one. Each fact is read once; only hits are read whole.
WITH asked AS MATERIALIZED (
    SELECT
        search_words(%(text)s, %(max_lexemes)s) AS query,
        CASE
            WHEN %(names_weight)s::float8 > 0
                THEN ' ' || lower(regexp_replace(%(text)s, '(''|’)s\M|[^[:alnum:]''’-]+', ' ', 'g')) || ' '
        END AS words
    WHERE {route}
),
scored AS MATERIALIZED (
    SELECT
        live.fact_id,
        live.status,
        live.importance,
        live.confidence,
        greatest(live.believed_from, live.last_confirmed_at, live.recorded_at) AS mentioned_at,
        CASE
            WHEN live.embedding_model = %(model)s AND vector_dims(live.embedding) = %(dimensions)s
                THEN live.embedding <=> %(vector)s::halfvec
        END AS distance,
        CASE WHEN live.words @@ asked.query THEN ts_rank(live.words, asked.query) END AS score,
        CASE
            WHEN asked.words IS NOT NULL
                THEN
                    strpos(asked.words, ' ' || lower(live.subject) || ' ') > 0
                    OR strpos(asked.words, ' ' || lower(live.speaker) || ' ') > 0
        END AS is_named
    FROM asked
    CROSS JOIN LATERAL ({live}) AS live
),
by_vector AS (
    SELECT
        nearest.fact_id,
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
        row_number() OVER (ORDER BY best.score DESC, best.status, best.fact_id) AS place
    FROM (
        SELECT fact_id, status, score
        FROM scored
        WHERE score IS NOT NULL
        ORDER BY score DESC, status, fact_id
        LIMIT %(candidates)s
    ) AS best
),
by_names AS (
    SELECT
        named.fact_id,
        row_number() OVER (ORDER BY named.distance, named.score DESC NULLS LAST, named.status, named.fact_id) AS place
    FROM (
        SELECT fact_id, status, distance, score
        FROM scored
        WHERE is_named
        ORDER BY distance, score DESC NULLS LAST, status, fact_id
        LIMIT %(candidates)s
    ) AS named
),
candidates AS (
    SELECT
        fact_id,
        scored.status,
        scored.importance,
        scored.confidence,
        by_vector.place AS vector_rank,
        by_words.place AS text_rank,
        by_names.place AS names_rank,
        1 - nullif(scored.distance, 'NaN') AS similarity,
        scored.score::float8 AS text_score,
        0.5 ^ (extract(EPOCH FROM greatest(%(at)s - scored.mentioned_at, '0')) / 86400 / %(half_life_days)s)::float8 AS recency,
        by_words.place IS NOT NULL
        OR %(threshold)s::float8 = 0
        OR %(vector)s::halfvec IS NULL
        OR 1 - nullif(scored.distance, 'NaN') >= %(threshold)s::float8 AS is_hit
    FROM by_vector
    FULL JOIN by_words USING (fact_id)
    FULL JOIN by_names USING (fact_id)
    INNER JOIN scored USING (fact_id)
),
parts AS (
    SELECT
        *,
        1
        + %(importance_weight)s::float8 * (importance - 0.5)
        + %(confidence_weight)s::float8 * (confidence - 0.5) AS prior,
        %(vector_weight)s::float8 * CASE %(fusion)s::text
            WHEN 'rrf' THEN coalesce(1.0::float8 / (%(rrf_k)s::integer + vector_rank), 0)
            ELSE greatest(similarity, 0)
        END AS vector_part,
        %(text_weight)s::float8 * CASE %(fusion)s::text
            WHEN 'rrf' THEN coalesce(1.0::float8 / (%(rrf_k)s::integer + text_rank), 0)
            ELSE coalesce(text_score / nullif(max(text_score) OVER (), 0), 0)
        END AS text_part,
        %(names_weight)s::float8 * CASE %(fusion)s::text
            WHEN 'rrf' THEN coalesce(1.0::float8 / (%(rrf_k)s::integer + names_rank), 0)
            ELSE (names_rank IS NOT NULL)::integer
        END AS names_part,
        %(recency_weight)s::float8
        * recency
        / CASE %(fusion)s::text WHEN 'rrf' THEN %(rrf_k)s::integer + 1 ELSE 1 END AS recency_part
    FROM candidates
),
first AS MATERIALIZED (
    SELECT parts.*, (vector_part + text_part + names_part + recency_part) * prior AS total
    FROM parts
    WHERE is_hit
    ORDER BY total DESC, status, importance DESC, confidence DESC, fact_id
    LIMIT %(top_k)s
)
SELECT
    (SELECT count(*) FROM candidates WHERE NOT is_hit) AS below_threshold,
    first.vector_rank,
    first.similarity,
    first.vector_part,
    first.text_rank,
    first.text_score,
    first.text_part,
    first.names_rank,
    first.names_part,
    first.recency_part,
    first.prior,
    first.total,
    {fact}
FROM asked
LEFT JOIN (
    first
    CROSS JOIN LATERAL (SELECT * FROM facts WHERE facts.fact_id = first.fact_id LIMIT 1) AS f
    {state}
) ON true
ORDER BY first.total DESC, first.status, first.importance DESC, first.confidence DESC, first.fact_id;

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
