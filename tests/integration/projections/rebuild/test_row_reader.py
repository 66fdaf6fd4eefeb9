"""Large results read in a thread: what they see, and what is left where nobody waits for them any more."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import pytest
from psycopg import Connection
from psycopg.rows import TupleRow
from psycopg.sql import SQL

from mnemolog.projections.rebuild.connections import open_row_reader
from tests.support.builders.commits import added, commit
from tests.support.harnesses.projected_database import ProjectedDatabase
from tests.support.polling import eventually

pytestmark = pytest.mark.postgres
LOCK: Final = 4711


async def waits_for_the_lock(db: ProjectedDatabase) -> bool:
    return bool(await db.rows("SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"))


async def test_queries_at_once_wait_for_each_other(db: ProjectedDatabase) -> None:
    await db.apply(commit("1", added("Tea."), added("Milk.")))
    async with open_row_reader(db.url, "test", schema="mnemolog") as reader:
        query = SQL("SELECT text, %(number)s::int FROM facts ORDER BY text")
        found = await asyncio.gather(*(reader.fetch(query, {"number": number}) for number in range(5)))
    assert found == [[("Milk.", number), ("Tea.", number)] for number in range(5)]


async def test_however_often_it_is_cancelled_a_query_ends_first_and_those_that_wait_are_left_alone(
    db: ProjectedDatabase,
) -> None:
    lock: Callable[[], bool | Awaitable[bool]] = partial(waits_for_the_lock, db)
    async with open_row_reader(db.url, "test", schema="mnemolog") as reader:
        await db.conn.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        running = asyncio.create_task(reader.fetch(SQL("SELECT pg_advisory_lock(%(lock)s)"), {"lock": LOCK}))
        assert await eventually(lock)
        waiting = asyncio.create_task(reader.fetch(SQL("SELECT 1"), {}))
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait([waiting])
        assert await waits_for_the_lock(db)
        running.cancel()
        await asyncio.sleep(0)
        running.cancel()
        await asyncio.wait([running], timeout=30)
        assert running.cancelled()
        assert not await waits_for_the_lock(db)
        assert await reader.fetch(SQL("SELECT 2"), {}) == [(2,)]


async def test_a_connection_that_nobody_waits_for_any_more_is_closed(
    db: ProjectedDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Connection[TupleRow]] = []
    may_connect, connect = threading.Event(), Connection.connect

    def connect_late(*args: Any, **more: Any) -> Connection[TupleRow]:
        may_connect.wait(30)
        made.append(connect(*args, **more))
        return made[0]

    monkeypatch.setattr(Connection, "connect", connect_late)

    async def use() -> None:
        async with open_row_reader(db.url, "test", schema="mnemolog"):
            pytest.fail("it was cancelled")

    using = asyncio.create_task(use())
    await asyncio.sleep(0)
    using.cancel()
    may_connect.set()
    await asyncio.wait([using], timeout=30)
    assert using.cancelled()
    assert [one.closed for one in made] == [True]
