-- name: projections_lookups
-- What held overwrites challenge, each fact looked up by its id: planned as a join without statistics, the facts of a
-- status were read whole.

CREATE OR REPLACE FUNCTION challenged_facts(
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
    CROSS JOIN LATERAL (SELECT * FROM facts WHERE facts.fact_id = challenged.fact_id OFFSET 0) AS old
    WHERE old.status = 'superseded' AND old.believed_to IS NOT NULL AND old.superseded_by <> challenged.pending_id
)
SELECT
    challenged.pending_id,
    challenged.fact_id,
    bool_and(challenged.is_successor)
FROM challenged
CROSS JOIN LATERAL (SELECT * FROM facts WHERE facts.fact_id = challenged.fact_id OFFSET 0) AS standing
WHERE standing.status IN ('active', 'pending_confirmation')
GROUP BY challenged.pending_id, challenged.fact_id;
END;
