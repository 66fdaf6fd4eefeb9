-- name: projections_shown_entities
-- Which entities and names readers see: those of which a fact tells that was not taken back.

CREATE FUNCTION fact_is_hidden(fact uuid) RETURNS boolean LANGUAGE sql STABLE PARALLEL SAFE
RETURN coalesce(
    (
        SELECT
            CASE
                WHEN said.status IN ('active', 'pending_confirmation') THEN false
                WHEN said.status = 'undone' THEN true
                ELSE EXISTS (
                    WITH RECURSIVE standing AS (
                        SELECT said.fact_id
                        UNION
                        SELECT part.superseded_by
                        FROM standing
                        CROSS JOIN LATERAL (SELECT * FROM facts WHERE facts.fact_id = standing.fact_id OFFSET 0) AS part
                        WHERE part.status = 'superseded' AND part.superseded_by IS NOT NULL
                    )
                    SELECT FROM standing WHERE is_taken_back(standing.fact_id)
                )
            END
        FROM facts AS said
        WHERE said.fact_id = fact_is_hidden.fact
    ),
    true
);
COMMENT ON FUNCTION fact_is_hidden IS
'Whether a fact tells readers nothing any more: it was undone, or a command took it back, or what it was merged into or '
'replaced by.';

CREATE VIEW shown_entity_names AS
SELECT n.*
FROM current_entity_names AS n
WHERE EXISTS (SELECT FROM entity_aliases AS own WHERE own.entity_id = n.entity_id AND own.kind = 'user' AND own.is_current)
    OR EXISTS (SELECT FROM entity_changes AS given WHERE given.event_id = n.event_id)
    OR EXISTS (
        SELECT
        FROM current_entity_links AS link
        CROSS JOIN LATERAL (SELECT * FROM facts WHERE facts.fact_id = link.fact_id OFFSET 0) AS f
        WHERE link.entity_id = n.entity_id
            AND (
                (f.owner, f.source_id) = (n.owner, n.source_id)
                OR strpos(lower(concat_ws(' ', f.text, f.subject, f.excerpt)), lower(n.alias)) > 0
            )
            AND NOT fact_is_hidden(f.fact_id)
    )
    OR (
        NOT EXISTS (
            SELECT
            FROM current_entity_links AS link
            CROSS JOIN LATERAL (SELECT * FROM facts WHERE facts.fact_id = link.fact_id OFFSET 0) AS f
            WHERE link.entity_id = n.entity_id AND (f.owner, f.source_id) = (n.owner, n.source_id)
        )
        AND EXISTS (
            SELECT FROM facts AS f
            WHERE (f.owner, f.source_id) = (n.owner, n.source_id) AND NOT fact_is_hidden(f.fact_id)
        )
    );
COMMENT ON VIEW shown_entity_names IS
'The names of entities that readers see: the user''s, those that a person gave, and those that a fact tells that was not '
'taken back: a fact of their turn that names the entity, or another one that has the name in its words.';

CREATE VIEW shown_entities AS
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
            min(e.name) FILTER (WHERE strpos(lower(n.alias), lower(e.name)) > 0),
            (array_agg(n.alias ORDER BY n.recorded_at, n.place, n.kind, n.key))[1],
            e.name
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
'shown names where none of them has its own in it.';
