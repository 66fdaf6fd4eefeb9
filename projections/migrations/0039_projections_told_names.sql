-- name: projections_told_names
-- What only facts tell that were taken back is shown by no reader: names, twins, relations and proposed merges.

CREATE FUNCTION has_name(said text, name text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN strpos(lower(said), lower(name)) = 0 THEN false
    -- Scripts that put no space between words, and Korean, whose words have endings.
    WHEN name ~ '[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]' THEN true
    WHEN strpos(' ' || translate(lower(said), '.,:;!?()"', '         ') || ' ', ' ' || lower(name) || ' ') > 0 THEN true
    ELSE EXISTS (SELECT FROM named_in(said, ARRAY[name]))
END;
COMMENT ON FUNCTION has_name IS
'Whether a text has a name in it as whole words, in whatever form: "Diana" has no "Ana", and "Ana''s" has.';

CREATE OR REPLACE VIEW current_entity_names AS
SELECT
    coalesce(e.merged_into, e.entity_id) AS entity_id,
    a.kind,
    a.key,
    a.head,
    a.alias,
    a.place,
    a.event_id,
    a.recorded_at,
    a.tenant,
    a.user_id,
    a.agent_id,
    a.app_id,
    a.run_id,
    CASE
        WHEN a.kind = 'tie' AND right(a.key, 36) ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN coalesce(
            (
                SELECT left(a.key, -36) || coalesce(holder.merged_into, holder.entity_id)::text
                FROM entities AS holder
                WHERE holder.entity_id = coalesce(
                    (
                        SELECT CASE WHEN count(*) = count(whose.moved_to) THEN min(whose.moved_to::text)::uuid END
                        FROM facts
                        INNER JOIN fact_entities AS named ON facts.fact_id = named.fact_id
                        INNER JOIN fact_entities AS whose ON facts.fact_id = whose.fact_id
                        WHERE facts.owner = a.owner AND facts.source_id = a.source_id
                            AND named.entity_id = a.entity_id AND whose.entity_id = right(a.key, 36)::uuid
                    ),
                    right(a.key, 36)::uuid
                )
            ),
            a.key
        )
        ELSE a.key
    END AS current_key,
    a.owner,
    a.source_id,
    e.merged_into IS NOT NULL AS is_merged
FROM entity_aliases AS a
INNER JOIN entities AS e ON a.entity_id = e.entity_id
WHERE a.is_current;
COMMENT ON VIEW current_entity_names IS
'The names of entities as they are now: those of a merged one (is_merged) are of the other. In current_key a tie to an '
'entity that was merged ("wife of <id>"), or from which a split has moved what told it, is one to the other.';

CREATE FUNCTION name_is_told(of_entity uuid, name text, of_owner text, of_source text) RETURNS boolean
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
WITH of_source AS (
    SELECT
        f.fact_id,
        has_name(concat_ws(' ', f.text, f.subject, f.excerpt, f.value), name_is_told.name) AS has_it,
        EXISTS (
            SELECT FROM current_entity_links AS link
            WHERE link.fact_id = f.fact_id AND link.entity_id = name_is_told.of_entity
        ) AS is_linked
    FROM facts AS f
    WHERE f.owner = name_is_told.of_owner AND f.source_id = name_is_told.of_source
),

telling AS (
    SELECT said.fact_id
    FROM of_source AS said
    WHERE (said.is_linked, said.has_it) = (
        SELECT best.is_linked, best.has_it
        FROM of_source AS best
        ORDER BY best.is_linked DESC, best.has_it DESC
        LIMIT 1
    )
    AND (
        said.has_it
        -- The user is called by what is no word of the turn: by who speaks, or by what was told before.
        OR NOT EXISTS (
            SELECT FROM entity_aliases AS own
            WHERE own.entity_id = name_is_told.of_entity AND own.kind = 'user' AND own.is_current
        )
    )
)

SELECT
    EXISTS (SELECT FROM telling WHERE NOT fact_is_hidden(telling.fact_id))
    OR EXISTS (
        SELECT
        FROM current_entity_links AS link
        CROSS JOIN LATERAL (SELECT * FROM facts WHERE facts.fact_id = link.fact_id OFFSET 0) AS f
        WHERE link.entity_id = name_is_told.of_entity
            AND has_name(concat_ws(' ', f.text, f.subject, f.excerpt, f.value), name_is_told.name)
            AND NOT fact_is_hidden(f.fact_id)
    );
END;
COMMENT ON FUNCTION name_is_told IS
'Whether a fact tells a name that was not taken back: a fact of its turn that names the entity, one with the name in its '
'words if there is any; or any other one that names the entity and has the name in its words.';

CREATE OR REPLACE VIEW shown_entity_names AS
SELECT
    n.entity_id,
    n.kind,
    n.key,
    n.head,
    CASE
        WHEN n.kind <> 'user' OR s.speakers @> ARRAY[n.alias] OR name_is_told(n.entity_id, n.alias, n.owner, n.source_id)
            THEN n.alias
        ELSE 'the user'
    END AS alias,
    n.place,
    n.event_id,
    n.recorded_at,
    n.tenant,
    n.user_id,
    n.agent_id,
    n.app_id,
    n.run_id,
    n.current_key,
    n.owner,
    n.source_id
FROM current_entity_names AS n
LEFT JOIN scopes AS s
    ON n.tenant = s.tenant AND n.user_id = s.user_id AND n.agent_id = s.agent_id AND n.app_id = s.app_id
    AND n.run_id = s.run_id
WHERE n.kind = 'user'
    OR n.is_merged
    OR EXISTS (SELECT FROM entity_changes AS given WHERE given.event_id = n.event_id)
    OR (
        s.speakers @> ARRAY[n.alias]
        AND EXISTS (
            SELECT FROM entity_aliases AS own
            WHERE own.entity_id = n.entity_id AND own.kind = 'user' AND own.is_current
        )
    )
    OR name_is_told(n.entity_id, n.alias, n.owner, n.source_id);
COMMENT ON VIEW shown_entity_names IS
'The names of entities that readers see: those by which the user speaks, those that a person gave, or of what a person '
'merged, and those that a fact tells that was not taken back. A name of an entity that readers do not see is none.';

CREATE OR REPLACE VIEW shown_entities AS
SELECT
    e.entity_id,
    e.owner,
    e.tenant,
    e.user_id,
    e.agent_id,
    e.app_id,
    e.run_id,
    (
        SELECT coalesce(
            min(e.name) FILTER (WHERE has_name(n.alias, e.name)),
            (array_agg(n.alias ORDER BY n.kind = 'user', n.recorded_at, n.place, n.kind, n.key))[1],
            concat_ws(' ', 'unnamed', nullif(e.type, 'other'))
        )
        FROM shown_entity_names AS n
        WHERE n.entity_id = e.entity_id
    ) AS name,
    e.type,
    e.event_id,
    e.source_id,
    e.recorded_at,
    e.ordinal
FROM entities AS e
WHERE e.status = 'active'
    AND (
        EXISTS (SELECT FROM current_entity_names AS own WHERE own.entity_id = e.entity_id AND own.kind = 'user')
        OR EXISTS (
            SELECT FROM current_entity_links AS link
            WHERE link.entity_id = e.entity_id AND NOT fact_is_hidden(link.fact_id)
        )
        OR (
            NOT EXISTS (SELECT FROM current_entity_links AS link WHERE link.entity_id = e.entity_id)
            AND EXISTS (
                SELECT FROM facts AS f
                WHERE (f.owner, f.source_id) = (e.owner, e.source_id) AND NOT fact_is_hidden(f.fact_id)
            )
        )
    );
COMMENT ON VIEW shown_entities IS
'The entities that readers see: the user, and those that a fact names that was not taken back. One has the oldest of its '
'shown names where none of them has its own in it, and is unnamed where it has none.';

CREATE VIEW shown_entity_twins AS
SELECT twins.*
FROM current_entity_twins AS twins
CROSS JOIN LATERAL (SELECT FROM shown_entities AS e WHERE e.entity_id = twins.twin_id LIMIT 1) AS shown;
COMMENT ON VIEW shown_entity_twins IS 'The possible twins of entities that readers see.';

CREATE FUNCTION shown_relations_of_scope(
    tenant text, user_id text, agent_id text, app_id text, run_id text
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
    shown_relations_of_scope.run_id
) AS r
CROSS JOIN LATERAL (SELECT e.name FROM shown_entities AS e WHERE e.entity_id = r.subject_id LIMIT 1) AS subject
CROSS JOIN LATERAL (SELECT e.name FROM shown_entities AS e WHERE e.entity_id = r.object_id LIMIT 1) AS object
WHERE r.is_active
    OR EXISTS (SELECT FROM unnest(r.evidence) AS said (fact_id) WHERE NOT fact_is_hidden(said.fact_id));
END;
COMMENT ON FUNCTION shown_relations_of_scope IS
'The relations of exactly one scope that readers see, with the names of both ends: those that a fact states that was not '
'taken back, between entities that readers see.';

CREATE OR REPLACE VIEW merge_proposals AS
SELECT
    proposed.event_id,
    proposed.owner,
    proposed.source_id,
    proposed.tenant,
    proposed.user_id,
    proposed.agent_id,
    proposed.app_id,
    proposed.run_id,
    merged.entity_id AS merged,
    target.entity_id AS into_id,
    coalesce(shown_merged.name, 'unnamed') AS merged_name,
    coalesce(shown_target.name, 'unnamed') AS into_name,
    proposed.payload -> 'decision' ->> 'by' AS decided_by,
    proposed.payload -> 'decision' ->> 'reason' AS reason,
    proposed.decided_at,
    proposed.partition,
    proposed.log_offset,
    proposed.ordinal,
    proposed.undone_by IS NULL
    AND shown_merged.name IS NOT NULL
    AND shown_target.name IS NOT NULL
    AND merged.entity_id <> target.entity_id
    AND NOT EXISTS (
        SELECT
        FROM entity_changes AS settled
        WHERE settled.entity_ids && proposed.entity_ids
            AND settled.undone_by IS NULL
            AND settled.event IN ('entities_merged', 'merge_rejected')
            AND settled.payload ->> 'proposal' = proposed.event_id::text
    ) AS is_pending
FROM entity_changes AS proposed
INNER JOIN entities AS one ON one.entity_id = (proposed.payload ->> 'merged')::uuid
INNER JOIN entities AS other ON other.entity_id = (proposed.payload ->> 'into')::uuid
INNER JOIN entities AS merged ON coalesce(one.merged_into, one.entity_id) = merged.entity_id
INNER JOIN entities AS target ON coalesce(other.merged_into, other.entity_id) = target.entity_id
LEFT JOIN LATERAL (
    SELECT e.name FROM shown_entities AS e WHERE e.entity_id = merged.entity_id LIMIT 1
) AS shown_merged ON true
LEFT JOIN LATERAL (
    SELECT e.name FROM shown_entities AS e WHERE e.entity_id = target.entity_id LIMIT 1
) AS shown_target ON true
WHERE proposed.event = 'merge_proposed';
COMMENT ON VIEW merge_proposals IS
'Merges of two entities that a rule proposed, of the entities as they are now. One is pending until a person confirms or '
'rejects it, the turn that it came of is undone, or readers see one of the entities no more.';

CREATE FUNCTION names_in_change(entity_ids uuid []) RETURNS jsonb LANGUAGE sql STABLE PARALLEL SAFE
RETURN (
    WITH members AS (
        SELECT DISTINCT
            member.entity_id,
            member.name,
            member.registered_name,
            coalesce(member.merged_into, member.entity_id) AS head
        FROM unnest(names_in_change.entity_ids) AS given (entity_id)
        CROSS JOIN LATERAL (SELECT * FROM entities WHERE entities.entity_id = given.entity_id OFFSET 0) AS named
        CROSS JOIN LATERAL (
            SELECT * FROM entities AS part
            WHERE coalesce(part.merged_into, part.entity_id) = coalesce(named.merged_into, named.entity_id)
            OFFSET 0
        ) AS member
    ),

    said AS (
        SELECT members.head, members.name FROM members
        UNION
        SELECT members.head, members.registered_name FROM members WHERE members.registered_name IS NOT NULL
        UNION
        SELECT members.head, a.alias
        FROM members
        CROSS JOIN LATERAL (
            SELECT * FROM entity_aliases WHERE entity_aliases.entity_id = members.entity_id OFFSET 0
        ) AS a
    ),

    shown AS (
        SELECT DISTINCT e.entity_id, n.alias
        FROM (SELECT DISTINCT members.head FROM members) AS heads
        CROSS JOIN LATERAL (
            SELECT * FROM shown_entities WHERE shown_entities.entity_id = heads.head OFFSET 0
        ) AS e
        CROSS JOIN LATERAL (
            SELECT shown_entity_names.alias FROM shown_entity_names WHERE shown_entity_names.entity_id = e.entity_id
            UNION ALL
            SELECT e.name
        ) AS n
    )

    SELECT coalesce(jsonb_object_agg(each.name, each.is_shown), '{}')
    FROM (
        SELECT said.name, bool_or(shown.alias IS NOT NULL) AS is_shown
        FROM said
        LEFT JOIN shown ON said.head = shown.entity_id AND said.name = shown.alias
        GROUP BY said.name
    ) AS each
);
COMMENT ON FUNCTION names_in_change IS
'What the reason of a change of these entities may call them: every name that they have or had, each with whether readers '
'see it.';
