-- name: match
-- Per new fact the nearest active facts of exactly its scope, and those of equal words; all in one round trip.
-- The scan is exact: an index with a filter on the scope would return too few of its facts.
-- A model's vectors compare with its own only; CASE keeps Postgres from comparing others.
SELECT
    coalesce((
        SELECT version FROM scopes
        WHERE
            tenant = %(tenant)s
            AND user_id = %(user_id)s
            AND agent_id = %(agent_id)s
            AND app_id = %(app_id)s
            AND run_id = %(run_id)s
    ), 0) AS scope_version,
    asked.place,
    near.fact_id,
    near.similarity,
    near.text,
    near.content_hash,
    near.key,
    near.value,
    near.confidence,
    near.true_from
FROM unnest(
    %(vectors)b::halfvec [], %(models)s::text [], %(content_hashes)s::text []
) WITH ORDINALITY AS asked (embedding, model, content_hash, place)
LEFT JOIN LATERAL (
    SELECT
        facts.fact_id,
        greatest(-1, least(1, CASE
            WHEN facts.content_hash = asked.content_hash THEN 1
            ELSE 1 - compared.distance
        END)) AS similarity,
        facts.text,
        facts.content_hash,
        facts.key,
        facts.value,
        facts.confidence,
        facts.true_from
    FROM facts
    CROSS JOIN LATERAL (
        SELECT
            CASE
                WHEN
                    facts.embedding_model = asked.model
                    AND vector_dims(facts.embedding) = vector_dims(asked.embedding)
                    THEN facts.embedding <=> asked.embedding
            END AS distance
    ) AS compared
    WHERE
        facts.status = 'active'
        AND facts.tenant = %(tenant)s
        AND facts.user_id = %(user_id)s
        AND facts.agent_id = %(agent_id)s
        AND facts.app_id = %(app_id)s
        AND facts.run_id = %(run_id)s
        AND (facts.valid_until IS NULL OR facts.valid_until > %(at)s)
        AND (facts.true_to IS NULL OR facts.true_to > %(at)s)
        AND (facts.content_hash = asked.content_hash OR compared.distance <= 1 - %(floor)s::double precision)
    ORDER BY similarity DESC, facts.fact_id
    LIMIT %(limit)s
) AS near ON true
ORDER BY asked.place, near.similarity DESC, near.fact_id;

-- name: standing
-- Whether a source has its commit, and how many commits with events its scope has seen.
SELECT
    EXISTS (SELECT FROM commits WHERE owner = %(owner)s AND source_id = %(source_id)s) AS committed,
    coalesce((
        SELECT version FROM scopes
        WHERE
            tenant = %(tenant)s
            AND user_id = %(user_id)s
            AND agent_id = %(agent_id)s
            AND app_id = %(app_id)s
            AND run_id = %(run_id)s
    ), 0) AS scope_version;
