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

-- Words of facts and of questions.

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
COMMENT ON FUNCTION plain_words IS
'A text with spaces between its words: none of its signs counts as a letter, and scripts without spaces are cut up.';

CREATE OR REPLACE FUNCTION text_languages(said text) RETURNS regconfig [] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    words CONSTANT tsvector := to_tsvector('simple'::regconfig, left(said, 1000));
    by_script CONSTANT regconfig [] := array_remove(
        ARRAY[
            CASE WHEN said ~ '[\u0400-\u04ff]' THEN 'russian'::regconfig END,
            CASE WHEN said ~ '[\u0370-\u03ff]' THEN 'greek'::regconfig END,
            CASE WHEN said ~ '[\u0600-\u06ff]' THEN 'arabic'::regconfig END,
            CASE WHEN said ~ '[\u0900-\u097f]' THEN 'hindi'::regconfig END,
            CASE WHEN said ~ '[\u0b80-\u0bff]' THEN 'tamil'::regconfig END,
            CASE WHEN said ~ '[\u0530-\u058f]' THEN 'armenian'::regconfig END
        ],
        NULL
    );
BEGIN
    IF said !~ '[A-Za-z]' THEN
        RETURN by_script;
    END IF;
    RETURN by_script || ARRAY(
        SELECT ranked.config
        FROM (
            SELECT found.*, rank() OVER (ORDER BY found.others) AS place
            FROM (
                SELECT known.config, length(ts_delete(words, known.frequent)) AS others
                FROM (
                    VALUES
                (
                    'danish'::regconfig,
                    '{af,at,da,de,dem,den,der,det,du,en,er,et,for,fra,ham,han,har,havde,hun,hvad,hvor,i,ikke,jeg,med,'
                    'men,mig,min,nu,når,og,om,op,os,over,på,sig,sin,som,til,ud,var,vi}'::text []
                ),
                (
                    'dutch',
                    '{aan,als,bij,dan,dat,de,der,die,dit,door,een,en,er,haar,had,heb,heeft,hem,het,hij,hoe,ik,in,is,'
                    'je,maar,men,met,mij,mijn,naar,niet,of,om,ook,op,over,te,tot,uit,van,voor,was,wat,ze,zich,zijn,'
                    'zo,zou}'
                ),
                (
                    'english',
                    '{a,an,and,are,as,at,be,but,by,did,do,does,for,from,had,has,have,he,her,his,i,in,is,it,me,my,not,'
                    'of,on,or,she,that,the,their,there,they,this,to,was,we,what,when,where,which,who,with,you,your}'
                ),
                (
                    'finnish',
                    '{ei,että,hän,hänen,ja,joka,jos,koska,kuka,kun,minun,minä,missä,mitä,mutta,myös,niin,ole,olen,oli,'
                    'on,ovat,se,sinä,tai}'
                ),
                (
                    'french',
                    '{a,au,aux,avec,ce,ces,cette,dans,de,des,du,elle,en,est,et,il,je,la,le,les,leur,ma,mes,mon,ne,'
                    'nous,où,par,pas,plus,pour,quand,que,qui,sa,se,ses,son,sont,sur,un,une,vous,été}'
                ),
                (
                    'german',
                    '{als,am,an,auch,auf,aus,bei,das,dem,den,der,des,die,ein,eine,einem,einen,einer,er,es,für,hat,ich,'
                    'ihr,ihre,im,in,ist,mein,meine,mit,nach,nicht,sein,seine,sich,sie,und,von,wann,war,was,wer,wie,'
                    'wird,wo,zu,zum,zur}'
                ),
                (
                    'hungarian',
                    '{a,az,azt,csak,de,egy,el,ez,ha,hogy,hol,is,ki,meg,mi,mikor,mint,már,még,nagyon,nem,van,volt,én,'
                    'és,ő}'
                ),
                (
                    'italian',
                    '{a,al,alla,che,chi,con,da,dei,del,della,di,dove,e,gli,ha,ho,i,il,in,la,le,lo,mi,mia,mio,nel,'
                    'nella,non,per,quando,si,sono,sua,sue,suo,suoi,un,una,è}'
                ),
                (
                    'norwegian',
                    '{at,av,da,de,dem,den,der,det,du,en,er,et,fra,hadde,ham,han,har,hun,hva,hvem,hvor,i,ikke,jeg,med,'
                    'meg,men,min,nå,når,og,om,opp,oss,over,på,seg,sin,som,så,til,ut,var,vi}'
                ),
                (
                    'portuguese',
                    '{a,ao,as,com,como,da,das,de,do,dos,e,ela,ele,em,está,foi,mais,mas,meu,minha,na,no,nos,não,o,onde,'
                    'os,ou,para,por,quando,que,quem,se,seu,seus,sua,suas,são,tem,um,uma,à}'
                ),
                (
                    'spanish',
                    '{a,al,como,con,cuando,de,del,donde,dónde,el,en,es,este,está,fue,ha,la,las,le,lo,los,me,mi,mis,'
                    'muy,más,no,o,para,pero,por,que,quién,qué,se,si,sin,sobre,son,su,sus,tiene,un,una,vive,y,ya}'
                ),
                (
                    'swedish',
                    '{att,av,de,den,det,du,där,då,en,ett,från,för,hade,han,hans,har,hon,honom,i,icke,inte,jag,med,men,'
                    'mig,min,nu,när,och,om,på,sig,sin,som,så,till,vad,var,vem,vi,är}'
                ),
                (
                    'turkish',
                    '{ama,ben,benim,bir,biz,bu,da,daha,de,değil,en,gibi,ile,için,kadar,kim,mi,ne,nerede,o,onun,sen,'
                    'var,ve,çok}'
                )
                ) AS known (config, frequent)
            ) AS found
        ) AS ranked
        WHERE
            ranked.config = 'english'::regconfig
            OR (ranked.place = 1 AND ranked.others < length(words))
            -- Where no word tells, those that questions about times are read in.
            OR (ranked.place = 1 AND ranked.config = ANY('{french,german,italian,portuguese,spanish}'::regconfig []))
    );
END
$$;
COMMENT ON FUNCTION text_languages IS
'The text-search configurations of a text: by its scripts; of Latin letters English, and those of which it has the most '
'frequent words.';

CREATE OR REPLACE FUNCTION fact_words(
    said text, search_text text, key text, value text, excerpt text
) RETURNS tsvector LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    main CONSTANT text := plain_words(left(said, 20000));
    fields CONSTANT text [] := ARRAY[
        main,
        CASE WHEN search_text <> said THEN plain_words(left(search_text, 20000)) END,
        plain_words(left(concat_ws(' ', translate(key, '.:/-', '    '), value), 20000)),
        CASE WHEN excerpt <> said THEN plain_words(left(excerpt, 20000)) END
    ];
    labels CONSTANT "char" [] := '{D,C,B,A}';
    languages CONSTANT regconfig [] := text_languages(main);
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
COMMENT ON FUNCTION question_words IS
'The words of a question but for the stop words of its language: each as any of its forms, the word itself and its stems, '
'and as such a form in a field of a fact. What has no label counts as D.';

-- Names of people and things.

CREATE OR REPLACE FUNCTION named_in(question text, names text []) RETURNS SETOF text
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
    WHEN 'identity' THEN 'identity'
    WHEN 'hard_preference' THEN 'hard_preferences'
    WHEN 'soft_preference' THEN 'soft_preferences'
    WHEN 'task_context' THEN 'current_tasks'
    WHEN 'health' THEN 'sensitive_topics'
    WHEN 'finance' THEN 'sensitive_topics'
    WHEN 'professional' THEN 'work'
    WHEN 'relationship' THEN 'relationships'
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
