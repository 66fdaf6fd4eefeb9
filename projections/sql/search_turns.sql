-- name: live
-- The turns of a scope as they were received, also those that are not shown.
SELECT
    f.owner,
    f.source_id,
    f.tenant,
    f.user_id,
    f.agent_id,
    f.app_id,
    f.run_id,
    f.topic,
    f.partition,
    f.log_offset,
    f.published_at,
    f.occurred_at,
    f.words,
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
            f.tenant,
            f.user_id,
            f.agent_id,
            f.app_id,
            f.run_id,
            f.source_id,
            f.published_at AS recorded_at,
            f.occurred_at AS event_time,
            f.body -> 'metadata' AS metadata,
            spoken.speaker,
            NULL::uuid AS fact_id,
            NULL::text AS text,
            NULL::text AS key,
            NULL::text AS value,
            NULL::text AS category,
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
    FROM lexemes INNER JOIN word_weights USING (place)
    WHERE heard.words @@ lexemes.lexeme
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
                    ELSE 'over_top_k'
                END AS reason
            FROM summed
            WHERE NOT EXISTS (
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
-- The best turns of a scope by the words that people said in them, the name of a speaker in the question, and their time.
-- All turns of the scope are scanned, since their words are kept with them. What is hidden is looked up for the best ones,
-- until there are enough; but for what came before the last "delete all" of its scope, which is never looked at.
WITH asked AS MATERIALIZED (
    SELECT
        search_words(%(text)s, %(max_words)s) AS query,
        %(text)s::text AS text
),
lexemes AS MATERIALIZED (
    SELECT word.place, word.lexeme::tsquery AS lexeme
    FROM asked
    CROSS JOIN LATERAL unnest(string_to_array(asked.query::text, ' | ')) WITH ORDINALITY AS word (lexeme, place)
),
deletions AS MATERIALIZED (
    -- Up to which record each scope was deleted. Records of one owner are in one partition, as long as there are as many.
    SELECT
        f.tenant,
        f.user_id,
        f.agent_id,
        f.app_id,
        f.run_id,
        f.origin_topic,
        f.origin_partition,
        max(f.origin_offset) AS origin_offset,
        max(f.published_at) AS published_at
    FROM commits AS f
    WHERE f.order_kind = 'delete_all'
        AND f.outcome = 'done'
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
    GROUP BY f.tenant, f.user_id, f.agent_id, f.app_id, f.run_id, f.origin_topic, f.origin_partition
),
scored AS MATERIALIZED (
    SELECT
        live.owner,
        live.source_id,
        live.occurred_at,
        CASE
            WHEN live.words @@ asked.query
                THEN ARRAY(SELECT lexemes.place FROM lexemes WHERE live.words @@ lexemes.lexeme)
        END AS places,
        live.speakers
    FROM asked
    CROSS JOIN LATERAL ({live}) AS live
    WHERE NOT EXISTS (
        SELECT FROM deletions
        WHERE (deletions.tenant, deletions.user_id, deletions.agent_id, deletions.app_id, deletions.run_id)
            = (live.tenant, live.user_id, live.agent_id, live.app_id, live.run_id)
            AND CASE
                WHEN (deletions.origin_topic, deletions.origin_partition) = (live.topic, live.partition)
                    THEN live.log_offset < deletions.origin_offset
                ELSE live.published_at <= deletions.published_at
            END
    )
),
word_sets AS MATERIALIZED (
    -- Which words of the question, by their places, turns have; there are few such sets.
    SELECT places, count(*) AS turns FROM scored WHERE places IS NOT NULL GROUP BY places
),
word_weights AS MATERIALIZED (
    -- The fewer turns have a word, the more it says.
    SELECT
        place,
        ln(1 + (whole.turns - coalesce(found.turns, 0) + 0.5) / (coalesce(found.turns, 0) + 0.5)) AS weight
    FROM lexemes
    CROSS JOIN (SELECT count(*)::float8 AS turns FROM scored) AS whole
    LEFT JOIN (
        SELECT place, sum(word_sets.turns)::float8 AS turns
        FROM word_sets CROSS JOIN LATERAL unnest(word_sets.places) AS place
        GROUP BY place
    ) AS found USING (place)
),
set_scores AS MATERIALIZED (
    SELECT
        word_sets.places,
        (SELECT sum(weight) FROM word_weights WHERE place = ANY(word_sets.places))
        / (SELECT sum(weight) FROM word_weights) AS score
    FROM word_sets
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
        scored.owner,
        scored.source_id,
        scored.occurred_at,
        set_scores.score AS text_score,
        coalesce(occurred_at >= %(period_from)s AND occurred_at < %(period_to)s, false) AS is_timely,
        %(text_weight)s::float8 * set_scores.score AS text_part,
        CASE WHEN scored.speakers && (SELECT named FROM names) THEN %(names_weight)s::float8 ELSE 0 END AS names_part,
        CASE
            WHEN %(recency_weight)s::float8 > 0
                THEN %(recency_weight)s::float8 * exp(-least(
                    greatest(date_part('epoch', %(at)s::timestamptz) - date_part('epoch', scored.occurred_at), 0)
                    * ln(2::float8) / (86400 * %(half_life_days)s::float8),
                    700 -- beyond that it underflows
                ))
            ELSE 0
        END AS recency_part
    FROM scored
    INNER JOIN set_scores USING (places)
),
summed AS MATERIALIZED (
    SELECT
        parts.*,
        time.times_part,
        parts.text_part + parts.names_part + parts.recency_part + time.times_part AS total
    FROM parts
    CROSS JOIN LATERAL (
        SELECT CASE WHEN parts.is_timely THEN %(times_weight)s::float8 ELSE 0 END AS times_part
    ) AS time
),
shown AS MATERIALIZED (
    SELECT best.*, ending.status
    FROM (
        SELECT *
        FROM summed
        WHERE is_timely OR NOT %(only_period)s::boolean
        ORDER BY total DESC, occurred_at DESC, owner, source_id
        OFFSET 0
    ) AS best
    CROSS JOIN LATERAL (SELECT status_of_shown_turn(best.owner, best.source_id) AS status OFFSET 0) AS ending
    WHERE ending.status = ANY(%(statuses)s::text [])
    ORDER BY best.total DESC, best.occurred_at DESC, best.owner, best.source_id
    LIMIT %(top_k)s
)
SELECT
    {left_out},
    shown.source_id AS turn_id,
    journal.tenant,
    nullif(journal.user_id, '') AS user_id,
    nullif(journal.agent_id, '') AS agent_id,
    nullif(journal.app_id, '') AS app_id,
    nullif(journal.run_id, '') AS run_id,
    said.speaker,
    CASE
        WHEN length(said.content) <= 400 THEN said.content
        ELSE left(
            ts_headline(
                'english',
                part.content,
                asked.query,
                'StartSel="", StopSel="", MaxFragments=2, MinWords=10, MaxWords=30, FragmentDelimiter=" … "'
            ),
            1000
        )
    END AS excerpt,
    shown.occurred_at,
    shown.status,
    ARRAY(
        SELECT told.fact_id FROM facts AS told
        WHERE told.owner = shown.owner AND told.source_id = shown.source_id
        ORDER BY told.ordinal, told.fact_id
    ) AS fact_ids,
    coalesce(journal.body -> 'metadata', jsonb_build_object()) AS metadata,
    shown.total,
    shown.text_score,
    shown.text_part,
    shown.names_part,
    shown.recency_part,
    shown.times_part
FROM asked
LEFT JOIN (
    shown
    INNER JOIN turn_journal AS journal ON shown.owner = journal.owner AND shown.source_id = journal.source_id
) ON true
LEFT JOIN LATERAL (
    SELECT
        spoken.speaker,
        spoken.content
    FROM turn_messages(journal.body) AS spoken
    CROSS JOIN LATERAL (SELECT said_words(spoken.content) AS words OFFSET 0) AS heard
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
    CROSS JOIN LATERAL (SELECT said_words(piece.content) AS words OFFSET 0) AS heard
    ORDER BY
        {weight} DESC NULLS LAST,
        place.start
    LIMIT 1
) AS part ON true
ORDER BY shown.total DESC, shown.occurred_at DESC, shown.owner, shown.source_id;
