-- name: journal_indexed_scopes
-- Large scopes have indexes of their own, for which no other scope pays. They outlive every rebuild, which makes their
-- indexes on the new tables.

CREATE TABLE indexed_scopes (
    tenant text NOT NULL,
    user_id text NOT NULL,
    agent_id text NOT NULL,
    app_id text NOT NULL,
    run_id text NOT NULL,
    model text NOT NULL,
    dimensions integer NOT NULL CHECK (dimensions > 0),
    PRIMARY KEY (tenant, user_id, agent_id, app_id, run_id)
);
COMMENT ON TABLE indexed_scopes IS
'The large scopes that have an index of their vectors, of this model and number of dimensions, and one of their words.';

CREATE FUNCTION scope_condition(tenant text, user_id text, agent_id text, app_id text, run_id text)
RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN format(
    'status = ANY (''{active,pending_confirmation}'') AND tenant = %L AND user_id = %L AND agent_id = %L AND app_id = %L '
    'AND run_id = %L',
    tenant, user_id, agent_id, app_id, run_id
);
COMMENT ON FUNCTION scope_condition IS
'The facts of a scope that a search may find, as SQL: an index with this condition is used where a query has the same.';

CREATE FUNCTION vector_condition(model text, dimensions integer) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN format('embedding_model = %L AND vector_dims(embedding) = %s', model, dimensions);
COMMENT ON FUNCTION vector_condition IS 'The facts whose vectors can be compared with those of a model, as SQL.';

-- The text of each query has the scope in it, since the planner takes an index with a condition only where it sees the
-- same in the query. Names are looked up at each call: after a rebuild `facts` is another table.
CREATE FUNCTION indexed_candidates(
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
        'SELECT fact_id FROM facts WHERE %s AND (valid_until IS NULL OR valid_until > $1) '
        'AND (true_to IS NULL OR true_to > $1)',
        scope_condition(tenant, user_id, agent_id, app_id, run_id)
    );
    nearest text;
    word text;
    frequent text [];
    found bigint;
BEGIN
    IF near IS NOT NULL THEN
        -- For the rest of the transaction. As settings of the function, only a superuser could make it, or restore it.
        PERFORM
            set_config('hnsw.ef_search', '1000', true),
            set_config('hnsw.iterative_scan', 'relaxed_order', true),
            set_config('hnsw.max_scan_tuples', '2000000', true);
        nearest := format(
            '%s AND %s ORDER BY (embedding::public.halfvec(%s) OPERATOR(public.<=>) $2::public.halfvec(%s))',
            of_scope, vector_condition(model, dimensions), dimensions, dimensions
        );
        RETURN QUERY EXECUTE nearest || ' LIMIT $3' USING at, near, wanted;
        GET DIAGNOSTICS found = ROW_COUNT;
        IF found < wanted THEN
            RETURN QUERY EXECUTE nearest || ' + 0 LIMIT $3' USING at, near, wanted; -- exact: no index has this order
        END IF;
    END IF;
    -- All facts with a rare word, some with each frequent one, and those with all frequent ones, which rank highest.
    FOREACH word IN ARRAY coalesce(string_to_array(asked::text, ' | '), '{}') LOOP
        RETURN QUERY EXECUTE format('%s AND words @@ %L LIMIT $2', of_scope, word) USING at, 4 * wanted;
        GET DIAGNOSTICS found = ROW_COUNT;
        IF found = 4 * wanted THEN
            frequent := frequent || word;
        END IF;
    END LOOP;
    IF cardinality(frequent) > 1 THEN
        RETURN QUERY EXECUTE format('%s AND words @@ %L LIMIT $2', of_scope, array_to_string(frequent, ' & '))
        USING at, 4 * wanted;
    END IF;
END
$$;
COMMENT ON FUNCTION indexed_candidates IS
'The facts of an indexed scope that may be hits: the nearest to a vector by its index, and those with the words asked for.';
