"""The schemas and locks of a rebuild.

How the new schema is made, which live tables it keeps, and how it takes the place of the live one.
"""

import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any, Final, LiteralString, cast

from psycopg.errors import LockNotAvailable
from psycopg.sql import SQL, Composed, Identifier, Literal

from mnemolog.common.retry import retry_while
from mnemolog.projections.database import LIVE_SCHEMA, RowConnection, fetch_value
from mnemolog.projections.errors import ForeignObjectsError, RebuildRunningError, SwapRefusedError
from mnemolog.projections.migrations.upgrade import create_projection_schema, projection_files
from mnemolog.projections.rebuild.connections import NEXT_SCHEMA, OLD_SCHEMA
from mnemolog.projections.sql import migration_text, queries
from mnemolog.projections.write.projector import SWAP_LOCK

KEPT_TABLES: Final = ("commits", "memory_events")
FIRST_LOCK_MILLISECONDS: Final = 1500
"""Longer than `deadlock_timeout`, after which Postgres ends an autovacuum that is in the way."""
LOCK_MILLISECONDS: Final = 300
"""So long new readers of the kept tables wait at a time behind the swap, which waits for those that are in them."""
_OWN: Final = [LIVE_SCHEMA, NEXT_SCHEMA, OLD_SCHEMA]
_REPLACED: Final = "replaced_"
REBUILD_LOCK: Final = 0x6D6E656D_0003
"""Advisory lock of the one rebuild of a database, held by its session."""
FILL_LOCK: Final = 0x6D6E656D_0004
"""Advisory lock: shared by the processes that fill the tables of a rebuild; they may outlive it by a moment."""

# While a pause waits for a projector that is at work, the others wait behind it: not for long at a time.
LOCK_TIMEOUT_MILLISECONDS: Final = 2000
LOCK_ATTEMPTS: Final = 30
LOCK_RETRY_SECONDS: Final = 0.2

_COMMENT: Final = SQL(f"COMMENT ON SCHEMA {NEXT_SCHEMA} IS {{}}")
_SQL: Final = queries("rebuild")


async def make_next_schema(connection: RowConnection, *, full: bool) -> bool:
    """Make the schema with empty tables and without the indexes of readers; its comment keeps them.

    The comment also has what a new schema holds: what else the live one holds is of others. Unless it is to be `full`,
    it shows the live copy of the log instead of tables for it; whether it does.
    """
    async with connection.transaction():
        await create_projection_schema(connection, NEXT_SCHEMA)
        objects = await objects_of(connection, NEXT_SCHEMA)
        keeps = not full and await show_live_tables(connection)
        rows = await (await connection.execute(_SQL["plain_indexes"], {"schema": NEXT_SCHEMA})).fetchall()
        for name, _, _ in rows:
            await connection.execute(SQL("DROP INDEX {}").format(Identifier(NEXT_SCHEMA, name)))
        note = json.dumps({"made_by": fingerprint(), "indexes": rows, "objects": objects})
        await connection.execute(_COMMENT.format(Literal(note)))
    return keeps


async def read_note(connection: RowConnection) -> Mapping[str, Any]:
    """What the comment of the schema says: who made it, and its indexes; empty without one."""
    note = await fetch_value(connection, _SQL["schema_comment"], {"schema": NEXT_SCHEMA})
    return json.loads(note) if note else {}


async def was_made_by_this_program(connection: RowConnection) -> bool:
    """Whether there is such a schema, with tables that this program folds and makes in the same way."""
    return (await read_note(connection)).get("made_by") == fingerprint()


async def missing_indexes(connection: RowConnection) -> list[SQL]:
    """The statements that make the indexes of readers which the schema still lacks."""
    indexes = (await read_note(connection)).get("indexes", [])
    rows = await (await connection.execute(_SQL["plain_indexes"], {"schema": NEXT_SCHEMA})).fetchall()
    present = {name for name, _, _ in rows}
    return [SQL(cast("LiteralString", definition)) for name, _, definition in indexes if name not in present]


def fingerprint() -> str:
    """SHA-256 of all that decides about the rows: the fold with its records, and the tables."""
    texts = []
    for package in ("mnemolog.projections.write", "mnemolog.schemas"):
        modules = sorted(files(package).iterdir(), key=lambda entry: entry.name)
        texts += [module.read_text(encoding="utf-8") for module in modules if module.name.endswith(".py")]
    texts += map(migration_text, ("journal/functions.sql", *projection_files()))  # the first finds the words of facts
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


async def show_live_tables(connection: RowConnection) -> bool:
    """Replace the new empty tables by views of the live ones, where these are made like new ones; whether they are."""
    for table in KEPT_TABLES:
        live, new = [
            await (await connection.execute(_SQL["table_structure"], {"schema": schema, "table": table})).fetchall()
            for schema in (LIVE_SCHEMA, NEXT_SCHEMA)
        ]
        if live != new:
            return False

    async def create_views() -> None:
        for table in KEPT_TABLES:
            await connection.execute(
                _SQL["show_live_rows"].format(
                    view=Identifier(NEXT_SCHEMA, table),
                    table=Identifier(LIVE_SCHEMA, table),
                    offsets=Identifier(NEXT_SCHEMA, "projection_offsets"),
                )
            )

    await _replace_under_views(connection, create_views, drop=SQL("DROP TABLE {}"))
    return True


async def keeps_live_tables(connection: RowConnection) -> bool | None:
    """Whether the schema of the rebuild shows live tables; None where it lacks relations, so that it is of no use."""
    kinds = []
    for table in KEPT_TABLES:
        asked = {"schema": NEXT_SCHEMA, "relation": table}
        kinds += await (await connection.execute(_SQL["relation_kind"], asked)).fetchall()
    return {(("v",),) * len(KEPT_TABLES): True, (("r",),) * len(KEPT_TABLES): False}.get(tuple(kinds))


async def take_over_live_tables(connection: RowConnection, wait_milliseconds: int) -> None:
    """Move the live tables to where the views of them are, in the caller's transaction.

    Raises `psycopg.errors.LockNotAvailable` where somebody is in them for longer than `wait_milliseconds`.
    """
    live = [Identifier(LIVE_SCHEMA, table) for table in KEPT_TABLES]
    await connection.execute(_SQL["limit_lock_wait"], {"milliseconds": wait_milliseconds, "in_transaction": True})
    await connection.execute(SQL("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE").format(SQL(", ").join(live)))
    asked = {"schema": LIVE_SCHEMA, "tables": list(KEPT_TABLES)}
    functions = await (await connection.execute(_SQL["trigger_functions"], asked)).fetchall()

    async def move_tables() -> None:
        schema = Identifier(NEXT_SCHEMA)
        for (name,) in functions:
            await connection.execute(SQL("DROP FUNCTION {} ()").format(Identifier(NEXT_SCHEMA, name)))
            function = Identifier(LIVE_SCHEMA, name)
            await connection.execute(SQL("ALTER FUNCTION {} () SET SCHEMA {}").format(function, schema))
        for table in live:
            await connection.execute(SQL("ALTER TABLE {} SET SCHEMA {}").format(table, schema))

    await _replace_under_views(connection, move_tables, drop=SQL("DROP VIEW {}"))


async def _replace_under_views(connection: RowConnection, replace: Callable[[], Awaitable[None]], *, drop: SQL) -> None:
    """Let `replace` make other relations of the names of the kept tables; who has read them reads these then.

    Comments and grants of the views and functions that do so stay.
    """
    asked = {"schema": NEXT_SCHEMA, "relations": list(KEPT_TABLES)}
    readers = await (await connection.execute(_SQL["readers_of"], asked)).fetchall()
    for table in KEPT_TABLES:
        former = Identifier(_REPLACED + table)
        await connection.execute(SQL("ALTER TABLE {} RENAME TO {}").format(Identifier(NEXT_SCHEMA, table), former))
    await replace()
    for (definition,) in readers:
        await connection.execute(SQL(cast("LiteralString", definition)))  # as Postgres wrote it
    for table in KEPT_TABLES:
        await connection.execute(drop.format(Identifier(NEXT_SCHEMA, _REPLACED + table)))


@asynccontextmanager
async def only_rebuild(connection: RowConnection) -> AsyncIterator[None]:
    """Run as the only rebuild. Raises `RebuildRunningError` where another one is at work."""
    cursor = await connection.execute(_SQL["become_sole"], {"lock": REBUILD_LOCK})
    if await cursor.fetchone() != (True,):
        raise RebuildRunningError
    try:
        await _execute_with_lock_retries(connection, _SQL["take_lock"], FILL_LOCK)
        await connection.execute(_SQL["release_lock"], {"lock": FILL_LOCK})
        yield
    finally:
        # Postgres ends a closed session a little later, when the next rebuild may have begun.
        if not connection.broken:
            await connection.execute(_SQL["release_lock"], {"lock": REBUILD_LOCK})


async def share_filling(connection: RowConnection) -> None:
    """Say for the rest of this session that it fills the tables of a rebuild."""
    await connection.execute(_SQL["share_lock"], {"lock": FILL_LOCK})


async def live_offsets(connection: RowConnection) -> dict[int, int]:
    """How far the live tables hold the log; nothing where their offsets are gone."""
    cursor = await connection.execute(_SQL["live_table"], {"table": f"{LIVE_SCHEMA}.projection_offsets"})
    if await cursor.fetchone() == (None,):
        return {}
    query = _SQL["live_offsets"].format(offsets=Identifier(LIVE_SCHEMA, "projection_offsets"))
    return dict(await (await connection.execute(query)).fetchall())


@asynccontextmanager
async def projectors_paused(connection: RowConnection) -> AsyncIterator[None]:
    """Block all projectors but the one that uses `connection`. Readers are not affected.

    Raises `SwapRefusedError` where a projector's transaction lasts too long.
    """
    await _execute_with_lock_retries(connection, _SQL["take_lock"], SWAP_LOCK)
    try:
        yield
    finally:
        if not connection.broken:
            await connection.execute(_SQL["release_lock"], {"lock": SWAP_LOCK})


async def swap_schemas(connection: RowConnection, *, keeps: bool, wait_milliseconds: int) -> None:
    """Give the rebuilt tables the live name, with the grants of the live ones, in one transaction.

    Where it `keeps` the copy of the log, those live tables come with them. Raises `ForeignObjectsError` where objects
    of others would be lost or left with the old tables, and `psycopg.errors.LockNotAvailable` where somebody is in a
    table that is kept for longer than `wait_milliseconds`: try again.
    """
    await refuse_foreign_objects(connection)
    names = {"live": LIVE_SCHEMA, "rebuilt": NEXT_SCHEMA}
    async with connection.transaction():
        if keeps:
            await take_over_live_tables(connection, wait_milliseconds)
        for (grant,) in await (await connection.execute(_SQL["grants"], names)).fetchall():
            await connection.execute(SQL(cast("LiteralString", grant)))  # quoted by format() where it was made
        await connection.execute(_COMMENT.format(Literal(None)))  # the schema becomes one like any other
        for old, new in ((LIVE_SCHEMA, OLD_SCHEMA), (NEXT_SCHEMA, LIVE_SCHEMA)):
            await connection.execute(SQL("ALTER SCHEMA {} RENAME TO {}").format(Identifier(old), Identifier(new)))


async def objects_of(connection: RowConnection, schema: str) -> dict[str, str]:
    """What the schema holds and what hangs on it, in other schemas too, with a digest of each definition."""
    return dict(await (await connection.execute(_SQL["objects"], {"schema": schema, "own": _OWN})).fetchall())


async def differing_objects(connection: RowConnection) -> list[str]:
    """What the live schema lacks of what this program makes, or has otherwise: columns, triggers, functions, views."""
    live, own = await objects_of(connection, LIVE_SCHEMA), (await read_note(connection))["objects"]
    return sorted(name for name in own if live.get(name) != own[name])


async def refuse_foreign_objects(connection: RowConnection) -> None:
    """Raise `ForeignObjectsError` where the live schema holds, or bears, what this program does not make."""
    live = await objects_of(connection, LIVE_SCHEMA)
    if foreign := sorted(live.keys() - (await read_note(connection))["objects"].keys()):
        raise ForeignObjectsError(foreign)


async def drop_schema(connection: RowConnection, schema: str) -> None:
    """Drop a schema once no reader is in its tables any more. Raises `SwapRefusedError` where one stays too long."""
    await _execute_with_lock_retries(connection, SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(Identifier(schema)))


async def retry_lock(operation: Callable[[], Awaitable[Any]]) -> None:
    """Repeat `operation` while a lock is not available. Raises `SwapRefusedError` where that lasts too long."""
    try:
        await retry_while(
            lambda error: isinstance(error, LockNotAvailable),
            operation,
            delay=lambda _: LOCK_RETRY_SECONDS,
            attempts=LOCK_ATTEMPTS,
        )
    except LockNotAvailable as error:
        raise SwapRefusedError from error


async def _execute_with_lock_retries(
    connection: RowConnection, statement: SQL | Composed, advisory_lock: int | None = None
) -> None:
    limit = {"milliseconds": LOCK_TIMEOUT_MILLISECONDS, "in_transaction": False}
    await connection.execute(_SQL["limit_lock_wait"], limit)
    try:
        await retry_lock(lambda: connection.execute(statement, {"lock": advisory_lock}))
    finally:
        if not connection.broken:
            await connection.execute(_SQL["limit_lock_wait"], limit | {"milliseconds": 0})
