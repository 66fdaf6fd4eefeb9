-- name: projections_challenged
-- What held overwrites challenge by now, and what has ended in a scope, with or without a key.

CREATE FUNCTION challenged_facts(
    pending_ids uuid []
) RETURNS TABLE (pending_id uuid, fact_id uuid, is_successor boolean) LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
WITH RECURSIVE challenged AS (
    SELECT
        pending.fact_id AS pending_id,
        target.fact_id,
        false AS is_successor
    FROM pending_confirmations AS pending
    CROSS JOIN LATERAL unnest(pending.targets) AS target (fact_id)
    WHERE pending.settled_at IS NULL AND pending.fact_id = ANY(challenged_facts.pending_ids)
    UNION
    SELECT
        challenged.pending_id,
        old.superseded_by,
        true
    FROM challenged
    INNER JOIN facts AS old ON challenged.fact_id = old.fact_id
    WHERE old.status = 'superseded' AND old.believed_to IS NOT NULL AND old.superseded_by <> challenged.pending_id
)
SELECT
    challenged.pending_id,
    challenged.fact_id,
    bool_and(challenged.is_successor)
FROM challenged
INNER JOIN facts AS standing ON challenged.fact_id = standing.fact_id
WHERE standing.status IN ('active', 'pending_confirmation')
GROUP BY challenged.pending_id, challenged.fact_id;
END;
COMMENT ON FUNCTION challenged_facts IS
'The open facts that these held overwrites were shown; and, as successors, what those that were merged or corrected have '
'become. A confirmation ends the first, and leaves successors as they are.';

CREATE FUNCTION subject_rank(
    known text, asked text, spoken text [], aliases text []
) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
SELECT
    CASE
        WHEN
            (lower(known) = lower(asked)) IS TRUE
            OR (
                lower(coalesce(known, 'user')) = ANY(aliases)
                AND lower(coalesce(asked, 'user')) = ANY(aliases)
            ) THEN 2
        WHEN known IS NULL OR asked IS NULL THEN 1
        WHEN
            spoken = '{}'
            AND (lower(known) = ANY(aliases) OR lower(asked) = ANY(aliases)) THEN 1
        WHEN
            EXISTS (
                SELECT
                FROM
                    unnest(CASE
                        WHEN lower(known) = ANY(aliases) THEN spoken
                        ELSE ARRAY[lower(known)]
                    END) AS one (name),
                    unnest(CASE
                        WHEN lower(asked) = ANY(aliases) THEN spoken
                        ELSE ARRAY[lower(asked)]
                    END) AS other (name)
                WHERE
                    string_to_array(one.name, ' ') <@ string_to_array(other.name, ' ')
                    OR string_to_array(other.name, ' ') <@ string_to_array(one.name, ' ')
            ) THEN 1
        ELSE 0
    END;
END;
COMMENT ON FUNCTION subject_rank IS
'How near two subjects are: 2 where they are the same, 1 where that is unsure, 0 where they are certainly different. '
'spoken are the names of the user, aliases these and the words for the user, all in small letters.';

CREATE INDEX facts_ended ON facts (tenant, user_id, agent_id, app_id, run_id, true_to)
WHERE status IN ('superseded', 'retracted', 'expired') AND believed_to IS NULL;
DROP INDEX facts_bygone;
