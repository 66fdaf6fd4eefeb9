CREATE TEMPORARY TABLE made AS
SELECT
    md5(user_id || '/entity/' || number)::uuid AS entity_id, owner, user_id, number,
    initcap(translate(left(md5(number::text), 8), '0123456789', 'ghijklmnop')) AS name,
    md5(user_id || '/entity/0')::uuid AS of_user, min(recorded_at) AS recorded_at, min(source_id) AS source_id
FROM (SELECT *, substr(source_id, 2)::integer / %(facts)s AS number FROM facts) AS f
GROUP BY owner, user_id, number;
INSERT INTO entities (
    entity_id, owner, tenant, user_id, name, type, possible_twins, event_id, source_id, recorded_at, ordinal, shown_name
)
SELECT entity_id, owner, 'default', user_id, name, 'person', '{}', entity_id, source_id, recorded_at, 1, name FROM made;
INSERT INTO entity_aliases (
    entity_id, kind, key, current_key, head, alias, place, event_id, recorded_at, tenant, user_id, owner, source_id, is_own
)
SELECT entity_id, 'name', lower(name), lower(name), left(lower(name), 3), name, 0, entity_id, recorded_at, 'default', user_id,
    owner, source_id, true
FROM made
UNION ALL
SELECT entity_id, 'user', 'user', 'user', '@user', name, 1, entity_id, recorded_at, 'default', user_id, owner, source_id,
    true
FROM made WHERE number = 0
UNION ALL
SELECT entity_id, 'tie', 'wife of ' || of_user, 'wife of ' || of_user, '@wife', 'my wife', 1, entity_id, recorded_at, 'default', user_id,
    owner, source_id, false
FROM made WHERE number = 1;
UPDATE entity_aliases SET current_id = entity_id, shown = alias;
INSERT INTO name_vectors (entity_id, key, event_id, model, embedding, tenant, user_id)
SELECT entity_id, lower(name), entity_id, %(model)s, ('[1,0,' || number || ']')::halfvec, 'default', user_id
FROM made;
INSERT INTO fact_entities (fact_id, entity_id, role, event_id)
SELECT f.fact_id, made.entity_id, 'subject', f.fact_id
FROM facts AS f
INNER JOIN made ON f.user_id = made.user_id AND substr(f.source_id, 2)::integer / %(facts)s = made.number;
UPDATE fact_entities SET moved_to = md5(f.user_id || '/entity/2')::uuid
FROM facts AS f WHERE fact_entities.fact_id = f.fact_id AND substr(f.source_id, 2)::integer %% 10 = 5;
UPDATE fact_entities SET current_id = coalesce(moved_to, entity_id);
INSERT INTO relationships (
    relation_id, owner, tenant, user_id, subject_id, predicate, object_id, inverse, event_id, source_id,
    recorded_at, ordinal
)
SELECT entity_id, owner, 'default', user_id, of_user, CASE WHEN number = 1 THEN 'spouse' ELSE 'friend' END,
    entity_id, CASE WHEN number = 1 THEN 'spouse' ELSE 'friend' END, entity_id, source_id, recorded_at, 1
FROM made WHERE number > 0 AND (number = 1 OR number %% 10 = 0);
INSERT INTO relationship_evidence (relation_id, fact_id, strength, event_id, recorded_at)
SELECT r.relation_id, f.fact_id, 'medium', f.fact_id, f.recorded_at
FROM relationships AS r INNER JOIN facts AS f ON r.owner = f.owner AND r.source_id = f.source_id;
