-- name: get
-- Everything that models answered for these sources, stages and versions, by attempt. Each is looked up by itself: a
-- plan that was made while the table was small would read all of it.
SELECT
    kept.owner, kept.source_id, kept.stage, kept.version, kept.attempt, kept.reply, kept.model, kept.input_tokens,
    kept.output_tokens, kept.cached_tokens, kept.milliseconds,
    kept.shared::text AS shared,
    kept.paid_by, kept.endpoint
FROM (
    SELECT DISTINCT given.owner, given.source_id, given.stage, given.version
    FROM unnest(
        %(owner)s::text [], %(source_id)s::text [], %(stage)s::text [], %(version)s::text []
    ) AS given (owner, source_id, stage, version)
) AS asked
CROSS JOIN LATERAL (
    SELECT * FROM mnemolog_journal.model_replies AS replies
    WHERE replies.owner = asked.owner
        AND replies.source_id = asked.source_id
        AND replies.stage = asked.stage
        AND replies.version = asked.version
    OFFSET 0
) AS kept
ORDER BY kept.owner, kept.source_id, kept.stage, kept.version, kept.attempt;

-- name: put
-- Keep replies, and say which were kept now; the first one of a source, stage, version and attempt stays.
INSERT INTO mnemolog_journal.model_replies (
    owner, source_id, stage, version, attempt, reply, model, input_tokens, output_tokens, cached_tokens,
    milliseconds, shared, paid_by, endpoint
)
SELECT owner, source_id, stage, version, attempt, reply, model, input_tokens, output_tokens, cached_tokens,
    milliseconds, shared::jsonb, paid_by, endpoint
FROM unnest(
    %(owner)s::text [], %(source_id)s::text [], %(stage)s::text [], %(version)s::text [], %(attempt)s::integer [],
    %(reply)b::text [], %(model)s::text [], %(input_tokens)s::integer [], %(output_tokens)s::integer [],
    %(cached_tokens)s::integer [],
    %(milliseconds)s::double precision [],
    %(shared)s::text [], %(paid_by)s::text [], %(endpoint)s::text []
) AS replies (
    owner, source_id, stage, version, attempt, reply, model, input_tokens, output_tokens, cached_tokens,
    milliseconds, shared, paid_by, endpoint
)
ORDER BY owner, source_id, stage, version, attempt
ON CONFLICT (owner, source_id, stage, version, attempt) DO NOTHING
RETURNING owner, source_id, stage, version, attempt;

-- name: paid
-- What models answered for a stage of a source and a record of it, however it was asked; without what was only kept.
SELECT
    replies.owner, replies.source_id, replies.stage, replies.version, replies.attempt, replies.reply, replies.model,
    replies.input_tokens, replies.output_tokens, replies.cached_tokens, replies.milliseconds,
    replies.shared::text AS shared,
    replies.paid_by, replies.endpoint
FROM mnemolog_journal.model_replies AS replies
WHERE replies.owner = %(owner)s
    AND replies.source_id = %(source_id)s
    AND replies.stage = %(stage)s
    AND replies.paid_by = %(position)s
ORDER BY replies.version, replies.attempt;

-- name: purge
-- Forget replies that no second delivery can ask for any more.
DELETE FROM mnemolog_journal.model_replies WHERE created_at < %(older_than)s;

-- name: forget
-- Forget all replies for a source, so that its next attempt asks anew.
DELETE FROM mnemolog_journal.model_replies WHERE owner = %(owner)s AND source_id = %(source_id)s;
