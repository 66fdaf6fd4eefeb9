-- name: projections_background
-- What an extraction is shown beside its turn, found without reading a scope.

CREATE INDEX facts_single_valued ON facts (tenant, user_id, agent_id, app_id, run_id)
WHERE status = 'active' AND single_valued;

CREATE FUNCTION holder_of_tie(key text) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN right(key, 36) ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN right(key, 36)::uuid
END;
COMMENT ON FUNCTION holder_of_tie IS 'The entity to whom a tie is ("wife of <id>"); NULL where its key names none.';

CREATE FUNCTION shown_entity_details(of_entity uuid) RETURNS TABLE (
    entity_id uuid,
    name text,
    type text,
    recorded_at timestamptz,
    names text [],
    ties text [],
    twins uuid []
) LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
BEGIN ATOMIC
SELECT
    e.entity_id,
    e.name,
    e.type,
    e.recorded_at,
    told.names,
    told.ties,
    ARRAY(
        SELECT twins.twin_id FROM shown_entity_twins AS twins WHERE twins.entity_id = e.entity_id
        ORDER BY twins.since, twins.twin_id
    )
FROM (
    SELECT * FROM shown_entities WHERE shown_entities.entity_id = shown_entity_details.of_entity LIMIT 1
) AS e
CROSS JOIN LATERAL (
    SELECT
        coalesce(
            array_agg(called.name ORDER BY called.name = e.name DESC, called.since, called.place, called.name)
            FILTER (WHERE called.kind = 'name'),
            '{}'
        ) AS names,
        coalesce(
            array_agg(called.name ORDER BY called.since, called.place, called.name)
            FILTER (WHERE called.kind = 'tie' AND called.name IS NOT NULL),
            '{}'
        ) AS ties
    FROM (
        SELECT
            n.kind,
            CASE n.kind
                WHEN 'name' THEN n.alias
                ELSE split_part(n.current_key, ' of ', 1) || ' of ' || (
                    SELECT CASE WHEN EXISTS (
                        SELECT FROM current_entity_names AS own WHERE own.entity_id = holder.entity_id AND own.kind = 'user'
                    ) THEN 'the user' ELSE holder.name END
                    FROM shown_entities AS holder
                    WHERE holder.entity_id = holder_of_tie(n.current_key)
                        AND (holder.tenant, holder.user_id, holder.agent_id, holder.app_id, holder.run_id)
                        = (n.tenant, n.user_id, n.agent_id, n.app_id, n.run_id)
                )
            END AS name,
            min(n.recorded_at) AS since,
            min(n.place) AS place
        FROM shown_entity_names AS n
        WHERE n.entity_id = e.entity_id AND n.kind IN ('name', 'tie')
        GROUP BY 1, 2
    ) AS called
) AS told;
END;
COMMENT ON FUNCTION shown_entity_details IS
'An entity as readers see it: its names, its own first, what it is to others ("wife of the user"), its possible twins.';

CREATE FUNCTION related_entities(to_entity uuid, most bigint) RETURNS TABLE (
    entity_id uuid,
    predicate text
) LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
SELECT
    coalesce(other.merged_into, other.entity_id),
    held.predicate
FROM (
    SELECT
        CASE WHEN member.entity_id = r.subject_id THEN r.object_id ELSE r.subject_id END AS other_id,
        CASE WHEN member.entity_id = r.subject_id THEN r.predicate ELSE r.inverse END AS predicate,
        r.relation_id
    FROM entities AS member
    INNER JOIN relationships AS r
        ON (member.tenant, member.user_id, member.agent_id, member.app_id, member.run_id)
        = (r.tenant, r.user_id, r.agent_id, r.app_id, r.run_id)
        AND member.entity_id IN (r.subject_id, r.object_id)
    WHERE coalesce(member.merged_into, member.entity_id) = related_entities.to_entity
    ORDER BY r.recorded_at DESC, r.ordinal DESC, r.relation_id
    LIMIT related_entities.most
) AS held
INNER JOIN entities AS other ON held.other_id = other.entity_id
WHERE (
    SELECT bool_or(said.strength IS NOT NULL) AND NOT bool_or(said.ended_at IS NOT NULL)
    FROM current_evidence AS said
    CROSS JOIN LATERAL (SELECT * FROM facts WHERE facts.fact_id = said.fact_id OFFSET 0) AS f
    WHERE said.relation_id = held.relation_id AND f.status = 'active'
);
END;
COMMENT ON FUNCTION related_entities IS
'What an entity is related to, by the newest of its relations that active facts state and none ends: a quick look, which '
'relations_of_scope is not.';
