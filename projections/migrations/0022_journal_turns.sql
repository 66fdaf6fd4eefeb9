-- name: journal_turns
-- Turns can be searched by what people said in them. The words are kept with each turn: read out of the messages they
-- would take a search of 100 turns 12 ms instead of one. There is no index of words: one of all turns would read those of other
-- owners, and one by scope is a third of the table and no faster where words are frequent (docs/discussions.md, "Raw turns").

CREATE FUNCTION turn_messages(body jsonb) RETURNS TABLE (place bigint, speaker text, content text)
LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 2
BEGIN ATOMIC
SELECT
    said.place,
    coalesce(said.message ->> 'name', body ->> 'speaker'),
    left(said.message ->> 'content', 100000 - said.before::integer)
FROM (
    SELECT
        message.value AS message,
        message.ordinality AS place,
        coalesce(
            sum(length(message.value ->> 'content')) OVER (
                ORDER BY message.ordinality ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ),
            0
        ) AS before
    FROM jsonb_array_elements(body -> 'messages') WITH ORDINALITY AS message (value, ordinality)
    WHERE message.value ->> 'role' = 'user'
) AS said
WHERE said.before < 100000;
END;
COMMENT ON FUNCTION turn_messages IS
'What people said in a turn, with their names: 100 000 characters of it at the most. What an assistant said may repeat '
'memory that was deleted since, and system and tool messages are said by nobody.';

CREATE FUNCTION said_words(said text) RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN strip(to_tsvector('english'::regconfig, said) || to_tsvector('simple'::regconfig, said));
COMMENT ON FUNCTION said_words IS 'The words of a text in any language, and their English stems, as facts have them.';

CREATE FUNCTION turn_words(body jsonb) RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (SELECT said_words(string_agg(said.content, E'\n')) FROM turn_messages(body) AS said);

CREATE FUNCTION turn_speakers(body jsonb) RETURNS text [] LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (SELECT array_agg(DISTINCT said.speaker) FILTER (WHERE said.speaker IS NOT NULL) FROM turn_messages(body) AS said);

ALTER TABLE turn_journal
ADD COLUMN words tsvector GENERATED ALWAYS AS (CASE WHEN refusal IS NULL THEN turn_words(body) END) STORED,
ADD COLUMN speakers text [] GENERATED ALWAYS AS (CASE WHEN refusal IS NULL THEN turn_speakers(body) END) STORED;
-- A scan of a scope reads the words of each turn: the messages leave the row first.
ALTER TABLE turn_journal ALTER COLUMN words SET STORAGE MAIN;
COMMENT ON COLUMN turn_journal.words IS 'The words that people said, by which a search finds the turn; NULL for a refused record.';
COMMENT ON COLUMN turn_journal.speakers IS 'Who said something, as far as names are given; NULL where none is.';
CREATE INDEX turn_journal_scope ON turn_journal (tenant, user_id, agent_id, app_id, run_id, published_at);
