-- name: projections_long_questions
-- A long question, and a long fact, in a script without spaces are read in a time that grows with their length alone; the
-- names in a question are found together. The words of a text of up to 5000 characters are as before.

CREATE OR REPLACE FUNCTION plain_words(said text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    -- Where the database knows no letters beyond ASCII, its parser takes every other character for a letter.
    plain text := regexp_replace(
        said,
        '[_\u00a1-\u00a9\u00ab-\u00b1\u00b4\u00b6-\u00b8\u00bb-\u00bf\u055a-\u055f\u0589\u060c\u061b\u061f\u06d4\u0964\u0965'
        '\u2000-\u206f\u3000-\u3004\u3008-\u3020\u3030\u30fb\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]',
        ' ',
        'g'
    );
BEGIN
    -- Scripts that put no space between words, and Korean, whose words have endings: words are what stands together, two
    -- characters at a time, three of scripts that are alphabets. A Chinese character is a word of its own, too.
    IF plain !~ '[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]' THEN
        RETURN plain;
    END IF;
    RETURN (
        SELECT string_agg(
            CASE
                WHEN part.run ~ '^[\u3400-\u9fff\uf900-\ufaff]'
                    THEN regexp_replace(part.run, '(.)', '\1 ', 'g') || pairs.joined
                WHEN part.run ~ '^[\uac00-\ud7af]' THEN part.run || ' ' || pairs.joined
                WHEN part.run ~ '^[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff]' THEN pairs.joined
                ELSE part.run
            END,
            ' ' ORDER BY part.place
        )
        FROM regexp_matches(
            left(plain, 20000),
            '[\u3400-\u9fff\uf900-\ufaff]+|[\uac00-\ud7af]+|[\u3040-\u309f]+|[\u30a0-\u30ff]+'
            '|[\u0e00-\u0e7f]+|[\u0e80-\u0eff]+|[\u1000-\u109f]+|[\u1780-\u17ff]+'
            '|[^\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+',
            'g'
        ) WITH ORDINALITY AS found (matched, place)
        CROSS JOIN LATERAL (
            SELECT
                found.place,
                found.matched[1] AS run,
                length(found.matched[1]) AS letters,
                CASE WHEN found.matched[1] ~ '^[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]' THEN 3 ELSE 2 END AS size
            OFFSET 0 -- else all of it is found out anew for each letter
        ) AS part
        CROSS JOIN LATERAL (
            SELECT string_agg(piece.joined, ' ' ORDER BY piece.start) AS joined
            FROM (
                SELECT
                    one.start,
                    concat(
                        one.letter,
                        lead(one.letter) OVER following,
                        CASE WHEN part.size = 3 THEN lead(one.letter, 2) OVER following END
                    ) AS joined
                FROM string_to_table(part.run, NULL) WITH ORDINALITY AS one (letter, start)
                WINDOW following AS (ORDER BY one.start)
            ) AS piece
            WHERE piece.start <= greatest(part.letters - part.size + 1, 1)
        ) AS pairs
    );
END
$$;

DROP FUNCTION names_person;
CREATE FUNCTION named_in(question text, names text []) RETURNS SETOF text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE ROWS 10 AS $$
DECLARE
    signs CONSTANT text := $signs$-.,:'"`@#&/()[]$signs$;
    spaces CONSTANT text := repeat(' ', length(signs));
    plain CONSTANT text := plain_words(question);
    asked CONSTANT text := translate(plain, signs, spaces);
    lowered CONSTANT text := lower(asked);
    languages CONSTANT regconfig [] := 'simple'::regconfig || text_languages(plain);
BEGIN
    RETURN QUERY
    WITH heard AS MATERIALIZED (
        SELECT config, to_tsvector(config, asked) AS words FROM unnest(languages) AS config
    )
    SELECT one.name
    FROM (
        SELECT who AS name, trim(translate(plain_words(who), signs, spaces)) AS wanted
        FROM unnest(names) AS who
        OFFSET 0
    ) AS one
    -- A name keeps its beginning, whatever ending a language gives it.
    WHERE strpos(lowered, lower(left(one.wanted, 2))) > 0
        AND EXISTS (SELECT FROM heard WHERE heard.words @@ phraseto_tsquery(heard.config, one.wanted));
END
$$;
COMMENT ON FUNCTION named_in IS
'Which names a question has in it, in whatever form and with whatever signs: "d''Alice" and "James''" name Alice and James.';
