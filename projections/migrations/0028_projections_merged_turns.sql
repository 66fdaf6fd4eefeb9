-- name: projections_merged_turns
-- A turn whose fact was merged into another one is hidden with that.

CREATE OR REPLACE FUNCTION is_taken_back(fact uuid) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
RETURN EXISTS (
    WITH RECURSIVE standing AS (
        SELECT is_taken_back.fact AS fact_id
        UNION
        SELECT part.superseded_by
        FROM standing
        INNER JOIN facts AS part ON standing.fact_id = part.fact_id
        WHERE part.status = 'superseded' AND part.believed_to IS NOT NULL AND part.superseded_by IS NOT NULL
    )
    SELECT
    FROM standing
    INNER JOIN facts ON standing.fact_id = facts.fact_id
    INNER JOIN former_states AS former ON facts.fact_id = former.fact_id
    INNER JOIN memory_events AS taking ON former.event_id = taking.event_id
    WHERE
        facts.status NOT IN ('active', 'pending_confirmation')
        AND taking.decided_by IN ('application', 'human')
        AND (
            facts.fact_id = ANY(taking.targets)
            OR (facts.fact_id = taking.fact_id AND taking.event IN ('fact_retracted', 'pending_rejected', 'conflict_resolved'))
        )
        AND NOT EXISTS (SELECT FROM undone WHERE undone.event_id = taking.event_id)
);
COMMENT ON FUNCTION is_taken_back IS
'Whether a command ended a fact, or what it was merged or corrected into: it deleted, replaced, corrected or rejected it, '
'or settled its conflict against it.';
