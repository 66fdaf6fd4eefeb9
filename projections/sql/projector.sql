-- name: share_swap_lock
-- Keep a rebuild from swapping the tables under this transaction; many projectors hold it at once.
SELECT pg_advisory_xact_lock_shared(%(lock)s);

-- name: open_partitions
-- Make sure that partitions have their rows of offsets.
INSERT INTO projection_offsets (partition, next_offset)
SELECT
    asked.partition,
    0 AS next_offset
FROM unnest(%(partitions)s::integer []) AS asked (partition)
ORDER BY asked.partition
ON CONFLICT (partition) DO NOTHING;

-- name: lock_partitions
-- The offset of the next commit to fold, per partition; holds off every other projector of them until the end.
-- All who lock several do so in the same order, so that none waits for another in a circle.
SELECT partition, next_offset
FROM projection_offsets
WHERE partition = ANY(%(partitions)s::integer [])
ORDER BY partition
FOR UPDATE;

-- name: move_partitions
-- Advance the offsets of partitions, in the transaction of the rows.
UPDATE projection_offsets SET next_offset = moved.next_offset
FROM unnest(%(partitions)s::integer [], %(next_offsets)s::bigint []) AS moved (partition, next_offset)
WHERE projection_offsets.partition = moved.partition;

-- name: announce
-- Tell those who wait for the projection that there is more of it. Nobody needs this on the disk.
SELECT set_config('synchronous_commit', 'off', true), pg_notify(%(channel)s, '');

-- name: next_offsets
-- The offset of the next commit to fold, per partition.
SELECT partition, next_offset FROM projection_offsets;

-- name: applied
-- The last commit of each of these sources that has one, and whether another may follow it.
SELECT DISTINCT ON (commits.owner, commits.source_id)
    commits.owner, commits.source_id, commits.attempt,
    commits.limit_hit IS NOT NULL OR (commits.source_kind = 'turn' AND commits.outcome = 'failed') AS retryable
FROM unnest(%(owners)s::text [], %(source_ids)s::text []) AS asked (owner, source_id)
INNER JOIN commits ON asked.owner = commits.owner AND asked.source_id = commits.source_id
ORDER BY commits.owner, commits.source_id, commits.attempt DESC;

-- name: known_facts
-- The states of these facts.
SELECT fact_id, {{scope_ids}}, {state}
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

-- name: update_facts
-- Update the state of known facts.
UPDATE facts SET ({state}) = ({new_state})
FROM {given}
WHERE facts.fact_id = given.fact_id;

-- name: settle_pending
-- Settle overwrites that were held back; those without a settlement are open again.
UPDATE pending_confirmations SET
    settled_at = given.settled_at,
    settlement = given.settlement,
    settled_by = given.settled_by
FROM {given}
WHERE pending_confirmations.fact_id = given.fact_id;

-- name: undo_events
-- Mark events as undone.
INSERT INTO undone ({columns})
SELECT {values}
FROM {given}
ON CONFLICT (event_id) DO UPDATE SET undone_by = excluded.undone_by, since = excluded.since;

-- name: reinstate_events
-- Reinstate undone events.
DELETE FROM undone WHERE event_id = ANY(%(event_id)s::uuid []);

-- name: set_policies
-- Set the policies that apply from now on.
INSERT INTO policies ({columns})
SELECT {values}
FROM {given}
ON CONFLICT ({{scope_ids}}) DO UPDATE SET
    policy = excluded.policy,
    event_id = excluded.event_id,
    since = excluded.since;

-- name: step_scopes
-- Count the commits that these scopes have seen, and the open facts of them and of their tenants; keep who spoke first.
WITH steps AS (
    SELECT {values}
    FROM {given}
),
counted AS (
    INSERT INTO tenant_facts (tenant, partition, facts)
    SELECT tenant, partition, sum(facts)
    FROM steps
    GROUP BY tenant, partition
    ON CONFLICT (tenant, partition) DO UPDATE SET facts = tenant_facts.facts + excluded.facts
)
INSERT INTO scopes ({{scope_ids}}, owner, version, facts, speakers)
SELECT
    {{scope_ids}}, owner, commits, facts,
    first_speakers(ARRAY[]::text [], array(SELECT jsonb_array_elements_text(speakers)))
FROM steps
ON CONFLICT ({{scope_ids}}) DO UPDATE SET
    version = scopes.version + excluded.version,
    facts = scopes.facts + excluded.facts,
    speakers = first_speakers(scopes.speakers, excluded.speakers);

-- name: count_tokens
-- Add the tokens of new commits to the day on which their turns were published, for their scopes and tenants.
INSERT INTO daily_tokens ({{scope_ids}}, partition, day, tokens)
SELECT
    fresh.tenant, level.user_id, level.agent_id, level.app_id, level.run_id, fresh.partition,
    (fresh.published_at AT TIME ZONE 'UTC')::date, sum(fresh.input_tokens + fresh.output_tokens)
FROM unnest(%(partition)s::integer [], %(log_offset)s::bigint []) AS given (partition, log_offset)
INNER JOIN commits AS fresh ON given.partition = fresh.partition AND given.log_offset = fresh.log_offset
CROSS JOIN LATERAL (
    VALUES (fresh.user_id, fresh.agent_id, fresh.app_id, fresh.run_id), ('', '', '', '')
) AS level (user_id, agent_id, app_id, run_id)
WHERE fresh.input_tokens + fresh.output_tokens <> 0 AND fresh.user_id || fresh.agent_id <> ''
GROUP BY 1, 2, 3, 4, 5, 6, 7
ORDER BY 1, 2, 3, 4, 5, 6, 7
ON CONFLICT ({{scope_ids}}, day, partition) DO UPDATE SET
    tokens = daily_tokens.tokens + excluded.tokens;

-- name: count_usage
-- Add what each model took for new commits to the day on which their sources were published, for their scopes and
-- tenants.
INSERT INTO daily_usage (
    {{scope_ids}}, day, model, partition, input_tokens, cached_tokens, output_tokens,
    uncounted
)
SELECT
    fresh.tenant, level.user_id, level.agent_id, level.app_id, level.run_id,
    (fresh.published_at AT TIME ZONE 'UTC')::date, took.model, fresh.partition,
    sum(took.input_tokens), sum(took.cached_tokens), sum(took.output_tokens), sum(took.uncounted)
FROM unnest(%(partition)s::integer [], %(log_offset)s::bigint []) AS given (partition, log_offset)
INNER JOIN commits AS fresh ON given.partition = fresh.partition AND given.log_offset = fresh.log_offset
CROSS JOIN LATERAL step_usage(fresh.provenance) AS took
CROSS JOIN LATERAL (
    VALUES (fresh.user_id, fresh.agent_id, fresh.app_id, fresh.run_id), ('', '', '', '')
) AS level (user_id, agent_id, app_id, run_id)
WHERE fresh.user_id || fresh.agent_id <> ''
GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
ORDER BY 1, 2, 3, 4, 5, 6, 7, 8
ON CONFLICT ({{scope_ids}}, day, model, partition) DO UPDATE SET
    input_tokens = daily_usage.input_tokens + excluded.input_tokens,
    cached_tokens = daily_usage.cached_tokens + excluded.cached_tokens,
    output_tokens = daily_usage.output_tokens + excluded.output_tokens,
    uncounted = daily_usage.uncounted + excluded.uncounted;

-- name: all_scopes
-- Every scope that has a version.
SELECT {{scope_ids}}
FROM scopes
ORDER BY {{scope_ids}};

-- name: dispute_facts
-- Say of the facts of these scopes whether an overwrite that is held back would end or deny them.
WITH challenged AS MATERIALIZED (
    SELECT fact_id
    FROM challenged_facts(ARRAY(
        SELECT waiting.fact_id
        FROM unnest({{scope_arrays}}) AS touched ({{scope_ids}})
        INNER JOIN pending_confirmations AS waiting ON {{same_scope touched waiting}}
        WHERE waiting.settled_at IS NULL AND waiting.action <> 'merge'
    ))
)
UPDATE facts SET disputed = NOT disputed
WHERE fact_id = ANY(ARRAY(
    SELECT fact_id FROM challenged
    UNION ALL
    SELECT known.fact_id
    FROM unnest({{scope_arrays}}) AS touched ({{scope_ids}})
    CROSS JOIN LATERAL (
        SELECT f.fact_id FROM facts AS f
        WHERE f.disputed AND {{same_scope f touched}}
        OFFSET 0
    ) AS known
)) AND disputed <> (fact_id = ANY(ARRAY(SELECT fact_id FROM challenged)));

-- name: refresh_profiles
-- Derive the profiles of these scopes anew; one without an event has none.
INSERT INTO profiles (
    {{scope_ids}}, owner, sections, recent_changes, updated_at
)
SELECT
    {{scope_ids known}}, known.owner, derived.sections, derived.recent_changes, latest.at
FROM unnest({{scope_arrays}}) AS touched ({{scope_ids}})
INNER JOIN scopes AS known ON {{same_scope touched known}}
CROSS JOIN LATERAL (
    SELECT max(happened.decided_at) AS at
    FROM memory_events AS happened
    WHERE {{same_scope happened known}}
) AS latest
CROSS JOIN LATERAL profile_of_scope({{scope_ids known}}) AS derived
WHERE latest.at IS NOT NULL
ON CONFLICT ({{scope_ids}}) DO UPDATE SET
    owner = excluded.owner,
    sections = excluded.sections,
    recent_changes = excluded.recent_changes,
    updated_at = excluded.updated_at;
