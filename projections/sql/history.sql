-- name: versions
-- A fact, everything it came from and everything that came from it, in the order in which they were learned.
-- A version says what it ended, and since a confirmation or a correction the ended one says by what.
WITH RECURSIVE earlier AS (
    SELECT fact_id, supersedes, {{scope_ids}}
    FROM facts
    WHERE tenant = %(tenant)s AND fact_id = %(fact_id)s
    UNION
    SELECT older.fact_id, older.supersedes, {{scope_ids older}}
    FROM earlier
    CROSS JOIN LATERAL (
        SELECT * FROM facts WHERE fact_id = ANY(earlier.supersedes)
        UNION ALL
        SELECT * FROM facts WHERE superseded_by = earlier.fact_id
    ) AS older
    WHERE {{same_scope older earlier}}
),
later AS (
    SELECT fact_id, superseded_by, {{scope_ids}}
    FROM facts
    WHERE tenant = %(tenant)s AND fact_id = %(fact_id)s
    UNION
    SELECT newer.fact_id, newer.superseded_by, {{scope_ids newer}}
    FROM later
    CROSS JOIN LATERAL (
        SELECT * FROM facts WHERE fact_id = later.superseded_by
        UNION ALL
        SELECT brought.*
        FROM memory_events AS ending
        INNER JOIN facts AS brought ON ending.fact_id = brought.fact_id
        WHERE ending.targets <> '{{}}'
            AND ending.targets @> ARRAY[later.fact_id]
            AND brought.supersedes @> ARRAY[later.fact_id]
    ) AS newer
    WHERE {{same_scope newer later}}
)
SELECT {fact}
FROM facts AS f
WHERE f.tenant = %(tenant)s AND f.fact_id IN (SELECT fact_id FROM earlier UNION SELECT fact_id FROM later)
ORDER BY f.recorded_at, f.ordinal, f.fact_id;

-- name: events
-- Every event of one scope that made, touched or challenged one of these facts, in the order of the log; and those of
-- other scopes into which one of them was promoted, without what they name of these.
SELECT
    event_id, event, fact_id,
    CASE WHEN promoted_from = ANY(%(fact_ids)s) THEN '{}' ELSE targets END AS targets,
    source_id, occurred_at, decided_at, decided_by, reason, model, prompt_version, guard, stale,
    EXISTS (SELECT FROM undone WHERE undone.event_id = memory_events.event_id) AS undone,
    CASE
        WHEN promoted_from = ANY(%(fact_ids)s) THEN '[]'::jsonb
        ELSE payload -> 'decision' -> 'candidates'
    END AS candidates,
    CASE
        WHEN promoted_from = ANY(%(fact_ids)s) THEN '[]'::jsonb
        ELSE coalesce(payload -> 'moved_ends', '[]'::jsonb)
    END AS moved_ends,
    promoted_from
FROM memory_events
WHERE tenant = %(tenant)s
    AND (
        promoted_from = ANY(%(fact_ids)s)
        OR (user_id, agent_id, app_id, run_id) = (%(user_id)s, %(agent_id)s, %(app_id)s, %(run_id)s)
    )
    AND event_id IN (
        SELECT about.event_id
        FROM memory_events AS about
        WHERE about.fact_id = ANY(%(fact_ids)s)
        UNION ALL
        SELECT aimed.event_id
        FROM memory_events AS aimed
        WHERE aimed.targets <> '{}' AND aimed.targets && %(fact_ids)s
        UNION ALL
        SELECT former.event_id
        FROM former_states AS former
        WHERE former.fact_id = ANY(%(fact_ids)s)
        UNION ALL
        SELECT promoted.event_id
        FROM memory_events AS promoted
        WHERE promoted.promoted_from = ANY(%(fact_ids)s)
    )
ORDER BY decided_at, partition, log_offset, ordinal;

-- name: relations
-- What these facts add to, what adds to them, and what is about the same.
SELECT
    relation.fact_id, relation.relation, relation.related_id, fresh.text,
    known.text AS related_text,
    relation.since,
    fresh.status = 'active' AND known.status = 'active' AS holds
FROM fact_relations AS relation
INNER JOIN facts AS fresh ON relation.fact_id = fresh.fact_id
INNER JOIN facts AS known ON relation.related_id = known.fact_id
WHERE relation.fact_id = ANY(%(fact_ids)s) OR relation.related_id = ANY(%(fact_ids)s)
ORDER BY relation.since, fresh.ordinal, relation.fact_id, known.recorded_at, known.ordinal, relation.related_id;

-- name: changes
-- The events of a scope decided in a half-open interval, each with the new text and the texts it ended or touched; of
-- an undo every fact with the status that it has from then on.
SELECT
    e.event,
    e.payload ->> 'action' AS action,
    e.decided_at AS at,
    e.fact_id,
    coalesce(f.text, e.payload -> 'statement' ->> 'text') AS text,
    e.reason, e.decided_by, e.stale,
    EXISTS (SELECT FROM undone WHERE undone.event_id = e.event_id) AS undone,
    coalesce(old.facts, '[]'::jsonb) AS old,
    coalesce(reverted.facts, '[]'::jsonb) AS reverted,
    coalesce(moved.facts, '[]'::jsonb) AS moved
FROM memory_events AS e
LEFT JOIN facts AS f ON e.fact_id = f.fact_id
LEFT JOIN LATERAL (
    SELECT
        jsonb_agg(
            jsonb_build_object('fact_id', t.fact_id, 'text', t.text) ORDER BY t.recorded_at, t.ordinal, t.fact_id
        ) AS facts
    FROM unnest(e.targets) AS named (fact_id)
    INNER JOIN facts AS t ON named.fact_id = t.fact_id
    WHERE t.fact_id IS DISTINCT FROM e.fact_id
        AND {{same_scope t e}}
) AS old ON e.event NOT IN ('decision_undone', 'subjects_changed')
LEFT JOIN LATERAL (
    SELECT
        jsonb_agg(
            jsonb_build_object(
                'fact_id', t.fact_id,
                'text', t.text,
                'status', coalesce(reversal -> 'before' ->> 'status', 'undone')
            ) ORDER BY t.recorded_at, t.ordinal, t.fact_id
        ) AS facts
    FROM jsonb_array_elements(e.payload -> 'reversals') AS reversal
    INNER JOIN facts AS t ON (reversal ->> 'fact_id')::uuid = t.fact_id
    WHERE {{same_scope t e}}
) AS reverted ON e.event IN ('decision_undone', 'subjects_changed')
LEFT JOIN LATERAL (
    SELECT
        jsonb_agg(
            jsonb_build_object(
                'fact_id', t.fact_id,
                'text', t.text,
                'ended_at', one ->> 'ended_at',
                'ender', jsonb_build_object('fact_id', ender.fact_id, 'text', ender.text)
            ) ORDER BY t.recorded_at, t.ordinal, t.fact_id
        ) AS facts
    FROM jsonb_array_elements(e.payload -> 'moved_ends') AS one
    INNER JOIN facts AS t ON (one ->> 'fact_id')::uuid = t.fact_id
    INNER JOIN facts AS ender ON (one ->> 'ender')::uuid = ender.fact_id
    WHERE {{same_scope t e}}
) AS moved ON e.payload ? 'moved_ends'
WHERE {scope}
    AND e.event <> 'policy_set'
    AND (e.event <> 'fact_skipped' OR e.payload ? 'moved_ends')
    AND e.decided_at >= %(since)s
    AND e.decided_at < %(until)s
ORDER BY e.decided_at, e.partition, e.log_offset, e.ordinal;

-- name: count_skipped
-- How many statements of the interval repeated what was known.
SELECT count(*) AS skipped
FROM memory_events AS e
WHERE {scope}
    AND e.event = 'fact_skipped'
    AND e.decided_at >= %(since)s
    AND e.decided_at < %(until)s;

-- name: turning_points
-- What became true, or ceased to be, in a half-open interval, as it is known now; with the event that ended it,
-- and the fact in its place: the first of its successors that is believed.
SELECT
    f.fact_id, f.text, f.true_from,
    least(f.true_to, f.valid_until) AS ends_at,
    told.event AS told_by,
    told.payload ->> 'action' AS action,
    begun.decided_by AS begun_by,
    begun.reason AS begun_because,
    coalesce(told.decided_by, begun.decided_by) AS decided_by,
    coalesce(told.reason, begun.reason) AS reason,
    newer.fact_id AS newer_id,
    newer.text AS newer_text
FROM facts AS f
LEFT JOIN LATERAL (
    SELECT event, payload, decided_by, reason
    FROM memory_events
    WHERE targets <> '{{}}'
        AND targets @> ARRAY[f.fact_id]
        AND decided_at = f.closed_at
        AND event NOT IN ('fact_pending', 'decision_undone', 'subjects_changed')
        AND ({{scope_ids}}) = ({{scope_ids f}})
    ORDER BY log_offset DESC, ordinal DESC
    LIMIT 1
) AS told ON f.true_to IS NOT NULL
LEFT JOIN LATERAL (
    SELECT decided_by, reason
    FROM memory_events
    WHERE fact_id = f.fact_id AND payload -> 'fact' ->> 'fact_id' = f.fact_id::text
    LIMIT 1
) AS begun ON true
LEFT JOIN LATERAL (
    WITH RECURSIVE successors AS (
        SELECT g.fact_id, g.text, g.superseded_by, g.believed_from IS NOT NULL AND g.believed_to IS NULL AS believed
        FROM facts AS g
        WHERE g.fact_id = f.superseded_by
        UNION
        SELECT g.fact_id, g.text, g.superseded_by, g.believed_from IS NOT NULL AND g.believed_to IS NULL
        FROM successors
        INNER JOIN facts AS g ON successors.superseded_by = g.fact_id
        WHERE NOT successors.believed
    )
    SELECT fact_id, text
    FROM successors
    WHERE believed
) AS newer ON f.true_to IS NOT NULL
WHERE {scope}
    AND f.believed_from IS NOT NULL
    AND f.believed_to IS NULL
    AND (
        (f.true_from >= %(since)s AND f.true_from < %(until)s)
        OR (
            least(f.true_to, f.valid_until) >= %(since)s
            AND least(f.true_to, f.valid_until) < %(until)s
            AND least(f.true_to, f.valid_until) > f.true_from
        )
    )
ORDER BY f.recorded_at, f.ordinal, f.fact_id;

-- name: origin
-- The event that brought a fact, the commit that it is in, and what was said in the turn that it came from, before it
-- was promoted where it was.
SELECT
    e.event_id, commits.record,
    journal.body -> 'messages' AS messages
FROM memory_events AS e
INNER JOIN commits ON e.partition = commits.partition AND e.log_offset = commits.log_offset
LEFT JOIN turn_journal AS journal ON e.owner = journal.owner
    AND coalesce(e.payload -> 'promoted_from' ->> 'source_id', e.source_id) = journal.source_id
WHERE e.tenant = %(tenant)s
    AND e.fact_id = %(fact_id)s
    AND e.payload -> 'fact' ->> 'fact_id' = %(fact_id)s::uuid::text;

-- name: repetitions
-- The commits that repeated a fact and named an entity that the fact names, in the order of the log; none that was
-- undone.
SELECT commits.record
FROM commits
WHERE (commits.partition, commits.log_offset) IN (
    SELECT e.partition, e.log_offset
    FROM fact_entities AS link
    INNER JOIN memory_events AS e ON link.told_by = e.event_id
    WHERE link.fact_id = %(fact_id)s AND NOT EXISTS (SELECT FROM undone WHERE undone.event_id = link.told_by)
)
ORDER BY commits.partition, commits.log_offset;

-- name: entity_changes
-- What persons decided about each of these entities, in the order of the log; an undo shows as a decision that is
-- undone.
SELECT
    named.entity_id, change.event, change.decided_at,
    change.payload -> 'decision' ->> 'by' AS decided_by,
    change.payload -> 'decision' ->> 'reason' AS reason,
    names_in_change(change.entity_ids) AS names,
    change.undone_by IS NOT NULL AS undone
FROM unnest(%(entity_ids)s::uuid []) AS named (entity_id)
CROSS JOIN LATERAL (
    SELECT * FROM entity_changes AS known WHERE known.entity_ids @> ARRAY[named.entity_id] OFFSET 0
) AS change
WHERE change.event_id = change.original_id
ORDER BY named.entity_id, change.partition, change.log_offset, change.ordinal;
