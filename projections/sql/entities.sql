-- name: known_entities
-- The scopes of these entities, and whether all facts that named them were undone.
SELECT
    entity_id, {{scope_ids}},
    status = 'undone' AS is_undone
FROM entities
WHERE entity_id = ANY(%(entity_ids)s::uuid []);

-- name: add_entities
-- Add new entities.
INSERT INTO entities ({columns}, registered_name, registered_type)
SELECT {values}, given.name, given.type
FROM {given};

-- name: add_aliases
-- Add names of entities, in their order: one that an event gives twice stays as it gave it first. A name that a
-- repetition gives has the source of the fact that it repeats.
INSERT INTO entity_aliases ({table_columns}, source_id)
SELECT
    {table_values},
    coalesce((SELECT facts.source_id FROM facts WHERE facts.fact_id = given.repeated_fact_id), given.source_id)
FROM {given}
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
-- Add the entities that facts name, as each event says it.
INSERT INTO fact_entities ({columns})
SELECT {values}
FROM {given}
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
-- then those that are called by one of the keys, those of a head, the newest, at most `limit`; those that these facts are
-- about; and of the type of each vector those whose names are nearest to it, with the keys of the names that are near.
-- The scan is exact. A model's vectors compare with its own only; CASE keeps Postgres from comparing others. Names that
-- readers do not see, and those with other numbers ("iPhone 14"), are left out before the nearest are counted. Whether a
-- name is seen is looked up for one after the other, the nearest first, for at most `looked_at` of them. A name by which
-- an entity of its type is known needs no others.
-- Of the names that are asked for it says which are hidden from readers.
WITH subjects AS (
    SELECT link.fact_id, link.entity_id
    FROM current_entity_links AS link
    WHERE link.fact_id = ANY(%(fact_ids)s::uuid []) AND link.role = 'subject'
),

found AS (
    SELECT
        n.entity_id,
        bool_or(n.kind = 'user') AS is_user,
        bool_or(n.key = ANY(%(keys)s::text [])) AS is_called,
        bool_or(n.head = ANY(%(heads)s::text [])) AS is_headed,
        max(n.recorded_at) AS recorded_at
    FROM current_entity_names AS n
    WHERE {{in_scope n}}
        AND (
            n.head = ANY(%(heads)s::text [])
            OR left(n.key, 1) || right(split_part(n.key, ' (', 1), 1) = ANY(%(ends)s::text [])
        )
    GROUP BY n.entity_id
    ORDER BY is_user DESC, is_called DESC, is_headed DESC, recorded_at DESC, n.entity_id
    LIMIT %(limit)s
),

near AS (
    SELECT DISTINCT asked.key, seen.entity_id
    FROM unnest(
        %(near_keys)s::text [], %(near_heads)s::text [], %(near_types)s::text [], %(near_models)s::text [],
        %(near_vectors)b::halfvec []
    ) AS asked (key, head, type, model, embedding)
    CROSS JOIN LATERAL (
        SELECT named.entity_id
        FROM (
            SELECT
                e.entity_id, v.key,
                v.embedding <=> asked.embedding AS distance
            FROM name_vectors AS v
            INNER JOIN entity_aliases AS alias
                ON (alias.entity_id, alias.kind, alias.key, alias.event_id) = (v.entity_id, 'name', v.key, v.event_id)
            INNER JOIN entities AS told ON v.entity_id = told.entity_id
            INNER JOIN entities AS e ON coalesce(told.merged_into, told.entity_id) = e.entity_id
            WHERE {{in_scope v}}
                AND CASE
                    WHEN v.model = asked.model AND vector_dims(v.embedding) = vector_dims(asked.embedding)
                        THEN v.embedding <=> asked.embedding <= 1 - %(near_from)s
                            AND regexp_replace(v.key, '[^0-9]', '', 'g') = regexp_replace(asked.key, '[^0-9]', '', 'g')
                END
                AND v.key <> asked.key
                AND alias.is_current
                AND e.status = 'active'
                AND e.type = asked.type
            ORDER BY distance, v.key, e.entity_id
            LIMIT %(looked_at)s
        ) AS named
        WHERE (
            SELECT shown.entity_id
            FROM shown_entity_names AS shown
            WHERE shown.entity_id = named.entity_id AND shown.kind = 'name' AND shown.key = named.key
            LIMIT 1
        ) IS NOT NULL
        ORDER BY named.distance, named.key, named.entity_id
        LIMIT %(near_limit)s
    ) AS seen
    WHERE NOT EXISTS (
        SELECT
        FROM current_entity_names AS alias
        INNER JOIN entities AS e ON alias.entity_id = e.entity_id
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
        SELECT jsonb_build_object('text', n.alias, 'kind', n.kind, 'key', n.current_key)
        FROM current_entity_names AS n
        WHERE n.entity_id = e.entity_id
        ORDER BY n.recorded_at, n.place, n.kind, n.key
        LIMIT %(aliases)s
    ) AS aliases,
    ARRAY(
        SELECT jsonb_build_object('text', n.alias, 'kind', n.kind, 'key', n.current_key)
        FROM current_entity_names AS n
        WHERE n.entity_id = e.entity_id
            AND n.kind <> 'user'
            AND n.head = ANY(%(heads)s::text [])
            AND NOT EXISTS (
                SELECT FROM shown_entity_names AS shown
                WHERE shown.entity_id = e.entity_id
                    AND (shown.kind, shown.current_key) = (n.kind, n.current_key)
            )
        ORDER BY n.recorded_at, n.place, n.kind, n.key
        LIMIT %(aliases)s
    ) AS hidden,
    ARRAY(SELECT subjects.fact_id FROM subjects WHERE subjects.entity_id = e.entity_id) AS fact_ids,
    ARRAY(SELECT near.key FROM near WHERE near.entity_id = e.entity_id ORDER BY near.key) AS near
FROM entities AS e
WHERE
    e.entity_id IN (
        SELECT found.entity_id FROM found
        UNION
        SELECT subjects.entity_id FROM subjects
        UNION
        SELECT near.entity_id FROM near
    )
    AND {{in_scope e}}
ORDER BY e.recorded_at, e.ordinal, e.entity_id;

-- name: entity_columns
-- The columns of an entity as readers see it: its names, and how many current facts name it.
e.entity_id, {{shown_scope e}}, e.name, e.type,
EXISTS (
    SELECT FROM current_entity_names AS alias
    WHERE alias.entity_id = e.entity_id AND alias.kind = 'user'
) AS is_user,
ARRAY(
    SELECT alias.alias
    FROM shown_entity_names AS alias
    WHERE alias.entity_id = e.entity_id AND alias.alias <> e.name
    GROUP BY alias.alias
    ORDER BY min(alias.recorded_at), min(alias.place), alias.alias
) AS aliases,
(
    SELECT count(DISTINCT f.fact_id)
    FROM current_entity_links AS link
    INNER JOIN facts AS f ON link.fact_id = f.fact_id
    WHERE link.entity_id = e.entity_id AND f.status IN ('active', 'pending_confirmation')
) AS facts,
ARRAY(
    SELECT twins.twin_id
    FROM shown_entity_twins AS twins
    WHERE twins.entity_id = e.entity_id
    ORDER BY twins.since, twins.twin_id
) AS possible_twins,
e.source_id, e.recorded_at

-- name: pending_merges_of_entity
-- The proposed merges of one entity that wait for a person: for queries that find few.
ARRAY(
    SELECT proposed.event_id
    FROM merge_proposals AS proposed
    WHERE {{same_scope proposed e}}
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
FROM shown_entities AS e
WHERE {scope}
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
-- The entities of a scope that have this name, in any case and from wherever they are, or whose id begins so; else the
-- persons whose first name it is.
SELECT
    {entity_columns},
    {pending_merges}
FROM (
    SELECT
        near.*,
        min(near.distance) OVER (PARTITION BY {{scope_ids near}}) AS nearest
    FROM (
        SELECT
            e.*,
            CASE WHEN e.entity_id::text LIKE %(prefix)s THEN 0
                ELSE (
                    SELECT
                        min(CASE
                            WHEN lower(alias.alias) = lower(%(name)s) THEN 0
                            WHEN alias.kind <> 'name' THEN NULL
                            WHEN alias.key = %(key)s OR starts_with(alias.key, %(key)s || ' (') THEN 0
                            WHEN e.type = 'person' AND starts_with(alias.key, %(key)s || ' ') THEN 1
                        END)
                    FROM shown_entity_names AS alias
                    WHERE alias.entity_id = e.entity_id
                )
            END AS distance
        FROM shown_entities AS e
        WHERE {scope}
    ) AS near
) AS e
WHERE e.distance = e.nearest
ORDER BY e.recorded_at, e.ordinal, e.entity_id
LIMIT 20;

-- name: entities_of_ids
-- The entities of a scope with these ids, and the user; all, or the first ones.
SELECT
    {entity_columns},
    {pending_merges}
FROM shown_entities AS e
WHERE {scope}
    AND (
        e.entity_id = ANY(%(entity_ids)s::uuid [])
        OR (%(with_user)s AND EXISTS (
            SELECT FROM current_entity_names AS alias
            WHERE alias.entity_id = e.entity_id AND alias.kind = 'user'
        ))
    )
ORDER BY e.recorded_at, e.ordinal, e.entity_id
LIMIT %(limit)s;

-- name: twins_of_entity
-- The entities of a scope that may be the same as a given entity.
SELECT
    {entity_columns},
    {pending_merges}
FROM shown_entities AS e
WHERE {scope}
    AND (e.entity_id = ANY(%(twins)s::uuid []) OR EXISTS (
        SELECT FROM current_entity_twins AS twins
        WHERE twins.entity_id = e.entity_id AND twins.twin_id = %(entity_id)s
    ))
ORDER BY e.recorded_at, e.ordinal, e.entity_id;

-- name: facts_of_entity
-- The facts that name an entity, in the order in which they were learned, with its role in each.
SELECT
    link.role,
    {fact}
FROM (
    SELECT DISTINCT fact_id, role
    FROM current_entity_links
    WHERE entity_id = %(entity_id)s
) AS link
INNER JOIN facts AS f ON link.fact_id = f.fact_id
WHERE %(all_versions)s OR f.status IN ('active', 'pending_confirmation')
ORDER BY f.recorded_at, f.ordinal, f.fact_id, link.role;

-- name: names_of_entity
-- The names of an entity, the first first: when it was called so, and in which turn or command.
SELECT alias.name, alias.kind, alias.recorded_at, alias.event_id
FROM (
    SELECT DISTINCT ON (named.kind, named.key)
        named.alias AS name,
        named.kind, named.key, named.place, named.recorded_at, named.event_id
    FROM shown_entity_names AS named
    WHERE named.entity_id = %(entity_id)s
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
    WHERE coalesce(member.merged_into, member.entity_id) = %(entity_id)s
)
ORDER BY change.partition, change.log_offset, change.ordinal;

-- name: names
-- The name under which readers see each of these entities, and since when it is known. A merged entity keeps its own
-- name where readers see that; else it has the name of the entity that it is a part of.
SELECT
    e.entity_id,
    CASE
        WHEN EXISTS (SELECT FROM shown_entity_names AS n WHERE n.entity_id = shown.entity_id AND n.alias = e.name) THEN e.name
        ELSE shown.name
    END AS name,
    e.recorded_at
FROM entities AS e
CROSS JOIN LATERAL (
    SELECT * FROM shown_entities WHERE shown_entities.entity_id = coalesce(e.merged_into, e.entity_id) LIMIT 1
) AS shown
WHERE e.entity_id = ANY(%(entity_ids)s::uuid []);

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
            SELECT m.entity_id FROM entities AS m WHERE coalesce(m.merged_into, m.entity_id) = asked.merged
        )
        AND change.entity_ids && ARRAY(
            SELECT m.entity_id FROM entities AS m WHERE coalesce(m.merged_into, m.entity_id) = asked.into_id
        )
);

-- name: shown_of_entities
-- The names of each of these entities that readers see, its own first, and the texts of the newest active facts that name
-- it, the facts about it first; of a long text the beginning.
SELECT
    asked.entity_id,
    ARRAY(
        SELECT n.alias
        FROM shown_entity_names AS n
        WHERE n.entity_id = asked.entity_id
            AND EXISTS (SELECT FROM shown_entities AS shown WHERE shown.entity_id = asked.entity_id)
        ORDER BY n.alias = (SELECT e.name FROM entities AS e WHERE e.entity_id = asked.entity_id) DESC, n.recorded_at, n.place
        LIMIT 20
    ) AS names,
    ARRAY(
        SELECT left(f.text, 1000)
        FROM facts AS f
        INNER JOIN (
            SELECT
                link.fact_id,
                bool_or(link.role = 'subject') AS is_about
            FROM current_entity_links AS link
            WHERE link.entity_id = asked.entity_id
            GROUP BY link.fact_id
        ) AS named ON f.fact_id = named.fact_id
        WHERE f.status = 'active'
        ORDER BY named.is_about DESC, f.recorded_at DESC, f.ordinal DESC, f.fact_id
        LIMIT %(most)s
    ) AS texts
FROM unnest(%(entity_ids)s::uuid []) AS asked (entity_id);
