-- name: projections_mood
-- The mood of a turn, beside its end.

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
    ending.decided_at,
    ending.mood
FROM mnemolog_journal.turn_journal AS journal
LEFT JOIN LATERAL (
    SELECT
        commits.outcome,
        commits.reason,
        commits.detail,
        commits.decided_at,
        jsonb_path_query_first(commits.provenance, '$.steps[*].mood') AS mood
    FROM commits
    WHERE commits.owner = journal.owner AND commits.source_id = journal.source_id
    ORDER BY commits.attempt DESC
    LIMIT 1
) AS ending ON true;
COMMENT ON VIEW turns IS 'Every turn with its end, or pending, and its mood where one was asked for.';
