-- name: projections_reads
-- What stays quick in a large scope: profiles read no more facts than they show, searches no value out of line, and
-- limits read counts that are kept.

-- Two facts with vectors of 1536 dimensions share a page. An exact scan of a scope reads vectors and words: other values
-- leave the row before they do. Rows that were written before stay as they are until they change, or are rebuilt.
ALTER TABLE facts SET (toast_tuple_target = 4080);
ALTER TABLE facts ALTER COLUMN words SET STORAGE MAIN, ALTER COLUMN content_hash SET STORAGE MAIN;

-- No query read it: the facts of a scope are found by their scope, and have their words with them.
DROP INDEX facts_words;

-- A function of its own, so that a search need not plan it each time.
CREATE FUNCTION search_words(question text, max_lexemes integer) RETURNS tsquery LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
BEGIN
    RETURN (
        WITH words AS (
            SELECT lexeme FROM unnest(to_tsvector('simple', question))
        ),
        language AS (
            -- The one with the most stop words in the question; two at the least, since "hat" and "son" are English too.
            SELECT known.stemmer
            FROM (
                VALUES
                ('english_stem'::regdictionary, 0),
                ('german_stem', 2),
                ('french_stem', 2),
                ('spanish_stem', 2),
                ('italian_stem', 2),
                ('portuguese_stem', 2)
            ) AS known (stemmer, least)
            CROSS JOIN LATERAL (
                SELECT count(*) AS stop_words FROM words WHERE ts_lexize(known.stemmer, words.lexeme) = '{}'
            ) AS found
            WHERE found.stop_words >= known.least
            ORDER BY found.stop_words DESC, known.least, known.stemmer
            LIMIT 1
        ),
        meaningful AS (
            SELECT words.lexeme FROM words, language WHERE ts_lexize(language.stemmer, words.lexeme) <> '{}'
        ),
        said AS (
            SELECT lexeme FROM meaningful
            UNION ALL
            SELECT lexeme FROM words WHERE NOT EXISTS (SELECT FROM meaningful)
        ),
        chosen AS (
            SELECT lexeme FROM said
            UNION
            SELECT stem FROM said CROSS JOIN LATERAL unnest(ts_lexize('english_stem', said.lexeme)) AS stem
            ORDER BY lexeme
            LIMIT max_lexemes
        )
        SELECT string_agg('''' || replace(replace(lexeme, '\', '\\'), '''', '''''') || '''', ' | ')::tsquery
        FROM chosen
    );
END
$$;
COMMENT ON FUNCTION search_words IS
'Any of the words of a question, but for the stop words of its language, and their English stems; NULL without words.';

CREATE FUNCTION profile_section(category text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE category
    WHEN 'identity' THEN 'identity'
    WHEN 'hard_preference' THEN 'hard_preferences'
    WHEN 'soft_preference' THEN 'soft_preferences'
    WHEN 'task_context' THEN 'current_tasks'
    WHEN 'health' THEN 'sensitive_topics'
    WHEN 'finance' THEN 'sensitive_topics'
    WHEN 'professional' THEN 'work'
    WHEN 'relationship' THEN 'relationships'
    ELSE 'other'
END;
COMMENT ON FUNCTION profile_section IS 'The section of a profile that shows the facts of a category.';

CREATE INDEX facts_profile ON facts (
    tenant,
    user_id,
    agent_id,
    app_id,
    run_id,
    profile_section(category),
    confidence DESC,
    true_from DESC,
    recorded_at,
    ordinal,
    fact_id
)
WHERE status = 'active';

DROP VIEW derived_profiles;
CREATE VIEW derived_profiles AS
SELECT
    scopes.tenant,
    scopes.user_id,
    scopes.agent_id,
    scopes.app_id,
    scopes.run_id,
    scopes.owner,
    coalesce(known.identity, '[]') AS identity,
    coalesce(known.hard_preferences, '[]') AS hard_preferences,
    coalesce(known.soft_preferences, '[]') AS soft_preferences,
    coalesce(known.current_tasks, '[]') AS current_tasks,
    coalesce(changed.recent_changes, '[]') AS recent_changes,
    coalesce(known.sensitive_topics, '[]') AS sensitive_topics,
    touched_at.latest AS updated_at,
    coalesce(known.work, '[]') AS work,
    coalesce(known.relationships, '[]') AS relationships,
    coalesce(known.other, '[]') AS other
FROM scopes
CROSS JOIN LATERAL (
    SELECT max(decided_at) AS latest
    FROM memory_events AS happened
    WHERE
        happened.tenant = scopes.tenant
        AND happened.user_id = scopes.user_id
        AND happened.agent_id = scopes.agent_id
        AND happened.app_id = scopes.app_id
        AND happened.run_id = scopes.run_id
) AS touched_at
CROSS JOIN LATERAL (
    SELECT
        jsonb_agg(entry ORDER BY place) FILTER (WHERE section = 'identity') AS identity,
        jsonb_agg(entry ORDER BY place) FILTER (WHERE section = 'hard_preferences') AS hard_preferences,
        jsonb_agg(entry ORDER BY place) FILTER (WHERE section = 'soft_preferences') AS soft_preferences,
        jsonb_agg(entry ORDER BY place) FILTER (WHERE section = 'current_tasks') AS current_tasks,
        jsonb_agg(entry ORDER BY place) FILTER (WHERE section = 'sensitive_topics') AS sensitive_topics,
        jsonb_agg(entry ORDER BY place) FILTER (WHERE section = 'work') AS work,
        jsonb_agg(entry ORDER BY place) FILTER (WHERE section = 'relationships') AS relationships,
        jsonb_agg(entry ORDER BY place) FILTER (WHERE section = 'other') AS other
    FROM (
        SELECT
            sections.section,
            first.place,
            jsonb_build_object(
                'key', first.key,
                'value', first.value,
                'text', first.text,
                'category', first.category,
                'confidence', first.confidence,
                'at', utc_text(first.true_from),
                'valid_until', utc_text(first.valid_until),
                'fact_id', first.fact_id,
                'unresolved', first.unresolved
            ) AS entry
        FROM (
            VALUES
            ('identity'),
            ('hard_preferences'),
            ('soft_preferences'),
            ('current_tasks'),
            ('sensitive_topics'),
            ('work'),
            ('relationships'),
            ('other')
        ) AS sections (section)
        CROSS JOIN LATERAL (
            SELECT
                facts.key,
                facts.value,
                facts.text,
                facts.category,
                facts.confidence,
                facts.true_from,
                least(facts.valid_until, facts.true_to) AS valid_until,
                facts.fact_id,
                facts.unresolved,
                row_number() OVER (
                    ORDER BY
                        facts.confidence DESC,
                        facts.true_from DESC,
                        facts.recorded_at,
                        facts.ordinal,
                        facts.fact_id
                ) AS place
            FROM facts
            WHERE
                facts.status = 'active'
                AND facts.tenant = scopes.tenant
                AND facts.user_id = scopes.user_id
                AND facts.agent_id = scopes.agent_id
                AND facts.app_id = scopes.app_id
                AND facts.run_id = scopes.run_id
                AND profile_section(facts.category) = sections.section
            ORDER BY
                facts.confidence DESC,
                facts.true_from DESC,
                facts.recorded_at,
                facts.ordinal,
                facts.fact_id
            LIMIT 50
        ) AS first
    ) AS entries
) AS known
CROSS JOIN LATERAL (
    SELECT
        jsonb_agg(
            jsonb_build_object(
                'event', latest.event,
                'text', latest.text,
                'fact_id', latest.fact_id,
                'at', utc_text(latest.decided_at),
                'old', latest.old
            ) ORDER BY latest.decided_at DESC, latest.log_offset DESC, latest.ordinal DESC
        ) AS recent_changes
    FROM (
        SELECT
            happened.event,
            about.text,
            happened.fact_id,
            happened.decided_at,
            happened.log_offset,
            happened.ordinal,
            ended.old
        FROM memory_events AS happened
        INNER JOIN facts AS about ON happened.fact_id = about.fact_id
        CROSS JOIN LATERAL (
            SELECT
                jsonb_agg(
                    jsonb_build_object('text', old.text, 'fact_id', old.fact_id)
                    ORDER BY old.recorded_at, old.ordinal, old.fact_id
                ) AS old
            FROM former_states AS former
            INNER JOIN facts AS old ON former.fact_id = old.fact_id
            WHERE
                former.event_id = happened.event_id
                AND old.fact_id = ANY(happened.fact_id || happened.targets) -- not one whose end the event moved
                AND (
                    old.fact_id <> happened.fact_id
                    OR happened.event IN ('fact_retracted', 'fact_expired')
                    OR happened.payload ->> 'action' = 'keep_old'
                )
        ) AS ended
        WHERE
            happened.event IN (
                'facts_merged',
                'fact_replaced',
                'fact_contradicted',
                'fact_retracted',
                'fact_expired',
                'fact_corrected',
                'pending_confirmed',
                'conflict_resolved'
            )
            AND ended.old IS NOT NULL
            AND NOT EXISTS (SELECT FROM undone WHERE undone.event_id = happened.event_id)
            AND happened.tenant = scopes.tenant
            AND happened.user_id = scopes.user_id
            AND happened.agent_id = scopes.agent_id
            AND happened.app_id = scopes.app_id
            AND happened.run_id = scopes.run_id
        ORDER BY happened.decided_at DESC, happened.log_offset DESC, happened.ordinal DESC
        LIMIT 10
    ) AS latest
) AS changed;
COMMENT ON VIEW derived_profiles IS
'The profile of every scope, from its active facts, each in one section by its category, and its last changes; no clock '
'is read. A category without a section of its own is in other. A change is an event in '
'effect that ended facts: what it ended has a former state of the event.';

-- By the minute in which turns were published, which limits count.
DROP INDEX commits_scope;
CREATE INDEX commits_scope ON commits (tenant, user_id, agent_id, app_id, run_id, published_at);

ALTER TABLE scopes ADD COLUMN facts bigint NOT NULL DEFAULT 0;
UPDATE scopes
SET facts = found.facts
FROM (
    SELECT tenant, user_id, agent_id, app_id, run_id, count(*) AS facts
    FROM facts
    WHERE status IN ('active', 'pending_confirmation')
    GROUP BY tenant, user_id, agent_id, app_id, run_id
) AS found
WHERE
    (scopes.tenant, scopes.user_id, scopes.agent_id, scopes.app_id, scopes.run_id)
    = (found.tenant, found.user_id, found.agent_id, found.app_id, found.run_id);
COMMENT ON TABLE scopes IS
'How many commits with events each scope has seen, no row is version 0; and how many facts it has, active or pending.';

-- A row for each partition: the projectors of two partitions never wait for each other.
CREATE TABLE tenant_facts (
    tenant text NOT NULL,
    partition integer NOT NULL,
    facts bigint NOT NULL,
    PRIMARY KEY (tenant, partition)
);
COMMENT ON TABLE tenant_facts IS
'How many facts of a tenant, active or pending, the commits of a partition have added, less those that they ended.';
INSERT INTO tenant_facts (tenant, partition, facts)
SELECT
    seen.tenant,
    seen.partition,
    coalesce(found.facts, 0)
FROM (SELECT DISTINCT tenant, partition FROM memory_events) AS seen
LEFT JOIN (
    SELECT facts.tenant, adding.partition, count(*) AS facts
    FROM facts
    CROSS JOIN LATERAL (
        SELECT commits.partition
        FROM commits
        WHERE commits.owner = facts.owner AND commits.source_id = facts.source_id
        LIMIT 1
    ) AS adding
    WHERE facts.status IN ('active', 'pending_confirmation')
    GROUP BY facts.tenant, adding.partition
) AS found ON seen.tenant = found.tenant AND seen.partition = found.partition;

CREATE TABLE daily_tokens (
    tenant text NOT NULL,
    user_id text NOT NULL,
    agent_id text NOT NULL,
    app_id text NOT NULL,
    run_id text NOT NULL,
    day date NOT NULL,
    partition integer NOT NULL,
    tokens bigint NOT NULL,
    PRIMARY KEY (tenant, user_id, agent_id, app_id, run_id, day, partition)
);
COMMENT ON TABLE daily_tokens IS
'Tokens that turns used, by the day (UTC) on which they were published: a row for each scope, and one for its tenant, '
'with neither user nor agent. Those of an attempt that was refused for a limit count until there is another one.';
INSERT INTO daily_tokens (tenant, user_id, agent_id, app_id, run_id, day, partition, tokens)
SELECT
    spent.tenant,
    level.user_id,
    level.agent_id,
    level.app_id,
    level.run_id,
    (spent.published_at AT TIME ZONE 'UTC')::date,
    spent.partition,
    coalesce(sum(spent.input_tokens + spent.output_tokens) FILTER (WHERE NOT spent.is_repeated), 0)
FROM (
    SELECT
        commits.*,
        commits.limit_hit IS NOT NULL
        AND EXISTS (
            SELECT FROM commits AS later
            WHERE
                later.owner = commits.owner
                AND later.source_id = commits.source_id
                AND later.attempt > commits.attempt
        ) AS is_repeated
    FROM commits
) AS spent
CROSS JOIN LATERAL (
    VALUES (spent.user_id, spent.agent_id, spent.app_id, spent.run_id), ('', '', '', '')
) AS level (user_id, agent_id, app_id, run_id)
WHERE spent.input_tokens + spent.output_tokens <> 0 AND spent.user_id || spent.agent_id <> ''
GROUP BY 1, 2, 3, 4, 5, 6, 7;

CREATE OR REPLACE FUNCTION tenant_facts(of_tenant text, but_owner text, but_source text) RETURNS bigint LANGUAGE sql STABLE
RETURN (SELECT coalesce(sum(counted.facts), 0) FROM tenant_facts AS counted WHERE counted.tenant = of_tenant)
    + (
        SELECT coalesce(sum(reserved.facts), 0) FROM open_reservations AS reserved
        WHERE reserved.tenant = of_tenant AND (reserved.owner <> but_owner OR reserved.source_id <> but_source)
    );

CREATE FUNCTION used_tokens(
    of_tenant text,
    of_user text,
    of_agent text,
    of_app text,
    of_run text,
    day timestamptz,
    but_owner text,
    but_source text
) RETURNS bigint LANGUAGE sql STABLE
RETURN (
    SELECT coalesce(sum(counted.tokens), 0) FROM daily_tokens AS counted
    WHERE
        (counted.tenant, counted.user_id, counted.agent_id, counted.app_id, counted.run_id)
        = (of_tenant, of_user, of_agent, of_app, of_run)
        AND counted.day = (used_tokens.day AT TIME ZONE 'UTC')::date
) - (
    SELECT coalesce(sum(own.input_tokens + own.output_tokens), 0) FROM commits AS own
    WHERE
        own.owner = but_owner
        AND own.source_id = but_source
        AND own.tenant = of_tenant
        AND own.user_id || own.agent_id <> ''
        AND own.published_at >= used_tokens.day
        AND own.published_at < used_tokens.day + interval '24 hours'
        AND (
            own.limit_hit IS NULL
            OR NOT EXISTS (
                SELECT FROM commits AS later
                WHERE
                    later.owner = own.owner
                    AND later.source_id = own.source_id
                    AND later.attempt > own.attempt
            )
        )
);
COMMENT ON FUNCTION used_tokens IS
'Tokens that the sources of a scope, or of a tenant, used on a day, but the given one.';

CREATE OR REPLACE FUNCTION tenant_tokens(
    of_tenant text, day timestamptz, but_owner text, but_source text
) RETURNS bigint LANGUAGE sql STABLE
RETURN used_tokens(of_tenant, '', '', '', '', tenant_tokens.day, but_owner, but_source) + (
    SELECT coalesce(sum(reserved.tokens), 0) FROM open_reservations AS reserved
    WHERE
        reserved.tenant = of_tenant
        AND reserved.published_at >= tenant_tokens.day
        AND reserved.published_at < tenant_tokens.day + interval '24 hours'
        AND (reserved.owner <> but_owner OR reserved.source_id <> but_source)
);
