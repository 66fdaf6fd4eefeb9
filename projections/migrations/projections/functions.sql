-- Functions that read no table: columns, indexes and triggers of tables.sql call some of them.

-- Rows and times.

CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only: % is refused', TG_TABLE_NAME, TG_OP
    USING ERRCODE = 'restrict_violation',
          HINT = 'The table mirrors the log. To mend it, rebuild the projections.';
END
$$;

-- Times inside JSON must not depend on the time zone of a session.
CREATE OR REPLACE FUNCTION utc_text(moment timestamptz) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE
RETURN to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');

-- Words of facts and of questions. The journal has the functions that turns need too.

CREATE OR REPLACE FUNCTION fact_words(
    said text, search_text text, key text, value text, excerpt text
) RETURNS tsvector LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    main CONSTANT text := mnemolog_journal.plain_words(left(said, 20000));
    fields CONSTANT text [] := ARRAY[
        main,
        CASE WHEN search_text <> said THEN mnemolog_journal.plain_words(left(search_text, 20000)) END,
        mnemolog_journal.plain_words(left(concat_ws(' ', translate(key, '.:/-', '    '), value), 20000)),
        CASE WHEN excerpt <> said THEN mnemolog_journal.plain_words(left(excerpt, 20000)) END
    ];
    labels CONSTANT "char" [] := '{D,C,B,A}';
    languages CONSTANT regconfig [] := mnemolog_journal.text_languages(main);
    found tsvector := '';
    field tsvector;
    language regconfig;
BEGIN
    FOR place IN 1 .. 4 LOOP
        CONTINUE WHEN coalesce(fields[place], '') = '';
        field := to_tsvector('simple'::regconfig, fields[place]);
        FOREACH language IN ARRAY languages LOOP
            field := field || ts_delete(to_tsvector(language, fields[place]), tsvector_to_array(field));
        END LOOP;
        -- A word belongs to the first field that has it. A label needs a position, which nothing else reads.
        found := found || CASE
            WHEN place = 1 THEN strip(field)
            ELSE setweight(ts_delete(field, tsvector_to_array(found)), labels[place])
        END;
    END LOOP;
    RETURN found;
EXCEPTION
    WHEN program_limit_exceeded THEN -- a tsvector holds 1 MiB
        RETURN strip(to_tsvector('simple'::regconfig, main));
END
$$;
COMMENT ON FUNCTION fact_words IS
'The words of a fact and their stems in its languages: those of the text without a label, others labelled by the first '
'field that has them: C the search text, B key and value, A the excerpt.';

CREATE OR REPLACE FUNCTION fill_fact_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.words := fact_words(NEW.text, NEW.search_text, NEW.key, NEW.value, NEW.excerpt);
    RETURN NEW;
END
$$;

-- A function of its own, so that a search need not plan it each time.
CREATE OR REPLACE FUNCTION search_words(question text, max_lexemes integer) RETURNS tsquery LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
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

-- `search_words` stays for turns, and for programs of the version before.
CREATE OR REPLACE FUNCTION question_words(question text, max_words integer)
RETURNS TABLE (place bigint, lexemes tsquery, in_text tsquery, in_search_text tsquery, in_value tsquery)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE ROWS 10 AS $$
DECLARE
    plain CONSTANT text := mnemolog_journal.plain_words(question);
    languages CONSTANT regconfig [] := mnemolog_journal.text_languages(plain);
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
COMMENT ON FUNCTION question_words IS
'The words of a question but for the stop words of its language: each as any of its forms, the word itself and its stems, '
'and as such a form in a field of a fact. What has no label counts as D.';

-- Names of people and things.

CREATE OR REPLACE FUNCTION named_in(question text, names text []) RETURNS SETOF text
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE ROWS 10 AS $$
DECLARE
    signs CONSTANT text := $signs$-.,:'"`@#&/()[]$signs$;
    spaces CONSTANT text := repeat(' ', length(signs));
    plain CONSTANT text := mnemolog_journal.plain_words(question);
    asked CONSTANT text := translate(plain, signs, spaces);
    lowered CONSTANT text := lower(asked);
    languages CONSTANT regconfig [] := 'simple'::regconfig || mnemolog_journal.text_languages(plain);
BEGIN
    RETURN QUERY
    WITH heard AS MATERIALIZED (
        SELECT config, to_tsvector(config, asked) AS words FROM unnest(languages) AS config
    )
    SELECT one.name
    FROM (
        SELECT who AS name, trim(translate(mnemolog_journal.plain_words(who), signs, spaces)) AS wanted
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

CREATE OR REPLACE FUNCTION has_plain_name(said text, name text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN strpos(lower(said), lower(name)) > 0
    AND strpos(' ' || translate(lower(said), '.,:;!?()"', '         ') || ' ', ' ' || lower(name) || ' ') > 0;
COMMENT ON FUNCTION has_plain_name IS
'Whether a text has a name in it between spaces or punctuation: then it has_name. An expression, which Postgres puts in '
'the place of a call.';

CREATE OR REPLACE FUNCTION has_name(said text, name text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN strpos(lower(said), lower(name)) = 0 THEN false
    -- Scripts that put no space between words, and Korean, whose words have endings.
    WHEN name ~ '[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]' THEN true
    WHEN has_plain_name(said, name) THEN true
    ELSE EXISTS (SELECT FROM named_in(said, ARRAY[name]))
END;
COMMENT ON FUNCTION has_name IS
'Whether a text has a name in it as whole words, in whatever form: "Diana" has no "Ana", and "Ana''s" has.';

CREATE OR REPLACE FUNCTION subject_rank(
    known text, asked text, spoken text [], aliases text []
) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE
BEGIN ATOMIC
SELECT
    CASE
        WHEN
            (lower(known) = lower(asked)) IS TRUE
            OR (
                lower(coalesce(known, 'user')) = ANY(aliases)
                AND lower(coalesce(asked, 'user')) = ANY(aliases)
            ) THEN 2
        WHEN known IS NULL OR asked IS NULL THEN 1
        WHEN
            spoken = '{}'
            AND (lower(known) = ANY(aliases) OR lower(asked) = ANY(aliases)) THEN 1
        WHEN
            EXISTS (
                SELECT
                FROM
                    unnest(CASE
                        WHEN lower(known) = ANY(aliases) THEN spoken
                        ELSE ARRAY[lower(known)]
                    END) AS one (name),
                    unnest(CASE
                        WHEN lower(asked) = ANY(aliases) THEN spoken
                        ELSE ARRAY[lower(asked)]
                    END) AS other (name)
                WHERE
                    string_to_array(one.name, ' ') <@ string_to_array(other.name, ' ')
                    OR string_to_array(other.name, ' ') <@ string_to_array(one.name, ' ')
            ) THEN 1
        ELSE 0
    END;
END;
COMMENT ON FUNCTION subject_rank IS
'How near two subjects are: 2 where they are the same, 1 where that is unsure, 0 where they are certainly different. '
'spoken are the names of the user, aliases these and the words for the user, all in small letters.';

CREATE OR REPLACE FUNCTION first_speakers(known text [], said text []) RETURNS text [] LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN array(
    SELECT spoken.speaker
    FROM unnest(known || said) WITH ORDINALITY AS spoken (speaker, place)
    GROUP BY spoken.speaker
    ORDER BY min(spoken.place)
    LIMIT 8
);
COMMENT ON FUNCTION first_speakers IS 'The speakers that are known and then those that spoke since, each once, at most 8.';

CREATE OR REPLACE FUNCTION holder_of_tie(key text) RETURNS uuid LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN right(key, 36) ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN right(key, 36)::uuid
END;
COMMENT ON FUNCTION holder_of_tie IS 'The entity to whom a tie is ("wife of <id>"); NULL where its key names none.';

-- Profiles and costs.

CREATE OR REPLACE FUNCTION profile_section(category text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE category
    {{profile_sections}}
    ELSE 'other'
END;
COMMENT ON FUNCTION profile_section IS 'The section of a profile that shows the facts of a category.';

CREATE OR REPLACE FUNCTION step_usage(provenance jsonb)
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
