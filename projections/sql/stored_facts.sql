-- name: facts
-- These facts, wherever they live, with everything that a new version takes over, and their states.
SELECT {{stored_fact facts}}
FROM facts
WHERE fact_id = ANY(%(fact_ids)s::uuid []);

-- name: current_facts
-- The same of the newest version of each fact: what merges, corrections and updates made of it. What ended a fact is
-- none of its versions.
WITH RECURSIVE versions AS (
    SELECT
        asked.fact_id AS asked,
        asked.fact_id,
        0 AS place
    FROM unnest(%(fact_ids)s::uuid []) AS asked (fact_id)
    UNION ALL
    SELECT versions.asked, made.fact_id, versions.place + 1
    FROM versions
    CROSS JOIN LATERAL (SELECT * FROM facts WHERE facts.fact_id = versions.fact_id OFFSET 0) AS closed
    INNER JOIN memory_events AS made ON made.targets @> ARRAY[closed.fact_id] AND made.targets <> '{}'
    WHERE closed.status NOT IN ('active', 'pending_confirmation')
        AND made.fact_id IS NOT NULL
        AND NOT made.stale
        AND (
            made.event IN ('facts_merged', 'fact_corrected')
            OR (made.event = 'fact_pending' AND made.payload ->> 'action' = 'merge' AND made.fact_id = closed.superseded_by)
            OR (made.event IN ('fact_replaced', 'fact_contradicted') AND made.decided_by = 'person')
        )
        AND NOT EXISTS (SELECT FROM undone WHERE undone.event_id = made.event_id)
)
SELECT last.asked, {{stored_fact facts}}
FROM (SELECT DISTINCT ON (asked) asked, fact_id FROM versions ORDER BY asked, place DESC) AS last
INNER JOIN facts ON last.fact_id = facts.fact_id;

-- name: former_values
-- The same of the newest fact with a value before each fact: what it, or a fact without a value between, replaced.
WITH RECURSIVE versions AS (
    SELECT
        facts.fact_id AS asked,
        facts.fact_id, facts.value, facts.true_from, {{scope_ids}},
        0 AS place
    FROM facts
    WHERE fact_id = ANY(%(fact_ids)s::uuid [])
    UNION ALL
    SELECT versions.asked, older.fact_id, older.value, older.true_from, {{scope_ids versions}}, versions.place + 1
    FROM versions
    CROSS JOIN LATERAL (
        SELECT former.fact_id, former.value, former.true_from
        FROM facts AS former
        WHERE former.superseded_by = versions.fact_id
            AND {{same_scope former versions}}
        OFFSET 0
    ) AS older
    WHERE versions.value IS NULL
)
SELECT last.asked, {{stored_fact facts}}
FROM (
    SELECT DISTINCT ON (asked) asked, fact_id
    FROM versions
    WHERE value IS NOT NULL
    ORDER BY asked, place, true_from DESC, fact_id
) AS last
CROSS JOIN LATERAL (SELECT * FROM facts AS one WHERE one.fact_id = last.fact_id OFFSET 0) AS facts;

-- name: promotable
-- Facts that may be promoted into another scope of their owner, those that can be first, the oldest before others: with
-- their vectors. With each row comes how many of all can be promoted, and how many were and no undo took that back.
SELECT
    {{stored_fact f}}, f.source_id, greatest(f.said_at, f.last_confirmed_at) AS said_at, f.embedding_model, f.embedding,
    count(*) FILTER (WHERE f.is_free) OVER () AS free,
    count(*) FILTER (WHERE f.status = 'active' AND f.is_known) OVER () AS known,
    count(*) OVER () AS total
FROM (
    SELECT
        f.*,
        made.is_known,
        f.status = 'active'
        AND NOT made.is_known
        AND f.importance >= %(min_importance)s
        AND {{holds f %(at)s}} AS is_free
    FROM facts AS f
    CROSS JOIN LATERAL (
        SELECT coalesce(bool_or(undone.event_id IS NULL), false) AS is_known
        FROM memory_events AS event
        LEFT JOIN undone ON event.event_id = undone.event_id
        WHERE event.promoted_from = f.fact_id
            AND {{in_scope event}}
    ) AS made
    WHERE {selected} AND {filter}
) AS f
ORDER BY f.is_free DESC, f.said_at, f.recorded_at, f.ordinal, f.fact_id
LIMIT %(limit)s;

-- name: promotable_ids
-- Facts that are named, wherever they live.
f.fact_id = ANY(%(fact_ids)s::uuid [])

-- name: promotable_scope
-- The active and pending facts of a scope, of one turn or command where that is named.
({{scope_ids f}})
= (%(from_tenant)s, %(from_user_id)s, %(from_agent_id)s, %(from_app_id)s, %(from_run_id)s)
AND f.status IN ('active', 'pending_confirmation')
AND (%(source_id)s::text IS NULL OR f.source_id = %(source_id)s)

-- name: pending_cases
-- The open cases among these facts: what they would end, as far as it is open, and what merged or corrected targets
-- have become. Where a human's word took a target's place, only a human confirms the challenge.
SELECT
    pending.fact_id,
    coalesce(standing.targets, '{}') AS targets,
    coalesce(standing.successors, '{}') AS successors,
    pending.action, pending.ended_at,
    pending.needs_human OR coalesce(standing.is_human, false) AS needs_human,
    happened.occurred_at AS said_at,
    waiting.speaker, waiting.authority
FROM pending_confirmations AS pending
INNER JOIN memory_events AS happened ON pending.event_id = happened.event_id
INNER JOIN facts AS waiting ON pending.fact_id = waiting.fact_id
LEFT JOIN (
    SELECT
        challenged.pending_id,
        array_agg(facts.fact_id ORDER BY facts.fact_id) FILTER (WHERE NOT challenged.is_successor) AS targets,
        array_agg(facts.fact_id ORDER BY facts.fact_id) FILTER (WHERE challenged.is_successor) AS successors,
        bool_or(facts.authority = 'human') AS is_human
    FROM challenged_facts(%(fact_ids)s::uuid []) AS challenged
    CROSS JOIN LATERAL (SELECT * FROM facts AS one WHERE one.fact_id = challenged.fact_id OFFSET 0) AS facts
    GROUP BY challenged.pending_id
) AS standing ON pending.fact_id = standing.pending_id
WHERE pending.settled_at IS NULL AND pending.fact_id = ANY(%(fact_ids)s::uuid []);

-- name: challenges
-- The held overwrites of a scope that challenge one of these facts, with all that they challenge by now.
WITH challenged AS MATERIALIZED (
    SELECT pending_id, fact_id
    FROM challenged_facts(ARRAY(
        SELECT pending.fact_id
        FROM pending_confirmations AS pending
        WHERE pending.settled_at IS NULL
            AND {{in_scope pending}}
    ))
)

SELECT
    pending_id,
    array_agg(fact_id ORDER BY fact_id) AS fact_ids
FROM challenged
GROUP BY pending_id
HAVING bool_or(fact_id = ANY(%(fact_ids)s::uuid []))
ORDER BY pending_id;

-- name: version_starts
-- Per fact since when it, and every version before it that was true once, has been so. What was never true is left out.
-- A version and what took its place are of one scope.
WITH RECURSIVE chain AS (
    SELECT
        fact_id AS asked_id,
        fact_id, true_from, {{scope_ids}}
    FROM facts
    WHERE fact_id = ANY(%(fact_ids)s::uuid [])
    UNION
    SELECT chain.asked_id, older.fact_id, older.true_from, {{scope_ids chain}}
    FROM chain
    CROSS JOIN LATERAL (
        SELECT ended.fact_id, ended.true_from
        FROM facts AS ended
        WHERE ended.superseded_by = chain.fact_id
            AND {{same_scope ended chain}}
            AND ended.believed_from IS NOT NULL
            AND ended.status IN ('active', 'superseded', 'retracted', 'expired')
        OFFSET 0
    ) AS older
)
SELECT
    asked_id,
    array_agg(DISTINCT true_from ORDER BY true_from) AS since
FROM chain
GROUP BY asked_id;

-- name: subjects_of_facts
-- The entities that these facts are about, as entities are now, with their names and possible twins.
SELECT
    e.entity_id, e.name, e.type,
    ARRAY(
        SELECT twins.twin_id
        FROM current_entity_twins AS twins
        WHERE twins.entity_id = e.entity_id
        ORDER BY twins.since, twins.twin_id
    ) AS possible_twins,
    ARRAY(
        SELECT jsonb_build_object('text', alias.alias, 'kind', alias.kind, 'key', alias.current_key)
        FROM entity_aliases AS alias
        WHERE alias.current_id = e.entity_id
        ORDER BY alias.recorded_at, alias.place, alias.kind, alias.key
    ) AS aliases,
    about.fact_ids
FROM (
    SELECT
        link.current_id AS entity_id,
        array_agg(DISTINCT link.fact_id) AS fact_ids
    FROM fact_entities AS link
    WHERE link.fact_id = ANY(%(fact_ids)s::uuid []) AND link.role = 'subject'
    GROUP BY link.current_id
) AS about
INNER JOIN entities AS e ON about.entity_id = e.entity_id
ORDER BY e.recorded_at, e.ordinal, e.entity_id;

-- name: ended_facts
-- What was true until one of these facts, or one that was merged or corrected into it, took its place: whether it was
-- unresolved before that, whether a command put that in its place, the last end that another fact had set which is still
-- believed and in effect, and the other active facts of its key, with the one that these facts themselves give way to;
-- and what was of its key after it, and has ended too, but for what held for a term.
WITH RECURSIVE standing AS (
    SELECT
        asked.fact_id AS asked_id,
        asked.fact_id
    FROM unnest(%(fact_ids)s::uuid []) AS asked (fact_id)
    UNION
    SELECT standing.asked_id, part.fact_id
    FROM standing
    CROSS JOIN LATERAL (
        SELECT merged.fact_id
        FROM facts AS merged
        WHERE merged.superseded_by = standing.fact_id
            AND merged.status = 'superseded'
            AND merged.believed_to IS NOT NULL
        OFFSET 0
    ) AS part
)

SELECT
    ended.fact_id,
    standing.asked_id AS ended_by,
    before_end.unresolved IS NOT NULL AS was_open,
    coalesce(before_end.unresolved, false) AS was_unresolved,
    EXISTS (
        SELECT
        FROM (SELECT * FROM memory_events WHERE memory_events.fact_id = standing.fact_id OFFSET 0) AS made
        WHERE made.event IN ('fact_replaced', 'fact_corrected')
            AND made.decided_by = 'person'
            AND ended.fact_id = ANY(made.targets)
    ) AS by_command,
    earlier.true_to AS earlier_end,
    earlier.superseded_by AS earlier_ender,
    array(
        SELECT rival.fact_id
        FROM facts AS rival
        WHERE rival.status = 'active'
            AND rival.key = ended.key
            AND rival.fact_id NOT IN (ended.fact_id, standing.asked_id)
            AND {{same_scope rival ended}}
        UNION
        SELECT asked.superseded_by WHERE asked.superseded_by IS NOT NULL
    ) AS rival_ids,
    array(
        SELECT later.fact_id
        FROM facts AS later
        WHERE later.status IN ('superseded', 'retracted', 'expired')
            AND later.believed_to IS NULL
            AND later.valid_until IS NULL
            AND later.key = ended.key
            AND later.true_from >= ended.true_to
            AND later.fact_id <> standing.asked_id
            AND {{same_scope later ended}}
    ) AS later_ids,
    array(
        SELECT relation.related_id FROM fact_relations AS relation WHERE relation.fact_id = ended.fact_id
        UNION
        SELECT relation.fact_id FROM fact_relations AS relation WHERE relation.related_id = ended.fact_id
    ) AS related_ids
FROM standing
CROSS JOIN LATERAL (SELECT * FROM facts AS one WHERE one.fact_id = standing.asked_id OFFSET 0) AS asked
CROSS JOIN LATERAL (
    SELECT one.*
    FROM facts AS one
    WHERE one.superseded_by = standing.fact_id
        AND {{same_scope one asked}}
    OFFSET 0
) AS ended
LEFT JOIN LATERAL (
    SELECT former.unresolved
    FROM former_states AS former
    WHERE former.fact_id = ended.fact_id
        AND former.status = 'active'
        AND former.superseded_by IS DISTINCT FROM ended.superseded_by
    ORDER BY former.until DESC, former.since DESC
    LIMIT 1
) AS before_end ON true
LEFT JOIN LATERAL (
    SELECT former.true_to, former.superseded_by
    FROM (
        SELECT
            one.true_to, one.superseded_by, one.since, one.until,
            lag(one.event_id) OVER (ORDER BY one.until, one.since) AS made_by
        FROM former_states AS one
        WHERE one.fact_id = ended.fact_id
    ) AS former
    INNER JOIN facts AS ender ON former.superseded_by = ender.fact_id
    WHERE former.true_to IS NOT NULL
        AND former.superseded_by NOT IN (SELECT same.fact_id FROM standing AS same)
        AND ender.believed_from IS NOT NULL
        AND ender.believed_to IS NULL
        AND NOT EXISTS (SELECT FROM undone WHERE undone.event_id = former.made_by)
    ORDER BY former.until DESC, former.since DESC
    LIMIT 1
) AS earlier ON true
WHERE ended.believed_from IS NOT NULL
    AND ended.believed_to IS NULL
    AND ended.true_to IS NOT NULL
    AND ended.status IN ('active', 'superseded', 'retracted', 'expired')
ORDER BY ended.true_from, ended.fact_id;

-- name: values_before
-- The other facts of the key of this one that are believed, began before it, and ended after a time and before it
-- began. What still held then stood beside it, and so did what held for a term.
SELECT other.fact_id
FROM facts AS asked
INNER JOIN facts AS other
    ON {{same_scope asked other}}
WHERE asked.fact_id = %(fact_id)s
    AND other.fact_id <> asked.fact_id
    AND other.key = asked.key
    AND other.believed_from IS NOT NULL
    AND other.believed_to IS NULL
    AND other.true_from < asked.true_from
    AND other.true_to > %(since)s
    AND other.true_to <= asked.true_from
    AND other.valid_until IS NULL
ORDER BY other.true_from, other.fact_id;

-- name: values_since
-- Per fact that was closed the other active facts of its key and scope that were not, at that moment or since then; and
-- those that are about its entity by a merge alone.
SELECT
    closed.fact_id,
    array_agg(later.fact_id ORDER BY later.fact_id) AS later_ids
FROM facts AS closed
CROSS JOIN LATERAL (
    SELECT one.*
    FROM facts AS one
    WHERE one.status = 'active'
        AND {{same_scope one closed}}
        AND one.key = closed.key
        AND one.fact_id <> closed.fact_id
    OFFSET 0
) AS later
CROSS JOIN LATERAL (SELECT greatest(closed.closed_at, closed.believed_to) AS moment) AS closing
WHERE closed.fact_id = ANY(%(fact_ids)s::uuid [])
    AND (
        later.recorded_at > closing.moment
        OR EXISTS (
            SELECT FROM former_states AS former
            WHERE former.fact_id = later.fact_id
                AND former.status <> 'active'
                AND former.until > closing.moment
        )
        OR EXISTS (
            SELECT
            FROM fact_entities AS one
            INNER JOIN fact_entities AS other ON one.current_id = other.current_id AND one.role = other.role
            WHERE one.fact_id = closed.fact_id
                AND other.fact_id = later.fact_id
                AND one.role = 'subject'
                AND one.entity_id <> other.entity_id
        )
    )
GROUP BY closed.fact_id;

-- name: user_names
-- The names of the user that a scope knows.
SELECT user_names({{scope_values}}, NULL, %(user_words)s);

-- name: ended_candidates
-- Per late statement the facts of exactly one scope that have ended after a time: the nearest, those of equal words, and
-- those of an equal key, of one subject first and then the first to end. Merged and denied facts are left out. What was
-- said again after its end counts as said at the end.
WITH asked AS MATERIALIZED (
    {asked}
),

compared AS (
    SELECT
        known.fact_id, known.true_to, asked.place,
        coalesce({is_of_key}, false) AS is_of_key,
        (lower(known.subject) = lower(asked.subject)) IS TRUE
        OR (
            lower(coalesce(known.subject, 'user')) = ANY(%(user_names)s::text [])
            AND lower(coalesce(asked.subject, 'user')) = ANY(%(user_names)s::text [])
        ) AS is_of_subject,
        coalesce({is_near}, false) AS is_near,
        {similarity} AS similarity
    FROM (
        SELECT f.*
        FROM facts AS f
        WHERE {{in_scope f}}
            AND f.status IN ('superseded', 'retracted', 'expired')
            AND f.believed_from IS NOT NULL
            AND f.believed_to IS NULL
            AND f.true_to > %(after)s
    ) AS known
    CROSS JOIN LATERAL ({distances}) AS asked
    WHERE {is_near} OR ({is_of_key})
),

found AS (
    SELECT
        compared.*,
        row_number() OVER (PARTITION BY place ORDER BY is_near DESC, similarity DESC, fact_id) AS rank,
        row_number() OVER (
            PARTITION BY place
            ORDER BY is_of_key DESC, is_of_subject DESC, true_to, fact_id
        ) AS rank_of_key
    FROM compared
)

SELECT
    found.place,
    {candidate}
FROM found
CROSS JOIN LATERAL (SELECT * FROM facts WHERE facts.fact_id = found.fact_id LIMIT 1) AS f
WHERE (found.is_near AND found.rank <= %(limit)s)
    OR (found.is_of_key AND found.rank_of_key <= %(limit_of_key)s)
ORDER BY found.place, found.true_to, found.fact_id;

-- name: conflict_of
-- The known facts that an unresolved fact was put beside, the likeliest first: those that the question was about; of
-- one that is open again because its end has moved, the other values of its key.
SELECT shown.fact_id::uuid
FROM (
    SELECT
        happened.partition, happened.log_offset,
        happened.payload -> 'decision' -> 'shown' AS shown
    FROM memory_events AS happened
    WHERE happened.fact_id = %(fact_id)s::uuid
        AND happened.event IN ('fact_added', 'pending_confirmed')
        AND (happened.payload ->> 'unresolved')::boolean
    UNION ALL
    SELECT
        happened.partition, happened.log_offset,
        moved.ending -> 'beside' AS shown
    FROM former_states AS former
    INNER JOIN memory_events AS happened ON former.event_id = happened.event_id
    CROSS JOIN LATERAL jsonb_array_elements(happened.payload -> 'moved_ends') AS moved (ending)
    WHERE former.fact_id = %(fact_id)s::uuid
        AND (moved.ending ->> 'fact_id')::uuid = %(fact_id)s::uuid
        AND (moved.ending ->> 'unresolved')::boolean
        AND moved.ending ? 'beside'
    ORDER BY partition DESC, log_offset DESC
    LIMIT 1
) AS latest
CROSS JOIN LATERAL jsonb_array_elements_text(latest.shown) WITH ORDINALITY AS shown (fact_id, place)
ORDER BY shown.place;

-- name: unresolved_beside
-- The open unresolved facts that have the scope and the key of one of these facts, but for these.
SELECT DISTINCT asked.fact_id
FROM facts AS gone
INNER JOIN facts AS asked ON {{same_scope asked gone}} AND asked.key = gone.key AND asked.unresolved
WHERE gone.fact_id = ANY(%(fact_ids)s::uuid [])
    AND asked.status = 'active'
    AND asked.fact_id <> ALL(%(fact_ids)s)
ORDER BY asked.fact_id;

-- name: in_scope
-- The active and pending facts of exactly one scope that a filter lets through, the oldest first, and how many there are.
SELECT
    count(*) OVER () AS total,
    f.fact_id
FROM facts AS f
WHERE {{in_scope f}}
    AND f.status IN ('active', 'pending_confirmation')
    AND (%(key)s::text IS NULL OR f.key = %(key)s)
    AND (%(category)s::text IS NULL OR %(category)s = ANY(f.category || f.more_categories))
    AND {filter}
ORDER BY f.recorded_at, f.ordinal, f.fact_id
LIMIT %(limit)s;

-- name: passing_facts
-- The facts among these that a filter lets through.
SELECT f.fact_id
FROM facts AS f
WHERE f.fact_id = ANY(%(fact_ids)s::uuid []) AND {filter};

-- name: due_expiries
-- Active and pending facts whose end has passed, in the order of their ends, from a place on.
-- One that the timer has closed since then is left out: its expiry was undone.
SELECT
    ending.fact_id, {{scope_ids ending}},
    least(ending.valid_until, ending.true_to) AS ends_at
FROM facts AS ending
WHERE ending.status IN ('active', 'pending_confirmation')
    AND (ending.valid_until IS NOT NULL OR ending.true_to IS NOT NULL)
    AND least(ending.valid_until, ending.true_to) <= %(now)s
    AND (
        %(after_end)s::timestamptz IS NULL
        OR (least(ending.valid_until, ending.true_to), ending.fact_id) > (%(after_end)s, %(after_fact)s::uuid)
    )
    AND NOT EXISTS (
        SELECT FROM memory_events AS happened
        WHERE happened.fact_id = ending.fact_id
            AND happened.decided_by = 'timer'
            AND happened.decided_at >= least(ending.valid_until, ending.true_to)
    )
ORDER BY least(ending.valid_until, ending.true_to), ending.fact_id
LIMIT %(limit)s;
