-- name: said_before
-- Per turn the last messages of the user and the assistant that its scope said before it, the newest first, each with its
-- last characters. What the journal has of later records does not count, nor what was said before the owner's last
-- deletion, of which a worker may know before the tables do.
SELECT
    asked.place::integer AS place,
    said.source_id, said.role, said.name, said.content, said.occurred_at
FROM unnest(
    %(owner)s::text [], %(source_id)s::text [], {{scope_arrays}}, %(published_at)s::timestamptz [],
    %(log_offset)s::bigint [], %(since)s::timestamptz [], %(said_at)s::timestamptz [], %(oldest)s::timestamptz [],
    %(messages)s::integer []
) WITH ORDINALITY AS asked (
    owner, source_id, {{scope_ids}}, published_at, log_offset, since, said_at, oldest,
    messages, place
)
CROSS JOIN LATERAL (
    SELECT
        journal.source_id, journal.occurred_at, journal.log_offset, message.number,
        message.said ->> 'role' AS role,
        coalesce(
            message.said ->> 'name', CASE WHEN message.said ->> 'role' = 'user' THEN journal.body ->> 'speaker' END
        ) AS name,
        right(message.said ->> 'content', %(characters)s) AS content
    FROM (
        SELECT turns.*
        FROM mnemolog_journal.turn_journal AS turns
        WHERE turns.owner = asked.owner
            AND {{same_scope turns asked}}
            AND turns.refusal IS NULL
            AND turns.body IS NOT NULL
            AND turns.source_id <> asked.source_id
            AND turns.occurred_at BETWEEN asked.oldest AND asked.said_at
            AND (turns.published_at, turns.log_offset) < (asked.published_at, asked.log_offset)
            AND turns.published_at > coalesce(greatest(asked.since, (
                SELECT max(removals.published_at)
                FROM commits AS removals
                WHERE removals.owner = asked.owner
                    AND removals.order_kind IN ('delete', 'delete_all', 'reject', 'undo', 'forget_entity')
            )), '-infinity')
        ORDER BY turns.occurred_at DESC, turns.log_offset DESC
        LIMIT asked.messages
    ) AS journal
    CROSS JOIN LATERAL jsonb_array_elements(journal.body -> 'messages') WITH ORDINALITY AS message (said, number)
    WHERE message.said ->> 'role' IN ('user', 'assistant')
    ORDER BY journal.occurred_at DESC, journal.log_offset DESC, message.number DESC
    LIMIT asked.messages
) AS said
ORDER BY asked.place, said.occurred_at DESC, said.log_offset DESC, said.number DESC;
