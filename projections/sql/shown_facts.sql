-- name: known_for
-- Per turn the names of the user, and the active facts that an extraction is shown, in one round trip for all: of the
-- newest facts of exactly its scope those with a word of what is said, the best first; then those of the keys that hold
-- one value whose subject is one of those who speak: keys of the registry and of policies, and facts that say so.
SELECT
    asked.place::integer AS place,
    named.names, shown.fact_id, shown.text, shown.key, shown.value, shown.subject
FROM unnest(
    {{scope_arrays}}, %(speaker)s::text [], %(speakers)s::jsonb [], %(slots)s::jsonb [], %(said)s::text [],
    %(at)s::timestamptz [], %(facts)s::integer []
) WITH ORDINALITY AS asked ({{scope_ids}}, speaker, speakers, slots, said, at, facts, place)
CROSS JOIN LATERAL user_names(
    {{scope_ids asked}}, asked.speaker, %(user_words)s
) AS named (names)
LEFT JOIN LATERAL (
    SELECT
        chosen.*,
        row_number() OVER (PARTITION BY chosen.fact_id ORDER BY chosen.is_slot) AS copy
    FROM (
        (
            SELECT
                recent.fact_id, recent.text, recent.key, recent.value, recent.subject,
                false AS is_slot,
                ts_rank(recent.words, question.words) AS rank,
                recent.recorded_at
            -- OFFSET 0: the words of what is said are found once, and not again for each fact.
            FROM (SELECT search_words(asked.said, %(lexemes)s) AS words OFFSET 0) AS question
            -- The newest by the index of their times; a condition on the status in it makes Postgres sort the whole scope.
            CROSS JOIN LATERAL (
                SELECT newest.*
                FROM (
                    SELECT *
                    FROM facts AS f
                    WHERE {{same_scope f asked}}
                    ORDER BY f.recorded_at DESC
                    OFFSET 0
                ) AS newest
                WHERE newest.status = 'active'
                    AND {{holds newest asked.at}}
                LIMIT %(recent)s
            ) AS recent
            WHERE recent.words @@ question.words
            ORDER BY rank DESC, recent.recorded_at DESC, recent.fact_id
            LIMIT asked.facts
        )
        UNION ALL
        (
            SELECT
                f.fact_id, f.text, f.key, f.value, f.subject,
                true,
                0, f.recorded_at
            FROM (
                SELECT *
                FROM facts AS of_slot
                WHERE of_slot.status = 'active'
                    AND of_slot.key = ANY(ARRAY(SELECT jsonb_array_elements_text(asked.slots)))
                    AND {{same_scope of_slot asked}}
                UNION ALL
                SELECT *
                FROM facts AS of_one
                WHERE of_one.status = 'active'
                    AND of_one.single_valued
                    AND (asked.slots ? of_one.key) IS NOT TRUE
                    AND {{same_scope of_one asked}}
            ) AS f
            WHERE {{holds f asked.at}}
                AND (
                    f.subject IS NULL
                    OR lower(asked.speakers::text)::jsonb ? lower(f.subject)
                    OR lower(f.subject) = ANY(%(user_words)s::text [] || lower(named.names::text)::text [])
                )
            ORDER BY f.recorded_at DESC, f.fact_id
            LIMIT %(limit_of_slots)s
        )
    ) AS chosen
) AS shown ON shown.copy = 1
ORDER BY asked.place, shown.is_slot, shown.rank DESC, shown.recorded_at DESC, shown.fact_id;
