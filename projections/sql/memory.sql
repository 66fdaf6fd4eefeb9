-- name: check_scope
-- Refuses what finds nothing, or what a query may not ask for.
CREATE OR REPLACE FUNCTION memory.check_scope(
    {{scope_types}}
) RETURNS void LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF '' IN ({{scope_ids}}) THEN
        RAISE EXCEPTION 'an id in the scope is empty'
        USING ERRCODE = 'invalid_parameter_value', HINT = 'Leave it out, or give NULL, to mean "not set".';
    ELSIF tenant IS NULL OR tenant IN ('*', '**') THEN
        RAISE EXCEPTION 'a query sees one tenant, and this one names %', coalesce(quote_literal(tenant), 'none')
        USING ERRCODE = 'invalid_parameter_value', HINT = 'Name the tenant, or leave it out for ''default''.';
    ELSIF user_id IS NULL AND agent_id IS NULL THEN
        RAISE EXCEPTION 'the scope names neither a user_id nor an agent_id'
        USING ERRCODE = 'invalid_parameter_value',
            HINT = 'Every fact has at least one of them: name it, for example user_id => ''alice'', or ''*'' for any.';
    END IF;
END
$$;
COMMENT ON FUNCTION memory.check_scope IS
'Raises an error for a scope that can find nothing: the other functions call it.';

-- name: check_given
-- Refuses a parameter that is NULL.
CREATE OR REPLACE FUNCTION memory.check_given(parameter text, is_given boolean) RETURNS void LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
    IF NOT is_given THEN
        RAISE EXCEPTION '% is NULL', parameter
        USING ERRCODE = 'null_value_not_allowed', HINT = format('Give a value for %s.', parameter);
    END IF;
END
$$;
COMMENT ON FUNCTION memory.check_given IS 'Raises an error for a parameter that is NULL: the other functions call it.';

-- name: scope_parameters
-- Whose facts: an id that is NULL finds rows that do not set it, '*' any value, '**' both.
tenant text DEFAULT 'default',
user_id text DEFAULT NULL,
agent_id text DEFAULT NULL,
app_id text DEFAULT NULL,
run_id text DEFAULT NULL

-- name: id_condition
-- What an id of a row has to be. As its value is known when the statement is planned, one comparison is left of it.
({row}.{id} = coalesce({value}, '') OR (coalesce({value}, '') = '*' AND {row}.{id} <> '') OR coalesce({value}, '') = '**')

-- name: settings
-- Names are looked up at each call, since a rebuild makes other tables; a plan is made for the values of each call.
SET search_path = mnemolog, mnemolog_journal, public, pg_temp
SET plan_cache_mode = force_custom_plan
