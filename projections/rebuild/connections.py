"""Connections of a rebuild, and work that is spread over several of them."""

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeVar

import psycopg
from psycopg import AsyncConnection, Connection, IsolationLevel
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Composed, Literal
from psycopg.types.json import set_json_loads

from mnemolog.common.cancellation import cancel_all
from mnemolog.projections.database import RowConnection, connection_settings, prepare_connection
from mnemolog.projections.sql import queries

NEXT_SCHEMA: Final = "mnemolog_next"
"""Where the new tables are made."""
OLD_SCHEMA: Final = "mnemolog_old"
"""Where the tables that were live are until they are dropped."""


MAX_WORKERS: Final = 16
"""Postgres allows 100 connections by default, and the stages need theirs."""
Job = Callable[[RowConnection], Awaitable[None]]


def worker_count() -> int:
    """How many processes or connections a rebuild keeps busy: one for each core."""
    return min(os.cpu_count() or 1, MAX_WORKERS)


@asynccontextmanager
async def open_connection(url: str, name: str, *, schema: str = NEXT_SCHEMA) -> AsyncIterator[RowConnection]:
    """A connection that works in the schema of the rebuild, or in another one, and may take its time.

    Its commits do not wait for the disk: after a crash of the server the new tables lack the last of them, rows and
    offsets alike. The swap waits for all of them.
    """
    settings = session_settings(url, name, schema=schema)
    async with await AsyncConnection.connect(url, autocommit=True, **settings) as connection:
        await prepare_connection(connection)
        yield connection


def session_settings(url: str, name: str, *, schema: str) -> dict[str, Any]:
    """The settings of every connection of a rebuild."""
    return connection_settings(
        url,
        application_name=f"mnemolog-{name}",
        statement_timeout=0,
        search_path=f"{schema},mnemolog_journal,public",
        synchronous_commit="off",
        maintenance_work_mem="128MB",
    )


async def run_jobs(
    url: str, jobs: Iterable[Job], on_done: Callable[[int, int], None], *, snapshot: str | None = None
) -> None:
    """Run independent jobs over as many connections as there are cores, the first ones first.

    With a `snapshot` they see what the open transaction sees that has exported it. `on_done` gets the numbers of
    finished jobs and of all. The first error ends the others.
    """
    waiting = deque(jobs)
    total, done = len(waiting), 0
    on_done(0, total)

    async def work() -> None:
        nonlocal done
        async with open_connection(url, "rebuild-job") as connection, _seeing(connection, snapshot):
            while waiting:
                await waiting.popleft()(connection)
                done += 1
                on_done(done, total)

    await run_together(work() for _ in range(min(worker_count(), total)))


@asynccontextmanager
async def _seeing(connection: RowConnection, snapshot: str | None) -> AsyncIterator[None]:
    if snapshot is None:
        yield
        return
    await connection.set_isolation_level(IsolationLevel.REPEATABLE_READ)
    async with connection.transaction():
        await connection.execute(queries("digest")["import_snapshot"].format(snapshot=Literal(snapshot)))
        yield


async def run_together(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run `works` at once; the first error ends the others and is raised once they have ended."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        await cancel_all(tasks)


CANCEL_SECONDS: Final = 0.1
T = TypeVar("T")


class RowReader:
    """One connection, whose queries wait for each other; it sees what is committed.

    An asyncio connection waits anew for every 16 kB of a result, which takes three times as long as reading them.
    """

    def __init__(self, connection: Connection[TupleRow]) -> None:
        self._connection = connection
        self._in_use = asyncio.Lock()

    async def fetch(self, query: SQL | Composed, parameters: Mapping[str, Any]) -> list[TupleRow]:
        """All rows. Where this is cancelled, so is the query, and nothing uses the connection any more."""
        async with self._in_use:
            reading = asyncio.ensure_future(
                asyncio.to_thread(lambda: self._connection.execute(query, parameters, binary=True).fetchall())
            )
            try:
                return await asyncio.shield(reading)
            except asyncio.CancelledError:
                await _completed(asyncio.ensure_future(self._stop(reading)))
                raise

    async def _stop(self, reading: "asyncio.Future[list[TupleRow]]") -> None:
        """Cancel the query, again and again: it may not have begun yet."""
        while not reading.done():
            await asyncio.gather(asyncio.to_thread(self._connection.cancel_safe), return_exceptions=True)
            await asyncio.wait([reading], timeout=CANCEL_SECONDS)
        await asyncio.gather(reading, return_exceptions=True)


@asynccontextmanager
async def open_row_reader(
    url: str, name: str, *, schema: str, json_loads: Callable[[str | bytes], Any] | None = None
) -> AsyncIterator[RowReader]:
    """A reader of the tables in `schema`; `json_loads` makes the values of its JSON."""
    settings = session_settings(url, name, schema=schema)
    connecting = asyncio.ensure_future(asyncio.to_thread(Connection.connect, url, autocommit=True, **settings))
    try:
        connection = await asyncio.shield(connecting)
    except asyncio.CancelledError:
        with suppress(psycopg.Error):
            (await _completed(connecting)).close()
        raise
    try:
        if json_loads:
            set_json_loads(json_loads, connection)
        yield RowReader(connection)
    finally:
        connection.close()


async def _completed(work: "asyncio.Future[T]") -> T:
    """The result, however often this is cancelled meanwhile: a thread cannot be left alone with a connection."""
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError:
            continue
    return work.result()
