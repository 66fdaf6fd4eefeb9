"""The tables filled by several processes, and by a rebuild that goes on where another one was interrupted."""

import asyncio
import pickle
import subprocess
import sys
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from mnemolog.projections.errors import LogGapError, RebuildError
from mnemolog.projections.rebuild import fill, replay, swap
from mnemolog.projections.rebuild.connections import open_connection
from mnemolog.projections.rebuild.fill import FillOrder
from mnemolog.projections.rebuild.rebuild import Progress, rebuild
from mnemolog.projections.rebuild.replay import TableLogSource
from mnemolog.projections.rebuild.swap import share_filling
from mnemolog.schemas.errors import UnsupportedVersionError
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import added, commit
from tests.support.harnesses.projected_database import ProjectedDatabase
from tests.support.harnesses.rebuilds import (
    InMemoryLog,
    fill_live_tables,
    interrupt,
    kept,
    open_in_memory,
    records_of,
)
from tests.support.polling import eventually

pytestmark = pytest.mark.postgres
BATCH = 10
PARTITIONS = (0, 1, 2)


@pytest.fixture
def orders(monkeypatch: pytest.MonkeyPatch) -> list[FillOrder]:
    """Two processes fold even a short log; what each is to do."""
    given: list[FillOrder] = []
    run = fill._run_process

    async def spy(order: FillOrder) -> None:
        given.append(order)
        await run(order)

    monkeypatch.setattr(fill, "RECORDS_PER_PROCESS", 1)
    monkeypatch.setattr(fill, "worker_count", lambda: 2)
    monkeypatch.setattr(fill, "_run_process", spy)
    return given


@pytest.mark.parametrize("source", ["memory", "table"])
async def test_processes_fill_the_same_tables_as_the_projector(
    db: ProjectedDatabase, orders: list[FillOrder], source: str
) -> None:
    log = await fill_live_tables(db, PARTITIONS)
    report = await rebuild(db.url, log if source == "memory" else TableLogSource(db.pool))
    assert (report.equal, report.swapped, kept(report)) == (True, True, set(swap.KEPT_TABLES))
    assert report.records == sum(map(len, log.records.values()))
    assert sorted(partition for order in orders for partition in order.targets) == list(PARTITIONS)
    assert len(orders) == 2


async def test_an_error_of_a_process_is_raised_as_it_is(
    db: ProjectedDatabase, orders: list[FillOrder], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a process that dies ends the rebuild."""
    log = await fill_live_tables(db, PARTITIONS)
    sound = log.records[1][5]
    log.records[1][5] = b""
    reported: list[Progress] = []
    with pytest.raises(LogGapError, match="partition 1 continues at offset 6, the tables expect 5"):
        await rebuild(db.url, log, progress=reported.append)
    assert {one.step for one in reported} == {"folding"}
    known = commit("x", added("New."))
    log.records[1][5] = known.to_bytes().replace(b'"schema_version":%d' % known.VERSION, b'"schema_version":9')
    with pytest.raises(UnsupportedVersionError) as raised:
        await rebuild(db.url, log)
    assert raised.value.found == 9
    assert len(orders) == 4
    log.records[1][5] = sound
    with monkeypatch.context() as patch:
        patch.setattr(fill, "_MODULE", "no.such.module")
        with pytest.raises(RebuildError, match="ended with code 1"):
            await rebuild(db.url, log)
    assert (await rebuild(db.url, log)).equal


BLOCKED = """
from mnemolog.projections.rebuild import fill as module

async def fill(order):
    print("filling", flush=True)
    await module.asyncio.Event().wait()

module.fill = fill
module.main()
"""


def test_a_process_ends_with_the_rebuild_that_started_it() -> None:
    """The rebuild holds its stdin open: if it is killed, nobody writes into the tables of the next one."""
    order = FillOrder(url="", open_log=partial(open_in_memory, {}), targets={}, keeps=False)
    with subprocess.Popen([sys.executable, "-c", BLOCKED], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(pickle.dumps(order))
        process.stdin.flush()
        try:
            assert process.stdout.readline() == b"filling\n"
            process.stdin.close()
            assert process.wait(timeout=30) == 1
        finally:
            process.kill()


async def test_a_rebuild_waits_for_the_processes_of_one_that_was_killed(db: ProjectedDatabase) -> None:
    async def someone_waits() -> bool:
        return bool(await db.rows("SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"))

    async with open_connection(db.url, "left-over") as left_over:
        await share_filling(left_over)
        waiting = asyncio.create_task(rebuild(db.url, TableLogSource(db.pool)))
        poll: Callable[[], bool | Awaitable[bool]] = someone_waits
        assert await eventually(poll)
    assert (await waiting).equal


async def resumed_at(db: ProjectedDatabase, log: InMemoryLog) -> int:
    """How many records the tables have when the next rebuild begins; it has to succeed."""
    reported: list[Progress] = []
    assert (await rebuild(db.url, log, progress=reported.append)).equal
    return reported[0].done


async def test_an_interrupted_rebuild_is_resumed_by_the_same_program(
    db: ProjectedDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "BATCH", BATCH)
    log = await fill_live_tables(db)
    await interrupt(db, log, after=2 * BATCH)
    assert await resumed_at(db, log) >= 2 * BATCH
    assert await db.rows("SELECT obj_description('mnemolog'::regnamespace)") == [(None,)]
    assert await resumed_at(db, log) == 0
    await interrupt(db, log, after=BATCH)
    monkeypatch.setattr(swap, "fingerprint", lambda: "another")
    assert await resumed_at(db, log) == 0


@pytest.mark.parametrize("is_shorter", [False, True])
async def test_tables_of_another_log_are_made_anew(
    db: ProjectedDatabase, monkeypatch: pytest.MonkeyPatch, is_shorter: bool
) -> None:
    monkeypatch.setattr(replay, "BATCH", BATCH)
    log = await fill_live_tables(db)
    await interrupt(db, log, after=BATCH)
    records = {partition: records_of(Scope(user_id=f"other{partition}")) for partition in log.records}
    other = InMemoryLog({one: values[: 3 if is_shorter else None] for one, values in records.items()})
    await db.conn.execute("DROP SCHEMA mnemolog CASCADE")
    report = await rebuild(db.url, other)
    assert report.records == sum(map(len, other.records.values()))
    assert (await rebuild(db.url, other)).equal
