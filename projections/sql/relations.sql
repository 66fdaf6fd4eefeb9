-- name: listed_relations
-- The relations of a scope, the oldest first: those that hold or all, as they were stated or also read from their objects,
-- all or those of a subject or a predicate, as was known at one time to hold at another, NULL for now. Where several
-- relations hold of a predicate that has one object at a time, they are contested.
WITH found AS (
    SELECT
        {{scope_ids e}},
        r.*,
        r.is_active AND r.predicate = ANY(%(single_valued)s::text [])
        AND count(*) FILTER (WHERE r.is_active) OVER (PARTITION BY r.subject_id, r.predicate) > 1 AS is_contested
    FROM shown_relations(ARRAY({relation_ids}), %(believed_at)s::timestamptz, %(true_at)s::timestamptz) AS r
    CROSS JOIN LATERAL (SELECT * FROM entities WHERE entities.entity_id = r.subject_id OFFSET 0) AS e
)
SELECT
    {{shown_scope found}}, found.subject_id, found.subject, found.predicate, found.object_id, found.object,
    found.is_active, found.is_mirror, found.is_contested,
    found.strength, found.since, found.until, found.recorded_at, found.evidence, found.endings
FROM found
WHERE (%(all_versions)s OR found.is_active)
    AND (%(mirrors)s OR NOT found.is_mirror)
    AND (%(subject_ids)s::uuid [] IS NULL OR found.subject_id = ANY(%(subject_ids)s))
    AND (%(predicate)s::text IS NULL OR found.predicate = %(predicate)s)
ORDER BY found.recorded_at, found.ordinal, found.is_mirror, found.predicate, found.subject_id, found.object_id;

-- name: relations_of_scope
-- The relations of a scope with a predicate, or all; of these the newest, or all.
SELECT r.relation_id
FROM relationships AS r
WHERE {scope} AND (%(predicate)s::text IS NULL OR %(predicate)s IN (r.predicate, r.inverse))
ORDER BY r.recorded_at DESC, r.ordinal DESC, r.relation_id DESC
LIMIT %(limit)s

-- name: relations_of_entities
-- The relations of these entities, also of those that were merged into them or that a split made them of, with a
-- predicate, or all; of these the newest, or all.
WITH members AS (
    SELECT e.entity_id FROM entities AS e WHERE e.head_id = ANY(%(subject_ids)s::uuid [])
),

named AS (
    SELECT members.entity_id FROM members
    UNION
    SELECT moved.entity_id
    FROM members
    CROSS JOIN LATERAL (SELECT * FROM fact_entities AS link WHERE link.moved_to = members.entity_id OFFSET 0) AS moved
)

SELECT r.relation_id
FROM named
CROSS JOIN LATERAL (
    SELECT * FROM relationships AS stated WHERE stated.subject_id = named.entity_id
    UNION ALL
    SELECT * FROM relationships AS stated WHERE stated.object_id = named.entity_id
    OFFSET 0
) AS r
WHERE %(predicate)s::text IS NULL OR %(predicate)s IN (r.predicate, r.inverse)
ORDER BY r.recorded_at DESC, r.ordinal DESC, r.relation_id DESC
LIMIT %(limit)s

-- name: aliases_of
-- The keys of the shown names of these entities.
SELECT alias.current_id, alias.kind, alias.current_key
FROM entity_aliases AS alias
WHERE alias.current_id = ANY(%(entity_ids)s::uuid []) AND alias.shown IS NOT NULL;

-- name: given_ties
-- The entities of a scope that persons had given ties with these keys ("wife of <id>") at a time, NULL for now.
SELECT DISTINCT alias.current_id, alias.current_key
FROM entity_aliases AS alias
WHERE {scope}
    AND alias.current_id IS NOT NULL
    AND alias.head = %(head)s
    AND alias.kind = 'tie'
    AND alias.current_key = ANY(%(keys)s::text [])
    AND alias.recorded_at <= coalesce(%(believed_at)s::timestamptz, 'infinity')
    AND EXISTS (SELECT FROM entity_changes AS given WHERE given.event_id = alias.event_id);

-- name: timeline_of_entity
-- What happened to an entity: names, facts that began and ended, relations that were stated and ended; nothing of facts
-- that were taken back.
SELECT
    alias.recorded_at AS at,
    'named' AS change,
    alias.shown AS text,
    NULL::uuid AS fact_id
FROM entity_aliases AS alias
WHERE alias.current_id = %(entity_id)s AND alias.shown IS NOT NULL
UNION ALL
SELECT f.recorded_at, 'learned', f.text, f.fact_id
FROM (SELECT DISTINCT fact_id FROM fact_entities WHERE current_id = %(entity_id)s) AS link
INNER JOIN facts AS f ON link.fact_id = f.fact_id
WHERE NOT f.is_hidden
UNION ALL
SELECT
    coalesce(f.believed_to, f.closed_at),
    CASE WHEN f.believed_to IS NULL THEN 'ended' ELSE 'withdrawn' END,
    f.text, f.fact_id
FROM (SELECT DISTINCT fact_id FROM fact_entities WHERE current_id = %(entity_id)s) AS link
INNER JOIN facts AS f ON link.fact_id = f.fact_id
WHERE coalesce(f.believed_to, f.closed_at) IS NOT NULL
    AND NOT f.is_hidden
UNION ALL
SELECT
    said.recorded_at,
    CASE WHEN said.ended_at IS NULL THEN 'related' ELSE 'relation_ended' END,
    subject.shown_name || ' ' || r.predicate || ' ' || object.shown_name,
    said.fact_id
FROM relationships AS r
INNER JOIN current_evidence AS said ON r.relation_id = said.relation_id
CROSS JOIN LATERAL ( -- several events may have linked one
    SELECT
        min(link.moved_to::text) FILTER (WHERE link.entity_id = r.subject_id)::uuid AS subject_id,
        min(link.moved_to::text) FILTER (WHERE link.entity_id = r.object_id)::uuid AS object_id
    FROM fact_entities AS link
    WHERE link.fact_id = said.fact_id
) AS moved
INNER JOIN entities AS was ON coalesce(moved.subject_id, r.subject_id) = was.entity_id
INNER JOIN entities AS whom ON coalesce(moved.object_id, r.object_id) = whom.entity_id
INNER JOIN entities AS subject ON was.head_id = subject.entity_id
INNER JOIN entities AS object ON whom.head_id = object.entity_id
INNER JOIN facts AS f ON said.fact_id = f.fact_id
WHERE r.relation_id = ANY(ARRAY({relation_ids}))
    AND %(entity_id)s IN (subject.entity_id, object.entity_id) AND subject.entity_id <> object.entity_id
    AND subject.shown_name IS NOT NULL AND object.shown_name IS NOT NULL
    AND NOT f.is_hidden
ORDER BY at, change, text, fact_id;
