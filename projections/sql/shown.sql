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
CROSS JOIN LATERAL user_names({{scope_ids asked}}, asked.speaker, %(user_words)s) AS named (names)
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

-- name: entities_for
-- Per turn the entities of exactly its scope whose names an extraction is shown, in one round trip for all turns: those
-- whose names or whose ties to the user are in what is said, then those that are something to the user. The user is none.
SELECT
    asked.place::integer AS place,
    shown.entity_id, shown.name, shown.type,
    shown.names[:%(aliases)s + 1] AS names,
    shown.ties[:%(aliases)s] AS ties,
    shown.twins[:%(aliases)s] AS twins,
    CASE
        WHEN shown.is_said THEN ARRAY(
            SELECT jsonb_build_object(
                'fact_id', f.fact_id, 'text', f.text, 'key', f.key, 'value', f.value, 'subject', f.subject
            )
            FROM (
                SELECT
                    link.fact_id,
                    bool_or(link.role = 'subject') AS is_subject
                FROM fact_entities AS link
                WHERE link.current_id = shown.entity_id
                GROUP BY link.fact_id
                OFFSET 0
            ) AS linked
            CROSS JOIN LATERAL (SELECT * FROM facts WHERE facts.fact_id = linked.fact_id OFFSET 0) AS f
            WHERE f.status = 'active'
                AND {{same_scope f asked}}
                AND {{holds f asked.at}}
            ORDER BY linked.is_subject DESC, f.recorded_at DESC, f.fact_id
            LIMIT asked.facts
        )
        ELSE ARRAY[]::jsonb []
    END AS facts
FROM unnest(
    {{scope_arrays}}, %(said)s::text [], %(heads)s::jsonb [], %(said_ties)s::jsonb [], %(predicates)s::jsonb [],
    %(at)s::timestamptz [], %(entities)s::integer [], %(facts)s::integer []
) WITH ORDINALITY AS asked (
    {{scope_ids}}, said, heads, said_ties, predicates, at, entities, facts, place
)
CROSS JOIN LATERAL (
    WITH own AS MATERIALIZED (
        SELECT n.current_id AS entity_id
        FROM entity_aliases AS n
        WHERE n.head = '@user'
            AND n.kind = 'user'
            AND n.current_id IS NOT NULL
            AND {{same_scope n asked}}
        LIMIT 1
    ),

    heard AS MATERIALIZED (
        SELECT
            n.current_id AS entity_id, n.shown,
            split_part(n.key, ' (', 1) AS name
        FROM entity_aliases AS n
        WHERE n.head = ANY(ARRAY(SELECT jsonb_array_elements_text(asked.heads)))
            AND n.kind = 'name'
            -- Scripts that put no space between words have names of two signs.
            AND (length(split_part(n.key, ' (', 1)) >= 3 OR n.key ~ '^[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]{2}')
            AND n.shown IS NOT NULL
            AND {{same_scope n asked}}
        ORDER BY n.recorded_at DESC, n.current_id, n.key
        LIMIT %(looked_at)s
    ),

    said AS MATERIALIZED (
        SELECT named.name
        FROM (SELECT array_agg(heard.name) || array_agg(heard.shown) AS names FROM heard) AS every
        CROSS JOIN LATERAL named_in(asked.said, every.names) AS named (name)
        WHERE every.names IS NOT NULL
    ),

    tied AS MATERIALIZED (
        SELECT
            n.current_id AS entity_id,
            asked.said_ties ? n.head AS is_said
        FROM own
        CROSS JOIN entity_aliases AS n
        WHERE n.head = ANY(%(ties)s::text [])
            AND n.kind = 'tie'
            AND {{same_scope n asked}}
            AND right(n.current_key, 36) = own.entity_id::text
            AND n.shown IS NOT NULL
        ORDER BY is_said DESC, n.recorded_at DESC, n.current_id, n.key
        LIMIT %(looked_at)s
    ),

    chosen AS (
        SELECT
            found.entity_id,
            bool_or(found.is_said) IS TRUE AS is_said
        FROM (
            SELECT
                heard.entity_id,
                true AS is_said
            FROM heard
            WHERE heard.name IN (SELECT said.name FROM said) OR heard.shown IN (SELECT said.name FROM said)
            UNION ALL
            SELECT * FROM tied
            UNION ALL
            SELECT
                related.entity_id,
                asked.predicates ? related.predicate
            FROM own
            CROSS JOIN LATERAL related_entities(own.entity_id, %(looked_at)s) AS related
        ) AS found
        WHERE found.entity_id NOT IN (SELECT own.entity_id FROM own)
        GROUP BY found.entity_id
        ORDER BY is_said DESC, found.entity_id
        LIMIT asked.entities
    )

    SELECT
        e.*,
        chosen.is_said
    FROM chosen
    CROSS JOIN LATERAL shown_entity_details(chosen.entity_id) AS e
) AS shown
ORDER BY asked.place, shown.is_said DESC, shown.recorded_at DESC, shown.entity_id;
