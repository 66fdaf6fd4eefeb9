-- name: projections_costs
-- The tokens of each model by day: prices make money of them.

CREATE TABLE daily_usage (
    tenant text NOT NULL,
    user_id text NOT NULL,
    agent_id text NOT NULL,
    app_id text NOT NULL,
    run_id text NOT NULL,
    day date NOT NULL,
    model text NOT NULL,
    partition integer NOT NULL,
    input_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    uncounted bigint NOT NULL,
    PRIMARY KEY (tenant, user_id, agent_id, app_id, run_id, day, model, partition)
);
CREATE INDEX daily_usage_tenant ON daily_usage (tenant, day) WHERE user_id || agent_id = '';
COMMENT ON TABLE daily_usage IS
'Tokens that each model took for turns and commands, by the day (UTC) on which these were published: a row for each '
'scope, and one for its tenant, with neither user nor agent. Cached tokens are a part of the input; uncounted are calls '
'whose server counts no tokens.';

CREATE FUNCTION step_usage(provenance jsonb)
RETURNS TABLE (model text, input_tokens bigint, cached_tokens bigint, output_tokens bigint, uncounted bigint)
LANGUAGE sql IMMUTABLE
BEGIN ATOMIC
SELECT
    step.model,
    sum(step.input_tokens)::bigint AS input_tokens,
    sum(least(coalesce(step.cached_tokens, 0), step.input_tokens))::bigint AS cached_tokens,
    sum(step.output_tokens)::bigint AS output_tokens,
    count(*) FILTER (WHERE step.input_tokens + step.output_tokens = 0) AS uncounted
FROM
    jsonb_to_recordset(step_usage.provenance -> 'steps') AS step (
        model text,
        llm_calls bigint,
        embedding_calls double precision,
        input_tokens bigint,
        cached_tokens bigint,
        output_tokens bigint
    )
WHERE
    step.model IS NOT NULL
    AND (step.llm_calls > 0 OR step.embedding_calls > 0 OR step.input_tokens + step.output_tokens > 0)
GROUP BY step.model;
END;
COMMENT ON FUNCTION step_usage IS 'What each model took for one source, by the steps in its provenance.';

INSERT INTO daily_usage
SELECT
    spent.tenant,
    level.user_id,
    level.agent_id,
    level.app_id,
    level.run_id,
    (spent.published_at AT TIME ZONE 'UTC')::date,
    took.model,
    spent.partition,
    coalesce(sum(took.input_tokens) FILTER (WHERE NOT spent.is_repeated), 0),
    coalesce(sum(took.cached_tokens) FILTER (WHERE NOT spent.is_repeated), 0),
    coalesce(sum(took.output_tokens) FILTER (WHERE NOT spent.is_repeated), 0),
    coalesce(sum(took.uncounted) FILTER (WHERE NOT spent.is_repeated), 0)
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
CROSS JOIN LATERAL step_usage(spent.provenance) AS took
CROSS JOIN LATERAL (
    VALUES (spent.user_id, spent.agent_id, spent.app_id, spent.run_id), ('', '', '', '')
) AS level (user_id, agent_id, app_id, run_id)
WHERE spent.user_id || spent.agent_id <> ''
GROUP BY 1, 2, 3, 4, 5, 6, 7, 8;
