-- name: record
-- Keep the records of conversation_turns; a record of a source that is kept already changes nothing. But a turn that is
-- published again after a failure, or after a limit that it was over, is kept as it comes then: its last attempt counts.
INSERT INTO mnemolog_journal.turn_journal (
    owner, source_id, {{scope_ids}}, topic, partition, log_offset, published_at,
    occurred_at, infer, body, refusal, detail
)
SELECT DISTINCT ON (owner, source_id)
    owner, source_id, {{scope_ids}}, topic, partition, log_offset, published_at,
    occurred_at, infer, body::jsonb, refusal, detail
FROM unnest(
    %(owner)s::text [], %(source_id)s::text [], {{scope_arrays}}, %(topic)s::text [], %(partition)s::integer [],
    %(log_offset)s::bigint [], %(published_at)s::timestamptz [], %(occurred_at)s::timestamptz [], %(infer)s::boolean [],
    %(body)b::text [], %(refusal)s::text [], %(detail)s::text []
) AS entries (
    owner, source_id, {{scope_ids}}, topic, partition, log_offset, published_at,
    occurred_at, infer, body, refusal, detail
)
ORDER BY owner, source_id, topic, partition, log_offset
ON CONFLICT (owner, source_id) DO UPDATE SET
    occurred_at = excluded.occurred_at,
    infer = excluded.infer,
    body = excluded.body
WHERE turn_journal.refusal IS NULL
    AND excluded.refusal IS NULL
    AND excluded.published_at > turn_journal.published_at
    AND (
        SELECT last.outcome = 'failed' OR last.limit_hit IS NOT NULL
        FROM commits AS last
        WHERE last.owner = excluded.owner AND last.source_id = excluded.source_id AND last.source_kind = 'turn'
        ORDER BY last.attempt DESC
        LIMIT 1
    );

-- name: first_messages
-- What was said in the first turn of an id, one row per owner.
SELECT journal.body -> 'messages' AS messages
FROM turn_journal AS journal
WHERE journal.tenant = %(tenant)s
    AND journal.source_id = %(turn_id)s
    AND (%(user_id)s::text IS NULL OR journal.user_id = %(user_id)s)
    AND (%(agent_id)s::text IS NULL OR (journal.user_id = '' AND journal.agent_id = %(agent_id)s))
    AND journal.body IS NOT NULL;

-- name: user_messages
-- What the user said in a turn, message by message; nothing of a raw turn, whose messages are its facts.
SELECT message ->> 'content' AS content
FROM mnemolog_journal.turn_journal AS journal
CROSS JOIN LATERAL jsonb_array_elements(journal.body -> 'messages') WITH ORDINALITY AS said (message, place)
WHERE journal.owner = %(owner)s AND journal.source_id = %(source_id)s AND journal.infer
    AND message ->> 'role' = 'user'
ORDER BY place;

-- name: stored_vectors
-- The model and the dimensions of the vectors that facts have; no row without a fact.
SELECT f.embedding_model, vector_dims(f.embedding)
FROM facts AS f
LIMIT 1;

-- name: write_problems
-- What fails in a worker now, in the place of what failed before. What nobody wrote again for a minute is over.
WITH over AS (
    DELETE FROM mnemolog_journal.worker_problems AS p
    WHERE p.seen_at < now() - interval '1 minute' OR (p.worker = %(worker)s AND NOT p.part = any(%(parts)s::text []))
)

INSERT INTO mnemolog_journal.worker_problems (worker, part, problem, seen_at)
SELECT %(worker)s, failing.part, failing.problem, now()
FROM unnest(%(parts)s::text [], %(problems)s::text []) AS failing (part, problem)
ON CONFLICT (worker, part) DO UPDATE SET problem = excluded.problem, seen_at = excluded.seen_at;

-- name: worker_problems
-- What fails in any worker: each problem once.
SELECT DISTINCT p.part, p.problem
FROM mnemolog_journal.worker_problems AS p
WHERE p.seen_at > now() - interval '15 seconds'
ORDER BY p.part, p.problem;
