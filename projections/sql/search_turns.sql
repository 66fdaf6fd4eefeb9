-- name: live
-- The turns of a scope as they were received, also those that are not shown.
SELECT
    f.owner, f.source_id, {{scope_ids f}}, f.topic, f.partition, f.log_offset, f.published_at, f.occurred_at, f.words,
    f.speakers
FROM turn_journal AS f
WHERE {scope}
    AND f.refusal IS NULL
    AND (%(believed_at)s::timestamptz IS NULL OR f.published_at <= %(believed_at)s)
    AND {filter}

-- name: filtered
-- A filter on facts, asked of a turn: it has those fields of a fact that it gives to all its facts, for each speaker.
EXISTS (
    SELECT
    FROM (
        SELECT
            {{scope_ids f}}, f.source_id,
            f.published_at AS recorded_at,
            f.occurred_at AS event_time,
            f.body -> 'metadata' AS metadata,
            spoken.speaker,
            NULL::uuid AS fact_id,
            NULL::text AS text,
            NULL::text AS key,
            NULL::text AS value,
            NULL::text AS category,
            NULL::text [] AS more_categories,
            NULL::text AS status,
            NULL::text AS subject,
            NULL::float8 AS importance,
            NULL::float8 AS confidence,
            NULL::timestamptz AS state_since,
            NULL::timestamptz AS valid_until,
            NULL::timestamptz AS true_from,
            NULL::timestamptz AS true_to
        FROM unnest(coalesce(f.speakers, ARRAY[NULL::text])) AS spoken (speaker)
    ) AS f
    WHERE {filter}
)

-- name: weight
-- How much the words of the question say that a text has.
(
    SELECT sum(word_weights.weight)
    FROM words INNER JOIN word_weights USING (place)
    WHERE said_in.words @@ words.lexemes
)

-- name: left_out
-- Why turns with a word of the question are no hits: how many for each reason. Those before the last hit were looked up.
(
    SELECT jsonb_object_agg(others.reason, others.turns)
    FROM (
        SELECT found.reason, count(*) AS turns
        FROM (
            SELECT
                CASE
                    WHEN %(only_period)s::boolean AND NOT summed.is_timely THEN 'outside_period'
                    WHEN (SELECT count(*) FROM shown) < %(top_k)s
                        OR (-summed.total, -date_part('epoch', summed.occurred_at), summed.owner, summed.source_id) < (
                            SELECT -shown.total, -date_part('epoch', shown.occurred_at), shown.owner, shown.source_id
                            FROM shown
                            ORDER BY shown.total, shown.occurred_at, shown.owner DESC, shown.source_id DESC
                            LIMIT 1
                        )
                        THEN 'not_shown'
                    ELSE 'over_limit'
                END AS reason
            FROM summed
            WHERE summed.text_score IS NOT NULL
                AND NOT EXISTS (
                    SELECT FROM shown WHERE shown.owner = summed.owner AND shown.source_id = summed.source_id
                )
        ) AS found
        GROUP BY found.reason
    ) AS others
) AS left_out

-- name: nothing_left_out
-- Where nobody asks for it.
NULL::jsonb AS left_out

-- name: turns
-- The best turns of a scope by the words that people said in them or just before and after, the name of a speaker in the
-- question, and their time. All turns of the scope are scanned, since their words are kept with them. What is hidden is looked
-- up for the best ones and for what stands beside them, until there are enough; but for what came before the last "delete all"
-- of its scope, which is never looked at.
WITH words AS MATERIALIZED (
    SELECT word.* FROM question_words(%(text)s, %(max_words)s) AS word
),
asked AS MATERIALIZED (
    SELECT
        %(text)s::text AS text,
        (SELECT string_agg(words.lexemes::text, ' | ' ORDER BY words.place)::tsquery FROM words) AS query
),
deletions AS MATERIALIZED (
    -- Up to which record each scope was deleted. Records of one owner are in one partition, as long as there are as many.
    SELECT
        {{scope_ids f}}, f.origin_topic, f.origin_partition,
        max(f.origin_offset) AS origin_offset,
        max(f.published_at) AS published_at
    FROM commits AS f
    WHERE f.order_kind = 'delete_all'
        AND f.outcome = 'done'
        AND f.reason IS DISTINCT FROM 'nothing_selected'
        AND {scope}
        AND (
            NOT EXISTS (
                SELECT FROM memory_events AS taking WHERE taking.owner = f.owner AND taking.source_id = f.source_id
            )
            OR EXISTS (
                SELECT
                FROM memory_events AS taking
                WHERE taking.owner = f.owner
                    AND taking.source_id = f.source_id
                    AND NOT EXISTS (SELECT FROM undone WHERE undone.event_id = taking.event_id)
            )
        )
    GROUP BY {{scope_ids f}}, f.origin_topic, f.origin_partition
),
scored AS MATERIALIZED (
    SELECT
        live.owner, live.source_id, live.occurred_at, live.user_id, live.agent_id, live.app_id, live.run_id,
        live.log_offset,
        CASE
            WHEN live.words @@ asked.query
                THEN ARRAY(SELECT words.place FROM words WHERE live.words @@ words.lexemes)
        END AS places,
        live.speakers
    FROM asked
    CROSS JOIN LATERAL ({live}) AS live
    WHERE NOT EXISTS (
        SELECT FROM deletions
        WHERE {{same_scope deletions live}}
            AND CASE
                WHEN (deletions.origin_topic, deletions.origin_partition) = (live.topic, live.partition)
                    THEN live.log_offset < deletions.origin_offset
                ELSE live.published_at <= deletions.published_at
            END
    )
),
word_sets AS MATERIALIZED (
    -- Which words of the question, by their places, turns have; there are few such sets.
    SELECT
        places,
        count(*) AS turns,
        (SELECT bit_or(1::bigint << (place - 1)::integer) FROM unnest(places) AS place WHERE place <= 63) AS bits
    FROM scored
    WHERE places IS NOT NULL
    GROUP BY places
),
word_weights AS MATERIALIZED (
    -- The fewer turns have a word, the more it says.
    SELECT
        place,
        ln(1 + (whole.turns - coalesce(found.turns, 0) + 0.5) / (coalesce(found.turns, 0) + 0.5)) AS weight
    FROM words
    CROSS JOIN (SELECT count(*)::float8 AS turns FROM scored) AS whole
    LEFT JOIN (
        SELECT place, sum(word_sets.turns)::float8 AS turns
        FROM word_sets CROSS JOIN LATERAL unnest(word_sets.places) AS place
        GROUP BY place
    ) AS found USING (place)
),
set_scores AS MATERIALIZED (
    SELECT
        word_sets.places, word_sets.bits,
        (SELECT sum(weight) FROM word_weights WHERE place = ANY(word_sets.places))
        / (SELECT sum(weight) FROM word_weights) AS score
    FROM word_sets
),
placed AS MATERIALIZED (
    -- What was said just before and after a turn, and next to that, within an hour: the first 63 words of the question as
    -- bits of a number.
    SELECT
        scored.owner, scored.source_id, scored.occurred_at, scored.speakers,
        set_scores.score AS text_score,
        coalesce(set_scores.bits, 0) AS own,
        CASE
            WHEN %(neighbours_weight)s::float8 = 0 THEN ARRAY[]::bigint []
            ELSE ARRAY[
                CASE WHEN occurred_at - lag(occurred_at) OVER said <= '1 hour' THEN lag(set_scores.bits) OVER said END,
                CASE WHEN lead(occurred_at) OVER said - occurred_at <= '1 hour' THEN lead(set_scores.bits) OVER said END,
                CASE WHEN occurred_at - lag(occurred_at, 2) OVER said <= '1 hour' THEN lag(set_scores.bits, 2) OVER said END,
                CASE WHEN lead(occurred_at, 2) OVER said - occurred_at <= '1 hour' THEN lead(set_scores.bits, 2) OVER said END
            ]
        END AS beside,
        ARRAY[
            lag(source_id) OVER said, lead(source_id) OVER said, lag(source_id, 2) OVER said, lead(source_id, 2) OVER said
        ] AS sources
    FROM scored
    LEFT JOIN set_scores USING (places)
    WINDOW said AS (PARTITION BY owner, user_id, agent_id, app_id, run_id ORDER BY occurred_at, log_offset, source_id)
),
near AS (
    SELECT
        placed.*,
        (coalesce(beside[1], 0) | coalesce(beside[2], 0)) & ~own AS close,
        (coalesce(beside[3], 0) | coalesce(beside[4], 0)) & ~(own | coalesce(beside[1], 0) | coalesce(beside[2], 0)) AS far
    FROM placed
),
heard AS MATERIALIZED (
    SELECT * FROM near WHERE text_score IS NOT NULL OR close | far <> 0
),
near_scores AS MATERIALIZED (
    -- How much the words say that turns have beside them; there are few such sets.
    SELECT
        one.bits,
        (
            SELECT sum(weight) FILTER (WHERE place <= 63 AND ((one.bits >> (place - 1)::integer) & 1) = 1) / sum(weight)
            FROM word_weights
        ) AS score
    FROM (SELECT close AS bits FROM heard UNION SELECT far FROM heard) AS one
    WHERE one.bits <> 0
),
names AS MATERIALIZED (
    -- The speakers that the question names; there are few different ones.
    SELECT array_agg(named.name) AS named
    FROM asked
    CROSS JOIN LATERAL named_in(
        asked.text, ARRAY(SELECT DISTINCT who FROM scored CROSS JOIN LATERAL unnest(scored.speakers) AS who)
    ) AS named (name)
),
parts AS (
    SELECT
        heard.*,
        coalesce(occurred_at >= %(period_from)s AND occurred_at < %(period_to)s, false) AS is_timely,
        %(text_weight)s::float8 * coalesce(heard.text_score, 0) AS text_part,
        %(text_weight)s::float8 * %(neighbours_weight)s::float8
        * (coalesce(close.score, 0) + coalesce(far.score, 0) / 2) AS neighbours_part,
        CASE WHEN heard.speakers && (SELECT named FROM names) THEN %(names_weight)s::float8 ELSE 0 END AS names_part,
        CASE
            WHEN %(recency_weight)s::float8 > 0
                THEN %(recency_weight)s::float8 * exp(-least(
                    greatest(date_part('epoch', %(at)s::timestamptz) - date_part('epoch', heard.occurred_at), 0)
                    * ln(2::float8) / (86400 * %(half_life_days)s::float8),
                    700 -- beyond that it underflows
                ))
            ELSE 0
        END AS recency_part
    FROM heard
    LEFT JOIN near_scores AS close ON heard.close = close.bits
    LEFT JOIN near_scores AS far ON heard.far = far.bits
),
summed AS MATERIALIZED (
    SELECT
        parts.*,
        time.times_part,
        parts.text_part + parts.neighbours_part + parts.names_part + parts.recency_part + time.times_part AS total
    FROM parts
    CROSS JOIN LATERAL (
        SELECT CASE WHEN parts.is_timely THEN %(times_weight)s::float8 ELSE 0 END AS times_part
    ) AS time
),
shown AS MATERIALIZED (
    SELECT best.*, ending.status, beside.part AS shown_part
    FROM (
        SELECT *
        FROM summed
        WHERE is_timely OR NOT %(only_period)s::boolean
        ORDER BY total DESC, occurred_at DESC, owner, source_id
        OFFSET 0
    ) AS best
    CROSS JOIN LATERAL (SELECT status_of_shown_turn(best.owner, best.source_id) AS status OFFSET 0) AS ending
    CROSS JOIN LATERAL (
        -- Words beside it count where their turn may be shown itself, so that nothing tells what was taken back.
        SELECT
            CASE
                WHEN best.close | best.far = 0 THEN 0
                ELSE %(text_weight)s::float8 * %(neighbours_weight)s::float8 * (
                    SELECT coalesce(
                        sum(word_weights.weight * said.counts) / (SELECT sum(weight) FROM word_weights), 0
                    )
                    FROM word_weights
                    INNER JOIN (
                        SELECT
                            word.place,
                            max(CASE WHEN turn.number <= 2 THEN 1 ELSE 0.5 END) AS counts
                        FROM unnest(best.beside, best.sources) WITH ORDINALITY AS turn (bits, source_id, number)
                        INNER JOIN words AS word
                            ON word.place <= 63 AND (((turn.bits & ~best.own) >> (word.place - 1)::integer) & 1) = 1
                        WHERE turn.bits & ~best.own <> 0
                            AND status_of_shown_turn(best.owner, turn.source_id) = ANY(%(statuses)s::text [])
                        GROUP BY word.place
                    ) AS said USING (place)
                )
            END AS part
        OFFSET 0
    ) AS beside
    WHERE ending.status = ANY(%(statuses)s::text [])
        AND (best.text_score IS NOT NULL OR beside.part > 0)
    ORDER BY best.total DESC, best.occurred_at DESC, best.owner, best.source_id
    LIMIT %(top_k)s
)
SELECT
    {left_out},
    shown.source_id AS turn_id,
    {{shown_scope journal}}, said.speaker,
    CASE
        WHEN length(said.content) <= 400 THEN said.content
        ELSE left(
            ts_headline(
                'english', part.content, asked.query,
                'StartSel="", StopSel="", MaxFragments=2, MinWords=10, MaxWords=30, FragmentDelimiter=" … "'
            ),
            1000
        )
    END AS excerpt,
    shown.occurred_at, shown.status,
    ARRAY(
        SELECT told.fact_id FROM facts AS told
        WHERE told.owner = shown.owner AND told.source_id = shown.source_id
        ORDER BY told.ordinal, told.fact_id
    ) AS fact_ids,
    coalesce(journal.body -> 'metadata', jsonb_build_object()) AS metadata,
    shown.total - shown.neighbours_part + shown.shown_part AS total,
    coalesce(shown.text_score, 0) AS text_score,
    shown.text_part,
    shown.shown_part AS neighbours_part,
    shown.names_part, shown.recency_part, shown.times_part
FROM asked
LEFT JOIN (
    shown
    INNER JOIN turn_journal AS journal ON shown.owner = journal.owner AND shown.source_id = journal.source_id
) ON true
LEFT JOIN LATERAL (
    SELECT spoken.speaker, spoken.content
    FROM turn_messages(journal.body) AS spoken
    CROSS JOIN LATERAL (SELECT said_words(spoken.content) AS words OFFSET 0) AS said_in
    ORDER BY
        {weight} DESC NULLS LAST,
        spoken.place
    LIMIT 1
) AS said ON true
LEFT JOIN LATERAL (
    -- An excerpt of all of a long message would take some .2 s. Parts overlap by more than an excerpt has around a word.
    SELECT piece.content
    FROM generate_series(1, length(said.content), 800) AS place (start)
    CROSS JOIN LATERAL (SELECT substr(said.content, place.start, 1000) AS content OFFSET 0) AS piece
    CROSS JOIN LATERAL (SELECT said_words(piece.content) AS words OFFSET 0) AS said_in
    WHERE length(said.content) > 400
    ORDER BY
        {weight} DESC NULLS LAST,
        place.start
    LIMIT 1
) AS part ON true
ORDER BY shown.total - shown.neighbours_part + shown.shown_part DESC, shown.occurred_at DESC, shown.owner, shown.source_id;
