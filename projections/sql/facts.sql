-- name: fact_columns
-- The columns of one version of a fact as readers see it: everything but its vector. What events can change comes from
-- {state}: the facts as they are now, or as they were; {status} is made of it. A fact that begins after {at}, and has
-- not ended, begins later. What was {disputed} is told of the present alone. The scope comes from {ids}: the fact, or
-- the row of its scope.
f.fact_id,
{ids}.tenant,
nullif({ids}.user_id, '') AS user_id,
nullif({ids}.agent_id, '') AS agent_id,
nullif({ids}.app_id, '') AS app_id,
nullif({ids}.run_id, '') AS run_id,
f.text, f.key, f.value, f.value_json, f.category, f.more_categories, f.importance, f.certainty,
{state}.confidence,
f.subject, f.speaker, f.excerpt,
{status} AS status,
{state}.unresolved,
f.stale,
{disputed} AS disputed,
f.event_time, f.valid_until,
{state}.true_from,
{state}.true_to,
{state}.closed_at,
{state}.believed_from,
{state}.believed_to,
f.recorded_at,
{state}.state_since,
f.authority,
{state}.mention_count,
{state}.last_confirmed_at,
f.supersedes,
{state}.superseded_by,
f.source_id, f.embedding_model, f.metadata,
{state}.status IN ('active', 'pending_confirmation') AND {state}.true_from > {at} AS begins_later,
f.action_hint

-- name: one_fact
-- One version of a fact.
SELECT {fact}
FROM facts AS f
WHERE f.tenant = %(tenant)s AND f.fact_id = %(fact_id)s;

-- name: current_fact
-- The version that stands for a fact now, or the last one that did.
SELECT {fact}, nullif(%(fact_id)s::uuid, f.fact_id) AS former_id
FROM facts AS f
WHERE f.tenant = %(tenant)s AND f.fact_id = current_version(%(fact_id)s);

-- name: listed_facts
-- The facts of a scope in some states that a filter lets through, in the order in which they were learned: all, or some
-- of those that follow another fact.
SELECT {fact}
FROM facts AS f
WHERE {scope}
    AND {states}
    AND {filter}
    AND {following}
ORDER BY f.recorded_at, f.ordinal, f.fact_id
LIMIT %(limit)s;

-- name: counted_facts
-- How many facts of a scope in some states a filter lets through.
SELECT count(*) AS facts
FROM facts AS f
WHERE {scope}
    AND {states}
    AND {filter};

-- name: first_moments
-- When the first fact of a scope was learned, and since when the first one was true; null where there is none.
SELECT min(f.recorded_at) AS learned, min(f.true_from) AS true_from
FROM facts AS f
WHERE {scope};

-- name: after_a_fact
-- What was learned after a given fact, whose place in the order never changes.
(f.recorded_at, f.ordinal, f.fact_id) > (%(after_time)s, %(after_ordinal)s, %(after_fact)s)

-- name: place
-- Where a fact is in the order in which the facts of a tenant were learned.
SELECT recorded_at AS after_time, ordinal AS after_ordinal, fact_id AS after_fact
FROM facts
WHERE tenant = %(tenant)s AND fact_id = %(after)s;

-- name: holding
-- What is active and holds at an instant or begins later.
f.status = 'active' AND {{holds f %(at)s}}

-- name: facts_as_of
-- What was known at one instant to be true at another: each fact with its state of that time, whatever changed it
-- since.
SELECT {fact}
FROM facts AS f
CROSS JOIN LATERAL ({state_at}) AS s
WHERE {scope}
    AND {{known_as_true f s %(true_at)s}}
    AND {known}
ORDER BY f.recorded_at, f.ordinal, f.fact_id;

-- name: state_at
-- The state that a fact had at the time %(believed_at)s. A state holds from its since up to, but not at, its until.
SELECT {{state_of f}}, f.state_since
WHERE f.state_since <= %(believed_at)s
UNION ALL
SELECT {{state_of former}}, former.since
FROM former_states AS former
WHERE former.fact_id = f.fact_id
    AND f.state_since > %(believed_at)s
    AND former.since <= %(believed_at)s
    AND former.until > %(believed_at)s

-- name: not_known_at_another_time
-- What was not known at another instant to be true then.
NOT EXISTS (
    SELECT
    FROM (
        SELECT f.believed_from, f.believed_to, f.true_from, f.true_to
        WHERE f.state_since <= %(other_time)s
        UNION ALL
        SELECT former.believed_from, former.believed_to, former.true_from, former.true_to
        FROM former_states AS former
        WHERE former.fact_id = f.fact_id
            AND f.state_since > %(other_time)s
            AND former.since <= %(other_time)s
            AND former.until > %(other_time)s
    ) AS other
    WHERE f.recorded_at <= %(other_time)s
        AND (f.valid_until IS NULL OR f.valid_until > %(other_time)s)
        AND other.believed_from <= %(other_time)s
        AND (other.believed_to IS NULL OR other.believed_to > %(other_time)s)
        AND other.true_from <= %(other_time)s
        AND (other.true_to IS NULL OR other.true_to > %(other_time)s)
)

-- name: turn
-- The last ends of a source id in a tenant, one row per owner; record is NULL while the end is not in the tables.
-- A record that named no scope belongs to no tenant and is found by its position in the topic.
WITH ends AS (
    SELECT DISTINCT ON (owner) owner, record
    FROM commits
    WHERE source_id = %(turn_id)s
        AND (tenant = %(tenant)s OR (tenant = '' AND owner = source_id))
        AND (%(user_id)s::text IS NULL OR user_id = %(user_id)s)
        AND (%(agent_id)s::text IS NULL OR (user_id = '' AND agent_id = %(agent_id)s))
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
    AND (%(agent_id)s::text IS NULL OR (journal.user_id = '' AND journal.agent_id = %(agent_id)s))
    AND NOT EXISTS (
        SELECT FROM commits WHERE commits.owner = journal.owner AND commits.source_id = journal.source_id
    )
ORDER BY owner;

-- name: texts
-- What these facts of exactly one scope say.
SELECT fact_id, text
FROM facts
WHERE fact_id = ANY(%(fact_ids)s::uuid [])
    AND {{in_scope}};
