-- name: fact
-- One version of a fact.
SELECT {fact}
FROM facts AS f
WHERE f.tenant = %(tenant)s AND f.fact_id = %(fact_id)s;

-- name: origin
-- The event that brought a fact, the commit that it is in, and what was said in the turn that it came from, before it
-- was promoted where it was.
SELECT
    e.event_id,
    commits.record,
    journal.body -> 'messages' AS messages
FROM memory_events AS e
INNER JOIN commits ON e.partition = commits.partition AND e.log_offset = commits.log_offset
LEFT JOIN turn_journal AS journal ON e.owner = journal.owner
    AND coalesce(e.payload -> 'promoted_from' ->> 'source_id', e.source_id) = journal.source_id
WHERE e.tenant = %(tenant)s
    AND e.fact_id = %(fact_id)s
    AND e.payload -> 'fact' ->> 'fact_id' = %(fact_id)s::uuid::text;
