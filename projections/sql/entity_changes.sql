-- name: known_changes
-- The scopes of these changes of entities.
SELECT event_id, {{scope_ids}}
FROM entity_changes
WHERE event_id = ANY(%(event_ids)s::uuid []);

-- name: add_changes
-- Add what persons decided about entities.
INSERT INTO entity_changes ({columns})
SELECT {values}
FROM {given};

-- name: undo_changes
-- Mark changes as undone by an undo, or as in effect again.
UPDATE entity_changes SET undone_by = turned.undone_by
FROM unnest(%(event_id)s::uuid [], %(undone_by)s::uuid []) AS turned (event_id, undone_by)
WHERE entity_changes.event_id = turned.event_id;

-- name: named_by_facts
-- The entities that these facts name, or named before a split, and the entities that got a name from their sources.
SELECT entity_id FROM fact_entities WHERE fact_id = ANY(%(fact_ids)s::uuid [])
UNION
SELECT moved_to FROM fact_entities WHERE fact_id = ANY(%(fact_ids)s::uuid []) AND moved_to IS NOT NULL
UNION
SELECT alias.entity_id
FROM facts
INNER JOIN entity_aliases AS alias ON facts.owner = alias.owner AND facts.source_id = alias.source_id
WHERE facts.fact_id = ANY(%(fact_ids)s::uuid []);

-- name: entities_of_repetitions
-- The entities that these repetitions named.
SELECT entity_id FROM fact_entities WHERE told_by = ANY(%(event_ids)s::uuid [])
UNION
SELECT moved_to FROM fact_entities WHERE told_by = ANY(%(event_ids)s::uuid []) AND moved_to IS NOT NULL
UNION
SELECT entity_id FROM entity_aliases WHERE told_by = ANY(%(event_ids)s::uuid []);

-- name: derived_entities
-- The entities whose state is not, or may not be, that of a new entity.
SELECT unnest(entity_ids) AS entity_id FROM entity_changes
UNION
SELECT entity_id FROM entities WHERE status <> 'active'
UNION
SELECT link.entity_id
FROM facts
INNER JOIN fact_entities AS link ON facts.fact_id = link.fact_id
WHERE facts.status = 'undone'
UNION
SELECT alias.entity_id
FROM facts
INNER JOIN entity_aliases AS alias ON facts.owner = alias.owner AND facts.source_id = alias.source_id
WHERE facts.status = 'undone'
UNION
SELECT link.entity_id
FROM undone
INNER JOIN fact_entities AS link ON undone.event_id = link.told_by
UNION
SELECT alias.entity_id
FROM undone
INNER JOIN entity_aliases AS alias ON undone.event_id = alias.told_by
UNION
SELECT entity_id FROM fact_entities WHERE type IS NOT NULL
UNION
SELECT own.entity_id
FROM entity_aliases AS own
INNER JOIN entity_aliases AS other ON own.entity_id = other.entity_id
WHERE own.is_own AND own.kind = 'tie' AND other.kind = 'name'
ORDER BY entity_id;

-- name: connected
-- These entities, and all that changes connect them to.
WITH RECURSIVE found AS (
    SELECT unnest(%(entity_ids)s::uuid []) AS entity_id
    UNION
    SELECT unnest(changes.entity_ids)
    FROM found
    INNER JOIN entity_changes AS changes ON changes.entity_ids @> ARRAY[found.entity_id]
)
SELECT entity_id FROM found;

-- name: changes_of_entities
-- The changes that name one of these entities, in the order of the log; undos left out.
SELECT
    payload, log_offset,
    undone_by IS NULL AS in_effect
FROM entity_changes
WHERE entity_ids && %(entity_ids)s::uuid [] AND event_id = original_id
ORDER BY partition, log_offset, ordinal;

-- name: registered_entities
-- These entities as they were registered, and whether a fact that was not undone names them or is of their source.
SELECT
    e.entity_id, e.event_id,
    coalesce(e.registered_name, e.name) AS name,
    coalesce(e.registered_type, e.type) AS type,
    EXISTS (SELECT FROM entity_aliases AS a WHERE a.entity_id = e.entity_id AND a.kind = 'user') AS is_user,
    CASE
        WHEN EXISTS (SELECT FROM fact_entities AS link WHERE link.entity_id = e.entity_id)
            THEN EXISTS (
                SELECT
                FROM fact_entities AS link
                INNER JOIN facts ON link.fact_id = facts.fact_id
                WHERE link.entity_id = e.entity_id AND facts.status <> 'undone'
                    AND (link.told_by IS NULL OR NOT EXISTS (SELECT FROM undone WHERE undone.event_id = link.told_by))
            )
        ELSE EXISTS (
            SELECT
            FROM facts
            WHERE facts.owner = e.owner AND facts.source_id = e.source_id AND facts.status <> 'undone'
        )
    END AS is_named
FROM entities AS e
WHERE e.entity_id = ANY(%(entity_ids)s::uuid []);

-- name: given_aliases
-- All names of these entities, and whether what told of them was not undone: a fact of their source that names the
-- entity, or, where none of it does, any fact of it; of what a repetition told, the repetition; and of what a person gave,
-- that. A fact that named the entity by this proper name and no other one, or by this tie, before what told it was undone,
-- has said it anew. Later ones tell it themselves.
SELECT
    a.entity_id, a.kind, a.key, a.alias, a.place, a.event_id, a.log_offset, a.is_own,
    teller.holds OR (
        a.kind <> 'user' AND EXISTS (
            SELECT
            FROM fact_entities AS link
            INNER JOIN facts AS f ON link.fact_id = f.fact_id
            CROSS JOIN LATERAL (SELECT concat_ws(' ', f.text, f.subject, f.excerpt, f.value) AS words) AS again
            WHERE link.entity_id = a.entity_id
                AND f.status <> 'undone'
                AND f.recorded_at < teller.undone_at
                AND NOT EXISTS (SELECT FROM undone WHERE undone.event_id = link.told_by)
                AND has_name(again.words, a.alias)
                AND NOT EXISTS (
                    SELECT FROM entity_aliases AS other
                    WHERE a.kind = 'name' AND other.kind = 'name' AND other.entity_id = a.entity_id AND other.key <> a.key
                        AND has_name(again.words, other.alias) AND NOT has_name(a.alias, other.alias)
                )
        )
    ) AS is_said
FROM entity_aliases AS a
LEFT JOIN undone AS repetition ON a.told_by = repetition.event_id
LEFT JOIN entity_changes AS given ON a.event_id = given.event_id
LEFT JOIN entity_changes AS taken ON given.undone_by = taken.event_id
CROSS JOIN LATERAL (
    SELECT
        bool_or(facts.status <> 'undone') AS told,
        bool_or(link.fact_id IS NOT NULL) AS linked,
        bool_or(link.fact_id IS NOT NULL AND facts.status <> 'undone') AS told_of_it,
        max(facts.believed_to) FILTER (WHERE facts.status = 'undone') AS undone_at
    FROM facts
    LEFT JOIN fact_entities AS link ON facts.fact_id = link.fact_id AND a.entity_id = link.entity_id
    WHERE facts.owner = a.owner AND facts.source_id = a.source_id
) AS said
CROSS JOIN LATERAL (
    SELECT
        CASE
            WHEN repetition.event_id IS NOT NULL OR given.undone_by IS NOT NULL THEN false
            WHEN said.linked THEN said.told_of_it
            ELSE said.told IS NOT false
        END AS holds,
        coalesce(repetition.since, taken.decided_at, said.undone_at) AS undone_at
) AS teller
WHERE a.entity_id = ANY(%(entity_ids)s::uuid []);

-- name: given_types
-- What facts that were not undone told that these entities are, where nobody had told it before, or repetitions of them
-- that were not; the first fact first.
SELECT link.fact_id, link.entity_id, link.type
FROM fact_entities AS link
INNER JOIN facts ON link.fact_id = facts.fact_id
WHERE link.entity_id = ANY(%(entity_ids)s::uuid []) AND link.type IS NOT NULL AND facts.status <> 'undone'
    AND (link.told_by IS NULL OR NOT EXISTS (SELECT FROM undone WHERE undone.event_id = link.told_by))
ORDER BY facts.recorded_at, facts.ordinal, link.fact_id, link.entity_id, link.role, link.event_id;

-- name: links_of_facts
-- What these facts were linked to at first.
SELECT DISTINCT fact_id, entity_id
FROM fact_entities
WHERE fact_id = ANY(%(fact_ids)s::uuid []);

-- name: update_entities
-- Give entities their current names, types and states.
UPDATE entities SET
    name = derived.name,
    type = derived.type,
    status = derived.status,
    merged_into = derived.merged_into,
    shown_name = CASE WHEN derived.status = 'active' THEN entities.shown_name END
FROM unnest(
    %(entity_id)s::uuid [], %(name)s::text [], %(type)s::text [], %(status)s::text [], %(merged_into)s::uuid []
) AS derived (entity_id, name, type, status, merged_into)
WHERE entities.entity_id = derived.entity_id
    AND (entities.name, entities.type, entities.status, entities.merged_into)
    IS DISTINCT FROM (derived.name, derived.type, derived.status, derived.merged_into);

-- name: update_aliases
-- Give the names of entities to the entities that have them now. A name that none has is shown to nobody.
UPDATE entity_aliases SET
    current_id = derived.current_id,
    shown = CASE WHEN derived.current_id IS NOT NULL THEN entity_aliases.shown END
FROM unnest(
    %(entity_id)s::uuid [], %(kind)s::text [], %(key)s::text [], %(event_id)s::uuid [], %(current_id)s::uuid []
) AS derived (entity_id, kind, key, event_id, current_id)
WHERE (entity_aliases.entity_id, entity_aliases.kind, entity_aliases.key, entity_aliases.event_id)
    = (derived.entity_id, derived.kind, derived.key, derived.event_id)
    AND entity_aliases.current_id IS DISTINCT FROM derived.current_id;

-- name: update_links
-- Say which entities splits have moved facts to.
UPDATE fact_entities SET moved_to = derived.moved_to
FROM unnest(
    %(fact_id)s::uuid [], %(entity_id)s::uuid [], %(moved_to)s::uuid []
) AS derived (fact_id, entity_id, moved_to)
WHERE (fact_entities.fact_id, fact_entities.entity_id) = (derived.fact_id, derived.entity_id)
    AND fact_entities.moved_to IS DISTINCT FROM derived.moved_to;

-- name: update_current_links
-- Let the links to these entities lead to what the entities are now.
UPDATE fact_entities SET current_id = derived.current_id
FROM (
    SELECT
        link.fact_id, link.entity_id, link.role, link.event_id,
        CASE
            WHEN e.status <> 'forgotten' AND NOT EXISTS (SELECT FROM undone WHERE undone.event_id = link.told_by)
                THEN e.head_id
        END AS current_id
    FROM fact_entities AS link
    INNER JOIN entities AS e ON e.entity_id = coalesce(link.moved_to, link.entity_id)
    WHERE link.entity_id = ANY(%(entity_ids)s::uuid [])
) AS derived
WHERE (fact_entities.fact_id, fact_entities.entity_id, fact_entities.role, fact_entities.event_id)
    = (derived.fact_id, derived.entity_id, derived.role, derived.event_id)
    AND fact_entities.current_id IS DISTINCT FROM derived.current_id;

-- name: update_hidden_facts
-- Say of these facts, and of those that they took the place of, whether they are hidden; gives the facts that changed.
UPDATE facts SET is_hidden = NOT is_hidden
WHERE (
    fact_id = ANY(%(fact_ids)s::uuid [])
    OR superseded_by = ANY(%(fact_ids)s::uuid [])
    OR fact_id = ANY(ARRAY(
        SELECT former.fact_id FROM former_states AS former WHERE former.event_id = ANY(%(event_ids)s::uuid [])
    ))
) AND is_hidden <> fact_is_hidden(fact_id)
RETURNING fact_id;

-- name: hide_all_facts
-- Mark every hidden fact, and no other, which a rebuild may have marked before it was interrupted.
UPDATE facts SET is_hidden = NOT is_hidden
WHERE (is_hidden OR status NOT IN ('active', 'pending_confirmation')) AND is_hidden <> fact_is_hidden(fact_id);

-- name: active_entities
-- Every entity that readers may see.
SELECT entity_id FROM entities WHERE status = 'active' ORDER BY entity_id;

-- name: update_ties
-- Let the ties of these entities and to them name whom they are to now: of a holder that was merged the other one, and
-- where a split has moved all that told the tie the new one.
UPDATE entity_aliases SET current_key = derived.current_key
FROM (
    SELECT
        tie.entity_id, tie.key, tie.event_id,
        left(tie.key, -36) || holder.head_id::text AS current_key
    FROM entity_aliases AS tie
    CROSS JOIN LATERAL (
        SELECT CASE WHEN count(*) = count(whose.moved_to) THEN min(whose.moved_to::text)::uuid END AS holder_id
        FROM facts
        INNER JOIN fact_entities AS named ON facts.fact_id = named.fact_id
        INNER JOIN fact_entities AS whose ON facts.fact_id = whose.fact_id
        WHERE facts.owner = tie.owner AND facts.source_id = tie.source_id
            AND named.entity_id = tie.entity_id AND whose.entity_id = holder_of_tie(tie.key)
    ) AS moved
    INNER JOIN entities AS holder ON holder.entity_id = coalesce(moved.holder_id, holder_of_tie(tie.key))
    WHERE tie.kind = 'tie'
        AND (tie.entity_id = ANY(%(entity_ids)s::uuid []) OR holder_of_tie(tie.key) = ANY(%(entity_ids)s::uuid []))
) AS derived
WHERE (entity_aliases.entity_id, entity_aliases.kind, entity_aliases.key, entity_aliases.event_id)
    = (derived.entity_id, 'tie', derived.key, derived.event_id)
    AND entity_aliases.current_key <> derived.current_key;

-- name: update_shown_names
-- Say what readers see of the names of these entities, and of entities that a repetition told of a fact first. A fact
-- tells a name where it names the entity and has the name in its words. Where no fact does, the facts of the turn tell it
-- that gave the name: those that name the entity if there are any, with the name in their words if there are any; the
-- user is called by what is no word of the turn: by who speaks, or by what was told before.
WITH heads AS (
    SELECT e.head_id FROM entities AS e WHERE e.entity_id = ANY(%(entity_ids)s::uuid [])
    UNION
    SELECT link.current_id
    FROM fact_entities AS link
    WHERE link.told_by = ANY(%(repetitions)s::uuid [])
        AND NOT EXISTS (
            SELECT FROM fact_entities AS other
            WHERE other.fact_id = link.fact_id AND other.current_id = link.current_id AND other.told_by IS NULL
        )
)

UPDATE entity_aliases SET shown = derived.shown
FROM (
    SELECT
        n.entity_id, n.kind, n.key, n.event_id,
        CASE
            WHEN
                EXISTS (
                    SELECT
                    FROM fact_entities AS link
                    CROSS JOIN LATERAL (SELECT * FROM facts WHERE facts.fact_id = link.fact_id OFFSET 0) AS f
                    WHERE link.current_id = n.current_id
                        AND NOT f.is_hidden
                        AND has_name(concat_ws(' ', f.text, f.subject, f.excerpt, f.value), n.alias)
                )
                OR (own.is_user AND EXISTS (
                    SELECT FROM scopes WHERE {{same_scope scopes n}} AND scopes.speakers @> ARRAY[n.alias]
                ))
                OR (
                    SELECT bool_or(NOT said.is_hidden AND (said.has_it OR NOT own.is_user))
                    FROM (
                        SELECT
                            of_turn.is_hidden, of_turn.has_it,
                            rank() OVER (ORDER BY of_turn.is_linked DESC, of_turn.has_it DESC) AS place
                        FROM (
                            SELECT
                                f.is_hidden,
                                has_name(concat_ws(' ', f.text, f.subject, f.excerpt, f.value), n.alias) AS has_it,
                                EXISTS (
                                    SELECT FROM fact_entities AS link
                                    WHERE link.fact_id = f.fact_id AND link.current_id = n.current_id
                                ) AS is_linked
                            FROM facts AS f
                            WHERE f.owner = n.owner AND f.source_id = n.source_id
                        ) AS of_turn
                    ) AS said
                    WHERE said.place = 1
                )
                THEN n.alias
            WHEN n.kind = 'user' THEN 'the user'
            WHEN
                n.current_id <> n.entity_id
                OR EXISTS (SELECT FROM entity_changes AS given WHERE given.event_id = n.event_id)
                THEN n.alias
        END AS shown
    FROM entity_aliases AS n
    CROSS JOIN LATERAL (
        SELECT EXISTS (
            SELECT FROM entity_aliases AS other WHERE other.current_id = n.current_id AND other.kind = 'user'
        ) AS is_user
    ) AS own
    WHERE n.current_id IN (SELECT heads.head_id FROM heads)
    OFFSET 0
) AS derived
WHERE (entity_aliases.entity_id, entity_aliases.kind, entity_aliases.key, entity_aliases.event_id)
    = (derived.entity_id, derived.kind, derived.key, derived.event_id)
    AND entity_aliases.shown IS DISTINCT FROM derived.shown;

-- name: show_told_names
-- Show hidden names that these facts tell of entities that they name, and those by which users of these scopes speak.
UPDATE entity_aliases SET shown = entity_aliases.alias
FROM (
    SELECT n.entity_id, n.kind, n.key, n.event_id
    FROM fact_entities AS link
    INNER JOIN facts AS f ON link.fact_id = f.fact_id
    INNER JOIN entity_aliases AS n ON link.current_id = n.current_id
    WHERE link.fact_id = ANY(%(fact_ids)s::uuid [])
        AND NOT f.is_hidden
        AND n.shown IS DISTINCT FROM n.alias
        AND has_name(concat_ws(' ', f.text, f.subject, f.excerpt, f.value), n.alias)
    UNION
    SELECT n.entity_id, n.kind, n.key, n.event_id
    FROM unnest({{scope_arrays}}) AS asked ({{scope_ids}})
    INNER JOIN scopes ON {{same_scope scopes asked}}
    INNER JOIN entity_aliases AS own ON {{same_scope own asked}} AND own.head = '@user' AND own.kind = 'user'
    INNER JOIN entity_aliases AS n ON own.current_id = n.current_id
    WHERE n.shown IS DISTINCT FROM n.alias AND scopes.speakers @> ARRAY[n.alias]
) AS told
WHERE (entity_aliases.entity_id, entity_aliases.kind, entity_aliases.key, entity_aliases.event_id)
    = (told.entity_id, told.kind, told.key, told.event_id);

-- name: update_shown_entities
-- Say under which name readers see these entities, and the entities that these facts or the users of these scopes are:
-- the user, and an entity that a fact names, or the turn that it came of told, and that was not taken back.
UPDATE entities SET shown_name = derived.shown_name
FROM (
    SELECT
        e.entity_id,
        CASE WHEN
            EXISTS (SELECT FROM entity_aliases AS own WHERE own.current_id = e.entity_id AND own.kind = 'user')
            OR EXISTS (
                SELECT
                FROM fact_entities AS link
                CROSS JOIN LATERAL (SELECT * FROM facts WHERE facts.fact_id = link.fact_id OFFSET 0) AS f
                WHERE link.current_id = e.entity_id AND NOT f.is_hidden
            )
            OR (
                NOT EXISTS (SELECT FROM fact_entities AS link WHERE link.current_id = e.entity_id)
                AND EXISTS (
                    SELECT FROM facts AS f
                    WHERE f.owner = e.owner AND f.source_id = e.source_id AND NOT f.is_hidden
                )
            )
        THEN (
            SELECT coalesce(
                min(e.name) FILTER (WHERE has_name(n.shown, e.name)),
                (array_agg(n.shown ORDER BY n.kind = 'user', n.recorded_at, n.place, n.kind, n.key))[1],
                concat_ws(' ', 'unnamed', nullif(e.type, 'other'))
            )
            FROM entity_aliases AS n
            WHERE n.current_id = e.entity_id AND n.shown IS NOT NULL
        ) END AS shown_name
    FROM entities AS e
    WHERE e.status = 'active' AND e.entity_id IN (
        SELECT one.head_id FROM entities AS one WHERE one.entity_id = ANY(%(entity_ids)s::uuid [])
        UNION
        SELECT link.current_id FROM fact_entities AS link WHERE link.fact_id = ANY(%(fact_ids)s::uuid [])
        UNION
        SELECT own.current_id
        FROM unnest({{scope_arrays}}) AS asked ({{scope_ids}})
        INNER JOIN entity_aliases AS own ON {{same_scope own asked}} AND own.head = '@user' AND own.kind = 'user'
    )
    OFFSET 0
) AS derived
WHERE entities.entity_id = derived.entity_id AND entities.shown_name IS DISTINCT FROM derived.shown_name;

-- name: entities_by_id
-- These entities, of any scope, each with the names that it has now and readers see.
SELECT
    e.entity_id, {{scope_ids e}},
    coalesce(e.shown_name, 'unnamed') AS name,
    e.type, e.status, e.merged_into,
    ARRAY(
        SELECT jsonb_build_object('text', named.shown, 'kind', named.kind, 'key', named.key)
        FROM entity_aliases AS named
        WHERE named.current_id = e.entity_id AND named.shown IS NOT NULL
        ORDER BY named.recorded_at, named.place, named.kind, named.key
    ) AS aliases
FROM entities AS e
WHERE e.entity_id = ANY(%(entity_ids)s::uuid []);

-- name: believed_facts_of_entity
-- The open facts and those that have ended that name an entity now, and how many there are.
SELECT
    f.fact_id,
    count(*) OVER () AS total
FROM fact_entities AS link
INNER JOIN facts AS f ON link.fact_id = f.fact_id
WHERE link.current_id = %(entity_id)s
    AND (
        f.status IN ('active', 'pending_confirmation')
        OR (
            f.status IN ('superseded', 'retracted', 'expired')
            AND f.believed_from IS NOT NULL
            AND f.believed_to IS NULL
        )
    )
GROUP BY f.fact_id
ORDER BY f.fact_id
LIMIT %(limit)s;

-- name: naming_facts
-- The facts among these that name an entity now, and so do their former versions: what was merged or corrected into them.
WITH RECURSIVE versions AS (
    SELECT unnest(%(fact_ids)s::uuid []) AS fact_id
    UNION
    SELECT former.fact_id
    FROM versions
    CROSS JOIN LATERAL (
        SELECT old.fact_id
        FROM facts AS old
        WHERE old.superseded_by = versions.fact_id AND old.status = 'superseded' AND old.believed_to IS NOT NULL
        OFFSET 0
    ) AS former
)

SELECT DISTINCT link.fact_id
FROM versions
INNER JOIN fact_entities AS link ON versions.fact_id = link.fact_id
WHERE link.current_id = %(entity_id)s;

-- name: selected_changes
-- The changes of exactly a scope that one source or event made, or the summaries in effect that a model or a prompt
-- version wrote within a time, with what became of each, in the order of the log.
SELECT
    c.event_id, c.event, c.source_id, c.entity_ids,
    original.event_id AS original_id,
    original.event AS original_event,
    original.undone_by IS NULL AS in_effect,
    c.event_id = original.event_id OR c.payload ->> 'reinstated' IS NOT NULL AS enables,
    (
        SELECT later.event_id
        FROM entity_changes AS later
        WHERE later.original_id = c.original_id
        ORDER BY later.log_offset DESC, later.ordinal DESC
        LIMIT 1
    ) AS latest_id
FROM entity_changes AS c
INNER JOIN entity_changes AS original ON c.original_id = original.event_id
WHERE {{in_scope c}}
    AND (
        (c.owner = %(owner)s AND c.source_id = %(source_id)s::text)
        OR c.event_id = %(event_id)s::uuid
        OR (
            c.event = 'entity_summarised'
            AND c.decided_at >= %(since)s::timestamptz
            AND c.decided_at < %(until)s::timestamptz
            AND c.undone_by IS NULL
            AND (%(model)s::text IS NULL OR c.payload #>> '{decision,model}' = %(model)s)
            AND (%(prompt_version)s::text IS NULL OR c.payload #>> '{decision,prompt_version}' = %(prompt_version)s)
        )
    )
ORDER BY c.partition, c.log_offset, c.ordinal;

-- name: proposals
-- These proposed merges, of any scope.
SELECT
    event_id, {{scope_ids}}, merged,
    into_id AS "into",
    merged_name, into_name, is_pending
FROM merge_proposals
WHERE event_id = ANY(%(event_ids)s::uuid []);
