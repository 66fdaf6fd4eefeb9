-- name: projections_summaries
-- Which summary of an entity is shown: its own text is in entity_changes, whether it is valid follows from its facts.

CREATE INDEX entity_changes_summaries ON entity_changes ((entity_ids[1])) WHERE event = 'entity_summarised';
CREATE INDEX entity_changes_summarised_at ON entity_changes (decided_at) WHERE event = 'entity_summarised';

CREATE FUNCTION is_disbelieved(fact facts) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
RETURN fact.status NOT IN ('active', 'superseded', 'expired', 'retracted')
OR (
    fact.believed_to IS NOT NULL
    AND (
        fact.status <> 'superseded'
        OR (SELECT successor.authority FROM facts AS successor WHERE successor.fact_id = fact.superseded_by) = 'human'
    )
);
COMMENT ON FUNCTION is_disbelieved IS
'Whether a fact was deleted, denied, corrected by a person, undone or never confirmed. What was true and has ended is '
'believed, and so is what was merged into another fact, unless that is a person''s word.';

CREATE FUNCTION summary_of_entity(of_entity uuid) RETURNS TABLE (
    event_id uuid,
    source_id text,
    version integer,
    summary text,
    language text,
    model text,
    prompt_version text,
    fact_ids uuid [],
    left_out integer,
    input_tokens integer,
    output_tokens integer,
    written_at timestamptz,
    changed bigint
) LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
SELECT
    made.event_id,
    made.source_id,
    (made.payload ->> 'version')::integer AS version,
    made.payload ->> 'text' AS summary,
    made.payload ->> 'language' AS language,
    made.payload #>> '{decision,model}' AS model,
    made.payload #>> '{decision,prompt_version}' AS prompt_version,
    written.fact_ids,
    (made.payload ->> 'left_out')::integer AS left_out,
    (made.payload ->> 'input_tokens')::integer AS input_tokens,
    (made.payload ->> 'output_tokens')::integer AS output_tokens,
    made.decided_at AS written_at,
    written.ended + (
        SELECT count(DISTINCT fresh.fact_id)
        FROM current_entity_links AS link
        INNER JOIN facts AS fresh ON link.fact_id = fresh.fact_id
        WHERE link.entity_id = of_entity
            AND fresh.status = 'active'
            AND greatest(fresh.recorded_at, fresh.believed_from) > made.decided_at
            AND fresh.fact_id <> ALL(written.fact_ids)
    ) AS changed
FROM entities AS member
INNER JOIN entity_changes AS made ON member.entity_id = made.entity_ids[1]
CROSS JOIN LATERAL (
    SELECT
        array_agg(shown.fact_id::uuid ORDER BY shown.place) AS fact_ids,
        count(*) FILTER (WHERE source.status <> 'active') AS ended,
        bool_and(
            NOT coalesce(is_disbelieved(source), true)
            AND EXISTS (
                SELECT FROM current_entity_links AS link
                WHERE link.fact_id = source.fact_id AND link.entity_id = of_entity
            )
            AND NOT EXISTS (
                WITH RECURSIVE later AS (
                    SELECT source.superseded_by AS fact_id
                    UNION
                    SELECT successor.superseded_by
                    FROM later
                    INNER JOIN facts AS successor ON later.fact_id = successor.fact_id
                )
                SELECT
                FROM later
                INNER JOIN facts AS successor ON later.fact_id = successor.fact_id
                WHERE source.status <> 'active' AND is_disbelieved(successor)
            )
        ) AS is_valid
    FROM jsonb_array_elements_text(made.payload -> 'facts') WITH ORDINALITY AS shown (fact_id, place)
    LEFT JOIN facts AS source ON source.fact_id = shown.fact_id::uuid
) AS written
WHERE coalesce(member.merged_into, member.entity_id) = of_entity
    AND made.event = 'entity_summarised'
    AND made.undone_by IS NULL
    AND written.is_valid
ORDER BY made.partition DESC, made.log_offset DESC, made.ordinal DESC
LIMIT 1;
END;
COMMENT ON FUNCTION summary_of_entity IS
'The newest summary of an entity that is valid: it was not undone, each fact that it was written from still names the '
'entity, and neither that nor what took its place was deleted, denied or undone. changed counts its facts that have ended '
'and those that are new since.';
