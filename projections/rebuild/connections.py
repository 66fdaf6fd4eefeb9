"""The connections of a rebuild, and work that is spread over several of them."""

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any, Final

from psycopg import AsyncConnection, IsolationLevel
from psycopg.sql import Literal

from mnemolog.projections.db.pools import connection_settings, prepare_connection
from mnemolog.projections.rebuild.schemas import NEXT_SCHEMA
from mnemolog.projections.sql import queries
from mnemolog.projections.write.table_writer import Connection

MAX_WORKERS: Final = 16
"""Postgres allows 100 connections by default, and the stages need theirs."""
Job = Callable[[Connection], Awaitable[None]]


def worker_count() -> int:
    """How many processes or connections a rebuild keeps busy: one for each core."""
    return min(os.cpu_count() or 1, MAX_WORKERS)


@asynccontextmanager
async def open_connection(url: str, name: str, *, schema: str = NEXT_SCHEMA) -> AsyncIterator[Connection]:
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
async def _seeing(connection: Connection, snapshot: str | None) -> AsyncIterator[None]:
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
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
