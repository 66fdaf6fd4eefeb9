-- name: summary_of_entity
-- The summary of an entity that is shown.
SELECT
    event_id, source_id, version, summary, language, model, prompt_version, fact_ids, left_out, input_tokens,
    output_tokens, written_at, changed
FROM summary_of_entity(%(entity_id)s);

-- name: facts_to_summarise
-- The active facts that name an entity, hold at an instant and are not disputed, those that are new and those that were confirmed most
-- often by turns, and how many there are.
WITH holding AS (
    SELECT
        f.fact_id, f.text, f.true_from,
        count(*) OVER () AS total,
        row_number() OVER (ORDER BY f.recorded_at DESC, f.ordinal DESC, f.fact_id) AS newest,
        row_number() OVER (
            ORDER BY f.mention_count DESC, f.recorded_at DESC, f.ordinal DESC, f.fact_id
        ) AS most_confirmed
    FROM (SELECT DISTINCT fact_id FROM fact_entities WHERE current_id = %(entity_id)s) AS link
    INNER JOIN facts AS f ON link.fact_id = f.fact_id
    WHERE f.status = 'active'
        AND NOT f.disputed
        AND f.true_from <= %(at)s
        AND (f.true_to IS NULL OR f.true_to > %(at)s)
        AND (f.valid_until IS NULL OR f.valid_until > %(at)s)
)
SELECT fact_id, text, true_from, total
FROM holding
ORDER BY least(newest, most_confirmed), newest
LIMIT %(limit)s;

-- name: versions
-- How many summaries of an entity were written.
SELECT count(*) AS versions
FROM entity_changes
WHERE event = 'entity_summarised' AND entity_ids[1] = %(entity_id)s;

-- name: changed_facts
-- For each of these entities what it is after merges, and how many facts of that have changed since its summary; all its
-- active facts where it has no summary.
SELECT
    asked.entity_id, now_is.entity_id,
    coalesce(
        (SELECT shown.changed FROM summary_of_entity(now_is.entity_id) AS shown),
        (
            SELECT count(DISTINCT f.fact_id)
            FROM fact_entities AS link
            INNER JOIN facts AS f ON link.fact_id = f.fact_id
            WHERE link.current_id = now_is.entity_id AND f.status = 'active'
        )
    ) AS changed
FROM unnest(%(entity_ids)s::uuid []) AS asked (entity_id)
LEFT JOIN entities AS e ON asked.entity_id = e.entity_id
CROSS JOIN LATERAL coalesce(e.head_id, asked.entity_id) AS now_is (entity_id);

-- name: entities_named_by
-- The entities that these facts name, with how many of the facts do.
SELECT
    current_id,
    count(DISTINCT fact_id) AS facts
FROM fact_entities
WHERE fact_id = ANY(%(fact_ids)s::uuid []) AND current_id IS NOT NULL
GROUP BY current_id;

-- name: summaries_of_facts
-- The summaries of the entities that these facts name, the entities that most facts name first.
SELECT named.entity_id, named.name, shown.summary, shown.version, shown.changed, shown.fact_ids
FROM (
    SELECT
        e.entity_id,
        e.shown_name AS name,
        e.recorded_at,
        count(DISTINCT link.fact_id) AS facts
    FROM fact_entities AS link
    INNER JOIN entities AS e ON link.current_id = e.entity_id
    WHERE link.fact_id = ANY(%(fact_ids)s::uuid []) AND e.shown_name IS NOT NULL
    GROUP BY e.entity_id
    ORDER BY facts DESC, e.recorded_at, e.entity_id -- in their order here, so that the rest are not looked up
) AS named
CROSS JOIN LATERAL summary_of_entity(named.entity_id) AS shown
ORDER BY named.facts DESC, named.recorded_at, named.entity_id
LIMIT %(limit)s;

-- name: facts_of_summaries
-- The facts that summaries were written from.
SELECT {fact}
FROM facts AS f
WHERE f.fact_id = ANY(%(fact_ids)s::uuid []);
