-- name: fact_columns
-- The columns of one version of a fact as readers see it: everything but its vector.
f.fact_id,
f.tenant,
nullif(f.user_id, '') AS user_id,
nullif(f.agent_id, '') AS agent_id,
nullif(f.app_id, '') AS app_id,
nullif(f.run_id, '') AS run_id,
f.text,
f.key,
f.value,
f.category,
f.importance,
f.certainty,
f.confidence,
f.subject,
f.speaker,
f.excerpt,
f.status,
f.unresolved,
f.stale,
f.event_time,
f.valid_until,
f.true_from,
f.true_to,
f.closed_at,
f.believed_from,
f.believed_to,
f.mention_count,
f.last_confirmed_at,
f.supersedes,
f.superseded_by,
f.source_id,
f.embedding_model,
f.metadata

-- name: current_facts
-- The active facts of a scope that hold at an instant, in the order in which they were learned.
SELECT {fact}
FROM facts AS f
WHERE f.status = 'active'
    AND f.tenant = %(tenant)s
    AND f.user_id = coalesce(%(user_id)s::text, f.user_id)
    AND f.agent_id = coalesce(%(agent_id)s::text, f.agent_id)
    AND f.app_id = coalesce(%(app_id)s::text, f.app_id)
    AND f.run_id = coalesce(%(run_id)s::text, f.run_id)
    AND (f.valid_until IS NULL OR f.valid_until > %(at)s)
    AND (f.true_to IS NULL OR f.true_to > %(at)s)
ORDER BY f.believed_from, f.fact_id
LIMIT %(bound)s;

-- name: all_versions
-- Every version of every fact of a scope, ended ones too, in the order in which they were learned.
SELECT {fact}
FROM facts AS f
WHERE f.tenant = %(tenant)s
    AND f.user_id = coalesce(%(user_id)s::text, f.user_id)
    AND f.agent_id = coalesce(%(agent_id)s::text, f.agent_id)
    AND f.app_id = coalesce(%(app_id)s::text, f.app_id)
    AND f.run_id = coalesce(%(run_id)s::text, f.run_id)
ORDER BY f.believed_from, f.fact_id
LIMIT %(bound)s;

-- name: facts_as_of
-- What was believed at one instant to be true at another: closed_at keeps an end unknown until it was learned.
-- closed_at is when true_to became known; a version superseded later was still the belief before that.
SELECT {fact}
FROM facts AS f
WHERE f.tenant = %(tenant)s
    AND f.user_id = coalesce(%(user_id)s::text, f.user_id)
    AND f.agent_id = coalesce(%(agent_id)s::text, f.agent_id)
    AND f.app_id = coalesce(%(app_id)s::text, f.app_id)
    AND f.run_id = coalesce(%(run_id)s::text, f.run_id)
    AND f.believed_from <= %(believed_at)s
    AND (f.believed_to IS NULL OR f.believed_to > %(believed_at)s)
    AND f.true_from <= %(true_at)s
    AND (f.valid_until IS NULL OR f.valid_until > %(true_at)s)
    AND (f.true_to IS NULL OR f.closed_at > %(believed_at)s OR f.true_to > %(true_at)s)
ORDER BY f.believed_from, f.fact_id
LIMIT %(bound)s;

-- name: profile
-- The profile of exactly one scope.
SELECT identity, hard_preferences, soft_preferences, current_tasks, recent_changes, sensitive_topics, updated_at
FROM profiles
WHERE tenant = %(tenant)s
    AND user_id = %(user_id)s
    AND agent_id = %(agent_id)s
    AND app_id = %(app_id)s
    AND run_id = %(run_id)s;

-- name: turn
-- The ends of a turn id in a tenant, one row per owner; record is NULL while the end is not in the tables.
-- A record that named no scope belongs to no tenant and is found by its position in the topic.
SELECT owner, record
FROM commits
WHERE source_id = %(turn_id)s
    AND (tenant = %(tenant)s OR (tenant = '' AND owner = source_id))
    AND (%(user_id)s::text IS NULL OR user_id = %(user_id)s)
UNION ALL
SELECT journal.owner, NULL
FROM turn_journal AS journal
WHERE journal.source_id = %(turn_id)s
    AND (journal.tenant = %(tenant)s OR (journal.tenant = '' AND journal.owner = journal.source_id))
    AND (%(user_id)s::text IS NULL OR journal.user_id = %(user_id)s)
    AND NOT EXISTS (
        SELECT FROM commits WHERE commits.owner = journal.owner AND commits.source_id = journal.source_id
    )
ORDER BY owner;
