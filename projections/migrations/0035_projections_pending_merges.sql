-- name: projections_pending_merges
-- Merges of entities that wait for a person. Names are found by their ends. Whose tie it is follows the splits of entities.

CREATE INDEX entity_aliases_ends ON entity_aliases (
    tenant, user_id, agent_id, app_id, run_id, (left(key, 1) || right(split_part(key, ' (', 1), 1))
);

CREATE OR REPLACE VIEW current_entity_names AS
SELECT
    coalesce(e.merged_into, e.entity_id) AS entity_id,
    a.kind,
    a.key,
    a.head,
    a.alias,
    a.place,
    a.event_id,
    a.recorded_at,
    a.tenant,
    a.user_id,
    a.agent_id,
    a.app_id,
    a.run_id,
    CASE
        WHEN a.kind = 'tie' AND right(a.key, 36) ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN coalesce(
            (
                SELECT left(a.key, -36) || coalesce(holder.merged_into, holder.entity_id)::text
                FROM entities AS holder
                WHERE holder.entity_id = coalesce(
                    (
                        SELECT CASE WHEN count(*) = count(whose.moved_to) THEN min(whose.moved_to::text)::uuid END
                        FROM facts
                        INNER JOIN fact_entities AS named ON facts.fact_id = named.fact_id
                        INNER JOIN fact_entities AS whose ON facts.fact_id = whose.fact_id
                        WHERE facts.owner = a.owner AND facts.source_id = a.source_id
                            AND named.entity_id = a.entity_id AND whose.entity_id = right(a.key, 36)::uuid
                    ),
                    right(a.key, 36)::uuid
                )
            ),
            a.key
        )
        ELSE a.key
    END AS current_key,
    a.owner,
    a.source_id
FROM entity_aliases AS a
INNER JOIN entities AS e ON a.entity_id = e.entity_id
WHERE a.is_current;
COMMENT ON VIEW current_entity_names IS
'The names of entities as they are now: those of a merged one are of the other. In current_key a tie to an entity that '
'was merged ("wife of <id>"), or from which a split has moved what told it, is one to the other.';

CREATE VIEW merge_proposals AS
SELECT
    proposed.event_id,
    proposed.owner,
    proposed.source_id,
    proposed.tenant,
    proposed.user_id,
    proposed.agent_id,
    proposed.app_id,
    proposed.run_id,
    merged.entity_id AS merged,
    target.entity_id AS into_id,
    merged.name AS merged_name,
    target.name AS into_name,
    proposed.payload -> 'decision' ->> 'by' AS decided_by,
    proposed.payload -> 'decision' ->> 'reason' AS reason,
    proposed.decided_at,
    proposed.partition,
    proposed.log_offset,
    proposed.ordinal,
    proposed.undone_by IS NULL
    AND merged.status = 'active'
    AND target.status = 'active'
    AND merged.entity_id <> target.entity_id
    AND NOT EXISTS (
        SELECT
        FROM entity_changes AS settled
        WHERE settled.entity_ids && proposed.entity_ids
            AND settled.undone_by IS NULL
            AND settled.event IN ('entities_merged', 'merge_rejected')
            AND settled.payload ->> 'proposal' = proposed.event_id::text
    ) AS is_pending
FROM entity_changes AS proposed
INNER JOIN entities AS one ON one.entity_id = (proposed.payload ->> 'merged')::uuid
INNER JOIN entities AS other ON other.entity_id = (proposed.payload ->> 'into')::uuid
INNER JOIN entities AS merged ON coalesce(one.merged_into, one.entity_id) = merged.entity_id
INNER JOIN entities AS target ON coalesce(other.merged_into, other.entity_id) = target.entity_id
WHERE proposed.event = 'merge_proposed';
COMMENT ON VIEW merge_proposals IS
'Merges of two entities that a rule proposed, of the entities as they are now. One is pending until a person confirms or '
'rejects it, the turn that it came of is undone, or one of the entities is no more.';
CREATE INDEX entity_changes_proposals ON entity_changes (tenant, user_id, agent_id, app_id, run_id)
WHERE event = 'merge_proposed';
