-- name: projections_speakers
-- A scope keeps who spoke first in it, also in turns that gave no fact: the first of them is its user.

ALTER TABLE scopes ADD COLUMN speakers text [] NOT NULL DEFAULT '{}';
COMMENT ON TABLE scopes IS
'How many commits with events or a speaker each scope has seen, no row is version 0; how many facts it has, active or '
'pending; and its first speakers, at most 8, in the order of the log.';

CREATE FUNCTION first_speakers(known text [], said text []) RETURNS text [] LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN array(
    SELECT spoken.speaker
    FROM unnest(known || said) WITH ORDINALITY AS spoken (speaker, place)
    GROUP BY spoken.speaker
    ORDER BY min(spoken.place)
    LIMIT 8
);
COMMENT ON FUNCTION first_speakers IS 'The speakers that are known and then those that spoke since, each once, at most 8.';

-- Until now only facts kept their speakers. The last attempt of a source is the one with events.
UPDATE scopes
SET speakers = first_speakers('{}', found.speakers)
FROM (
    SELECT
        facts.tenant,
        facts.user_id,
        facts.agent_id,
        facts.app_id,
        facts.run_id,
        array_agg(facts.speaker ORDER BY adding.partition, adding.log_offset, facts.ordinal) AS speakers
    FROM facts
    INNER JOIN (
        SELECT DISTINCT ON (owner, source_id)
            owner,
            source_id,
            partition,
            log_offset
        FROM commits
        ORDER BY owner, source_id, attempt DESC
    ) AS adding ON facts.owner = adding.owner AND facts.source_id = adding.source_id
    WHERE facts.speaker IS NOT NULL
    GROUP BY facts.tenant, facts.user_id, facts.agent_id, facts.app_id, facts.run_id
) AS found
WHERE
    (scopes.tenant, scopes.user_id, scopes.agent_id, scopes.app_id, scopes.run_id)
    = (found.tenant, found.user_id, found.agent_id, found.app_id, found.run_id);

CREATE OR REPLACE FUNCTION user_names(
    tenant text, user_id text, agent_id text, app_id text, run_id text, speaker text, user_words text []
) RETURNS text [] LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
WITH first_speaker AS (
    SELECT (
        SELECT spoken.speaker
        FROM unnest(
            (
                SELECT scopes.speakers
                FROM scopes
                WHERE
                    scopes.tenant = user_names.tenant
                    AND scopes.user_id = user_names.user_id
                    AND scopes.agent_id = user_names.agent_id
                    AND scopes.app_id = user_names.app_id
                    AND scopes.run_id = user_names.run_id
            ) || user_names.speaker
        ) WITH ORDINALITY AS spoken (speaker, place)
        WHERE lower(spoken.speaker) <> ALL(user_names.user_words)
        ORDER BY spoken.place
        LIMIT 1
    ) AS name
),

known AS (
    SELECT first_speaker.name
    FROM first_speaker
    WHERE first_speaker.name IS NOT NULL
    UNION
    (SELECT facts.value
    FROM facts
    WHERE
        facts.key IN ('name', 'full_name', 'first_name', 'nickname')
        AND length(facts.value) BETWEEN 1 AND 100
        AND facts.status IN ('active', 'superseded', 'expired', 'retracted')
        AND facts.believed_to IS NULL
        AND facts.tenant = user_names.tenant
        AND facts.user_id = user_names.user_id
        AND facts.agent_id = user_names.agent_id
        AND facts.app_id = user_names.app_id
        AND facts.run_id = user_names.run_id
        AND (
            facts.subject IS NULL
            OR lower(facts.subject) = ANY(user_names.user_words)
            OR lower(facts.subject) = (SELECT lower(first_speaker.name) FROM first_speaker)
        )
    ORDER BY facts.recorded_at DESC, facts.fact_id
    LIMIT 20)
)

SELECT coalesce(array_agg(known.name ORDER BY known.name), '{}')
FROM known
WHERE user_names.user_id <> '';
END;
