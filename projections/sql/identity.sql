-- name: subject_links
-- The facts that one of these entities was first said to be the subject of, as far as entities decide anything about
-- them: those with a key, what ends or once ended in favour of another fact, and what ended one. And with the entities
-- that they are about, the facts about others that ended one of them, or that one of them ended.
WITH own AS MATERIALIZED (
    SELECT DISTINCT link.fact_id, link.entity_id, f.key, f.superseded_by
    FROM fact_entities AS link
    INNER JOIN facts AS f ON link.fact_id = f.fact_id
    WHERE link.entity_id = ANY(%(entity_ids)s::uuid [])
        AND link.role = 'subject'
        AND NOT EXISTS (SELECT FROM undone WHERE undone.event_id = link.told_by)
),

ends AS MATERIALIZED (
    SELECT own.fact_id, own.superseded_by AS other_id
    FROM own
    WHERE own.superseded_by IS NOT NULL
    UNION ALL
    SELECT own.fact_id, ended.fact_id
    FROM own
    INNER JOIN facts AS ended ON own.fact_id = ended.superseded_by
    UNION ALL
    -- What a split has taken back, which its undo may bring back.
    SELECT own.fact_id, former.superseded_by
    FROM own
    INNER JOIN former_states AS former ON own.fact_id = former.fact_id
    WHERE former.superseded_by IS NOT NULL
)

SELECT fact_id, entity_id
FROM own
WHERE key IS NOT NULL OR fact_id IN (SELECT unnest(ARRAY[ends.fact_id, ends.other_id]) FROM ends)
UNION
SELECT link.fact_id, link.current_id
FROM ends
INNER JOIN fact_entities AS link ON ends.other_id = link.fact_id AND link.role = 'subject'
WHERE link.current_id IS NOT NULL AND ends.other_id NOT IN (SELECT own.fact_id FROM own);

-- name: earlier_states
-- The states in which these facts had another ender than now, or none, each with the event that came then.
SELECT former.fact_id, happened.event, {{state_of former}}
FROM facts AS f
INNER JOIN former_states AS former ON f.fact_id = former.fact_id
INNER JOIN memory_events AS happened ON former.event_id = happened.event_id
WHERE f.fact_id = ANY(%(fact_ids)s::uuid []) AND former.superseded_by IS DISTINCT FROM f.superseded_by
ORDER BY former.fact_id, happened.partition, happened.log_offset, happened.ordinal;
