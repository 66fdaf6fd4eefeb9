-- name: projections_ordinal
-- The facts of one commit are listed in the order of their statements.

ALTER TABLE facts ADD COLUMN ordinal integer NOT NULL DEFAULT 0;
UPDATE facts
SET ordinal = brought.ordinal
FROM memory_events AS brought
WHERE
    facts.fact_id = brought.fact_id
    AND brought.payload -> 'fact' ->> 'fact_id' = facts.fact_id::text;
ALTER TABLE facts ALTER COLUMN ordinal DROP DEFAULT;
COMMENT ON COLUMN facts.ordinal IS
'The place among the events of its commit of the one that added it: the order of the facts of one turn.';

CREATE VIEW derived_profiles AS
SELECT
    scopes.tenant,
    scopes.user_id,
    scopes.agent_id,
    scopes.app_id,
    scopes.run_id,
    scopes.owner,
    coalesce(known.identity, '[]') AS identity,
    coalesce(known.hard_preferences, '[]') AS hard_preferences,
    coalesce(known.soft_preferences, '[]') AS soft_preferences,
    coalesce(known.current_tasks, '[]') AS current_tasks,
    coalesce(changed.recent_changes, '[]') AS recent_changes,
    coalesce(known.sensitive_topics, '[]') AS sensitive_topics,
    touched_at.latest AS updated_at
FROM scopes
CROSS JOIN LATERAL (
    SELECT max(decided_at) AS latest
    FROM memory_events AS happened
    WHERE
        happened.tenant = scopes.tenant
        AND happened.user_id = scopes.user_id
        AND happened.agent_id = scopes.agent_id
        AND happened.app_id = scopes.app_id
        AND happened.run_id = scopes.run_id
) AS touched_at
CROSS JOIN LATERAL (
    SELECT
        jsonb_agg(entry ORDER BY place) FILTER (WHERE section = 'identity') AS identity,
        jsonb_agg(entry ORDER BY place) FILTER (WHERE section = 'hard_preferences') AS hard_preferences,
        jsonb_agg(entry ORDER BY place) FILTER (WHERE section = 'soft_preferences') AS soft_preferences,
        jsonb_agg(entry ORDER BY place) FILTER (WHERE section = 'current_tasks') AS current_tasks,
        jsonb_agg(entry ORDER BY place) FILTER (WHERE section = 'sensitive_topics') AS sensitive_topics
    FROM (
        SELECT
            placed.section,
            placed.place,
            jsonb_build_object(
                'key', placed.key,
                'value', placed.value,
                'text', placed.text,
                'category', placed.category,
                'confidence', placed.confidence,
                'at', utc_text(placed.true_from),
                'valid_until', utc_text(placed.valid_until),
                'fact_id', placed.fact_id
            ) AS entry
        FROM (
            SELECT
                facts.key,
                facts.value,
                facts.text,
                facts.category,
                facts.confidence,
                facts.true_from,
                least(facts.valid_until, facts.true_to) AS valid_until,
                facts.fact_id,
                sections.section,
                row_number() OVER (
                    PARTITION BY sections.section
                    ORDER BY
                        facts.confidence DESC,
                        facts.true_from DESC,
                        facts.recorded_at,
                        facts.ordinal,
                        facts.fact_id
                ) AS place
            FROM facts
            INNER JOIN (
                VALUES
                ('identity', 'identity'),
                ('hard_preference', 'hard_preferences'),
                ('soft_preference', 'soft_preferences'),
                ('task_context', 'current_tasks'),
                ('health', 'sensitive_topics'),
                ('finance', 'sensitive_topics')
            ) AS sections (category, section) ON facts.category = sections.category
            WHERE
                facts.status = 'active'
                AND facts.tenant = scopes.tenant
                AND facts.user_id = scopes.user_id
                AND facts.agent_id = scopes.agent_id
                AND facts.app_id = scopes.app_id
                AND facts.run_id = scopes.run_id
        ) AS placed
        WHERE placed.place <= 50
    ) AS entries
) AS known
CROSS JOIN LATERAL (
    SELECT
        jsonb_agg(
            jsonb_build_object(
                'event', latest.event,
                'text', latest.text,
                'fact_id', latest.fact_id,
                'at', utc_text(latest.decided_at),
                'old', latest.old
            ) ORDER BY latest.decided_at DESC, latest.log_offset DESC, latest.ordinal DESC
        ) AS recent_changes
    FROM (
        SELECT
            happened.event,
            about.text,
            happened.fact_id,
            happened.decided_at,
            happened.log_offset,
            happened.ordinal,
            ended.old
        FROM memory_events AS happened
        INNER JOIN facts AS about ON happened.fact_id = about.fact_id
        CROSS JOIN LATERAL (
            SELECT
                jsonb_agg(
                    jsonb_build_object('text', old.text, 'fact_id', old.fact_id)
                    ORDER BY old.recorded_at, old.ordinal, old.fact_id
                ) AS old
            FROM former_states AS former
            INNER JOIN facts AS old ON former.fact_id = old.fact_id
            WHERE
                former.event_id = happened.event_id
                AND (
                    old.fact_id <> happened.fact_id
                    OR happened.event IN ('fact_retracted', 'fact_expired')
                    OR happened.payload ->> 'action' = 'keep_old'
                )
        ) AS ended
        WHERE
            happened.event IN (
                'facts_merged',
                'fact_replaced',
                'fact_contradicted',
                'fact_retracted',
                'fact_expired',
                'fact_corrected',
                'pending_confirmed',
                'conflict_resolved'
            )
            AND ended.old IS NOT NULL
            AND NOT EXISTS (SELECT FROM undone WHERE undone.event_id = happened.event_id)
            AND happened.tenant = scopes.tenant
            AND happened.user_id = scopes.user_id
            AND happened.agent_id = scopes.agent_id
            AND happened.app_id = scopes.app_id
            AND happened.run_id = scopes.run_id
        ORDER BY happened.decided_at DESC, happened.log_offset DESC, happened.ordinal DESC
        LIMIT 10
    ) AS latest
) AS changed;
COMMENT ON VIEW derived_profiles IS
'The profile of every scope, from its active facts and its last changes; no clock is read. A change is an event in '
'effect that ended facts: what it ended has a former state of the event.';

DELETE FROM profiles;
INSERT INTO profiles SELECT * FROM derived_profiles;
