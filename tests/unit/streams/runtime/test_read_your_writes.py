"""A decision waits until earlier commits of its owner are projected, and one watcher reads for all who wait."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from itertools import pairwise
from typing import Any

import pytest

from mnemolog.streams.errors import LogMismatch
from mnemolog.streams.runtime import read_your_writes
from mnemolog.streams.runtime.read_your_writes import ReadYourWrites, Watermark
from tests.support.polling import eventually
from tests.support.virtual_time import run_in_virtual_time

NEVER = 1000.0
"""Seconds of a pause that no test waits for."""


class FakeTable:
    """How far partitions are projected, set by the test; its watermarks are closed with the test."""

    def __init__(self) -> None:
        self.offsets: dict[int, int] = {}
        self.reads = 0
        self.away = False
        self.watermarks: list[Watermark] = []

    async def read(self) -> Mapping[int, int]:
        self.reads += 1
        if self.away:
            raise ConnectionError("the database is away")
        return dict(self.offsets)

    def watermark(self, read: Callable[[], Any] | None = None, **more: Any) -> Watermark:
        self.watermarks.append(Watermark(read or self.read, **more))
        return self.watermarks[-1]


@pytest.fixture
async def table() -> AsyncIterator[FakeTable]:
    table = FakeTable()
    yield table
    for watermark in table.watermarks:
        await watermark.close()


async def test_each_waiter_returns_at_its_own_offset(table: FakeTable) -> None:
    watermark = table.watermark()
    low = asyncio.create_task(watermark.wait_for_offset(0, 3))
    high = asyncio.create_task(watermark.wait_for_offset(0, 5))
    other = asyncio.create_task(watermark.wait_for_offset(1, 3))
    table.offsets = {0: 4}
    await eventually(low.done, timeout=5)
    assert not high.done()
    assert not other.done()
    table.offsets = {0: 5, 1: 3}
    await asyncio.wait_for(asyncio.gather(high, other), 5)


async def test_nobody_waiting_means_no_reading(table: FakeTable) -> None:
    watermark = table.watermark()
    table.offsets = {0: 9}
    await watermark.wait_for_offset(0, 9)
    await asyncio.sleep(0.03)
    assert table.reads == 1
    waiting = asyncio.create_task(watermark.wait_for_offset(0, 10))
    await eventually(lambda: table.reads > 1, timeout=5)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await eventually(lambda: len(asyncio.all_tasks()) == 1, timeout=5)


async def test_tables_that_moved_back_are_waited_for_again(table: FakeTable) -> None:
    watermark = table.watermark()
    table.offsets = {0: 100}
    await watermark.wait_for_offset(0, 100)
    table.offsets = {0: 40}  # a replica that lacked the last commits was promoted
    reads = table.reads
    waiting = asyncio.create_task(watermark.wait_for_offset(0, 100))
    await eventually(lambda: table.reads > reads + 1, timeout=5)
    assert not waiting.done()
    table.offsets = {0: 100}
    await asyncio.wait_for(waiting, 5)


async def test_a_reading_that_began_before_the_question_is_no_answer(table: FakeTable) -> None:
    reading, answers = asyncio.Event(), asyncio.Queue[Mapping[int, int]]()

    async def read() -> Mapping[int, int]:
        reading.set()
        return await answers.get()

    watermark = table.watermark(read)
    first = asyncio.create_task(watermark.wait_for_offset(0, 1))
    await reading.wait()
    reading.clear()
    second = asyncio.create_task(watermark.wait_for_offset(0, 1))
    await asyncio.sleep(0)
    answers.put_nowait({0: 1})
    async with asyncio.timeout(5):
        await first
        await reading.wait()
        assert not second.done()
        answers.put_nowait({0: 1})
        await second


async def test_waiters_share_one_poll(table: FakeTable) -> None:
    watermark = table.watermark(interval=0.01)
    waiting = [asyncio.create_task(watermark.wait_for_offset(n % 4, 1)) for n in range(100)]
    await eventually(lambda: table.reads >= 3, timeout=5)
    assert table.reads < 100
    table.offsets = dict.fromkeys(range(4), 1)
    await asyncio.wait_for(asyncio.gather(*waiting), 5)


async def test_closing_cancels_who_waits(table: FakeTable) -> None:
    watermark = table.watermark()
    waiting = asyncio.create_task(watermark.wait_for_offset(0, 1))
    await eventually(lambda: table.reads, timeout=5)
    await watermark.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_who_comes_is_answered_at_once_and_a_hint_ends_the_pause(table: FakeTable) -> None:
    watermark = table.watermark(interval=NEVER)
    early = asyncio.create_task(watermark.wait_for_offset(0, 2))
    await eventually(lambda: table.reads, timeout=5)
    table.offsets = {0: 1}
    await asyncio.wait_for(watermark.wait_for_offset(0, 1), 5)
    assert not early.done()
    table.offsets = {0: 2}
    watermark.wake()
    await asyncio.wait_for(early, 5)
    assert table.reads == 3


async def test_a_hint_while_a_reading_runs_leads_to_another_one(table: FakeTable) -> None:
    reading, answers = asyncio.Event(), asyncio.Queue[Mapping[int, int]]()

    async def read() -> Mapping[int, int]:
        reading.set()
        return await answers.get()

    watermark = table.watermark(read, interval=NEVER)
    waiting = asyncio.create_task(watermark.wait_for_offset(0, 1))
    await reading.wait()
    watermark.wake()
    answers.put_nowait({})
    answers.put_nowait({0: 1})
    await asyncio.wait_for(waiting, 5)


def test_without_hints_the_pauses_grow_up_to_a_bound_and_after_a_hint_again() -> None:
    async def run() -> list[float]:
        times, loop = list[float](), asyncio.get_running_loop()

        async def read() -> Mapping[int, int]:
            times.append(loop.time())
            if len(times) == 10:
                loop.call_later(0.1, watermark.wake)
            return {0: 1} if len(times) == 12 else {}

        watermark = Watermark(read, interval=0.005)
        await watermark.wait_for_offset(0, 1)
        await watermark.close()
        return times

    times = run_in_virtual_time(run())
    pauses = [round(later - earlier, 6) for earlier, later in pairwise(times)]
    assert pauses == [0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.25, 0.25, 0.25, 0.1, 0.005]


async def test_a_database_that_is_away_is_waited_for_and_not_asked_more_often_for_hints(table: FakeTable) -> None:
    pauses, resumed = list[float](), asyncio.Event()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await resumed.wait()

    watermark = table.watermark(sleep=sleep)
    table.away = True
    waiting = [asyncio.create_task(watermark.wait_for_offset(0, 1)) for _ in range(3)]
    await eventually(lambda: pauses, timeout=5)
    watermark.wake()
    await eventually(lambda: len(asyncio.all_tasks()) == 5, timeout=5)
    assert table.reads == 1
    table.offsets, table.away = {0: 1}, False
    resumed.set()
    await asyncio.wait_for(asyncio.gather(*waiting), 5)


class FakeLog:
    """The ends of the log and how far it is projected, both set by the test."""

    def __init__(self) -> None:
        self.ends: dict[int, int] = {}
        self.projected: dict[int, int] = {}
        self.epoch = 0
        self.now = 0.0
        self.asked: Counter[int] = Counter()
        self.fails = False
        watermark = Watermark(self.read, interval=0.001)
        self.writes = ReadYourWrites(watermark, self.end, lambda: self.epoch, clock=lambda: self.now)

    async def end(self, partition: int) -> int:
        self.asked[partition] += 1
        if self.fails:
            raise ConnectionError("the broker is away")
        return self.ends.get(partition, 0)

    async def read(self) -> dict[int, int]:
        return dict(self.projected)

    async def wait(self, user: str = "mira", partition: int = 0) -> None:
        await asyncio.wait_for(self.writes.wait_until_projected(f"default/{user}", partition), 5)


async def is_waiting(task: "asyncio.Task[None]") -> bool:
    await asyncio.sleep(0.02)
    return not task.done()


async def test_after_a_start_it_waits_for_the_end_that_the_log_had() -> None:
    log = FakeLog()
    log.ends = {3: 5}
    task = asyncio.create_task(log.wait(partition=3))
    assert await is_waiting(task)
    log.projected = {3: 5}
    await task


async def test_an_owner_waits_for_its_own_commit_and_others_go_on() -> None:
    log = FakeLog()
    await log.wait()
    log.writes.record_commit("default/mira", 0, 7)
    task = asyncio.create_task(log.wait())
    await log.wait("jonas")
    assert await is_waiting(task)
    log.projected = {0: 7}
    assert await is_waiting(task)
    log.projected = {0: 8}
    await task


async def test_after_a_rebalance_the_end_is_asked_again_and_only_once() -> None:
    log = FakeLog()
    await log.wait()
    log.epoch, log.ends = 1, {0: 9}
    tasks = [asyncio.create_task(log.wait(name)) for name in ("mira", "jonas", "priya")]
    assert await is_waiting(tasks[0])
    log.projected = {0: 9}
    await asyncio.gather(*tasks)
    assert log.asked[0] == 2


async def test_an_end_that_could_not_be_asked_is_asked_again() -> None:
    log = FakeLog()
    log.fails = True
    with pytest.raises(ConnectionError):
        await log.wait()
    log.fails = False
    await log.wait()


async def test_forgotten_owners_are_waited_for_by_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_your_writes, "MAX_REMEMBERED_OWNERS", 2)
    log = FakeLog()
    for offset, name in enumerate(("mira", "jonas", "priya")):
        log.writes.record_commit(f"default/{name}", 0, offset)
    task = asyncio.create_task(log.wait("somebody"))
    assert await is_waiting(task)
    log.projected = {0: 3}
    await task


async def test_only_a_commit_at_an_offset_that_the_log_had_before_it_was_decided_shows_a_lost_log() -> None:
    log = FakeLog()
    log.ends = log.projected = {0: 5}
    await log.wait()
    log.projected = {0: 6}  # her commit is in the tables before its acknowledgement is handled
    await log.wait("jonas")
    log.writes.record_commit("default/mira", 0, 5)
    with pytest.raises(LogMismatch):
        log.writes.record_commit("default/mira", 0, 4)


async def test_a_log_that_loses_its_end_within_an_epoch_is_noticed_before_the_next_decision() -> None:
    log = FakeLog()
    await log.wait()
    await log.wait()
    assert log.asked[0] == 1
    log.now += read_your_writes.RECHECK_SECONDS + 1
    log.fails = True
    for _ in range(2):
        with pytest.raises(ConnectionError):
            await log.wait()
    log.fails = False
    await log.wait("jonas")
    assert log.asked[0] == 4


async def test_what_others_commit_meanwhile_is_not_waited_for() -> None:
    log = FakeLog()
    log.projected = {0: 0}
    await log.wait()
    log.now += read_your_writes.RECHECK_SECONDS + 1
    log.ends = {0: 1_000}
    await log.wait()
