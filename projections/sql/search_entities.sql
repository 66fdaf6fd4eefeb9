-- name: names_of_scope
-- The names in a scope, as they are now, that may be in the question.
SELECT
    f.entity_id,
    split_part(f.key, ' (', 1) AS name,
    f.alias
FROM shown_entity_names AS f
WHERE {scope} AND f.head = ANY(%(heads)s::text []) AND f.kind = 'name'

-- name: users_of_scope
-- The user as an entity.
SELECT f.entity_id
FROM current_entity_names AS f
WHERE {scope} AND f.head = '@user' AND f.kind = 'user'

-- name: relations_of_scope
-- What holds between the entities of a scope.
SELECT
    held.subject_id,
    held.predicate,
    held.object_id
FROM scopes AS f
CROSS JOIN LATERAL shown_relations_of_scope(f.tenant, f.user_id, f.agent_id, f.app_id, f.run_id) AS held
WHERE {scope} AND held.is_active

-- name: by_names
-- The entities that the question names, by each name; a name within a longer one of the question is not one of its own.
-- The user is no such entity: too many facts are about them.
known_names AS MATERIALIZED (
    SELECT known.* FROM asked CROSS JOIN LATERAL ({names}) AS known
),
said_names AS MATERIALIZED (
    SELECT DISTINCT
        known.entity_id,
        known.name AS said
    FROM known_names AS known
    WHERE ARRAY[known.name, known.alias] && ARRAY(
        SELECT named.name
        FROM asked
        CROSS JOIN LATERAL named_in(
            asked.text, ARRAY(SELECT name FROM known_names UNION SELECT alias FROM known_names)
        ) AS named (name)
    )
),
{tied}
meant AS MATERIALIZED (
    SELECT
        e.entity_id,
        e.name,
        found.said
    FROM (
        SELECT
            one.entity_id,
            one.said
        FROM said_names AS one
        WHERE NOT EXISTS (
            SELECT FROM said_names AS longer
            WHERE longer.said <> one.said AND strpos(' ' || longer.said || ' ', ' ' || one.said || ' ') > 0
        )
        {by_ties}
    ) AS found
    CROSS JOIN LATERAL (SELECT * FROM shown_entities WHERE shown_entities.entity_id = found.entity_id LIMIT 1) AS e
    WHERE NOT EXISTS (
        SELECT FROM current_entity_names AS own
        WHERE own.entity_id = e.entity_id AND own.kind = 'user'
    )
),
linked AS MATERIALIZED (
    SELECT
        link.fact_id,
        count(DISTINCT meant.said)::float8 / (SELECT count(DISTINCT every.said) FROM meant AS every) AS share
    FROM meant
    CROSS JOIN LATERAL (
        SELECT now_linked.fact_id
        FROM current_entity_links AS now_linked
        WHERE now_linked.entity_id = meant.entity_id
        OFFSET 0
    ) AS link
    GROUP BY link.fact_id
),

-- name: by_ties
-- Those that the question names by what they are to the user or to somebody else ("my wife", "Ana's dog", "my wife's dog").
UNION ALL
SELECT
    tied.entity_id,
    '@' || tied.number
FROM tied

-- name: tied
-- What the question says of ties, step by step: in `held` are the relations that hold.
phrases AS MATERIALIZED (
    SELECT phrase.*
    FROM unnest(
        %(tie_owners)s::text [],
        %(tie_predicates)s::text [],
        %(tie_words)s::text [],
        %(tie_names)s::text [],
        %(next_predicates)s::text [],
        %(next_words)s::text [],
        %(next_names)s::text []
    ) WITH ORDINALITY AS phrase (owner, predicate, word, name, next_predicate, next_word, next_name, number)
),
held AS MATERIALIZED (
    SELECT known.* FROM asked CROSS JOIN LATERAL ({relations}) AS known
),
owners AS MATERIALIZED (
    SELECT
        phrases.number,
        phrases.predicate,
        phrases.word,
        phrases.name,
        known.entity_id
    FROM phrases
    CROSS JOIN LATERAL (
        SELECT known_names.entity_id
        FROM known_names
        WHERE known_names.name = phrases.owner
            OR right(phrases.owner, length(known_names.name) + 1) = ' ' || known_names.name
        UNION
        SELECT of_user.entity_id FROM ({users}) AS of_user WHERE phrases.owner = ''
    ) AS known
),
first_tied AS MATERIALIZED (
    {first_step}
),
next_owners AS MATERIALIZED (
    SELECT
        first_tied.number,
        phrases.next_predicate AS predicate,
        phrases.next_word AS word,
        phrases.next_name AS name,
        first_tied.entity_id
    FROM first_tied
    INNER JOIN phrases USING (number)
    WHERE phrases.next_predicate <> ''
),
tied AS MATERIALIZED (
    SELECT first_tied.number, first_tied.entity_id
    FROM first_tied
    INNER JOIN phrases USING (number)
    WHERE phrases.next_predicate = ''
    UNION ALL
    {next_step}
),

-- name: step
-- What the owners' ties lead to: of several those that have the name that was said, if any, and that are called so, if
-- any, else those that are called nothing else of this owner.
SELECT
    fitting.number,
    fitting.entity_id
FROM (
    SELECT
        related.*,
        max(related.fit) OVER (PARTITION BY related.number) AS best_fit
    FROM (
        SELECT
            owned.number,
            held.object_id AS entity_id,
            max(called.fit) AS fit
        FROM {owners} AS owned
        INNER JOIN held ON owned.entity_id = held.subject_id AND owned.predicate = held.predicate
        CROSS JOIN LATERAL (
            SELECT
                CASE
                    WHEN owned.word = '' OR bool_or(named.current_key = owned.word || ' of ' || owned.entity_id) THEN 2
                    WHEN bool_or(named.kind = 'tie' AND right(named.current_key, 36) = owned.entity_id::text) THEN 0
                    ELSE 1
                END
                + CASE
                    WHEN owned.name <> ''
                        AND bool_or(
                            named.kind = 'name'
                            AND owned.name IN (split_part(named.key, ' (', 1), split_part(named.key, ' ', 1))
                        )
                        THEN 10
                    ELSE 0
                END AS fit
            FROM shown_entity_names AS named
            WHERE named.entity_id = held.object_id
        ) AS called
        GROUP BY owned.number, held.object_id
    ) AS related
) AS fitting
WHERE fitting.fit = fitting.best_fit AND mod(fitting.fit, 10) > 0

-- name: entity_share
-- How many of the entities of the question a fact names, as a share.
coalesce(linked.share, 0) AS entity_share

-- name: with_links
-- The facts that name an entity of the question.
LEFT JOIN linked USING (fact_id)

-- name: meant
-- Whom and what the question names, where somebody asks for it.
(
    SELECT jsonb_agg(DISTINCT jsonb_build_object('entity_id', meant.entity_id, 'name', meant.name)) FROM meant
) AS meant

-- name: unlinked
-- What names nobody of the question.
AND scored.fact_id NOT IN (SELECT linked.fact_id FROM linked)
