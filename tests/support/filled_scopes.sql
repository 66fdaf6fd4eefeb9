CREATE TEMPORARY TABLE base AS
SELECT n, (
    SELECT array_agg(random() - 0.5) FROM generate_series(1, %(dimensions)s) WHERE n = n
)::real[]::halfvec AS vector
FROM generate_series(0, %(bases)s - 1) AS n;
CREATE TEMPORARY TABLE wanted AS
SELECT user_id, place, row_number() OVER (ORDER BY place, user_id) - 1 AS number
FROM unnest(%(users)s::text[], %(sizes)s::bigint[]) AS asked (user_id, size), generate_series(0, size - 1) AS place;
INSERT INTO facts (
    fact_id, owner, tenant, user_id, text, search_text, key, value, category, importance, certainty, confidence,
    subject, excerpt, status, superseded_by, unresolved, true_from, believed_from, source_id, stale, content_hash,
    embedding_model, embedding, metadata, said_at, recorded_at, state_since, ordinal
)
SELECT
    md5(w.user_id || '/' || w.place)::uuid, 'default/' || w.user_id, 'default', w.user_id, said.text, said.text,
    CASE WHEN w.place %% 3 = 0 THEN 'key_' || w.place / 3 %% 200 END, CASE WHEN w.place %% 3 = 0 THEN said.word END,
    (ARRAY['identity', 'hard_preference', 'task_context', 'health', 'relationship', 'professional', 'other'])
    [1 + w.place %% 7],
    0.5, 'explicit', 0.5 + w.place %% 50 / 100.0, CASE WHEN w.place %% 2 = 0 THEN 'user' END, said.text,
    CASE
        WHEN w.place %% 97 = 1 THEN 'pending_confirmation' WHEN w.place %% 31 = 2 THEN 'superseded' ELSE 'active'
    END,
    CASE WHEN w.place %% 31 = 2 THEN md5(w.user_id || '/' || w.place + 1)::uuid END,
    false, made.at, CASE WHEN w.place %% 97 <> 1 THEN made.at END, 't' || w.place, false, md5(said.text), %(model)s,
    l2_normalize(one.vector + other.vector), '{}', made.at, made.at, made.at, 0
FROM wanted AS w
CROSS JOIN LATERAL (SELECT timestamptz '2026-01-01' + w.place * interval '1 minute' AS at) AS made
CROSS JOIN LATERAL (
    SELECT 'word' || abs(hashint8(w.number)) %% 5000 AS word
) AS chosen
CROSS JOIN LATERAL (
    SELECT chosen.word, 'The user said that ' || chosen.word || ' and word' || w.number %% 97 || ' matter.' AS text
) AS said
INNER JOIN base AS one ON one.n = w.number %% %(bases)s
INNER JOIN base AS other ON other.n = (w.number * 7919 + w.number / %(bases)s) %% %(bases)s;
INSERT INTO memory_events (
    event_id, partition, log_offset, ordinal, owner, source_id, tenant, user_id, event, fact_id, occurred_at,
    decided_at, decided_by, reason, payload
)
SELECT
    fact_id, 0, row_number() OVER (ORDER BY recorded_at, user_id) - 1, 0, owner, source_id, tenant, user_id,
    'fact_added', fact_id, recorded_at, recorded_at, 'vector', 'r', '{}'
FROM facts;
INSERT INTO commits (
    partition, log_offset, owner, source_id, source_kind, tenant, user_id, outcome, occurred_at, published_at,
    decided_at, origin_topic, origin_partition, origin_offset, based_on, llm_calls, embedding_calls, input_tokens,
    output_tokens, reprompts, provenance, metadata, record
)
SELECT
    partition, log_offset, owner, source_id, 'turn', tenant, user_id, 'stored', occurred_at, occurred_at, decided_at,
    't', 0, 0, 0, 1, 1, 100, 10, 0, '{}', '{}', ''
FROM memory_events;
INSERT INTO turn_journal (
    owner, source_id, tenant, user_id, topic, partition, log_offset, published_at, infer, body
)
SELECT
    c.owner, c.source_id, c.tenant, c.user_id, 't', c.partition, c.log_offset, c.published_at, true,
    jsonb_build_object('messages', jsonb_build_array(jsonb_build_object('role', 'user', 'content', f.text)))
FROM commits AS c
INNER JOIN facts AS f USING (owner, source_id);
INSERT INTO model_replies (owner, source_id, stage, version, attempt, reply, model)
SELECT owner, source_id, 'extract', 'v', 0, '{}', 'm' FROM commits;
INSERT INTO scopes (tenant, user_id, owner, version, facts)
SELECT tenant, user_id, owner, count(*), count(*) FILTER (WHERE status IN ('active', 'pending_confirmation'))
FROM facts GROUP BY 1, 2, 3;
INSERT INTO tenant_facts (tenant, partition, facts) SELECT tenant, 0, sum(facts) FROM scopes GROUP BY 1;
INSERT INTO daily_tokens (tenant, user_id, agent_id, app_id, run_id, day, partition, tokens)
SELECT tenant, level.user_id, '', '', '', published_at::date, partition, sum(input_tokens + output_tokens)
FROM commits CROSS JOIN LATERAL (VALUES (commits.user_id), ('')) AS level (user_id)
GROUP BY 1, 2, 6, 7;
INSERT INTO projection_offsets (partition, next_offset) SELECT 0, count(*) FROM commits;
