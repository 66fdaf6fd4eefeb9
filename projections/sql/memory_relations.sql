-- name: relations_at
-- The client's query of relations that hold, read from both ends.
CREATE OR REPLACE FUNCTION memory.relations_at(
    believed_at timestamptz DEFAULT NULL,
    true_at timestamptz DEFAULT NULL,
    {scope_parameters}
) RETURNS SETOF memory.relationships LANGUAGE plpgsql STABLE ROWS 100
{settings}
AS $$
#variable_conflict use_column
BEGIN
    PERFORM memory.check_scope(tenant, user_id, agent_id, app_id, run_id);
    RETURN QUERY
    SELECT
        known.tenant,
        known.user_id,
        known.agent_id,
        known.app_id,
        known.run_id,
        known.subject_id,
        known.subject,
        known.predicate,
        known.object_id,
        known.object,
        known.is_active,
        known.is_mirror,
        known.strength,
        known.since,
        known.until,
        known.recorded_at,
        known.evidence,
        known.endings
    FROM ({query}) AS known;
END
$$;
COMMENT ON FUNCTION memory.relations_at IS
'The relations that were known at believed_at to hold at true_at, each read from both ends, the oldest first. Without '
'believed_at it is what is known now, and true_at is believed_at where it is not given. Entities are those of now, and '
'what was taken back since is left out.';

-- name: entity
-- The client's query of entities with a name.
CREATE OR REPLACE FUNCTION memory.entity(
    called text,
    {scope_parameters}
) RETURNS TABLE (
    entity_id uuid,
    name text,
    type text,
    is_user boolean,
    aliases text [],
    facts bigint,
    possible_twins uuid [],
    recorded_at timestamptz
) LANGUAGE plpgsql STABLE ROWS 1
{settings}
AS $$
#variable_conflict use_column
BEGIN
    PERFORM memory.check_scope(tenant, user_id, agent_id, app_id, run_id);
    PERFORM memory.check_given('called', called IS NOT NULL);
    RETURN QUERY
    SELECT
        found.entity_id,
        found.name,
        found.type,
        found.is_user,
        found.aliases,
        found.facts,
        found.possible_twins,
        found.recorded_at
    FROM ({query}) AS found;
END
$$;
COMMENT ON FUNCTION memory.entity IS
'The people, places and things that are called so, in any case, or whose id begins so, at most 20: their other names, how '
'many current facts name them, and those that may be the same.';

-- name: neighbours
-- Who and what is related to an entity.
CREATE OR REPLACE FUNCTION memory.neighbours(
    entity uuid,
    hops integer DEFAULT 1,
    believed_at timestamptz DEFAULT NULL,
    true_at timestamptz DEFAULT NULL,
    tenant text DEFAULT 'default'
) RETURNS TABLE (
    entity_id uuid,
    name text,
    distance integer,
    predicates text [],
    through_id uuid,
    through text
) LANGUAGE plpgsql STABLE ROWS 20
{settings}
AS $$
#variable_conflict use_column
BEGIN
    PERFORM memory.check_given('entity', entity IS NOT NULL);
    IF hops IS NULL OR hops NOT BETWEEN 1 AND 2 THEN
        RAISE EXCEPTION 'hops is %', coalesce(hops::text, 'NULL')
        USING ERRCODE = 'invalid_parameter_value', HINT = 'Choose 1 or 2.';
    END IF;
    RETURN QUERY
    WITH held AS MATERIALIZED (
        SELECT
            r.*,
            row_number() OVER (
                ORDER BY r.recorded_at, r.ordinal, r.is_mirror, r.predicate, r.subject_id, r.object_id
            ) AS number
        FROM (
            SELECT e.* FROM shown_entities AS e
            WHERE e.entity_id = neighbours.entity AND e.tenant = neighbours.tenant
            LIMIT 1
        ) AS one
        CROSS JOIN LATERAL shown_relations_of_scope(
            one.tenant, one.user_id, one.agent_id, one.app_id, one.run_id, neighbours.believed_at, neighbours.true_at
        ) AS r
        WHERE r.is_active
    ),

    near AS (
        SELECT DISTINCT ON (held.object_id) held.object_id, held.object, held.predicate, held.number
        FROM held
        WHERE held.subject_id = neighbours.entity
        ORDER BY held.object_id, held.number
    ),

    far AS (
        SELECT DISTINCT ON (held.object_id)
            held.object_id, held.object, ARRAY[near.predicate, held.predicate] AS predicates, near.object_id AS through_id,
            near.object AS through, near.number AS first, held.number
        FROM near
        INNER JOIN held ON near.object_id = held.subject_id
        WHERE neighbours.hops = 2
            AND held.object_id <> neighbours.entity
            AND held.object_id NOT IN (SELECT other.object_id FROM near AS other)
        ORDER BY held.object_id, near.number, held.number
    )

    SELECT found.object_id, found.object, found.distance, found.predicates, found.through_id, found.through
    FROM (
        SELECT near.object_id, near.object, 1 AS distance, ARRAY[near.predicate] AS predicates, NULL::uuid AS through_id,
            NULL::text AS through, near.number AS first, 0 AS number
        FROM near
        UNION ALL
        SELECT far.object_id, far.object, 2, far.predicates, far.through_id, far.through, far.first, far.number
        FROM far
    ) AS found
    ORDER BY found.distance, found.first, found.number;
END
$$;
COMMENT ON FUNCTION memory.neighbours IS
'Who and what is related to an entity, or at 2 hops also to those, over relations that hold at the times that relations_at '
'takes: each once, the nearest first, with the predicates of the shortest way and whom it leads through. No row where the '
'tenant has no such entity.';

-- name: who
-- Who is to somebody what a word says.
CREATE OR REPLACE FUNCTION memory.who(
    tie text,
    whose uuid DEFAULT NULL,
    believed_at timestamptz DEFAULT NULL,
    true_at timestamptz DEFAULT NULL,
    {scope_parameters}
) RETURNS TABLE (
    entity_id uuid,
    name text,
    whose_id uuid,
    predicate text
) LANGUAGE plpgsql STABLE ROWS 5
{settings}
AS $$
#variable_conflict use_column
DECLARE
    bare CONSTANT text := regexp_replace(lower(trim(regexp_replace(tie, '\s+', ' ', 'g'))), {whose}, '');
    said_tie CONSTANT text := (
        SELECT known.tie ->> 0
        FROM unnest(ARRAY[bare, regexp_replace(bare, {adjectives}, '')]) WITH ORDINALITY AS form (words, number)
        CROSS JOIN jsonb_array_elements({ties}) WITH ORDINALITY AS known (tie, number)
        WHERE regexp_replace(form.words, {after_tie}, '') ~ ('^(?:' || (known.tie ->> 1) || ')$')
        ORDER BY form.number, known.number
        LIMIT 1
    );
    word CONSTANT text := coalesce(said_tie, trim('_' FROM regexp_replace(bare, '[^a-z0-9]+', '_', 'g')));
    asked CONSTANT text := coalesce({predicates} ->> word, word);
BEGIN
    PERFORM memory.check_scope(tenant, user_id, agent_id, app_id, run_id);
    PERFORM memory.check_given('tie', tie IS NOT NULL);
    RETURN QUERY
    WITH owners AS (
        SELECT DISTINCT f.tenant, f.user_id, f.agent_id, f.app_id, f.run_id, own.entity_id
        FROM scopes AS f
        INNER JOIN current_entity_names AS own
            ON (f.tenant, f.user_id, f.agent_id, f.app_id, f.run_id)
            = (own.tenant, own.user_id, own.agent_id, own.app_id, own.run_id)
        WHERE {scope}
            AND (
                (who.whose IS NULL AND own.head = '@user' AND own.kind = 'user')
                OR own.entity_id = who.whose
            )
    ),

    related AS (
        SELECT r.subject_id, r.object_id, r.object, r.recorded_at, r.ordinal
        FROM (SELECT DISTINCT o.tenant, o.user_id, o.agent_id, o.app_id, o.run_id FROM owners AS o) AS f
        CROSS JOIN LATERAL shown_relations_of_scope(
            f.tenant, f.user_id, f.agent_id, f.app_id, f.run_id, who.believed_at, who.true_at
        ) AS r
        WHERE r.is_active AND r.predicate = asked AND r.subject_id IN (SELECT o.entity_id FROM owners AS o)
        UNION ALL
        SELECT o.entity_id, shown.entity_id, shown.name, given.recorded_at, 0
        FROM owners AS o
        INNER JOIN current_entity_names AS given
            ON (o.tenant, o.user_id, o.agent_id, o.app_id, o.run_id)
            = (given.tenant, given.user_id, given.agent_id, given.app_id, given.run_id)
            AND given.current_key = said_tie || ' of ' || o.entity_id::text
        INNER JOIN shown_entities AS shown ON given.entity_id = shown.entity_id
        WHERE given.head = '@' || said_tie
            AND given.kind = 'tie'
            AND given.recorded_at <= coalesce(who.believed_at, 'infinity')
            AND EXISTS (SELECT FROM entity_changes AS told WHERE told.event_id = given.event_id)
    ),

    tied AS (
        SELECT DISTINCT ON (r.subject_id, r.object_id) r.*
        FROM related AS r
        ORDER BY r.subject_id, r.object_id, r.recorded_at, r.ordinal
    ),

    called AS (
        SELECT
            tied.*,
            ARRAY(
                SELECT split_part(n.current_key, ' ', 1)
                FROM shown_entity_names AS n
                WHERE n.entity_id = tied.object_id AND n.kind = 'tie'
                    AND n.current_key LIKE '% of ' || tied.subject_id::text
            ) AS ties
        FROM tied
    )

    SELECT called.object_id, called.object, called.subject_id, asked
    FROM called
    WHERE word = asked
        OR called.ties @> ARRAY[word]
        OR (cardinality(called.ties) = 0 AND NOT EXISTS (
            SELECT FROM called AS other WHERE other.subject_id = called.subject_id AND other.ties @> ARRAY[word]
        ))
    ORDER BY called.recorded_at, called.ordinal, called.object_id;
END
$$;
COMMENT ON FUNCTION memory.who IS
'Who or what is to somebody what a word says: "my wife", "boss", "employer"; to the user, or to the entity whose. It '
'follows from relations that hold at the times that relations_at takes, and from ties that a person gave. Of several with one predicate (a dog and a cat are '
'both owned) those are meant who are called so, if any are, else those who are called nothing else.';
