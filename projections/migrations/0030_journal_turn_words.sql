-- name: journal_turn_words
-- The words of a turn are stems of its languages, too, and signs are no letters: as those of facts. The journal outlives the
-- schemas of the projections, so it has the two functions of its own; a test compares them. Rows that were written before keep
-- their words, and are found by them: "UPDATE mnemolog_journal.turn_journal SET body = body" gives them the new ones.

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

CREATE OR REPLACE FUNCTION said_words(said text) RETURNS tsvector LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    plain CONSTANT text := mnemolog_journal.plain_words(said);
    found tsvector := strip(to_tsvector('simple'::regconfig, plain));
    language regconfig;
BEGIN
    FOREACH language IN ARRAY mnemolog_journal.text_languages(plain) LOOP
        found := found || strip(to_tsvector(language, plain));
    END LOOP;
    RETURN found;
EXCEPTION
    WHEN program_limit_exceeded THEN -- a tsvector holds 1 MiB
        RETURN strip(to_tsvector('simple'::regconfig, left(plain, 20000)));
END
$$;
COMMENT ON FUNCTION said_words IS 'The words of a text and their stems in its languages, as facts have them.';
