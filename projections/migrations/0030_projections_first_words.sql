-- name: projections_first_words
-- Of a question with more words than count, the first ones count. Until now it was those that came first by their letters.

CREATE OR REPLACE FUNCTION question_words(question text, max_words integer)
RETURNS TABLE (place bigint, lexemes tsquery, in_text tsquery, in_search_text tsquery, in_value tsquery)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE ROWS 10 AS $$
DECLARE
    plain CONSTANT text := plain_words(question);
    languages CONSTANT regconfig [] := text_languages(plain);
BEGIN
    RETURN QUERY
    WITH words AS MATERIALIZED (
        SELECT lexeme, positions[1] AS first FROM unnest(to_tsvector('simple'::regconfig, plain))
    ),
    stemmers AS MATERIALIZED (
        SELECT known.language, (known.language || '_stem')::regdictionary AS stemmer
        FROM unnest(languages::text [] || ARRAY['english']) AS known (language)
        GROUP BY known.language
    ),
    language AS (
        -- The one with the most stop words in the question; two at the least, since "hat" and "son" are English too.
        SELECT stemmers.stemmer
        FROM stemmers
        CROSS JOIN LATERAL (
            SELECT count(*) AS stop_words FROM words WHERE ts_lexize(stemmers.stemmer, words.lexeme) = '{}'
        ) AS found
        WHERE stemmers.language IN ('english', 'russian') OR found.stop_words >= 2
        ORDER BY found.stop_words DESC, stemmers.language <> 'english', stemmers.language
        LIMIT 1
    ),
    meaningful AS (
        -- Japanese endings and particles are stop words, too.
        SELECT words.lexeme, words.first
        FROM words, language
        WHERE ts_lexize(language.stemmer, words.lexeme) <> '{}' AND words.lexeme !~ '^[\u3040-\u309f]+$'
    ),
    said AS (
        SELECT lexeme, first FROM meaningful
        UNION ALL
        SELECT lexeme, first FROM words WHERE NOT EXISTS (SELECT FROM meaningful)
        ORDER BY first, lexeme
        LIMIT max_words
    ),
    forms AS (
        SELECT DISTINCT said.lexeme AS word, said.first, '''' || replace(replace(one.form, '\', '\\'), '''', '''''') || '''' AS form
        FROM said
        CROSS JOIN LATERAL (
            SELECT said.lexeme AS form
            UNION ALL
            SELECT stem FROM stemmers CROSS JOIN LATERAL unnest(ts_lexize(stemmers.stemmer, said.lexeme)) AS stem
        ) AS one
    )
    SELECT
        row_number() OVER (ORDER BY forms.first, forms.word),
        string_agg(forms.form, ' | ')::tsquery,
        string_agg(forms.form || ':D', ' | ')::tsquery,
        string_agg(forms.form || ':C', ' | ')::tsquery,
        string_agg(forms.form || ':B', ' | ')::tsquery
    FROM forms
    GROUP BY forms.word, forms.first;
END
$$;
