-- What a migration asks about a database, and notes there.

-- name: set_wait
-- How long one waits while another one migrates.
SET LOCAL statement_timeout = '60s';

-- name: lock
-- One migrates at a time.
SELECT pg_advisory_xact_lock(%(lock)s);

-- name: set_timeouts
-- Waiting for a lock holds up all who come later.
SELECT set_config('lock_timeout', '5s', true), set_config('statement_timeout', '15min', true);

-- name: has_tables
-- Whether it was made by a program from before the first release, and whether by one since.
SELECT to_regclass('mnemolog_journal.alembic_version'), to_regclass('mnemolog_journal.schema_files');

-- name: foreign_schema
-- A schema of Mnemolog's name that has tables or views, in a database where none of its files ran.
SELECT n.nspname
FROM pg_class AS c
INNER JOIN pg_namespace AS n ON c.relnamespace = n.oid
WHERE n.nspname = any(%(schemas)s)
ORDER BY n.nspname
LIMIT 1;

-- name: create_schema_files
-- Note which files ran.
CREATE SCHEMA IF NOT EXISTS mnemolog_journal;
CREATE TABLE mnemolog_journal.schema_files (
    file text PRIMARY KEY,
    digest text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE mnemolog_journal.schema_files IS
'The files of the schema that ran on this database, each with the SHA-256 of its text.';

-- name: applied
-- The files that ran.
SELECT file, digest FROM mnemolog_journal.schema_files;

-- name: set_applied
-- This file ran.
INSERT INTO mnemolog_journal.schema_files (file, digest) VALUES (%(file)s, %(digest)s)
ON CONFLICT (file) DO UPDATE SET digest = excluded.digest, applied_at = now();
