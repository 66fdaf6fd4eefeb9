"""The body of every Alembic revision: it runs its `.sql` files, and has no downgrade."""

from collections.abc import Callable, Iterable
from functools import partial

from alembic import op

from mnemolog.projections.db.pools import JOURNAL_SCHEMA, LIVE_SCHEMA
from mnemolog.projections.errors import DowngradeRefusedError
from mnemolog.projections.migrations.upgrade import JOURNAL_FILES, migration_text


def sql_revision(*files: str) -> tuple[Callable[[], None], Callable[[], None]]:
    """The functions `upgrade` and `downgrade` of the revision with these files."""
    return partial(_run_sql_files, files), partial(_refuse_downgrade, files[0])


def _run_sql_files(files: Iterable[str]) -> None:
    for file in files:
        _run_sql_file(file)


def _run_sql_file(file: str) -> None:
    """Run one file as it is, the ones of the projections in their live schema."""
    schema = JOURNAL_SCHEMA if file in JOURNAL_FILES else LIVE_SCHEMA
    op.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    op.execute(f"SET LOCAL search_path = {schema}, public")
    # Not through SQLAlchemy, which would read '%' and ':' in the file as its own.
    driver_connection = op.get_bind().connection.driver_connection
    if driver_connection is not None:
        driver_connection.execute(migration_text(file))


def _refuse_downgrade(file: str) -> None:
    raise DowngradeRefusedError(file)
