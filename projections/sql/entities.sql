-- name: known_entities
-- The scopes of these entities, and whether all facts that named them were undone.
SELECT
    entity_id, {{scope_ids}},
    status = 'undone' AS is_undone
FROM entities
WHERE entity_id = ANY(%(entity_ids)s::uuid []);

-- name: add_entities
-- Add new entities.
INSERT INTO entities ({columns}, registered_name, registered_type, shown_name)
SELECT {values}, given.name, given.type, given.name
FROM {given};

-- name: add_aliases
-- Add names of entities, in their order: one that an event gives twice stays as it gave it first. A name that a
-- repetition gives has the source of the fact that it repeats.
INSERT INTO entity_aliases ({table_columns}, source_id, current_id, current_key, shown)
SELECT
    {table_values},
    coalesce((SELECT facts.source_id FROM facts WHERE facts.fact_id = given.repeated_fact_id), given.source_id),
    e.head_id,
    CASE WHEN holder.entity_id IS NULL THEN given.key ELSE left(given.key, -36) || holder.head_id::text END,
    given.alias
FROM {given}
INNER JOIN entities AS e ON given.entity_id = e.entity_id
LEFT JOIN entities AS holder ON given.kind = 'tie' AND holder.entity_id = holder_of_tie(given.key)
ORDER BY given.number
ON CONFLICT (entity_id, kind, key, event_id) DO NOTHING;

-- name: add_name_vectors
-- Add vectors of names of entities: one that an event gives twice stays as it gave it first.
INSERT INTO name_vectors ({columns})
SELECT {values}
FROM {given}
ORDER BY given.number
ON CONFLICT (entity_id, key, event_id) DO NOTHING;

-- name: add_links
-- Add the entities that facts name, as each event says it. What a split moved stays moved when it is told again.
INSERT INTO fact_entities ({columns}, moved_to, current_id)
SELECT {values}, moved.moved_to, CASE WHEN e.status <> 'forgotten' THEN e.head_id END
FROM {given}
LEFT JOIN LATERAL (
    SELECT min(known.moved_to::text)::uuid AS moved_to
    FROM fact_entities AS known
    WHERE known.fact_id = given.fact_id AND known.entity_id = given.entity_id
) AS moved ON true
INNER JOIN entities AS e ON e.entity_id = coalesce(moved.moved_to, given.entity_id)
ORDER BY given.number
ON CONFLICT (fact_id, entity_id, role, event_id) DO NOTHING;

-- name: add_relationships
-- Add relations between entities: the first event that states a relation stays its source.
INSERT INTO relationships ({columns})
SELECT {values}
FROM {given}
ORDER BY given.number
ON CONFLICT (relation_id) DO NOTHING;

-- name: add_evidence
-- Add what facts say of relations, as each event says it.
INSERT INTO relationship_evidence ({columns})
SELECT {values}
FROM {given}
ORDER BY given.number
ON CONFLICT (relation_id, fact_id, event_id) DO NOTHING;

-- name: entities_of_heads
-- The entities of exactly this scope that names with these heads or ends may mean, with all their names: the user first,
-- then those that are called by one of the keys, those of a head, the newest, at most `limit`, and of those that only a
-- tie finds ("my cousin") the newest `tied`; those that these facts are about; and of the type of each vector those whose names are nearest to it, with the keys of the names that are near.
-- The scan is exact. A model's vectors compare with its own only; CASE keeps Postgres from comparing others. Names that
-- readers do not see, and those with other numbers ("iPhone 14"), are left out before the nearest are counted. A name by
-- which an entity of its type is known needs no others.
WITH subjects AS (
    SELECT
        link.fact_id,
        link.current_id AS entity_id
    FROM fact_entities AS link
    WHERE link.fact_id = ANY(%(fact_ids)s::uuid []) AND link.role = 'subject'
    GROUP BY link.fact_id, link.current_id
),

found AS (
    SELECT
        n.current_id AS entity_id,
        bool_or(n.kind = 'user') AS is_user,
        bool_or(n.key = ANY(%(keys)s::text [])) AS is_called,
        bool_or(n.head = ANY(%(heads)s::text [])) AS is_headed,
        max(n.recorded_at) AS recorded_at
    FROM entity_aliases AS n
    WHERE {{in_scope n}}
        AND n.current_id IS NOT NULL
        AND n.kind <> 'tie'
        AND (
            n.head = ANY(%(heads)s::text [])
            OR left(split_part(split_part(n.key, ' (', 1), ' ', -1), 1) || right(split_part(n.key, ' (', 1), 1)
            = ANY(%(ends)s::text [])
        )
    GROUP BY n.current_id
    ORDER BY is_user DESC, is_called DESC, is_headed DESC, recorded_at DESC, n.current_id
    LIMIT %(limit)s
),

tied AS (
    SELECT n.current_id AS entity_id
    FROM entity_aliases AS n
    WHERE {{in_scope n}}
        AND n.current_id IS NOT NULL
        AND n.kind = 'tie'
        AND n.shown IS NOT NULL
        AND n.head = ANY(%(heads)s::text [])
    GROUP BY n.current_id
    ORDER BY bool_or(n.current_key = ANY(%(keys)s::text [])) DESC, max(n.recorded_at) DESC, n.current_id
    LIMIT %(tied)s
),

near AS (
    SELECT DISTINCT asked.key, seen.entity_id
    FROM unnest(
        %(near_keys)s::text [], %(near_heads)s::text [], %(near_types)s::text [], %(near_models)s::text [],
        %(near_vectors)b::halfvec []
    ) AS asked (key, head, type, model, embedding)
    CROSS JOIN LATERAL (
        SELECT e.entity_id
        FROM name_vectors AS v
        INNER JOIN entity_aliases AS alias
            ON (alias.entity_id, alias.kind, alias.key, alias.event_id) = (v.entity_id, 'name', v.key, v.event_id)
        INNER JOIN entities AS e ON alias.current_id = e.entity_id
        WHERE {{in_scope v}}
            AND CASE
                WHEN v.model = asked.model AND vector_dims(v.embedding) = vector_dims(asked.embedding)
                    THEN v.embedding <=> asked.embedding <= 1 - %(near_from)s
                        AND regexp_replace(v.key, '[^0-9]', '', 'g') = regexp_replace(asked.key, '[^0-9]', '', 'g')
            END
            AND v.key <> asked.key
            AND alias.shown IS NOT NULL
            AND e.status = 'active'
            AND e.type = asked.type
        ORDER BY v.embedding <=> asked.embedding, v.key, e.entity_id
        LIMIT %(near_limit)s
    ) AS seen
    WHERE NOT EXISTS (
        SELECT
        FROM entity_aliases AS alias
        INNER JOIN entities AS e ON alias.current_id = e.entity_id
        WHERE {{in_scope alias}}
            AND alias.head = asked.head
            AND (alias.kind, alias.key) = ('name', asked.key)
            AND (e.type = asked.type OR 'other' IN (e.type, asked.type))
        OFFSET 0
    )
)
SELECT
    e.entity_id, e.name, e.type,
    ARRAY(
        SELECT twins.twin_id
        FROM current_entity_twins AS twins
        WHERE twins.entity_id = e.entity_id
        ORDER BY twins.since, twins.twin_id
    ) AS possible_twins,
    ARRAY(
        SELECT jsonb_build_array(jsonb_build_object('text', n.alias, 'kind', n.kind, 'key', n.current_key), n.shown IS NULL, n.entity_id)
        FROM entity_aliases AS n
        WHERE n.current_id = e.entity_id AND (n.kind <> 'tie' OR n.shown IS NOT NULL)
        ORDER BY n.recorded_at, n.place, n.kind, n.key
        LIMIT %(aliases)s
    ) AS aliases,
    ARRAY(SELECT subjects.fact_id FROM subjects WHERE subjects.entity_id = e.entity_id) AS fact_ids,
    ARRAY(SELECT near.key FROM near WHERE near.entity_id = e.entity_id ORDER BY near.key) AS near
FROM entities AS e
WHERE
    e.entity_id IN (
        SELECT found.entity_id FROM found
        UNION
        SELECT tied.entity_id FROM tied
        UNION
        SELECT subjects.entity_id FROM subjects
        UNION
        SELECT near.entity_id FROM near
    )
    AND {{in_scope e}}
ORDER BY e.recorded_at, e.ordinal, e.entity_id;

-- name: entity_columns
-- The columns of an entity as readers see it: its names, and how many current facts name it.
e.entity_id, {{shown_scope e}},
e.shown_name AS name,
e.type,
EXISTS (
    SELECT FROM entity_aliases AS alias
    WHERE alias.current_id = e.entity_id AND alias.kind = 'user'
) AS is_user,
ARRAY(
    SELECT alias.shown
    FROM entity_aliases AS alias
    WHERE alias.current_id = e.entity_id AND alias.shown <> e.shown_name
    GROUP BY alias.shown
    ORDER BY min(alias.recorded_at), min(alias.place), alias.shown
) AS aliases,
(
    SELECT count(DISTINCT f.fact_id)
    FROM fact_entities AS link
    INNER JOIN facts AS f ON link.fact_id = f.fact_id
    WHERE link.current_id = e.entity_id AND f.status IN ('active', 'pending_confirmation')
) AS facts,
ARRAY(
    SELECT twins.twin_id
    FROM current_entity_twins AS twins
    WHERE twins.entity_id = e.entity_id AND twins.is_shown
    ORDER BY twins.since, twins.twin_id
) AS possible_twins,
e.source_id, e.recorded_at

-- name: pending_merges_of_entity
-- The proposed merges of one entity that wait for a person: for queries that find few.
ARRAY(
    SELECT proposed.event_id
    FROM merge_proposals AS proposed
    WHERE proposed.entity_ids && ARRAY(SELECT member.entity_id FROM entities AS member WHERE member.head_id = e.entity_id)
        AND proposed.is_pending
        AND e.entity_id IN (proposed.merged, proposed.into_id)
    ORDER BY proposed.decided_at, proposed.event_id
) AS pending_merges

-- name: listed_entities
-- The entities of a scope in the order in which facts named them first: all, or a page that begins after an entity.
WITH pending AS MATERIALIZED ( -- once for all that are listed
    SELECT e.event_id, e.decided_at, e.merged, e.into_id
    FROM merge_proposals AS e
    WHERE {scope} AND e.is_pending
)
SELECT
    {entity_columns},
    ARRAY(
        SELECT pending.event_id
        FROM pending
        WHERE e.entity_id IN (pending.merged, pending.into_id)
        ORDER BY pending.decided_at, pending.event_id
    ) AS pending_merges
FROM entities AS e
WHERE {scope}
    AND e.shown_name IS NOT NULL
    AND (%(type)s::text IS NULL OR e.type = %(type)s)
    AND (
        %(after)s::uuid IS NULL
        OR (e.recorded_at, e.ordinal, e.entity_id) > (
            SELECT last.recorded_at, last.ordinal, last.entity_id
            FROM entities AS last
            WHERE last.entity_id = %(after)s
        )
    )
ORDER BY e.recorded_at, e.ordinal, e.entity_id
LIMIT %(limit)s;

-- name: entities_called
-- The entities of a scope that have this name, in any case and from wherever they are, or whose id lies between two; else
-- the persons whose first name it is.
WITH found AS (
    SELECT
        e.entity_id,
        0 AS distance
    FROM entities AS e
    WHERE {scope} AND e.entity_id BETWEEN %(first_id)s AND %(last_id)s
    UNION ALL
    SELECT e.current_id, 0
    FROM entity_aliases AS e
    WHERE {scope} AND lower(e.shown) = lower(%(name)s)
    UNION ALL
    SELECT
        e.current_id,
        CASE WHEN e.key = %(key)s OR starts_with(e.key, %(key)s || ' (') THEN 0 ELSE 1 END
    FROM entity_aliases AS e
    WHERE {scope}
        AND e.head = %(head)s
        AND e.kind = 'name'
        AND e.shown IS NOT NULL
        AND (e.key = %(key)s OR starts_with(e.key, %(key)s || ' '))
)
SELECT
    {entity_columns},
    {pending_merges}
FROM (
    SELECT
        known.*,
        found.distance,
        min(found.distance) OVER (PARTITION BY {{scope_ids known}}) AS nearest
    FROM (
        SELECT found.entity_id, min(found.distance) AS distance FROM found GROUP BY found.entity_id
    ) AS found
    INNER JOIN entities AS known ON found.entity_id = known.entity_id
    WHERE known.shown_name IS NOT NULL AND (found.distance = 0 OR known.type = 'person')
) AS e
WHERE e.distance = e.nearest
ORDER BY e.recorded_at, e.ordinal, e.entity_id
LIMIT 20;

-- name: entities_of_ids
-- The entities of a scope with these ids, and the user; all, or the first ones.
SELECT
    {entity_columns},
    {pending_merges}
FROM ( -- OFFSET 0: by their ids, and not by the scope
    SELECT *
    FROM entities
    WHERE entity_id = ANY(%(entity_ids)s::uuid [] || ARRAY(
        SELECT e.current_id
        FROM entity_aliases AS e
        WHERE %(with_user)s AND {scope} AND e.head = '@user' AND e.kind = 'user'
    ))
    OFFSET 0
) AS e
WHERE {scope} AND e.shown_name IS NOT NULL
ORDER BY e.recorded_at, e.ordinal, e.entity_id
LIMIT %(limit)s;

-- name: twins_of_entity
-- The entities of a scope that may be the same as a given entity.
SELECT
    {entity_columns},
    {pending_merges}
FROM (
    SELECT *
    FROM entities
    WHERE entity_id <> %(entity_id)s AND entity_id = ANY(%(twins)s::uuid [] || ARRAY(
        SELECT other.head_id
        FROM entities AS other
        WHERE other.possible_twins <> '{{}}'
            AND other.possible_twins && ARRAY(
                SELECT member.entity_id FROM entities AS member WHERE member.head_id = %(entity_id)s
            )
    ))
    OFFSET 0
) AS e
WHERE {scope} AND e.shown_name IS NOT NULL
ORDER BY e.recorded_at, e.ordinal, e.entity_id;

-- name: facts_of_entity
-- The facts that name an entity, in the order in which they were learned, with its role in each.
SELECT
    link.role,
    {fact}
FROM (
    SELECT DISTINCT fact_id, role
    FROM fact_entities
    WHERE current_id = %(entity_id)s
) AS link
INNER JOIN facts AS f ON link.fact_id = f.fact_id
WHERE %(all_versions)s OR f.status IN ('active', 'pending_confirmation')
ORDER BY f.recorded_at, f.ordinal, f.fact_id, link.role;

-- name: names_of_entity
-- The names of an entity, the first first: when it was called so, and in which turn or command.
SELECT alias.name, alias.kind, alias.recorded_at, alias.event_id
FROM (
    SELECT DISTINCT ON (named.kind, named.key)
        named.shown AS name,
        named.kind, named.key, named.place, named.recorded_at, named.event_id
    FROM entity_aliases AS named
    WHERE named.current_id = %(entity_id)s AND named.shown IS NOT NULL
    ORDER BY named.kind, named.key, named.recorded_at, named.place, named.event_id
) AS alias
ORDER BY alias.recorded_at, alias.place, alias.kind, alias.key;

-- name: history_of_entity
-- What persons decided about an entity, or about one that was merged into it or split from it, in the order of the log.
SELECT
    change.event_id, change.event, change.source_id, change.decided_at,
    change.payload -> 'decision' ->> 'by' AS decided_by,
    change.payload -> 'decision' ->> 'reason' AS reason,
    names_in_change(change.entity_ids) AS names,
    change.undone_by IS NOT NULL AS undone
FROM entity_changes AS change
WHERE change.entity_ids && ARRAY(
    SELECT member.entity_id
    FROM entities AS member
    WHERE member.head_id = %(entity_id)s
)
ORDER BY change.partition, change.log_offset, change.ordinal;

-- name: names
-- The name under which readers see each of these entities, and since when it is known. A merged entity keeps its own
-- name where readers see that; else it has the name of the entity that it is a part of.
SELECT
    e.entity_id,
    CASE
        WHEN EXISTS (SELECT FROM entity_aliases AS n WHERE n.current_id = e.head_id AND n.shown = e.name) THEN e.name
        ELSE head.shown_name
    END AS name,
    e.recorded_at
FROM entities AS e
INNER JOIN entities AS head ON e.head_id = head.entity_id
WHERE e.entity_id = ANY(%(entity_ids)s::uuid []) AND head.shown_name IS NOT NULL;

-- name: with_hidden_names
-- Those of these entities that have, or had, a name which readers do not see.
SELECT asked.entity_id
FROM unnest(%(entity_ids)s::uuid []) AS asked (entity_id)
WHERE EXISTS (
    SELECT FROM jsonb_each(names_in_change(ARRAY[asked.entity_id])) AS named (name, is_shown)
    WHERE named.is_shown = 'false'::jsonb
);

-- name: decided_pairs
-- Those of these pairs of entities whose merge was proposed before, or that a person has split or said to be two, also by
-- undoing their merge.
SELECT asked.merged, asked.into_id
FROM unnest(%(merged)s::uuid [], %(into)s::uuid []) AS asked (merged, into_id)
WHERE EXISTS (
    SELECT
    FROM entity_changes AS change
    WHERE CASE
        WHEN change.event = 'entities_merged' THEN change.undone_by IS NOT NULL
        WHEN change.event IN ('merge_proposed', 'merge_rejected', 'entity_split') THEN change.undone_by IS NULL
    END
        AND change.entity_ids && ARRAY(
            SELECT m.entity_id FROM entities AS m WHERE m.head_id = asked.merged
        )
        AND change.entity_ids && ARRAY(
            SELECT m.entity_id FROM entities AS m WHERE m.head_id = asked.into_id
        )
);

-- name: shown_of_entities
-- The names of each of these entities that readers see, its own first, and the texts of the newest active facts that name
-- it, the facts about it first; of a long text the beginning.
SELECT
    asked.entity_id,
    ARRAY(
        SELECT n.shown
        FROM entities AS e
        INNER JOIN entity_aliases AS n ON e.entity_id = n.current_id
        WHERE e.entity_id = asked.entity_id AND e.shown_name IS NOT NULL AND n.shown IS NOT NULL
        ORDER BY n.shown = e.name DESC, n.recorded_at, n.place
        LIMIT 20
    ) AS names,
    ARRAY(
        SELECT left(f.text, 1000)
        FROM facts AS f
        INNER JOIN (
            SELECT
                link.fact_id,
                bool_or(link.role = 'subject') AS is_about
            FROM fact_entities AS link
            WHERE link.current_id = asked.entity_id
            GROUP BY link.fact_id
        ) AS named ON f.fact_id = named.fact_id
        WHERE f.status = 'active'
        ORDER BY named.is_about DESC, f.recorded_at DESC, f.ordinal DESC, f.fact_id
        LIMIT %(most)s
    ) AS texts
FROM unnest(%(entity_ids)s::uuid []) AS asked (entity_id);
