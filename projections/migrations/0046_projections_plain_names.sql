-- name: projections_plain_names
-- Names that active facts have in their words are found to be told without a look at all facts of their turns.

CREATE FUNCTION has_plain_name(said text, name text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN strpos(lower(said), lower(name)) > 0
    AND strpos(' ' || translate(lower(said), '.,:;!?()"', '         ') || ' ', ' ' || lower(name) || ' ') > 0;
COMMENT ON FUNCTION has_plain_name IS
'Whether a text has a name in it between spaces or punctuation: then it has_name. An expression, which Postgres puts in '
'the place of a call.';

CREATE OR REPLACE FUNCTION has_name(said text, name text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN strpos(lower(said), lower(name)) = 0 THEN false
    -- Scripts that put no space between words, and Korean, whose words have endings.
    WHEN name ~ '[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]' THEN true
    WHEN has_plain_name(said, name) THEN true
    ELSE EXISTS (SELECT FROM named_in(said, ARRAY[name]))
END;

CREATE OR REPLACE VIEW shown_entity_names AS
SELECT
    n.entity_id,
    n.kind,
    n.key,
    n.head,
    CASE
        WHEN n.kind <> 'user' OR s.speakers @> ARRAY[n.alias] OR name_is_told(n.entity_id, n.alias, n.owner, n.source_id)
            THEN n.alias
        ELSE 'the user'
    END AS alias,
    n.place,
    n.event_id,
    n.recorded_at,
    n.tenant,
    n.user_id,
    n.agent_id,
    n.app_id,
    n.run_id,
    n.current_key,
    n.owner,
    n.source_id
FROM current_entity_names AS n
LEFT JOIN LATERAL (
    SELECT scopes.speakers
    FROM scopes
    WHERE (scopes.tenant, scopes.user_id, scopes.agent_id, scopes.app_id, scopes.run_id)
        = (n.tenant, n.user_id, n.agent_id, n.app_id, n.run_id)
    OFFSET 0
) AS s ON true
WHERE n.kind = 'user'
    OR n.is_merged
    OR EXISTS (SELECT FROM entity_changes AS given WHERE given.event_id = n.event_id)
    OR (
        s.speakers @> ARRAY[n.alias]
        AND EXISTS (
            SELECT FROM entity_aliases AS own
            WHERE own.entity_id = n.entity_id AND own.kind = 'user' AND own.is_current
        )
    )
    -- Most names are told so; the function finds these as well, and takes ten times as long.
    OR EXISTS (
        SELECT
        FROM current_entity_links AS link
        CROSS JOIN LATERAL (SELECT * FROM facts WHERE facts.fact_id = link.fact_id OFFSET 0) AS f
        WHERE link.entity_id = n.entity_id
            AND f.status IN ('active', 'pending_confirmation')
            AND has_plain_name(concat_ws(' ', f.text, f.subject, f.excerpt, f.value), n.alias)
    )
    OR name_is_told(n.entity_id, n.alias, n.owner, n.source_id);
