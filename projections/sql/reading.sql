-- name: fact_columns
-- The columns of one version of a fact as readers see it: everything but its vector.
-- What events can change comes from the table that the reader chooses: as it stands, or as it stood.
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
{standing}.confidence,
f.subject,
f.speaker,
f.excerpt,
{standing}.status,
{standing}.unresolved,
f.stale,
f.event_time,
f.valid_until,
f.true_from,
{standing}.true_to,
{standing}.closed_at,
{standing}.believed_from,
{standing}.believed_to,
f.recorded_at,
{standing}.state_since,
f.authority,
{standing}.mention_count,
{standing}.last_confirmed_at,
f.supersedes,
{standing}.superseded_by,
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
ORDER BY f.recorded_at, f.fact_id
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
ORDER BY f.recorded_at, f.fact_id
LIMIT %(bound)s;

-- name: facts_as_of
-- What was believed at one instant to be true at another: each fact as it stood then, also where it stands otherwise
-- since. A state holds from its since up to, but not at, its until.
WITH mine AS (
    SELECT
        fact_id, status, confidence, mention_count, last_confirmed_at, true_to, closed_at, believed_from, believed_to,
        superseded_by, unresolved, state_since
    FROM facts
    WHERE tenant = %(tenant)s
        AND user_id = coalesce(%(user_id)s::text, user_id)
        AND agent_id = coalesce(%(agent_id)s::text, agent_id)
        AND app_id = coalesce(%(app_id)s::text, app_id)
        AND run_id = coalesce(%(run_id)s::text, run_id)
        AND recorded_at <= %(believed_at)s
        AND true_from <= %(true_at)s
        AND (valid_until IS NULL OR valid_until > %(true_at)s)
),
stood AS (
    SELECT *
    FROM mine
    WHERE state_since <= %(believed_at)s
    UNION ALL
    SELECT
        former.fact_id, former.status, former.confidence, former.mention_count, former.last_confirmed_at,
        former.true_to, former.closed_at, former.believed_from, former.believed_to, former.superseded_by,
        former.unresolved, former.since
    FROM mine
    INNER JOIN former_states AS former ON mine.fact_id = former.fact_id
    WHERE mine.state_since > %(believed_at)s
        AND former.since <= %(believed_at)s
        AND former.until > %(believed_at)s
)
SELECT {fact}
FROM stood AS s
INNER JOIN facts AS f ON s.fact_id = f.fact_id
WHERE s.believed_from <= %(believed_at)s
    AND (s.believed_to IS NULL OR s.believed_to > %(believed_at)s)
    AND (s.true_to IS NULL OR s.true_to > %(true_at)s)
ORDER BY f.recorded_at, f.fact_id
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
-- The last ends of a source id in a tenant, one row per owner; record is NULL while the end is not in the tables.
-- A record that named no scope belongs to no tenant and is found by its position in the topic.
WITH ends AS (
    SELECT DISTINCT ON (owner) owner, record
    FROM commits
    WHERE source_id = %(turn_id)s
        AND (tenant = %(tenant)s OR (tenant = '' AND owner = source_id))
        AND (%(user_id)s::text IS NULL OR user_id = %(user_id)s)
    ORDER BY owner, attempt DESC
)
SELECT owner, record
FROM ends
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

-- name: texts
-- What these facts of exactly one scope say.
SELECT fact_id, text
FROM facts
WHERE fact_id = ANY(%(fact_ids)s::uuid [])
    AND (tenant, user_id, agent_id, app_id, run_id)
    = (%(tenant)s, %(user_id)s, %(agent_id)s, %(app_id)s, %(run_id)s);
