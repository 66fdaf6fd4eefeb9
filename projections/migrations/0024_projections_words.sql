-- name: projections_words
-- The words of a fact are stems of its language too, and those of each field can be told apart. A trigger fills them: an
-- expression of the column would rewrite the table. Rows that were written before keep their words until a rebuild.

CREATE FUNCTION plain_words(said text) RETURNS text LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
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
            left(plain, 5000),
            '[\u3400-\u9fff\uf900-\ufaff]+|[\uac00-\ud7af]+|[\u3040-\u309f]+|[\u30a0-\u30ff]+'
            '|[\u0e00-\u0e7f]+|[\u0e80-\u0eff]+|[\u1000-\u109f]+|[\u1780-\u17ff]+'
            '|[^\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+',
            'g'
        ) WITH ORDINALITY AS found (matched, place)
        CROSS JOIN LATERAL (
            SELECT
                found.place,
                found.matched[1] AS run,
                CASE WHEN found.matched[1] ~ '^[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]' THEN 3 ELSE 2 END AS size
        ) AS part
        CROSS JOIN LATERAL (
            SELECT string_agg(substr(part.run, start, part.size), ' ') AS joined
            FROM generate_series(1, greatest(length(part.run) - part.size + 1, 1)) AS start
        ) AS pairs
    );
END
$$;
COMMENT ON FUNCTION plain_words IS
'A text with spaces between its words: none of its signs counts as a letter, and scripts without spaces are cut up.';

CREATE FUNCTION text_languages(said text) RETURNS regconfig [] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
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

CREATE FUNCTION fact_words(
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

CREATE FUNCTION fill_fact_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.words := fact_words(NEW.text, NEW.search_text, NEW.key, NEW.value, NEW.excerpt);
    RETURN NEW;
END
$$;
ALTER TABLE facts ALTER COLUMN words DROP EXPRESSION;
CREATE TRIGGER facts_words
BEFORE INSERT OR UPDATE OF text, search_text, key, value, excerpt ON facts
FOR EACH ROW EXECUTE FUNCTION fill_fact_words();

-- `search_words` stays for turns, and for programs of the version before.
CREATE FUNCTION question_words(question text, max_words integer)
RETURNS TABLE (place bigint, lexemes tsquery, in_text tsquery, in_search_text tsquery, in_value tsquery)
LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE ROWS 10 AS $$
DECLARE
    plain CONSTANT text := plain_words(question);
    languages CONSTANT regconfig [] := text_languages(plain);
BEGIN
    RETURN QUERY
    WITH words AS MATERIALIZED (
        SELECT lexeme FROM unnest(to_tsvector('simple'::regconfig, plain))
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
        SELECT words.lexeme
        FROM words, language
        WHERE ts_lexize(language.stemmer, words.lexeme) <> '{}' AND words.lexeme !~ '^[\u3040-\u309f]+$'
    ),
    said AS (
        SELECT lexeme FROM meaningful
        UNION ALL
        SELECT lexeme FROM words WHERE NOT EXISTS (SELECT FROM meaningful)
        ORDER BY lexeme
        LIMIT max_words
    ),
    forms AS (
        SELECT DISTINCT said.lexeme AS word, '''' || replace(replace(one.form, '\', '\\'), '''', '''''') || '''' AS form
        FROM said
        CROSS JOIN LATERAL (
            SELECT said.lexeme AS form
            UNION ALL
            SELECT stem FROM stemmers CROSS JOIN LATERAL unnest(ts_lexize(stemmers.stemmer, said.lexeme)) AS stem
        ) AS one
    )
    SELECT
        row_number() OVER (ORDER BY forms.word),
        string_agg(forms.form, ' | ')::tsquery,
        string_agg(forms.form || ':D', ' | ')::tsquery,
        string_agg(forms.form || ':C', ' | ')::tsquery,
        string_agg(forms.form || ':B', ' | ')::tsquery
    FROM forms
    GROUP BY forms.word;
END
$$;
COMMENT ON FUNCTION question_words IS
'The words of a question but for the stop words of its language: each as any of its forms, the word itself and its stems, '
'and as such a form in a field of a fact. What has no label counts as D.';

CREATE FUNCTION names_person(question text, name text) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    signs CONSTANT text := $signs$-.,:'"`@#&/()[]$signs$;
    asked CONSTANT text := translate(plain_words(question), signs, repeat(' ', length(signs)));
    wanted CONSTANT text := trim(translate(plain_words(name), signs, repeat(' ', length(signs))));
    config regconfig;
BEGIN
    -- A name keeps its beginning, whatever ending a language gives it.
    IF strpos(lower(asked), lower(left(wanted, 2))) = 0 THEN
        RETURN false;
    END IF;
    FOREACH config IN ARRAY 'simple'::regconfig || text_languages(plain_words(question)) LOOP
        IF to_tsvector(config, asked) @@ phraseto_tsquery(config, wanted) THEN
            RETURN true;
        END IF;
    END LOOP;
    RETURN false;
END
$$;
COMMENT ON FUNCTION names_person IS
'Whether a question has a name in it, in whatever form and with whatever signs: "d''Alice" and "James''" name Alice and James.';
