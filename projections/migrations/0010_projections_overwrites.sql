-- name: projections_overwrites
-- Every overwrite with who proposed it and what became of it, so that those of models can be told from all others.

DROP VIEW overwrites;
DROP INDEX memory_events_overwrites;
CREATE INDEX memory_events_overwrites ON memory_events (decided_at)
WHERE
    event IN (
        'facts_merged',
        'fact_replaced',
        'fact_contradicted',
        'fact_retracted',
        'fact_expired',
        'fact_corrected',
        'fact_pending',
        'conflict_resolved'
    );

CREATE VIEW overwrites AS
SELECT
    e.event_id,
    e.tenant,
    e.user_id,
    e.agent_id,
    e.app_id,
    e.run_id,
    e.event,
    e.decided_at,
    CASE WHEN e.event = 'fact_pending' AND e.model IS NOT NULL THEN 'model' ELSE e.decided_by END AS decided_by,
    e.model,
    e.prompt_version,
    e.guard,
    e.stale,
    done.carried_out_at,
    judged.taken_back,
    CASE
        WHEN judged.taken_back IS NOT NULL THEN judged.taken_back
        WHEN done.carried_out_at IS NOT NULL THEN 'kept'
        WHEN held.settled_at IS NULL THEN 'open'
        ELSE 'overtaken'
    END AS result
FROM memory_events AS e
LEFT JOIN pending_confirmations AS held ON e.event_id = held.event_id AND e.fact_id = held.fact_id
CROSS JOIN LATERAL (
    SELECT
        CASE
            WHEN e.event <> 'fact_pending' THEN e.decided_at
            ELSE (
                SELECT min(confirmation.decided_at)
                FROM memory_events AS confirmation
                WHERE
                    confirmation.event = 'pending_confirmed'
                    AND confirmation.fact_id = e.fact_id
                    AND EXISTS (
                        SELECT FROM former_states AS ended
                        WHERE ended.event_id = confirmation.event_id AND ended.fact_id = ANY(confirmation.targets)
                    )
            )
        END AS carried_out_at
) AS done
CROSS JOIN LATERAL (
    SELECT
        CASE
            WHEN EXISTS (SELECT FROM undone WHERE undone.event_id = e.event_id) THEN 'undone'
            WHEN held.settlement = 'rejected' THEN 'rejected'
            WHEN
                e.event = 'fact_pending'
                AND held.settlement IS DISTINCT FROM 'confirmed'
                AND EXISTS (
                    SELECT
                    FROM memory_events AS confirmation
                    INNER JOIN undone ON confirmation.event_id = undone.event_id
                    WHERE confirmation.event = 'pending_confirmed' AND confirmation.fact_id = e.fact_id
                )
                THEN 'undone'
            WHEN
                EXISTS (
                    SELECT
                    FROM former_states AS disbelieved
                    INNER JOIN memory_events AS word ON disbelieved.event_id = word.event_id
                    WHERE
                        disbelieved.fact_id = e.fact_id
                        AND word.decided_by = 'human'
                        AND word.targets @> ARRAY[e.fact_id]
                        AND (
                            (word.event = 'fact_corrected' AND word.payload ->> 'ended_at' IS NULL)
                            OR (
                                word.event IN ('pending_confirmed', 'conflict_resolved')
                                AND word.payload ->> 'action' = 'contradict'
                            )
                        )
                        AND NOT EXISTS (SELECT FROM undone WHERE undone.event_id = word.event_id)
                )
                THEN 'corrected'
        END AS taken_back
) AS judged
WHERE
    e.event IN (
        'facts_merged',
        'fact_replaced',
        'fact_contradicted',
        'fact_retracted',
        'fact_expired',
        'fact_corrected',
        'fact_pending',
        'conflict_resolved'
    )
    AND (
        e.event = 'fact_pending'
        OR EXISTS (
            SELECT
            FROM former_states AS ended
            WHERE
                ended.event_id = e.event_id
                AND ended.fact_id
                = ANY(CASE WHEN e.payload ->> 'action' = 'keep_old' THEN ARRAY[e.fact_id] ELSE e.targets END)
        )
    );
COMMENT ON VIEW overwrites IS
'Every decision that ended a known fact (also one whose end was announced), and every one that was held back from it '
'(fact_pending). decided_by is who proposed it: of one that was held back the model, whoever settled it, with its '
'prompt_version. carried_out_at is when it first ended the fact, also if that was taken back, NULL where it has not. taken_back says that it was wrong, '
'by whoever knew better: undone (itself, or the confirmation that carried it out), rejected while it was pending, or '
'corrected: a human said that the fact in its place never was true (correct without an end, or a contradiction that a '
'human confirmed or resolved). result is taken_back, or kept, open (held back and not settled), or overtaken (held '
'back, and settled without a decision on it). No overwrites are: the undo of a decision, the rejection of a pending '
'fact, and late news that was history when it came.';
