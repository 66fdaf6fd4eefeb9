"""Bring a database to the newest schema, and make further copies of the projections' tables."""

import asyncio
import threading
from importlib.resources import files
from typing import Final

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Identifier

JOURNAL_FILES: Final = ("journal/functions.sql", "journal/tables.sql")
"""What makes the schema that outlives every rebuild."""
_PROJECTION_FILES: Final = ("projections/functions.sql", "projections/tables.sql", "projections/views.sql")
_ALEMBIC_LOCK: Final = threading.Lock()  # its context is global to the process


async def migrate(url: str) -> None:
    """Run the migrations that `url` lacks; does nothing on a database that is up to date.

    Several callers at once are fine: one migrates, the others wait up to a minute. Raises
    `psycopg.OperationalError` where the database is unavailable, or busy for longer than the timeouts allow;
    nothing is half done then.
    """
    await asyncio.to_thread(_upgrade, url)


async def create_projection_schema(connection: AsyncConnection[TupleRow], name: str) -> None:
    """Make schema `name` with the tables of the projections, empty. The search_path ends as it was.

    Runs in the caller's transaction. Raises `psycopg.errors.DuplicateSchema` where `name` exists.
    """
    async with connection.transaction():
        cursor = await connection.execute("SELECT current_setting('search_path')")
        (before,) = await cursor.fetchone() or ("",)
        await connection.execute(SQL("CREATE SCHEMA {}").format(Identifier(name)))
        await connection.execute(SQL("SET LOCAL search_path = {}, public").format(Identifier(name)))
        for file in projection_files():
            await connection.execute(migration_text(file))
        await connection.execute("SELECT set_config('search_path', %s, true)", [before])


def projection_files() -> list[str]:
    """What makes the tables that are a function of the log, their functions and views, in this order."""
    return list(_PROJECTION_FILES)


def migration_text(file: str) -> str:
    """The SQL of one file, named by its path in this folder."""
    return files("mnemolog.projections.migrations").joinpath(file).read_text(encoding="utf-8")


def _upgrade(url: str) -> None:
    import sqlalchemy  # noqa: PLC0415 - of the extra `server`: a rebuild does without
    from alembic import command  # noqa: PLC0415 - as above
    from alembic.config import Config  # noqa: PLC0415 - as above

    config = Config()
    config.set_main_option("script_location", "mnemolog.projections:migrations")
    config.set_main_option("path_separator", "os")
    parameters = {name: str(value) for name, value in conninfo_to_dict(url).items()}
    engine = sqlalchemy.create_engine(
        "postgresql+psycopg://", connect_args=parameters, poolclass=sqlalchemy.pool.NullPool
    )
    try:
        with _ALEMBIC_LOCK, engine.connect() as connection:
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    except sqlalchemy.exc.OperationalError as error:
        if isinstance(error.orig, psycopg.OperationalError):
            raise error.orig from None
        raise
