-- name: known_entities
-- The scopes of these entities.
SELECT
    entity_id,
    tenant,
    user_id,
    agent_id,
    app_id,
    run_id
FROM entities
WHERE entity_id = ANY(%(entity_ids)s::uuid []);

-- name: add_entities
-- Add new entities.
INSERT INTO entities (
    entity_id, owner, tenant, user_id, agent_id, app_id, run_id, name, type, possible_twins, event_id, source_id,
    recorded_at, ordinal
)
SELECT
    entity_id, owner, tenant, user_id, agent_id, app_id, run_id, name, type, possible_twins::uuid [], event_id, source_id,
    recorded_at, ordinal
FROM unnest(
    %(entity_id)s::uuid [],
    %(owner)s::text [],
    %(tenant)s::text [],
    %(user_id)s::text [],
    %(agent_id)s::text [],
    %(app_id)s::text [],
    %(run_id)s::text [],
    %(name)s::text [],
    %(type)s::text [],
    %(possible_twins)s::text [],
    %(event_id)s::uuid [],
    %(source_id)s::text [],
    %(recorded_at)s::timestamptz [],
    %(ordinal)s::integer []
) AS fresh (
    entity_id, owner, tenant, user_id, agent_id, app_id, run_id, name, type, possible_twins, event_id, source_id,
    recorded_at, ordinal
);

-- name: add_aliases
-- Add names of entities, in their order: one that an entity has already stays as it was said first.
INSERT INTO entity_aliases (
    entity_id, kind, key, head, alias, place, event_id, recorded_at, tenant, user_id, agent_id, app_id, run_id
)
SELECT entity_id, kind, key, head, alias, place, event_id, recorded_at, tenant, user_id, agent_id, app_id, run_id
FROM unnest(
    %(entity_id)s::uuid [],
    %(kind)s::text [],
    %(key)s::text [],
    %(head)s::text [],
    %(alias)s::text [],
    %(place)s::integer [],
    %(event_id)s::uuid [],
    %(recorded_at)s::timestamptz [],
    %(tenant)s::text [],
    %(user_id)s::text [],
    %(agent_id)s::text [],
    %(app_id)s::text [],
    %(run_id)s::text []
) WITH ORDINALITY AS fresh (
    entity_id, kind, key, head, alias, place, event_id, recorded_at, tenant, user_id, agent_id, app_id, run_id, number
)
ORDER BY number
ON CONFLICT (entity_id, kind, key) DO NOTHING;

-- name: add_links
-- Add the entities that facts name: one that a fact has in a role already stays.
INSERT INTO fact_entities (fact_id, entity_id, role, event_id)
SELECT fact_id, entity_id, role, event_id
FROM unnest(
    %(fact_id)s::uuid [], %(entity_id)s::uuid [], %(role)s::text [], %(event_id)s::uuid []
) WITH ORDINALITY AS fresh (fact_id, entity_id, role, event_id, number)
ORDER BY number
ON CONFLICT (fact_id, entity_id, role) DO NOTHING;

-- name: entities_of_heads
-- The entities of exactly this scope that names with these heads may mean, with all their names; those that are called
-- by one of the keys first, then the newest, at most `limit`.
WITH found AS (
    SELECT
        alias.entity_id,
        bool_or(alias.key = ANY(%(keys)s::text [])) AS is_called,
        max(alias.recorded_at) AS recorded_at
    FROM entity_aliases AS alias
    WHERE
        (alias.tenant, alias.user_id, alias.agent_id, alias.app_id, alias.run_id)
        = (%(tenant)s, %(user_id)s, %(agent_id)s, %(app_id)s, %(run_id)s)
        AND alias.head = ANY(%(heads)s::text [])
    GROUP BY alias.entity_id
    ORDER BY is_called DESC, recorded_at DESC, alias.entity_id
    LIMIT %(limit)s
)
SELECT
    entities.entity_id,
    entities.name,
    entities.type,
    entities.possible_twins,
    ARRAY(
        SELECT jsonb_build_object('text', alias.alias, 'kind', alias.kind, 'key', alias.key)
        FROM entity_aliases AS alias
        WHERE alias.entity_id = entities.entity_id
        ORDER BY alias.recorded_at, alias.place, alias.kind, alias.key
        LIMIT %(aliases)s
    ) AS aliases
FROM found
INNER JOIN entities ON found.entity_id = entities.entity_id
ORDER BY entities.recorded_at, entities.ordinal, entities.entity_id;
