"""A batch of several partitions: written in one transaction, refused as a whole, and what is at fault leaves it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import psycopg
import pytest
import pytest_asyncio

from mnemolog.projections.database import Pool, open_pool
from mnemolog.projections.errors import LogGapError
from mnemolog.projections.write.projector import LogRecord, Projector
from mnemolog.schemas.commit import Commit
from tests.support.builders.commits import BOB, added, commit, day
from tests.support.polling import eventually

pytestmark = pytest.mark.postgres

FIRST = commit("t1", added("Alice lives in Bern."), at=day(1))


@pytest_asyncio.fixture
async def pool(database: str) -> AsyncIterator[Pool]:
    async with open_pool(database, min_size=1, max_size=4, application_name="test-batches") as pool:
        yield pool


@pytest.fixture
def projector(pool: Pool) -> Projector:
    return Projector(pool)


def log_of(*commits: Commit, start: int = 0) -> list[LogRecord]:
    return [LogRecord(offset=offset, value=one.to_bytes()) for offset, one in enumerate(commits, start=start)]


async def rows(pool: Pool, query: str) -> list[tuple[Any, ...]]:
    async with pool.connection() as connection:
        return await (await connection.execute(query.encode())).fetchall()


async def test_partitions_of_a_batch_are_written_in_one_transaction(pool: Pool, projector: Projector) -> None:
    bobs = (commit("b1", added("Bob runs."), scope=BOB), commit("b2", scope=BOB))
    applied = await projector.apply({5: log_of(*bobs), 0: log_of(FIRST)})
    assert applied.next_offsets == await projector.next_offsets() == {0: 1, 5: 2}
    assert len(await rows(pool, "SELECT DISTINCT xmin::text FROM commits")) == 1
    again = await projector.apply({5: log_of(*bobs, commit("b3", scope=BOB)), 0: log_of(FIRST)})
    assert (again.skipped, again.next_offsets) == (3, {0: 1, 5: 3})
    assert await rows(pool, "SELECT partition, log_offset FROM commits ORDER BY 1, 2") == [
        (0, 0),
        (5, 0),
        (5, 1),
        (5, 2),
    ]


async def test_the_statements_of_a_batch_are_planned_once_a_connection(database: str) -> None:
    async with open_pool(
        database, min_size=1, max_size=1, application_name="test-plans", autocommit=True, looks_up=True
    ) as pool:
        projector = Projector(pool)
        for offset in range(12):  # psycopg prepares what came five times, Postgres decides after five more
            await projector.apply({0: log_of(commit(f"t{offset}", added(f"Fact {offset}.")), start=offset)})
        query = "SELECT statement, custom_plans FROM pg_prepared_statements WHERE generic_plans + custom_plans > 0"
        planned = dict(await rows(pool, query))
    assert len(planned) > 5
    assert set(planned.values()) == {0}


async def test_a_batch_with_a_gap_in_one_partition_writes_nothing_of_any(projector: Projector) -> None:
    with pytest.raises(LogGapError) as raised:
        await projector.apply({0: log_of(FIRST), 5: log_of(commit("b2", scope=BOB), start=1)})
    assert "5" in str(raised.value)
    assert await projector.next_offsets() == {}


async def test_a_commit_that_cannot_be_stored_leaves_its_batch_alone(pool: Pool, projector: Projector) -> None:
    bad = commit("b2", scope=BOB, based_on=2**70)
    log = {0: log_of(FIRST, commit("t2")), 5: log_of(commit("b1", scope=BOB), bad, commit("b3", scope=BOB))}
    assert (await projector.apply(log)).next_offsets == {0: 2, 5: 3}
    assert await rows(pool, "SELECT partition, log_offset, reason FROM rejections") == [(5, 1, "not_storable")]
    assert await rows(pool, "SELECT partition, count(*) FROM commits GROUP BY 1 ORDER BY 1") == [(0, 2), (5, 2)]


async def test_partitions_are_locked_in_one_order(pool: Pool, projector: Projector, database: str) -> None:
    """Projectors of the same partitions would wait for each other in a circle otherwise."""
    await projector.apply({5: log_of(commit("b1", scope=BOB))})
    await projector.apply({0: log_of(FIRST)})

    async def waits() -> bool:
        return bool(await rows(pool, "SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'"))

    condition: Callable[[], bool | Awaitable[bool]] = waits
    async with await psycopg.AsyncConnection.connect(database) as other:
        await other.execute("SET search_path TO mnemolog")
        await other.execute("SELECT 1 FROM projection_offsets WHERE partition = 5 FOR UPDATE")
        batch = {5: log_of(commit("b2", scope=BOB), start=1), 0: log_of(commit("t2"), start=1)}
        applying = asyncio.create_task(projector.apply(batch))
        await eventually(condition)
        with pytest.raises(psycopg.errors.LockNotAvailable):
            await rows(pool, "SELECT 1 FROM projection_offsets WHERE partition = 0 FOR UPDATE NOWAIT")
        await other.rollback()
        assert (await applying).next_offsets == {0: 2, 5: 2}
