"""What Alembic runs for every migration: one transaction, one migrator at a time, bounded waits."""

from typing import Final

from alembic import context
from sqlalchemy import Connection

from mnemolog.projections.memory.upgrade import ensure_memory_schema

MIGRATION_LOCK: Final = 0x6D6E656D_0001
SETUP_STATEMENTS: Final = (
    "SET LOCAL statement_timeout = '60s'",  # for those who wait while another one migrates
    f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})",
    "SET LOCAL lock_timeout = '5s'",
    "SET LOCAL statement_timeout = '15min'",
    "CREATE SCHEMA IF NOT EXISTS mnemolog_journal",
)


def _run(connection: Connection) -> None:
    with connection.begin():
        for statement in SETUP_STATEMENTS:
            connection.exec_driver_sql(statement)
        context.configure(connection=connection, version_table_schema="mnemolog_journal")
        context.run_migrations()
        driver_connection = connection.connection.driver_connection
        if driver_connection is not None:
            ensure_memory_schema(driver_connection)


_run(context.config.attributes["connection"])
