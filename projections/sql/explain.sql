-- name: fact
-- One version of a fact.
SELECT {fact}
FROM facts AS f
WHERE f.tenant = %(tenant)s AND f.fact_id = %(fact_id)s;

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
-- The commits whose repetitions told, besides, what a fact names, in the order of the log; without those that were undone.
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
-- What persons decided about these entities, of each in the order of the log; undos are told by what they undid.
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
