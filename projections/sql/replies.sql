-- name: get
-- Everything that models answered for these sources, stages and versions, by attempt.
SELECT
    owner,
    source_id,
    stage,
    version,
    attempt,
    reply,
    model,
    input_tokens,
    output_tokens,
    cached_tokens,
    milliseconds
FROM mnemolog_journal.model_replies
WHERE
    (owner, source_id, stage, version) IN (
        SELECT asked.owner, asked.source_id, asked.stage, asked.version
        FROM unnest(
            %(owner)s::text [], %(source_id)s::text [], %(stage)s::text [], %(version)s::text []
        ) AS asked (owner, source_id, stage, version)
    )
ORDER BY owner, source_id, stage, version, attempt;

-- name: put
-- Keep replies, and say which were kept now; the first one of a source, stage, version and attempt stays.
INSERT INTO mnemolog_journal.model_replies (
    owner, source_id, stage, version, attempt, reply, model, input_tokens, output_tokens, cached_tokens,
    milliseconds
)
SELECT owner, source_id, stage, version, attempt, reply, model, input_tokens, output_tokens, cached_tokens,
    milliseconds
FROM unnest(
    %(owner)s::text [],
    %(source_id)s::text [],
    %(stage)s::text [],
    %(version)s::text [],
    %(attempt)s::integer [],
    %(reply)s::text [],
    %(model)s::text [],
    %(input_tokens)s::integer [],
    %(output_tokens)s::integer [],
    %(cached_tokens)s::integer [],
    %(milliseconds)s::double precision []
) AS replies (
    owner, source_id, stage, version, attempt, reply, model, input_tokens, output_tokens, cached_tokens,
    milliseconds
)
ORDER BY owner, source_id, stage, version, attempt
ON CONFLICT (owner, source_id, stage, version, attempt) DO NOTHING
RETURNING owner, source_id, stage, version, attempt;

-- name: purge
-- Forget replies that no second delivery can ask for any more.
DELETE FROM mnemolog_journal.model_replies WHERE created_at < %(older_than)s;

-- name: forget
-- Forget all replies for a source, so that its next attempt asks anew.
DELETE FROM mnemolog_journal.model_replies WHERE owner = %(owner)s AND source_id = %(source_id)s;
