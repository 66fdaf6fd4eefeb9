-- name: projections_sections
-- Profiles have a section for every category; and the names by which a scope knows its user.

ALTER TABLE profiles
ADD COLUMN work jsonb NOT NULL DEFAULT '[]',
ADD COLUMN relationships jsonb NOT NULL DEFAULT '[]',
ADD COLUMN other jsonb NOT NULL DEFAULT '[]';
COMMENT ON TABLE profiles IS
'One row per scope, from its active facts: each is in the one section of its category, or in other. Every section is an '
'array of at most 50 entries {key, value, text, category, confidence, at, valid_until, fact_id}, surest first; '
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

CREATE INDEX facts_names ON facts (tenant, user_id, agent_id, app_id, run_id)
WHERE key IN ('name', 'full_name', 'first_name', 'nickname');

CREATE FUNCTION user_names(
    tenant text, user_id text, agent_id text, app_id text, run_id text, speaker text, user_words text []
) RETURNS text [] LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
WITH first_speaker AS (
    SELECT coalesce((
        SELECT facts.speaker
        FROM facts
        WHERE
            lower(facts.speaker) <> ALL(user_names.user_words)
            AND facts.status <> 'undone'
            AND facts.tenant = user_names.tenant
            AND facts.user_id = user_names.user_id
            AND facts.agent_id = user_names.agent_id
            AND facts.app_id = user_names.app_id
            AND facts.run_id = user_names.run_id
        ORDER BY facts.recorded_at -- all facts of a commit have one speaker
        LIMIT 1
    ), CASE WHEN lower(user_names.speaker) <> ALL(user_names.user_words) THEN user_names.speaker END) AS name
),

known AS (
    SELECT first_speaker.name
    FROM first_speaker
    WHERE first_speaker.name IS NOT NULL
    UNION
    (SELECT facts.value
    FROM facts
    WHERE
        facts.key IN ('name', 'full_name', 'first_name', 'nickname')
        AND length(facts.value) BETWEEN 1 AND 100
        AND facts.status IN ('active', 'superseded', 'expired', 'retracted')
        AND facts.believed_to IS NULL
        AND facts.tenant = user_names.tenant
        AND facts.user_id = user_names.user_id
        AND facts.agent_id = user_names.agent_id
        AND facts.app_id = user_names.app_id
        AND facts.run_id = user_names.run_id
        AND (
            facts.subject IS NULL
            OR lower(facts.subject) = ANY(user_names.user_words)
            OR lower(facts.subject) = (SELECT lower(first_speaker.name) FROM first_speaker)
        )
    ORDER BY facts.recorded_at DESC, facts.fact_id
    LIMIT 20)
)

SELECT coalesce(array_agg(known.name ORDER BY known.name), '{}')
FROM known
WHERE user_names.user_id <> '';
END;
COMMENT ON FUNCTION user_names IS
'The names of the user of one scope: its first speaker, or else the given one, and the values of facts about the user '
'that are a name, the last 20, also of those that have ended; none for a scope without a user. user_words are subjects '
'that say "the user", in small letters; a speaker of such a word is not named by it.';
