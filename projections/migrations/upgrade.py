"""Bring a database to the schema of this program, and make further copies of the projections' tables.

Each schema has functions.sql (which reads no table), tables.sql, then numbered changes of tables, and views.sql. Tables
and numbered files run once; functions and views are replaced when their text has changed, or after a numbered file.
Libraries for plain SQL files were looked at: yoyo-migrations splits texts with a parser that breaks BEGIN ATOMIC and
keeps its lock in a row that a killed program leaves behind; others take psycopg 2 or asyncpg. None notices that an
applied file was changed, or replaces views in place.
"""

import asyncio
import hashlib
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Final

import psycopg
from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Identifier

from mnemolog.projections.database import JOURNAL_SCHEMA, LIVE_SCHEMA
from mnemolog.projections.definitions import replace_definitions
from mnemolog.projections.errors import MigrationRefusedError
from mnemolog.projections.memory.definitions import ensure_memory_schema
from mnemolog.projections.sql import migration_text, queries

_FOLDERS: Final = {"journal": JOURNAL_SCHEMA, "projections": LIVE_SCHEMA}
_DEFINITIONS: Final = ("journal/functions.sql", "projections/functions.sql", "projections/views.sql")
_NUMBERED: Final = re.compile(r"\d{4}_\w+\.sql")
_MIGRATION_LOCK: Final = 0x6D6E656D_0001
_SQL: Final = queries("migrations")


async def migrate(url: str) -> None:
    """Bring the database to the schema of this program; does nothing where it is up to date.

    Several callers at once are fine: one migrates, the others wait up to a minute. Raises `psycopg.OperationalError`
    where the database is unavailable, or busy for longer than the timeouts allow, and `MigrationRefusedError` where a
    newer or an unreleased program made it; nothing is half done then.
    """
    await asyncio.to_thread(_migrate, url)


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
            await connection.execute(migration_text(file).encode())
        await connection.execute("SELECT set_config('search_path', %s, true)", [before])


def projection_files() -> list[str]:
    """What makes the tables that are a function of the log, their functions and views, in this order."""
    return ["projections/functions.sql", *_table_files("projections"), "projections/views.sql"]


def _table_files(folder: str) -> list[str]:
    """The baseline of the tables, then the numbered files."""
    numbered = sorted(
        one.name for one in files(__package__).joinpath(folder).iterdir() if _NUMBERED.fullmatch(one.name)
    )
    return [f"{folder}/{name}" for name in ("tables.sql", *numbered)]


def _migrate(url: str) -> None:
    with psycopg.connect(url) as connection:
        for name in ("set_wait", "lock", "set_timeouts"):
            connection.execute(_SQL[name], {"lock": _MIGRATION_LOCK} if name == "lock" else None)
        former, current = connection.execute(_SQL["has_tables"]).fetchone() or (None, None)
        if former is not None:
            raise MigrationRefusedError(
                "the database was made by a program from before the first release, from which no upgrade leads: "
                "migrate an empty database, and rebuild its tables from the log"
            )
        applied: dict[str, str] = {}
        if current is not None:
            applied = dict(connection.execute(_SQL["applied"]).fetchall())
        _refuse_unknown(applied)
        if not applied:
            foreign = connection.execute(_SQL["foreign_schema"], {"schemas": list(_FOLDERS.values())}).fetchone()
            if foreign is not None:
                raise MigrationRefusedError(
                    f"the schema {foreign[0]} has tables that Mnemolog did not make: name another database"
                )
            connection.execute(migration_text("database.sql").encode())
            connection.execute(_SQL["create_schema_files"])
        for folder, schema in _FOLDERS.items():
            connection.execute(SQL("CREATE SCHEMA IF NOT EXISTS {}").format(Identifier(schema)))
            connection.execute(SQL("SET LOCAL search_path = {}, public").format(Identifier(schema)))
            missing = [file for file in _table_files(folder) if file not in applied]
            for file in (f"{folder}/functions.sql", *missing, f"{folder}/views.sql"):
                if file in missing:
                    connection.execute(migration_text(file).encode())
                elif file in _DEFINITIONS and (missing or applied.get(file) != _digest(file)):
                    replace_definitions(connection, schema, migration_text(file))
                else:
                    continue
                connection.execute(_SQL["set_applied"], {"file": file, "digest": _digest(file)})
        ensure_memory_schema(connection)


def _refuse_unknown(applied: Mapping[str, str]) -> None:
    tables = [file for folder in _FOLDERS for file in _table_files(folder)]
    if newer := sorted(file for file in applied if _NUMBERED.search(file) and file not in tables):
        raise MigrationRefusedError(
            f"the database is newer than this program, which does not know {newer[-1]}: use the newer program"
        )
    for file in tables:
        if applied.get(file, _digest(file)) != _digest(file):
            raise MigrationRefusedError(
                f"{file} was changed after it was applied to this database: put it back, and add a numbered file"
            )


def _digest(file: str) -> str:
    return hashlib.sha256(migration_text(file).encode()).hexdigest()
