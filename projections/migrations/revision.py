"""How a revision runs its `.sql` file."""

from typing import NoReturn

from alembic import op

from mnemolog.projections.db.pools import JOURNAL_SCHEMA, LIVE_SCHEMA
from mnemolog.projections.errors import DowngradeRefusedError
from mnemolog.projections.migrations.upgrade import PROJECTION_FILE_MARK, migration_text


def run_sql_file(file: str) -> None:
    """Run one file as it is, the ones of the projections in their live schema."""
    schema = LIVE_SCHEMA if PROJECTION_FILE_MARK in file else JOURNAL_SCHEMA
    op.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    op.execute(f"SET LOCAL search_path = {schema}, public")
    # Not through SQLAlchemy, which would read '%' and ':' in the file as its own.
    driver_connection = op.get_bind().connection.driver_connection
    if driver_connection is not None:
        driver_connection.execute(migration_text(file))


def refuse_downgrade(revision: str) -> NoReturn:
    """Forward only: what a migration has thrown away cannot be had back."""
    raise DowngradeRefusedError(revision)
