-- name: share_swap_lock
-- Keep a rebuild from swapping the tables under this transaction; many projectors hold it at once.
SELECT pg_advisory_xact_lock_shared(%(lock)s);

-- name: open_partition
-- Make sure that a partition has its row of offsets.
INSERT INTO projection_offsets (partition, next_offset) VALUES (%(partition)s, 0)
ON CONFLICT (partition) DO NOTHING;

-- name: lock_partition
-- The offset of the next commit to fold; holds off every other projector of the partition until the end.
SELECT next_offset FROM projection_offsets WHERE partition = %(partition)s FOR UPDATE;

-- name: move_partition
-- Say where to go on, in the transaction of the rows.
UPDATE projection_offsets SET next_offset = %(next_offset)s WHERE partition = %(partition)s;

-- name: next_offsets
-- The offset of the next commit to fold, per partition.
SELECT partition, next_offset FROM projection_offsets;

-- name: applied
-- Which of these sources have their commit.
SELECT commits.owner, commits.source_id
FROM unnest(%(owners)s::text [], %(source_ids)s::text []) AS asked (owner, source_id)
INNER JOIN commits ON asked.owner = commits.owner AND asked.source_id = commits.source_id;

-- name: known_facts
-- These facts as they stand.
SELECT
    fact_id,
    tenant,
    user_id,
    agent_id,
    app_id,
    run_id,
    status,
    confidence,
    mention_count,
    last_confirmed_at,
    true_to,
    closed_at,
    believed_to,
    superseded_by
FROM facts
WHERE fact_id = ANY(%(fact_ids)s::uuid []);

-- name: changed_records
-- The first offset, if any, at which the log has other bytes than those that were folded.
SELECT asked.log_offset
FROM unnest(%(offsets)s::bigint [], %(records)s::bytea []) AS asked (log_offset, record)
LEFT JOIN commits ON commits.partition = %(partition)s AND asked.log_offset = commits.log_offset
LEFT JOIN rejections
    ON rejections.partition = %(partition)s AND asked.log_offset = rejections.log_offset AND rejections.item = 0
WHERE asked.record IS DISTINCT FROM coalesce(commits.record, rejections.record)
ORDER BY asked.log_offset
LIMIT 1;

-- name: copy_commits
-- Take in applied commits.
COPY commits (
    partition, log_offset, owner, source_id, source_kind, tenant, user_id, agent_id, app_id, run_id, outcome, reason,
    detail, occurred_at, published_at, decided_at, origin_topic, origin_partition, origin_offset, based_on, llm_calls,
    embedding_calls, input_tokens, output_tokens, reprompts, provenance, metadata, record
) FROM STDIN (FORMAT binary);

-- name: copy_events
-- Take in events.
COPY memory_events (
    event_id, partition, log_offset, ordinal, owner, source_id, tenant, user_id, agent_id, app_id, run_id, event,
    fact_id, targets, occurred_at, decided_at, decided_by, reason, stale, payload
) FROM STDIN (FORMAT binary);

-- name: copy_facts
-- Take in new facts.
COPY facts (
    fact_id, owner, tenant, user_id, agent_id, app_id, run_id, text, search_text, key, value, category,
    importance_category, importance, certainty, confidence, subject, speaker, excerpt, status, unresolved, event_time,
    valid_until, true_from, true_to, closed_at, believed_from, believed_to, mention_count, last_confirmed_at,
    supersedes, superseded_by, source_id, stale, content_hash, embedding_model, embedding, metadata
) FROM STDIN (FORMAT binary);

-- name: copy_rejections
-- Take in what was not done.
COPY rejections (partition, log_offset, item, owner, source_id, reason, detail, record) FROM STDIN (FORMAT binary);

-- name: update_facts
-- Write how known facts stand now.
UPDATE facts SET
    status = changed.status,
    confidence = changed.confidence,
    mention_count = changed.mention_count,
    last_confirmed_at = changed.last_confirmed_at,
    true_to = changed.true_to,
    closed_at = changed.closed_at,
    believed_to = changed.believed_to,
    superseded_by = changed.superseded_by
FROM unnest(
    %(fact_id)s::uuid [],
    %(status)s::text [],
    %(confidence)s::double precision [],
    %(mention_count)s::integer [],
    %(last_confirmed_at)s::timestamptz [],
    %(true_to)s::timestamptz [],
    %(closed_at)s::timestamptz [],
    %(believed_to)s::timestamptz [],
    %(superseded_by)s::uuid []
) AS changed (
    fact_id, status, confidence, mention_count, last_confirmed_at, true_to, closed_at, believed_to, superseded_by
)
WHERE facts.fact_id = changed.fact_id;

-- name: step_scopes
-- Count the commits with events that these scopes have seen.
INSERT INTO scopes (tenant, user_id, agent_id, app_id, run_id, owner, version)
SELECT tenant, user_id, agent_id, app_id, run_id, owner, commits
FROM unnest(
    %(tenant)s::text [],
    %(user_id)s::text [],
    %(agent_id)s::text [],
    %(app_id)s::text [],
    %(run_id)s::text [],
    %(owner)s::text [],
    %(commits)s::bigint []
) AS steps (tenant, user_id, agent_id, app_id, run_id, owner, commits)
ON CONFLICT (tenant, user_id, agent_id, app_id, run_id) DO UPDATE SET version = scopes.version + excluded.version;

-- name: all_scopes
-- Every scope that has a version, so also a profile.
SELECT tenant, user_id, agent_id, app_id, run_id
FROM scopes
ORDER BY tenant, user_id, agent_id, app_id, run_id;

-- name: refresh_profiles
-- Derive the profiles of these scopes anew, from their active facts and their last changes; no clock is read.
INSERT INTO profiles (
    tenant, user_id, agent_id, app_id, run_id, owner, identity, hard_preferences, soft_preferences, current_tasks,
    recent_changes, sensitive_topics, updated_at
)
SELECT
    scopes.tenant,
    scopes.user_id,
    scopes.agent_id,
    scopes.app_id,
    scopes.run_id,
    scopes.owner,
    coalesce(known.identity, '[]'),
    coalesce(known.hard_preferences, '[]'),
    coalesce(known.soft_preferences, '[]'),
    coalesce(known.current_tasks, '[]'),
    coalesce(changed.recent_changes, '[]'),
    coalesce(known.sensitive_topics, '[]'),
    touched_at.latest
FROM unnest(
    %(tenant)s::text [], %(user_id)s::text [], %(agent_id)s::text [], %(app_id)s::text [], %(run_id)s::text []
) AS touched (tenant, user_id, agent_id, app_id, run_id)
INNER JOIN scopes
    ON
        touched.tenant = scopes.tenant
        AND touched.user_id = scopes.user_id
        AND touched.agent_id = scopes.agent_id
        AND touched.app_id = scopes.app_id
        AND touched.run_id = scopes.run_id
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
                facts.valid_until,
                facts.fact_id,
                sections.section,
                row_number() OVER (
                    PARTITION BY sections.section
                    ORDER BY facts.confidence DESC, facts.true_from DESC, facts.fact_id
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
                'at', utc_text(latest.believed_from),
                'old', latest.old
            ) ORDER BY latest.believed_from DESC, latest.fact_id
        ) AS recent_changes
    FROM (
        SELECT
            fresh.fact_id,
            fresh.text,
            fresh.believed_from,
            (
                SELECT happened.event FROM memory_events AS happened
                WHERE
                    happened.fact_id = fresh.fact_id
                    AND happened.event IN ('facts_merged', 'fact_replaced', 'fact_contradicted')
                LIMIT 1
            ) AS event,
            (
                SELECT
                    jsonb_agg(jsonb_build_object('text', old.text, 'fact_id', old.fact_id) ORDER BY old.fact_id)
                FROM facts AS old
                WHERE old.fact_id = ANY(fresh.supersedes)
            ) AS old
        FROM facts AS fresh
        WHERE
            fresh.supersedes <> '{}'
            AND fresh.tenant = scopes.tenant
            AND fresh.user_id = scopes.user_id
            AND fresh.agent_id = scopes.agent_id
            AND fresh.app_id = scopes.app_id
            AND fresh.run_id = scopes.run_id
        ORDER BY fresh.believed_from DESC, fresh.fact_id
        LIMIT 10
    ) AS latest
) AS changed
ON CONFLICT (tenant, user_id, agent_id, app_id, run_id) DO UPDATE SET
    owner = excluded.owner,
    identity = excluded.identity,
    hard_preferences = excluded.hard_preferences,
    soft_preferences = excluded.soft_preferences,
    current_tasks = excluded.current_tasks,
    recent_changes = excluded.recent_changes,
    sensitive_topics = excluded.sensitive_topics,
    updated_at = excluded.updated_at;
