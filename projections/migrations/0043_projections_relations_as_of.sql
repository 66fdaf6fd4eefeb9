-- name: projections_relations_as_of
-- What was known of relations at one time to hold at another; an end that was said later ends what has no time of its own.

CREATE FUNCTION fact_known_at(fact uuid, believed_at timestamptz) RETURNS TABLE (
    status text,
    superseded_by uuid,
    true_from timestamptz,
    true_to timestamptz,
    believed_to timestamptz,
    is_believed boolean
) LANGUAGE sql STABLE PARALLEL SAFE ROWS 1
BEGIN ATOMIC
SELECT
    known.status,
    known.superseded_by,
    known.true_from,
    least(known.true_to, known.valid_until),
    known.believed_to,
    coalesce(known.believed_from <= coalesce(fact_known_at.believed_at, 'infinity'), false)
    AND coalesce(known.believed_to > fact_known_at.believed_at, known.believed_to IS NULL)
FROM (
    SELECT f.status, f.superseded_by, f.true_from, f.true_to, f.valid_until, f.believed_from, f.believed_to
    FROM facts AS f
    WHERE f.fact_id = fact_known_at.fact AND f.state_since <= coalesce(fact_known_at.believed_at, 'infinity')
    UNION ALL
    SELECT
        former.status, former.superseded_by, coalesce(former.true_from, f.true_from), former.true_to, f.valid_until,
        former.believed_from, former.believed_to
    FROM facts AS f
    INNER JOIN former_states AS former ON f.fact_id = former.fact_id
    WHERE f.fact_id = fact_known_at.fact
        AND f.state_since > fact_known_at.believed_at
        AND former.since <= fact_known_at.believed_at
        AND former.until > fact_known_at.believed_at
    OFFSET 0
) AS known;
END;
COMMENT ON FUNCTION fact_known_at IS
'How a fact stood at believed_at, or stands now where that is NULL; no row before it was known. true_to is the earliest '
'end that was known then.';

DROP FUNCTION shown_relations_of_scope;
DROP FUNCTION relations_of_scope;

CREATE FUNCTION relations_of_scope(
    tenant text, user_id text, agent_id text, app_id text, run_id text,
    believed_at timestamptz DEFAULT NULL, true_at timestamptz DEFAULT NULL
) RETURNS TABLE (
    subject_id uuid,
    predicate text,
    object_id uuid,
    is_mirror boolean,
    is_active boolean,
    strength text,
    since timestamptz,
    until timestamptz,
    recorded_at timestamptz,
    ordinal integer,
    evidence uuid [],
    endings uuid []
) LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
WITH RECURSIVE named AS (
    SELECT
        known.relation_id,
        said.fact_id AS said_by,
        ends.subject_id,
        known.predicate,
        ends.object_id,
        known.inverse,
        known.recorded_at,
        known.ordinal
    FROM relationships AS known
    INNER JOIN current_evidence AS said ON known.relation_id = said.relation_id
    CROSS JOIN LATERAL (
        SELECT
            min(now_named.entity_id::text) FILTER (WHERE given.entity_id = known.subject_id)::uuid AS subject_id,
            min(now_named.entity_id::text) FILTER (WHERE given.entity_id = known.object_id)::uuid AS object_id
        FROM unnest(ARRAY[known.subject_id, known.object_id]) AS given (entity_id)
        LEFT JOIN fact_entities AS link
            ON link.fact_id = said.fact_id AND given.entity_id = link.entity_id AND link.moved_to IS NOT NULL
        INNER JOIN entities AS told ON coalesce(link.moved_to, given.entity_id) = told.entity_id
        INNER JOIN entities AS now_named ON coalesce(told.merged_into, told.entity_id) = now_named.entity_id
        WHERE now_named.status = 'active'
    ) AS ends
    WHERE (known.tenant, known.user_id, known.agent_id, known.app_id, known.run_id) = (
        relations_of_scope.tenant,
        relations_of_scope.user_id,
        relations_of_scope.agent_id,
        relations_of_scope.app_id,
        relations_of_scope.run_id
    ) AND ends.subject_id <> ends.object_id
),

directed AS (
    SELECT named.relation_id, named.said_by, named.subject_id, named.predicate, named.object_id, false AS is_mirror,
        named.recorded_at, named.ordinal
    FROM named
    UNION ALL
    SELECT named.relation_id, named.said_by, named.object_id, named.inverse, named.subject_id, true,
        named.recorded_at, named.ordinal
    FROM named
    WHERE named.inverse IS NOT NULL
),

carried AS (
    SELECT said.relation_id, said.fact_id AS said_by, said.fact_id, said.strength, said.ended_at, told.said_at, told.event_time
    FROM current_evidence AS said
    CROSS JOIN LATERAL (
        SELECT facts.said_at, facts.event_time FROM facts WHERE facts.fact_id = said.fact_id OFFSET 0
    ) AS told
    WHERE said.relation_id IN (SELECT directed.relation_id FROM directed)
        AND said.recorded_at <= coalesce(relations_of_scope.believed_at, 'infinity')
    UNION
    SELECT
        carried.relation_id, carried.said_by, old.superseded_by, carried.strength, carried.ended_at, carried.said_at,
        carried.event_time
    FROM carried
    CROSS JOIN LATERAL fact_known_at(carried.fact_id, relations_of_scope.believed_at) AS old
    WHERE old.status = 'superseded' AND old.believed_to IS NOT NULL
        AND EXISTS (
            SELECT FROM memory_events AS merge
            WHERE merge.fact_id = old.superseded_by AND merge.event = 'facts_merged'
        )
),

said AS (
    SELECT
        directed.subject_id,
        directed.predicate,
        directed.object_id,
        directed.is_mirror,
        directed.recorded_at,
        directed.ordinal,
        carried.said_by,
        carried.strength,
        carried.ended_at,
        carried.said_at,
        carried.event_time,
        fact.true_from,
        fact.true_to,
        fact.is_believed,
        coalesce(relations_of_scope.true_at, relations_of_scope.believed_at, now()) AS at
    FROM directed
    INNER JOIN carried ON directed.relation_id = carried.relation_id AND directed.said_by = carried.said_by
    CROSS JOIN LATERAL fact_known_at(carried.fact_id, relations_of_scope.believed_at) AS fact
),

evidence AS (
    SELECT
        said.*,
        ending.ended_at AS over_at,
        coalesce(
            said.strength IS NOT NULL AND said.is_believed
            AND (said.strength = 'medium' OR coalesce(said.true_to > said.at, true))
            AND said.true_from <= said.at AND coalesce(ending.ended_at > said.at, true),
            false
        ) AS counts
    FROM said
    CROSS JOIN LATERAL (
        SELECT min(greatest(over.ended_at, said.true_from)) AS ended_at
        FROM said AS over
        WHERE over.subject_id = said.subject_id AND over.predicate = said.predicate AND over.object_id = said.object_id
            AND over.is_believed
            AND (
                over.ended_at >= said.true_from
                OR (over.ended_at IS NOT NULL AND said.event_time IS NULL AND over.said_at > said.said_at)
            )
    ) AS ending
)

SELECT
    found.subject_id,
    found.predicate,
    found.object_id,
    bool_and(found.is_mirror),
    bool_or(found.counts),
    (ARRAY['strong', 'medium', 'weak'])[coalesce(
        min(array_position(ARRAY['strong', 'medium', 'weak'], found.strength)) FILTER (WHERE found.counts),
        min(array_position(ARRAY['strong', 'medium', 'weak'], found.strength))
    )],
    min(found.true_from) FILTER (WHERE found.strength IS NOT NULL AND found.is_believed),
    CASE WHEN NOT bool_or(found.counts) THEN
        max(coalesce(least(found.over_at, found.true_to), found.over_at, found.true_to))
        FILTER (WHERE found.strength IS NOT NULL AND found.is_believed)
    END,
    min(found.recorded_at),
    min(found.ordinal),
    coalesce(
        array_agg(DISTINCT found.said_by) FILTER (WHERE found.counts),
        array_agg(DISTINCT found.said_by) FILTER (WHERE found.strength IS NOT NULL)
    ),
    coalesce(array_agg(DISTINCT found.said_by) FILTER (WHERE found.ended_at IS NOT NULL AND found.is_believed), '{}')
FROM evidence AS found
GROUP BY found.subject_id, found.predicate, found.object_id
HAVING bool_or(found.strength IS NOT NULL);
END;
COMMENT ON FUNCTION relations_of_scope IS
'The relations of exactly one scope in both directions, each once, with what was known at believed_at to hold at true_at: '
'NULL is now, and true_at is believed_at where it is NULL. One is active while some fact says so and holds, or names it in '
'passing and is believed, and no other fact says that it is over. An end that was said later ends what was said without a '
'time of its own, whenever it is dated. A fact that was merged counts as what it became, and entities are read through '
'merges and splits as they are now. is_mirror: it was said in the other direction only.';

CREATE FUNCTION shown_relations_of_scope(
    tenant text, user_id text, agent_id text, app_id text, run_id text,
    believed_at timestamptz DEFAULT NULL, true_at timestamptz DEFAULT NULL
) RETURNS TABLE (
    subject_id uuid,
    subject text,
    predicate text,
    object_id uuid,
    object text,
    is_mirror boolean,
    is_active boolean,
    strength text,
    since timestamptz,
    until timestamptz,
    recorded_at timestamptz,
    ordinal integer,
    evidence uuid [],
    endings uuid []
) LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
SELECT
    r.subject_id,
    subject.name,
    r.predicate,
    r.object_id,
    object.name,
    r.is_mirror,
    r.is_active,
    r.strength,
    r.since,
    r.until,
    r.recorded_at,
    r.ordinal,
    r.evidence,
    r.endings
FROM relations_of_scope(
    shown_relations_of_scope.tenant,
    shown_relations_of_scope.user_id,
    shown_relations_of_scope.agent_id,
    shown_relations_of_scope.app_id,
    shown_relations_of_scope.run_id,
    shown_relations_of_scope.believed_at,
    shown_relations_of_scope.true_at
) AS r
CROSS JOIN LATERAL (SELECT e.name FROM shown_entities AS e WHERE e.entity_id = r.subject_id LIMIT 1) AS subject
CROSS JOIN LATERAL (SELECT e.name FROM shown_entities AS e WHERE e.entity_id = r.object_id LIMIT 1) AS object
WHERE (r.is_active AND shown_relations_of_scope.believed_at IS NULL)
    OR EXISTS (SELECT FROM unnest(r.evidence) AS said (fact_id) WHERE NOT fact_is_hidden(said.fact_id));
END;
COMMENT ON FUNCTION shown_relations_of_scope IS
'The relations of exactly one scope that readers see, at two times as relations_of_scope has them, with the names of both '
'ends: those that a fact states that was not taken back since, between entities that readers see now.';
