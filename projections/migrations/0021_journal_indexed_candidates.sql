-- name: journal_indexed_candidates
-- More candidates for a search of an indexed scope, since it weighs more than the vector: of the nearest all that are
-- wanted, which a 16th of the scope is read for, at most 4000; of the facts with a word half as many.

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
