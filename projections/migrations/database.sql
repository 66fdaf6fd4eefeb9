-- What a database needs before the schemas: vectors, and names that SQL users find without a prefix.

CREATE EXTENSION IF NOT EXISTS vector SCHEMA public;

-- An account that does not own the database goes on without this convenience.
DO $$
BEGIN
    EXECUTE format('ALTER DATABASE %I SET search_path = mnemolog, mnemolog_journal, public', current_database());
EXCEPTION WHEN insufficient_privilege THEN
    RAISE WARNING 'the search_path of database % stays as it is: only its owner can set it', current_database();
END
$$;
