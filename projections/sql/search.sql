-- name: scanned
-- All facts of a scope that may be found. Two branches, because each status has an index of its own.
SELECT f.*
FROM facts AS f
WHERE f.status = 'active'
    AND {scope}
    AND {{holds f %(at)s}}
    AND {filter}
UNION ALL
SELECT f.*
FROM facts AS f
WHERE f.status = 'pending_confirmation'
    AND {scope}
    AND {{holds f %(at)s}}
    AND {filter}

-- name: in_states
-- The facts of a scope in some states, or in any.
SELECT f.*
FROM facts AS f
WHERE {scope}
    AND (%(states)s::text [] IS NULL OR {state} = ANY(%(states)s::text []))
    AND {filter}

-- name: as_of
-- What was known at one instant to be true at another, each fact with its state of that time.
SELECT f.*
FROM (
    SELECT
        f.fact_id, {{scope_ids f}}, f.text, f.key, f.value, f.category, f.more_categories, f.importance,
        f.subject, f.speaker, f.excerpt, f.event_time, f.valid_until, f.said_at, f.recorded_at, f.ordinal, f.source_id, f.metadata, f.words,
        f.embedding_model, f.embedding, s.*
    FROM facts AS f
    CROSS JOIN LATERAL ({state_at}) AS s
    WHERE {scope}
        AND {{known_as_true f s %(at)s}}
        AND (%(states)s::text [] IS NULL OR s.status = ANY(%(states)s::text []))
) AS f
WHERE {filter}

-- name: hit_state
-- The same for a hit.
CROSS JOIN LATERAL ({state_at}) AS s

-- name: of_scopes
-- What several scopes hold, one after the other, each by its index.
SELECT mine.*
FROM unnest(%(user_ids)s::text [], %(agent_ids)s::text [], %(app_ids)s::text [], %(run_ids)s::text [])
AS named (user_id, agent_id, app_id, run_id)
CROSS JOIN LATERAL ({live} OFFSET 0) AS mine

-- name: facts_of_scopes
-- The facts of several scopes, without those that were promoted into another one of them: what these were promoted to
-- stands for them there, whatever has become of it since. OFFSET keeps that a look-up for each fact.
SELECT mine.*
FROM ({of_scopes}) AS mine
WHERE NOT EXISTS (
    SELECT FROM memory_events AS promoted
    INNER JOIN facts AS f ON promoted.fact_id = f.fact_id
    LEFT JOIN undone ON promoted.event_id = undone.event_id
    WHERE promoted.promoted_from = mine.fact_id
        AND {of_any}
        AND {wanted}
        AND f.believed_from <= coalesce(%(believed_at)s, 'infinity'::timestamptz)
        AND promoted.decided_at <= coalesce(%(believed_at)s, 'infinity'::timestamptz)
        AND coalesce(undone.since > coalesce(%(believed_at)s, 'infinity'::timestamptz), true)
    OFFSET 0
)

-- name: of_named_scope
-- The facts of one of several scopes.
f.tenant = (SELECT %(tenant)s::text) AND f.user_id = named.user_id AND f.agent_id = named.agent_id
AND f.app_id = named.app_id AND f.run_id = named.run_id

-- name: of_any_scope
-- The same, of all of them.
f.tenant = (SELECT %(tenant)s::text) AND (f.user_id, f.agent_id, f.app_id, f.run_id) IN (
    SELECT * FROM unnest(%(user_ids)s::text [], %(agent_ids)s::text [], %(app_ids)s::text [], %(run_ids)s::text [])
)

-- name: from_indexes
-- The facts of an indexed scope that may be among the best by vector or by words.
SELECT f.*
FROM (
    SELECT DISTINCT found.fact_id
    FROM indexed_candidates(
        {{scope_values}}, %(model)s, %(dimensions)s, %(vector)s,
        asked.query, %(at)s, %(candidates)s
    ) AS found
) AS candidate
CROSS JOIN LATERAL (SELECT * FROM facts WHERE facts.fact_id = candidate.fact_id LIMIT 1) AS f
WHERE {filter}

-- name: by_indexes_or_not
-- Whether this statement answers: an indexed scope is asked by its indexes, another one by a scan; null scans any.
%(indexed)s::boolean IS NULL OR %(indexed)s::boolean = EXISTS (
    SELECT FROM indexed_scopes AS known
    WHERE {{in_scope known}}
        AND (%(vector)s::halfvec IS NULL OR (known.model = %(model)s AND known.dimensions = %(dimensions)s))
)

-- name: any_route
-- Several scopes are always scanned.
%(indexed)s::boolean IS NULL

-- name: all_facts
-- How many facts there are, each of which has been scanned.
SELECT count(*)::float8 AS facts, 1::float8 AS times, 'infinity'::float8 AS most FROM scored

-- name: indexed_facts
-- The same for an indexed scope. Of a word that has most facts or more not all are found: as many of the scope are taken
-- to have it as of the facts that were found.
SELECT of_scope.facts, of_scope.facts / greatest(count(*), 1) AS times, (%(candidates)s / 2)::float8 AS most
FROM (
    SELECT coalesce(max(facts), 0)::float8 AS facts
    FROM scopes
    WHERE {{in_scope}}
) AS of_scope
LEFT JOIN scored ON true
GROUP BY of_scope.facts

-- name: neighbours
-- Which of the first 63 words of the question were said just before and after a fact, and next to those, within an hour in
-- the same scope, and are not its own: as bits of a number.
SELECT
    said.*,
    said.near & ~said.own AS beside,
    said.far & ~said.near & ~said.own AS behind
FROM (
    SELECT
        scored.*,
        set_scores.score AS text_score,
        coalesce(set_scores.bits, 0) AS own,
        CASE WHEN said_at - lag(said_at) OVER said <= '1 hour' THEN coalesce(lag(set_scores.bits) OVER said, 0) ELSE 0 END
        | CASE WHEN lead(said_at) OVER said - said_at <= '1 hour' THEN coalesce(lead(set_scores.bits) OVER said, 0) ELSE 0 END
        AS near,
        CASE
            WHEN said_at - lag(said_at, 2) OVER said <= '1 hour' THEN coalesce(lag(set_scores.bits, 2) OVER said, 0) ELSE 0
        END
        | CASE
            WHEN lead(said_at, 2) OVER said - said_at <= '1 hour' THEN coalesce(lead(set_scores.bits, 2) OVER said, 0) ELSE 0
        END AS far
    FROM scored
    LEFT JOIN set_scores USING (places)
    WINDOW said AS (PARTITION BY user_id, agent_id, app_id, run_id ORDER BY said_at, ordinal, fact_id)
) AS said

-- name: conversation
-- The order in which facts were said. A fact without an excerpt was said in no turn.
CASE WHEN live.excerpt <> '' THEN live.said_at END AS said_at, live.ordinal, live.app_id, live.run_id,

-- name: no_neighbours
-- Each fact for itself.
SELECT scored.*, set_scores.score AS text_score, 0::bigint AS beside, 0::bigint AS behind
FROM scored
LEFT JOIN set_scores USING (places)

-- name: hits_alone
-- The hits and nothing else.
(SELECT *, fact_id AS shown_id, 0 AS step FROM first) AS first

-- name: with_neighbours
-- Each hit, and so many facts before and after it of what was said within an hour in its scope.
(
    WITH said AS MATERIALIZED (
        SELECT
            fact_id, user_id, agent_id, app_id, run_id, said_at,
            row_number() OVER (ORDER BY user_id, agent_id, app_id, run_id, said_at, ordinal, fact_id) AS number
        FROM scored
    )
    SELECT first.*, near.fact_id AS shown_id, (near.number - own.number)::integer AS step
    FROM first
    INNER JOIN said AS own USING (fact_id)
    CROSS JOIN generate_series(-%(neighbours)s::integer, %(neighbours)s::integer) AS place (step)
    INNER JOIN said AS near
        ON near.number = own.number + place.step
        AND (near.user_id, near.agent_id, near.app_id, near.run_id)
        = (own.user_id, own.agent_id, own.app_id, own.run_id)
        AND (place.step = 0 OR near.said_at BETWEEN own.said_at - interval '1 hour' AND own.said_at + interval '1 hour')
) AS first

-- name: left_out
-- Why facts are no hits: how many for each reason, and the best of them; and how many with a word of the question are in
-- other states, or have ended.
(
    SELECT jsonb_object_agg(found.reason, jsonb_build_object('facts', found.facts, 'first', found.best))
    FROM (
        SELECT
            others.reason,
            count(*) AS facts,
            (array_agg(others.fact_id ORDER BY others.total DESC NULLS LAST, others.fact_id))[1:5] AS best
        FROM (
            SELECT
                ranked.fact_id, ranked.total,
                CASE WHEN ranked.place_in_matter > %(per_matter)s::integer THEN 'same_matter' ELSE 'over_limit' END AS reason
            FROM ranked
            UNION ALL
            SELECT
                summed.fact_id, summed.total,
                CASE
                    WHEN NOT summed.is_found THEN 'below_threshold'
                    WHEN summed.is_timely OR NOT %(only_period)s::boolean THEN 'over_limit'
                    ELSE 'outside_period'
                END
            FROM summed
            WHERE NOT EXISTS (SELECT FROM ranked WHERE ranked.fact_id = summed.fact_id)
            UNION ALL
            SELECT f.fact_id, NULL, 'other_state'
            FROM asked
            INNER JOIN facts AS f ON f.words @@ asked.query
            WHERE {scope}
                AND f.recorded_at <= coalesce(%(believed_at)s, 'infinity'::timestamptz)
                AND NOT EXISTS (SELECT FROM scored WHERE scored.fact_id = f.fact_id)
                AND {filter}
        ) AS others
        WHERE NOT EXISTS (SELECT FROM first WHERE first.fact_id = others.fact_id)
        GROUP BY others.reason
    ) AS found
) AS left_out

-- name: nothing_left_out
-- Where nobody asks for it.
NULL::jsonb AS left_out

-- name: messages
-- What was said in the turn that a fact came from.
(
    SELECT journal.body -> 'messages' FROM turn_journal AS journal
    WHERE journal.owner = f.owner AND journal.source_id = f.source_id
) AS messages

-- name: no_messages
-- Where nobody asks for them.
NULL::jsonb AS messages

-- name: ranks
-- The place of each fact by each signal that orders facts.
CASE WHEN heard.distance IS NOT NULL THEN row_number() OVER (ORDER BY heard.distance, heard.status, heard.fact_id) END
AS vector_rank,
CASE
    WHEN heard.text_score IS NOT NULL
        THEN row_number() OVER (ORDER BY heard.text_score DESC NULLS LAST, heard.status, heard.fact_id)
END AS text_rank

-- name: no_ranks
-- Where nobody asks for ranks, nothing is sorted for them.
NULL::bigint AS vector_rank, NULL::bigint AS text_rank

-- name: hybrid
-- The best facts of a scope by vector, by words and by the names in the question, fused in one round trip: those that
-- are active and those that wait for a confirmation, which of equals come last. What has no word in common needs the
-- similarity threshold, unless that is 0. Without a vector the words and names decide.
-- Either all facts of the scope are scanned, or those that its indexes find; where it is the other way round there is no
-- row, else at least one. Each fact is read once; only hits are read whole.
WITH question AS MATERIALIZED (
    SELECT %(text)s::text AS text WHERE {route}
),
words AS MATERIALIZED (
    SELECT word.*
    FROM question
    CROSS JOIN LATERAL question_words(question.text, %(max_words)s) AS word
),
asked AS MATERIALIZED (
    SELECT
        question.text,
        (SELECT string_agg(words.lexemes::text, ' | ' ORDER BY words.place)::tsquery FROM words) AS query
    FROM question
),
scored AS MATERIALIZED (
    SELECT
        live.fact_id, live.status, live.importance, live.confidence,
        date_part('epoch', greatest(live.believed_from, live.last_confirmed_at, live.recorded_at)) AS mentioned_at,
        coalesce(live.event_time, live.true_from) AS happened_at,
        live.user_id, live.agent_id, live.subject, live.speaker, live.key,
        {conversation}
        CASE
            WHEN live.embedding_model = %(model)s AND vector_dims(live.embedding) = %(dimensions)s
                THEN nullif(live.embedding <=> %(vector)s::halfvec, 'NaN')
        END AS distance,
        CASE
            WHEN live.words @@ asked.query
                THEN ARRAY(
                    SELECT
                        4 * words.place + CASE
                            WHEN live.words @@ words.in_text THEN 0
                            WHEN live.words @@ words.in_search_text THEN 1
                            WHEN live.words @@ words.in_value THEN 2
                            ELSE 3
                        END
                    FROM words
                    WHERE live.words @@ words.lexemes
                )
        END AS places
    FROM asked
    CROSS JOIN LATERAL ({live}) AS live
),
word_sets AS MATERIALIZED (
    -- Which words of the question facts have, each by its place and the field of the fact; there are few such sets.
    SELECT
        places,
        count(*) AS facts,
        (SELECT bit_or(1::bigint << (one.place / 4 - 1)::integer) FROM unnest(places) AS one (place) WHERE one.place / 4 <= 63) AS bits
    FROM scored
    WHERE places IS NOT NULL
    GROUP BY places
),
word_weights AS MATERIALIZED (
    -- The fewer facts have a word, the more it says.
    SELECT
        place,
        ln(1 + (whole.facts - with_word.facts + 0.5) / (with_word.facts + 0.5)) AS weight
    FROM words
    CROSS JOIN ({whole}) AS whole
    LEFT JOIN (
        SELECT one.place / 4 AS place, sum(word_sets.facts)::float8 AS facts
        FROM word_sets CROSS JOIN LATERAL unnest(word_sets.places) AS one (place)
        GROUP BY one.place / 4
    ) AS found USING (place)
    CROSS JOIN LATERAL (
        SELECT coalesce(found.facts * CASE WHEN found.facts < whole.most THEN 1 ELSE whole.times END, 0) AS facts
    ) AS with_word
),
set_scores AS MATERIALIZED (
    SELECT
        word_sets.places, word_sets.bits,
        (
            SELECT sum(word_weights.weight * (%(field_weights)s::float8 [])[1 + (one.place & 3)])
            FROM unnest(word_sets.places) AS one (place)
            INNER JOIN word_weights ON word_weights.place = one.place / 4
        )
        / (SELECT sum(weight) FROM word_weights) AS score
    FROM word_sets
),
heard AS MATERIALIZED (
    {neighbours}
),
near_scores AS MATERIALIZED (
    -- How much the words say that facts have beside them; there are few such sets, too.
    SELECT
        near.bits,
        (
            SELECT sum(weight) FILTER (WHERE place <= 63 AND ((near.bits >> (place - 1)::integer) & 1) = 1) / sum(weight)
            FROM word_weights
        ) AS score
    FROM (SELECT beside AS bits FROM heard UNION SELECT behind FROM heard) AS near
    WHERE near.bits <> 0
),
names AS MATERIALIZED (
    -- The subjects and speakers that the question names; few of them differ.
    SELECT named.name
    FROM asked
    CROSS JOIN LATERAL named_in(
        asked.text, ARRAY(SELECT subject FROM scored UNION SELECT speaker FROM scored)
    ) AS named (name)
),
candidates AS (
    SELECT
        heard.*,
        1 - heard.distance AS similarity,
        coalesce(beside.score, 0) + coalesce(behind.score, 0) / 2 AS near_score,
        coalesce(heard.subject IN (SELECT name FROM names) OR heard.speaker IN (SELECT name FROM names), false) AS is_named,
        {ranks}
    FROM heard
    LEFT JOIN near_scores AS beside ON heard.beside = beside.bits
    LEFT JOIN near_scores AS behind ON heard.behind = behind.bits
),
parts AS (
    SELECT
        candidates.*,
        happened_at >= %(period_from)s AND happened_at < %(period_to)s AS is_timely,
        text_score IS NOT NULL
        OR coalesce(similarity >= coalesce(nullif(%(threshold)s::float8, 0), -2), false)
        OR coalesce(similarity IS NULL AND is_named AND %(names_weight)s::float8 > 0, false) AS is_found,
        %(vector_weight)s::float8 * CASE %(fusion)s::text
            WHEN 'rrf' THEN coalesce(1.0::float8 / (%(rrf_k)s::integer + vector_rank), 0)
            ELSE greatest(similarity, 0)
        END AS vector_part,
        %(text_weight)s::float8 * CASE %(fusion)s::text
            WHEN 'rrf' THEN coalesce(1.0::float8 / (%(rrf_k)s::integer + text_rank), 0)
            ELSE coalesce(text_score, 0)
        END AS text_part,
        %(text_weight)s::float8 * %(neighbours_weight)s::float8 * one.part * near_score AS neighbours_part,
        CASE WHEN is_named THEN %(names_weight)s::float8 * one.part ELSE 0 END AS names_part,
        CASE
            WHEN %(recency_weight)s::float8 > 0 AND status <> 'pending_confirmation'
                THEN
                    %(recency_weight)s::float8 * one.part
                    * exp(-least(greatest(asked_at - mentioned_at, 0) * one.decay, 700)) -- beyond that it underflows
            ELSE 0
        END AS recency_part,
        CASE
            WHEN happened_at >= %(period_from)s AND happened_at < %(period_to)s THEN %(times_weight)s::float8 * one.part
            ELSE 0
        END AS times_part,
        1
        + %(importance_weight)s::float8 * (importance - 0.5)
        + %(confidence_weight)s::float8 * (confidence - 0.5) AS prior
    FROM candidates
    CROSS JOIN (
        SELECT
            CASE %(fusion)s::text WHEN 'rrf' THEN 1.0::float8 / (%(rrf_k)s::integer + 1) ELSE 1 END AS part,
            date_part('epoch', %(at)s::timestamptz) AS asked_at,
            ln(2::float8) / (86400 * %(half_life_days)s::float8) AS decay
    ) AS one
),
summed AS (
    SELECT
        *,
        (vector_part + text_part + names_part + recency_part + times_part + neighbours_part) * prior AS total
    FROM parts
),
best AS MATERIALIZED (
    SELECT *
    FROM summed
    WHERE is_found AND (is_timely OR NOT %(only_period)s::boolean)
    ORDER BY total DESC, status, importance DESC, confidence DESC, fact_id
    LIMIT %(ranked)s
),
ranked AS (
    -- One matter is what a key says of a subject of one user or agent: what says more of it than is wanted comes last.
    SELECT
        *,
        CASE
            WHEN key IS NULL THEN 0
            ELSE row_number() OVER (
                PARTITION BY user_id, agent_id, key COLLATE "C", coalesce(lower(subject), '') COLLATE "C"
                ORDER BY total DESC, status, importance DESC, confidence DESC, fact_id
            )
        END AS place_in_matter
    FROM best
),
first AS MATERIALIZED (
    SELECT *
    FROM ranked
    ORDER BY place_in_matter > %(per_matter)s, total DESC, status, importance DESC, confidence DESC, fact_id
    LIMIT %(top_k)s
)
SELECT
    (
        SELECT count(*) FROM scored
        WHERE scored.places IS NULL AND 1 - scored.distance < %(threshold)s::float8 AND %(threshold)s::float8 > 0
    ) AS below_threshold,
    {left_out},
    first.vector_rank, first.similarity, first.vector_part, first.text_rank, first.text_score, first.text_part,
    first.names_part, first.recency_part, first.times_part, first.neighbours_part, first.prior, first.total,
    first.fact_id AS hit_id,
    first.step,
    {messages},
    {fact}
FROM asked
LEFT JOIN (
    {shown}
    CROSS JOIN LATERAL (SELECT * FROM facts WHERE facts.fact_id = first.shown_id LIMIT 1) AS f
    {state}
) ON true
ORDER BY
    first.place_in_matter > %(per_matter)s,
    first.total DESC,
    first.status,
    first.importance DESC,
    first.confidence DESC,
    first.fact_id,
    first.step;

-- name: count_by_ids
-- How many facts a scope holds, active or waiting for a confirmation, by the ids that they name.
SELECT
    array_remove(
        ARRAY[
            CASE WHEN f.user_id <> '' THEN 'user_id' END,
            CASE WHEN f.agent_id <> '' THEN 'agent_id' END,
            CASE WHEN f.app_id <> '' THEN 'app_id' END,
            CASE WHEN f.run_id <> '' THEN 'run_id' END
        ],
        NULL
    ) AS ids,
    count(*) AS facts,
    array_agg(DISTINCT f.embedding_model ORDER BY f.embedding_model) AS models
FROM facts AS f
WHERE f.status IN ('active', 'pending_confirmation')
    AND {scope}
    AND {{holds f %(at)s}}
GROUP BY 1;
