-- name: projections_turns
-- Which turns a search shows: none of which something was taken back.

-- The columns as they are: the words of a turn are of no use to a reader. A new schema has them in the view by now; the view
-- of an installation has not, and keeps the rights on it and what is made over it.
DO $$
BEGIN
    IF EXISTS (
        SELECT FROM pg_attribute WHERE attrelid = 'turns'::regclass AND attname = 'words'
    ) THEN
        DROP VIEW turns;
    END IF;
END
$$;
CREATE OR REPLACE VIEW turns AS
SELECT
    journal.owner,
    journal.source_id,
    journal.tenant,
    journal.user_id,
    journal.agent_id,
    journal.app_id,
    journal.run_id,
    journal.topic,
    journal.partition,
    journal.log_offset,
    journal.published_at,
    journal.occurred_at,
    journal.infer,
    journal.body,
    journal.refusal,
    journal.detail,
    journal.received_at,
    coalesce(ending.outcome, 'pending') AS status,
    ending.reason AS end_reason,
    ending.detail AS end_detail,
    ending.decided_at
FROM mnemolog_journal.turn_journal AS journal
LEFT JOIN LATERAL (
    SELECT
        commits.outcome,
        commits.reason,
        commits.detail,
        commits.decided_at
    FROM commits
    WHERE commits.owner = journal.owner AND commits.source_id = journal.source_id
    ORDER BY commits.attempt DESC
    LIMIT 1
) AS ending ON true;
COMMENT ON VIEW turns IS 'Every turn with its end, or pending.';

CREATE INDEX commits_deletions ON commits (tenant, user_id, agent_id, app_id, run_id) WHERE order_kind = 'delete_all';

CREATE FUNCTION is_taken_back(fact uuid) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
RETURN EXISTS (
    SELECT
    FROM facts
    INNER JOIN former_states AS former ON facts.fact_id = former.fact_id
    INNER JOIN memory_events AS taking ON former.event_id = taking.event_id
    WHERE
        facts.fact_id = is_taken_back.fact
        AND facts.status NOT IN ('active', 'pending_confirmation')
        AND taking.decided_by IN ('application', 'human')
        AND (
            facts.fact_id = ANY(taking.targets)
            OR (facts.fact_id = taking.fact_id AND taking.event IN ('fact_retracted', 'pending_rejected', 'conflict_resolved'))
        )
        AND NOT EXISTS (SELECT FROM undone WHERE undone.event_id = taking.event_id)
);
COMMENT ON FUNCTION is_taken_back IS
'Whether a command ended a fact: it deleted, replaced, corrected or rejected it, or settled its conflict against it.';

CREATE FUNCTION status_of_shown_turn(of_owner text, of_source text) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
RETURN (
    SELECT ending.outcome
    FROM (
        SELECT commits.outcome, commits.provenance
        FROM commits
        WHERE commits.owner = of_owner AND commits.source_id = of_source
        ORDER BY commits.attempt DESC
        LIMIT 1
    ) AS ending
    WHERE
        NOT jsonb_path_exists(ending.provenance, '$.steps[*].dropped[*] ? (@.reason == "recalled")')
        AND NOT EXISTS (
            SELECT
            FROM memory_events AS told
            WHERE
                told.owner = of_owner
                AND told.source_id = of_source
                AND (
                    EXISTS (SELECT FROM undone WHERE undone.event_id = told.event_id)
                    OR EXISTS (
                        SELECT FROM unnest(told.fact_id || told.targets) AS named (fact_id) WHERE is_taken_back(named.fact_id)
                    )
                )
        )
);
COMMENT ON FUNCTION status_of_shown_turn IS
'How a turn ended, where a search may show it: nothing that it told or changed was taken back since, none of its decisions '
'is undone, and it repeats no recalled memory. NULL for any other.';
