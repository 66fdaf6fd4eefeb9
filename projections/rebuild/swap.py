"""The schemas and locks of a rebuild, and the swap of the rebuilt tables for the live ones."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, LiteralString, cast

from psycopg.errors import LockNotAvailable
from psycopg.sql import SQL, Composed, Identifier

from mnemolog.projections.db.pools import LIVE_SCHEMA
from mnemolog.projections.rebuild.errors import DependentViewsError, RebuildRunningError, SwapRefusedError
from mnemolog.projections.rebuild.next_schema import NEXT_SCHEMA, forget_origin
from mnemolog.projections.retry import retry_while
from mnemolog.projections.sql import queries
from mnemolog.projections.write.projector import SWAP_LOCK
from mnemolog.projections.write.row_writer import Connection

OLD_SCHEMA: Final = "mnemolog_old"
REBUILD_LOCK: Final = 0x6D6E656D_0003
"""Advisory lock of the one rebuild of a database, held by its session."""
FILL_LOCK: Final = 0x6D6E656D_0004
"""Advisory lock: shared by the processes that fill the tables of a rebuild; they may outlive it by a moment."""

# While a pause waits for a projector that is at work, the others wait behind it: not for long at a time.
LOCK_TIMEOUT_MILLISECONDS: Final = 2000
LOCK_ATTEMPTS: Final = 30
LOCK_RETRY_SECONDS: Final = 0.2

_SQL: Final = queries("rebuild")


@asynccontextmanager
async def only_rebuild(connection: Connection) -> AsyncIterator[None]:
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


async def share_filling(connection: Connection) -> None:
    """Say for the rest of this session that it fills the tables of a rebuild."""
    await connection.execute(_SQL["share_lock"], {"lock": FILL_LOCK})


async def ensure_live_schema(connection: Connection) -> None:
    await connection.execute(_SQL["ensure_schema"].format(schema=Identifier(LIVE_SCHEMA)))


async def live_offsets(connection: Connection) -> dict[int, int]:
    """How far the live tables hold the log; nothing where their offsets are gone."""
    cursor = await connection.execute(_SQL["live_table"], {"table": f"{LIVE_SCHEMA}.projection_offsets"})
    if await cursor.fetchone() == (None,):
        return {}
    query = _SQL["live_offsets"].format(offsets=Identifier(LIVE_SCHEMA, "projection_offsets"))
    return dict(await (await connection.execute(query)).fetchall())


@asynccontextmanager
async def projectors_paused(connection: Connection) -> AsyncIterator[None]:
    """Block all projectors but the one that uses `connection`. Readers are not affected.

    Raises `SwapRefusedError` where a projector's transaction lasts too long.
    """
    await _execute_with_lock_retries(connection, _SQL["take_lock"], SWAP_LOCK)
    try:
        yield
    finally:
        if not connection.broken:
            await connection.execute(_SQL["release_lock"], {"lock": SWAP_LOCK})


async def swap_schemas(connection: Connection) -> None:
    """Give the rebuilt tables the live name, with the grants of the live ones, in one transaction.

    Raises `DependentViewsError` where views of other schemas would be left with the old tables.
    """
    await refuse_dependent_views(connection)
    names = {"live": LIVE_SCHEMA, "rebuilt": NEXT_SCHEMA}
    async with connection.transaction():
        for (grant,) in await (await connection.execute(_SQL["grants"], names)).fetchall():
            await connection.execute(SQL(cast("LiteralString", grant)))  # quoted by format() where it was made
        await forget_origin(connection)
        for old, new in ((LIVE_SCHEMA, OLD_SCHEMA), (NEXT_SCHEMA, LIVE_SCHEMA)):
            await connection.execute(_SQL["rename_schema"].format(old=Identifier(old), new=Identifier(new)))


async def refuse_dependent_views(connection: Connection) -> None:
    cursor = await connection.execute(_SQL["dependents"], {"live": LIVE_SCHEMA})
    if found := [name for (name,) in await cursor.fetchall()]:
        raise DependentViewsError(found)


async def drop_schema(connection: Connection, schema: str) -> None:
    """Drop a schema once no reader is in its tables any more. Raises `SwapRefusedError` where one stays too long."""
    await _execute_with_lock_retries(connection, _SQL["drop_schema"].format(schema=Identifier(schema)))


async def _execute_with_lock_retries(
    connection: Connection, statement: SQL | Composed, advisory_lock: int | None = None
) -> None:
    await connection.execute(_SQL["limit_lock_wait"], {"milliseconds": LOCK_TIMEOUT_MILLISECONDS})
    try:
        await retry_while(
            lambda error: isinstance(error, LockNotAvailable),
            lambda: connection.execute(statement, {"lock": advisory_lock}),
            delay=lambda _: LOCK_RETRY_SECONDS,
            attempts=LOCK_ATTEMPTS,
        )
    except LockNotAvailable as error:
        raise SwapRefusedError from error
    finally:
        if not connection.broken:
            await connection.execute(_SQL["limit_lock_wait"], {"milliseconds": 0})
