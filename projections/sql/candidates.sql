-- name: asked
-- The statements that are compared with known facts, in the order in which they were given.
SELECT *
FROM unnest(
    %(vectors)b::halfvec [], %(models)s::text [], %(content_hashes)s::text [], %(keys)s::text [], %(subjects)s::text [],
    %(ends_only)s::boolean [], %(floors)s::double precision []
) WITH ORDINALITY AS one (embedding, model, content_hash, key, subject, ends_only, floor, place)

-- name: distances
-- Every statement with its distance to a known fact. OFFSET keeps the facts outside: each is read once for all of them.
-- A model's vectors compare with its own only; CASE keeps Postgres from comparing others. A vector without a direction
-- has the distance NaN to all.
SELECT
    asked.*,
    CASE
        WHEN known.embedding_model = asked.model AND vector_dims(known.embedding) = vector_dims(asked.embedding)
            THEN nullif(known.embedding <=> asked.embedding, 'NaN')
    END AS distance
FROM asked
OFFSET 0

-- name: is_near
-- Whether a known fact has the words of a statement or is within its floor; NULL where their vectors cannot be compared.
known.content_hash = asked.content_hash OR asked.distance <= 1 - asked.floor

-- name: is_of_key
-- Whether a known fact has the key of a statement, and is compared with it for that.
known.key = asked.key AND (NOT asked.ends_only OR known.action_hint = 'retract')

-- name: similarity
-- How near a known fact is to a statement: equal words count as 1, what cannot be compared as 0.
CASE
    WHEN known.content_hash = asked.content_hash THEN 1
    WHEN asked.distance IS NULL THEN 0
    ELSE greatest(-1, least(1, 1 - asked.distance))
END

-- name: candidate
-- The columns of a candidate: a fact `f` that was `found`. Its excerpt has the words with which it began: where a
-- repetition has moved the beginning back, those of the repetition.
f.fact_id, found.similarity, f.text, f.content_hash, f.key, f.value, f.confidence, f.true_from, f.true_to,
f.valid_until, f.category, f.more_categories, f.subject,
CASE
    WHEN f.true_from < f.said_at AND f.true_from IS DISTINCT FROM f.event_time
        THEN coalesce((
            SELECT happened.payload -> 'statement' ->> 'excerpt'
            FROM former_states AS former
            INNER JOIN memory_events AS happened ON former.event_id = happened.event_id
            WHERE former.fact_id = f.fact_id
                AND happened.payload -> 'statement' ->> 'excerpt' IS NOT NULL
                AND (happened.payload ->> 'true_from')::timestamptz = f.true_from
            ORDER BY happened.partition, happened.log_offset, happened.ordinal
            LIMIT 1
        ), f.excerpt)
    ELSE f.excerpt
END AS excerpt,
{status} AS status,
f.authority,
{unresolved} AS unresolved,
f.single_valued, f.action_hint, f.event_time,
{said_at} AS said_at,
f.value_json, f.importance, f.importance_category, f.metadata

-- name: find_candidates
-- Per turn and new fact of it, in one round trip for all and in exactly the turn's scope: the nearest active or pending
-- facts from its floor on, those of equal words, and those of an equal key however far they are.
-- Each turn is looked up by itself, as if it were alone: its scope is read once for all its facts.
-- The scan is exact: an index with a filter on the scope would return too few of its facts. Active and pending facts
-- are scanned one after the other, because each have an index of their own; only candidates are read whole.
-- Of those of an equal key the ones about the same subject come first, under whichever name; then those of which this
-- is unsure: a fact without a subject beside a name, the user beside a name while no name of the user is known, and
-- names of which one contains the other.
WITH statements AS MATERIALIZED (
    {asked}
)

SELECT
    turn.number,
    of_turn.*
FROM unnest(
    {{scope_arrays}}, %(at)s::timestamptz [], %(speaker)s::text [], %(first_place)s::integer [],
    %(last_place)s::integer []
) WITH ORDINALITY AS turn ({{scope_ids}}, at, speaker, first_place, last_place, number)
CROSS JOIN LATERAL (
    WITH held_back AS MATERIALIZED (
        SELECT challenged.pending_id, challenged.fact_id
        FROM challenged_facts(ARRAY(
            SELECT p.fact_id
            FROM pending_confirmations AS p
            WHERE p.settled_at IS NULL
                AND {{same_scope p turn}}
        )) AS challenged
    ),

    named AS MATERIALIZED (
        SELECT
            names,
            lower(names::text)::text [] AS spoken,
            %(user_words)s::text [] || lower(names::text)::text [] AS aliases
        FROM user_names(
            {{scope_ids turn}}, turn.speaker, %(user_words)s
        ) AS names
    ),

    asked AS MATERIALIZED (
        SELECT * FROM statements
        WHERE statements.place BETWEEN turn.first_place AND turn.last_place
    ),

    compared AS (
        SELECT
            known.fact_id, asked.place,
            coalesce({is_of_key}, false) AS is_of_key,
            subject_rank(known.subject, asked.subject, named.spoken, named.aliases) AS subject_rank,
            coalesce({is_near}, false) AS is_near,
            {similarity} AS similarity
        FROM named
        CROSS JOIN (
            SELECT f.*
            FROM facts AS f
            WHERE f.status = 'active'
                AND {{same_scope f turn}}
                AND {{holds f turn.at}}
            UNION ALL
            SELECT f.*
            FROM facts AS f
            WHERE f.status = 'pending_confirmation'
                AND {{same_scope f turn}}
                AND {{holds f turn.at}}
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
                ORDER BY is_of_key DESC, subject_rank DESC, similarity DESC, fact_id
            ) AS rank_of_key
        FROM compared
    )

    SELECT
        coalesce((
            SELECT version FROM scopes
            WHERE tenant = turn.tenant
                AND user_id = turn.user_id
                AND agent_id = turn.agent_id
                AND app_id = turn.app_id
                AND run_id = turn.run_id
        ), 0) AS scope_version,
        named.names, asked.place,
        {candidate},
        array(
            SELECT held_back.pending_id FROM held_back
            WHERE held_back.fact_id = f.fact_id
            ORDER BY held_back.pending_id
        ) AS challenged_by
    FROM named
    CROSS JOIN asked
    LEFT JOIN found ON
        asked.place = found.place
        AND ((found.is_near AND found.rank <= %(limit)s) OR (found.is_of_key AND found.rank_of_key <= %(limit_of_key)s))
    LEFT JOIN LATERAL (SELECT * FROM facts WHERE facts.fact_id = found.fact_id LIMIT 1) AS f ON true
) AS of_turn
ORDER BY turn.number, of_turn.place, of_turn.similarity DESC, of_turn.fact_id;

-- name: facts_of_entities
-- Per entity and key the newest active facts of exactly this scope that are about it, by its links, and how near they are
-- to the vector of a new fact.
WITH held_back AS MATERIALIZED (
    SELECT challenged.pending_id, challenged.fact_id
    FROM challenged_facts(ARRAY(
        SELECT p.fact_id
        FROM pending_confirmations AS p
        WHERE p.settled_at IS NULL
            AND {{in_scope p}}
    )) AS challenged
)

SELECT
    found.place::integer AS place,
    {candidate},
    array(
        SELECT held_back.pending_id FROM held_back
        WHERE held_back.fact_id = f.fact_id
        ORDER BY held_back.pending_id
    ) AS challenged_by
FROM (
    SELECT
        asked.place, near.fact_id,
        CASE
            WHEN near.embedding_model = asked.model AND vector_dims(near.embedding) = vector_dims(asked.embedding)
                THEN greatest(-1, least(1, 1 - coalesce(nullif(near.embedding <=> asked.embedding, 'NaN'), 1)))
            ELSE 0
        END AS similarity
    FROM unnest(
        %(entity_ids)s::uuid [], %(keys)s::text [], %(vectors)b::halfvec [], %(models)s::text []
    ) WITH ORDINALITY AS asked (entity_id, key, embedding, model, place)
    CROSS JOIN LATERAL (
        SELECT known.*
        FROM (
            SELECT link.fact_id
            FROM fact_entities AS link
            WHERE link.current_id = asked.entity_id AND link.role = 'subject'
            GROUP BY link.fact_id
            OFFSET 0
        ) AS linked
        CROSS JOIN LATERAL (SELECT * FROM facts WHERE facts.fact_id = linked.fact_id OFFSET 0) AS known
        WHERE known.status = 'active'
            AND known.key = asked.key
            AND {{in_scope known}}
            AND {{holds known %(at)s}}
            AND (asked.place, known.fact_id) NOT IN (
                SELECT candidate.place, candidate.fact_id
                FROM unnest(%(known_places)s::bigint [], %(known)s::uuid []) AS candidate (place, fact_id)
            )
        ORDER BY known.recorded_at DESC, known.ordinal DESC, known.fact_id
        LIMIT %(limit_of_key)s
    ) AS near
) AS found
CROSS JOIN LATERAL (SELECT * FROM facts WHERE facts.fact_id = found.fact_id LIMIT 1) AS f
ORDER BY found.place, found.similarity DESC, f.fact_id;

-- name: source_statuses
-- Per source, in the order in which they were asked for: how often it was committed and how the last time ended, how
-- many commits with events or a speaker its scope has seen, when the last of its facts ended, the facts that
-- it has itself, and the policies of its tenant and of its scope.
SELECT
    coalesce((SELECT scopes.version FROM scopes WHERE {{same_scope scopes asked}}), 0) AS scope_version,
    coalesce(last.attempt, 0) AS attempt,
    coalesce(
        last.limit_hit IS NOT NULL OR (last.source_kind = 'turn' AND last.outcome = 'failed'), false
    ) AS retryable,
    last.origin_topic, last.origin_partition, last.origin_offset,
    (
        SELECT facts.true_to FROM facts
        WHERE {{same_scope facts asked}}
            AND facts.status IN ('superseded', 'retracted', 'expired')
            AND facts.believed_to IS NULL
            AND facts.true_to IS NOT NULL
        ORDER BY facts.true_to DESC
        LIMIT 1
    ) AS last_end,
    CASE WHEN last.attempt IS NULL OR (last.limit_hit IS NULL AND last.outcome <> 'failed') THEN '{{}}' ELSE ARRAY(
        SELECT facts.fact_id FROM facts
        WHERE facts.owner = asked.owner AND facts.source_id = asked.source_id
        ORDER BY facts.fact_id
    ) END AS fact_ids,
    {asked_policies}
FROM unnest(
    %(owner)s::text [], %(source_id)s::text [], {{scope_arrays}}
) WITH ORDINALITY AS asked (owner, source_id, {{scope_ids}}, place)
LEFT JOIN LATERAL (
    SELECT
        commits.attempt, commits.source_kind, commits.outcome, commits.limit_hit, commits.origin_topic,
        commits.origin_partition, commits.origin_offset
    FROM commits
    WHERE commits.owner = asked.owner AND commits.source_id = asked.source_id
    ORDER BY commits.attempt DESC
    LIMIT 1
) AS last ON true
ORDER BY asked.place;
