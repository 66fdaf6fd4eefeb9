-- name: linked_facts
-- Whom these facts name, as entities are now, and what they and the facts that were merged into them say of relations.
WITH RECURSIVE parts AS (
    SELECT
        asked.fact_id AS whole,
        asked.fact_id
    FROM unnest(%(fact_ids)s::uuid []) AS asked (fact_id)
    UNION
    SELECT parts.whole, old.fact_id
    FROM parts
    CROSS JOIN LATERAL (SELECT * FROM facts WHERE facts.fact_id = parts.fact_id OFFSET 0) AS merged
    CROSS JOIN LATERAL (SELECT * FROM facts WHERE facts.fact_id = ANY(merged.supersedes) OFFSET 0) AS old
    WHERE old.status = 'superseded' AND old.believed_to IS NOT NULL
        AND EXISTS (
            SELECT FROM memory_events AS merge
            WHERE merge.fact_id = merged.fact_id AND merge.event = 'facts_merged'
        )
)
SELECT
    f.fact_id, f.text, f.subject, f.true_from,
    ARRAY(
        SELECT jsonb_build_object('entity_id', named.entity_id, 'role', link.role, 'bearer_id', link.bearer_id)
        FROM (
            SELECT
                said.current_id, said.role,
                min(coalesce(said.moved_to, said.entity_id)::text)::uuid AS bearer_id
            FROM fact_entities AS said
            WHERE said.fact_id = f.fact_id
            GROUP BY said.current_id, said.role
        ) AS link
        INNER JOIN entities AS named ON link.current_id = named.entity_id
        WHERE named.status = 'active'
        ORDER BY link.role DESC, named.recorded_at, named.ordinal, named.entity_id -- the subject first
    ) AS links,
    ARRAY(
        SELECT jsonb_build_object(
            'subject_id', subject.entity_id,
            'predicate', known.predicate,
            'object_id', object.entity_id,
            'inverse', known.inverse,
            'strength', said.strength,
            'ended_at', said.ended_at
        )
        FROM parts
        INNER JOIN current_evidence AS said ON parts.fact_id = said.fact_id
        INNER JOIN relationships AS known ON said.relation_id = known.relation_id
        CROSS JOIN LATERAL (
            SELECT coalesce(min(link.moved_to::text)::uuid, known.subject_id) AS entity_id
            FROM fact_entities AS link
            WHERE link.fact_id = said.fact_id AND link.entity_id = known.subject_id
        ) AS who
        CROSS JOIN LATERAL (
            SELECT coalesce(min(link.moved_to::text)::uuid, known.object_id) AS entity_id
            FROM fact_entities AS link
            WHERE link.fact_id = said.fact_id AND link.entity_id = known.object_id
        ) AS whom
        INNER JOIN entities AS one ON who.entity_id = one.entity_id
        INNER JOIN entities AS other ON whom.entity_id = other.entity_id
        INNER JOIN entities AS subject ON one.head_id = subject.entity_id
        INNER JOIN entities AS object ON other.head_id = object.entity_id
        WHERE parts.whole = f.fact_id
            AND subject.status = 'active' AND object.status = 'active' AND subject.entity_id <> object.entity_id
        ORDER BY parts.fact_id <> f.fact_id, said.recorded_at, known.ordinal, known.relation_id
    ) AS relations
FROM facts AS f
WHERE f.fact_id = ANY(%(fact_ids)s::uuid []);

-- name: entities_with_owners
-- These entities, and the owners of their ties, each with its names.
SELECT
    e.entity_id, e.name, e.type,
    ARRAY(
        SELECT jsonb_build_object('text', alias.alias, 'kind', alias.kind, 'key', alias.current_key)
        FROM entity_aliases AS alias
        WHERE alias.current_id = e.entity_id
        ORDER BY alias.recorded_at, alias.place, alias.kind, alias.key
        LIMIT %(aliases)s
    ) AS aliases
FROM entities AS e
WHERE e.entity_id = ANY(%(entity_ids)s::uuid [])
    OR e.entity_id IN (
        SELECT holder_of_tie(tie.current_key)
        FROM entity_aliases AS tie
        WHERE tie.current_id = ANY(%(entity_ids)s::uuid []) AND tie.kind = 'tie'
    );
