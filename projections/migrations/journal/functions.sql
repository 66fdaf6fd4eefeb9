-- Functions of the journal. They read no table: its generated columns call them.

-- Words. A search finds facts and turns by the words in them and their stems.

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

-- What was said in a turn.

CREATE OR REPLACE FUNCTION turn_messages(body jsonb) RETURNS TABLE (place bigint, speaker text, content text)
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

CREATE OR REPLACE FUNCTION turn_words(body jsonb) RETURNS tsvector LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (SELECT said_words(string_agg(said.content, E'\n')) FROM turn_messages(body) AS said);

CREATE OR REPLACE FUNCTION turn_speakers(body jsonb) RETURNS text [] LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN (SELECT array_agg(DISTINCT said.speaker) FILTER (WHERE said.speaker IS NOT NULL) FROM turn_messages(body) AS said);

-- Indexes of large scopes.

CREATE OR REPLACE FUNCTION scope_condition(tenant text, user_id text, agent_id text, app_id text, run_id text)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN format(
    'status = ANY (''{active,pending_confirmation}'') AND tenant = %L AND user_id = %L AND agent_id = %L AND app_id = %L '
    'AND run_id = %L',
    tenant, user_id, agent_id, app_id, run_id
);
COMMENT ON FUNCTION scope_condition IS
'The facts of a scope that a search may find, as SQL: an index with this condition is used where a query has the same.';

CREATE OR REPLACE FUNCTION vector_condition(model text, dimensions integer) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN format('embedding_model = %L AND vector_dims(embedding) = %s', model, dimensions);
COMMENT ON FUNCTION vector_condition IS 'The facts whose vectors can be compared with those of a model, as SQL.';

-- The text of each query has the scope in it, since the planner takes an index with a condition only where it sees the
-- same in the query. Names are looked up at each call: after a rebuild `facts` is another table.
CREATE OR REPLACE FUNCTION indexed_candidates(
    tenant text,
    user_id text,
    agent_id text,
    app_id text,
    run_id text,
    model text,
    dimensions integer,
    near public.halfvec,
    asked tsquery,
    at timestamptz,
    wanted integer
) RETURNS TABLE (fact_id uuid) LANGUAGE plpgsql STABLE ROWS 100
AS $$
DECLARE
    of_scope CONSTANT text := format(
        'FROM facts WHERE %s AND (valid_until IS NULL OR valid_until > $1) AND (true_to IS NULL OR true_to > $1)',
        scope_condition(tenant, user_id, agent_id, app_id, run_id)
    );
    distance CONSTANT text := format(
        'embedding::public.halfvec(%s) OPERATOR(public.<=>) $2::public.halfvec(%s)', dimensions, dimensions
    );
    nearest text;
    read bigint;
    word text;
    frequent text [];
    found bigint;
BEGIN
    IF near IS NOT NULL THEN
        -- For the rest of the transaction. As settings of the function, only a superuser could make it, or restore it.
        PERFORM
            set_config('hnsw.ef_search', '1000', true),
            set_config('hnsw.iterative_scan', 'relaxed_order', true),
            set_config('hnsw.max_scan_tuples', '2000000', true),
            set_config('hnsw.scan_mem_multiplier', '4', true);
        nearest := format(
            'SELECT fact_id, embedding %s AND %s ORDER BY (%s)', of_scope, vector_condition(model, dimensions), distance
        );
        -- One round of the index gives ef_search facts, the best of which are not the nearest of all. So it reads on.
        EXECUTE 'SELECT facts / 16 FROM scopes '
            'WHERE tenant = $1 AND user_id = $2 AND agent_id = $3 AND app_id = $4 AND run_id = $5'
        INTO read USING tenant, user_id, agent_id, app_id, run_id;
        RETURN QUERY EXECUTE format('SELECT fact_id FROM (%s LIMIT $4) AS near ORDER BY %s LIMIT $3', nearest, distance)
        USING at, near, wanted, greatest(wanted, least(read, 4000));
        GET DIAGNOSTICS found = ROW_COUNT;
        IF found < wanted THEN
            -- Exact: no index has this order.
            RETURN QUERY EXECUTE format('SELECT fact_id FROM (%s + 0 LIMIT $3) AS near', nearest) USING at, near, wanted;
        END IF;
    END IF;
    -- All facts with a rare word, some with each frequent one, and those with all frequent ones, which rank highest.
    FOREACH word IN ARRAY coalesce(string_to_array(asked::text, ' | '), '{}') LOOP
        RETURN QUERY EXECUTE format('SELECT fact_id %s AND words @@ %L LIMIT $2', of_scope, word) USING at, wanted / 2;
        GET DIAGNOSTICS found = ROW_COUNT;
        IF found = wanted / 2 THEN
            frequent := frequent || word;
        END IF;
    END LOOP;
    IF cardinality(frequent) > 1 THEN
        RETURN QUERY
        EXECUTE format('SELECT fact_id %s AND words @@ %L LIMIT $2', of_scope, array_to_string(frequent, ' & '))
        USING at, wanted / 2;
    END IF;
END
$$;
COMMENT ON FUNCTION indexed_candidates IS
'The facts of an indexed scope that may be hits: the nearest to a vector by its index, and those with the words asked for.';
