-- name: projections_ends
-- An end follows its ender: a fact can be open again, and begin earlier than was known. A fact says whether it only ends
-- something, and a profile whether an entry is unresolved.

ALTER TABLE facts ADD COLUMN action_hint text NOT NULL DEFAULT 'new'
CHECK (action_hint IN ('new', 'update', 'retract'));
UPDATE facts
SET action_hint = brought.payload -> 'fact' ->> 'action_hint'
FROM memory_events AS brought
WHERE
    facts.fact_id = brought.fact_id
    AND brought.payload -> 'fact' ->> 'fact_id' = facts.fact_id::text
    AND brought.payload -> 'fact' ->> 'action_hint' <> 'new';
COMMENT ON COLUMN facts.action_hint IS
'What the statement does: new; update, where something takes the place of what was so; retract, where it only ends or '
'denies something: then it is no value of its key.';

ALTER TABLE former_states ADD COLUMN true_from timestamptz;
UPDATE former_states
SET true_from = facts.true_from
FROM facts
WHERE facts.fact_id = former_states.fact_id;
COMMENT ON COLUMN former_states.true_from IS 'NULL means: as the fact has it.';

DROP INDEX facts_ending;
CREATE INDEX facts_ending ON facts (least(valid_until, true_to))
WHERE status IN ('active', 'pending_confirmation') AND (valid_until IS NOT NULL OR true_to IS NOT NULL);

COMMENT ON TABLE profiles IS
'One row per scope, from its active facts: each is in the one section of its category, or in other. Every section is an '
'array of at most 50 entries {key, value, text, category, confidence, at, valid_until, fact_id, unresolved}, surest first; '
'recent_changes holds the last 10 changes {event, text, fact_id, at, old: [{text, fact_id}]}, latest first. No clock: '
'who reads it filters by valid_until, and by at for what begins later.';

DROP VIEW derived_profiles;
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
    touched_at.latest AS updated_at,
    coalesce(known.work, '[]') AS work,
    coalesce(known.relationships, '[]') AS relationships,
    coalesce(known.other, '[]') AS other
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
        jsonb_agg(entry ORDER BY place) FILTER (WHERE section = 'sensitive_topics') AS sensitive_topics,
        jsonb_agg(entry ORDER BY place) FILTER (WHERE section = 'work') AS work,
        jsonb_agg(entry ORDER BY place) FILTER (WHERE section = 'relationships') AS relationships,
        jsonb_agg(entry ORDER BY place) FILTER (WHERE section = 'other') AS other
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
                'fact_id', placed.fact_id,
                'unresolved', placed.unresolved
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
                facts.unresolved,
                coalesce(sections.section, 'other') AS section,
                row_number() OVER (
                    PARTITION BY coalesce(sections.section, 'other')
                    ORDER BY
                        facts.confidence DESC,
                        facts.true_from DESC,
                        facts.recorded_at,
                        facts.ordinal,
                        facts.fact_id
                ) AS place
            FROM facts
            LEFT JOIN (
                VALUES
                ('identity', 'identity'),
                ('hard_preference', 'hard_preferences'),
                ('soft_preference', 'soft_preferences'),
                ('task_context', 'current_tasks'),
                ('health', 'sensitive_topics'),
                ('finance', 'sensitive_topics'),
                ('professional', 'work'),
                ('relationship', 'relationships')
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
                AND old.fact_id = ANY(happened.fact_id || happened.targets) -- not one whose end the event moved
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
'The profile of every scope, from its active facts, each in one section by its category, and its last changes; no clock '
'is read. A category without a section of its own is in other. A change is an event in '
'effect that ended facts: what it ended has a former state of the event.';

DELETE FROM profiles;
INSERT INTO profiles (
    tenant, user_id, agent_id, app_id, run_id, owner, identity, hard_preferences, soft_preferences, current_tasks,
    recent_changes, sensitive_topics, updated_at, work, relationships, other
)
SELECT * FROM derived_profiles;
