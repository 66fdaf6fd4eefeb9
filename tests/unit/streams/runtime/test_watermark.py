"""One watcher for all who wait for the projection."""

import asyncio
from collections.abc import Mapping
from itertools import pairwise

import pytest

from mnemolog.streams.runtime.read_your_writes import Watermark
from tests.support.polling import eventually
from tests.support.virtual_time import run_in_virtual_time


class FakeTable:
    def __init__(self) -> None:
        self.offsets: dict[int, int] = {}
        self.reads = 0
        self.away = False

    async def read(self) -> Mapping[int, int]:
        self.reads += 1
        if self.away:
            raise ConnectionError("the database is away")
        return dict(self.offsets)


@pytest.fixture
def fake_table() -> FakeTable:
    return FakeTable()


async def test_each_waiter_returns_at_its_own_offset(fake_table: FakeTable) -> None:
    watermark = Watermark(fake_table.read)
    low = asyncio.create_task(watermark.wait_for_offset(0, 3))
    high = asyncio.create_task(watermark.wait_for_offset(0, 5))
    other = asyncio.create_task(watermark.wait_for_offset(1, 3))
    fake_table.offsets = {0: 4}
    await eventually(low.done, timeout=5)
    assert not high.done()
    assert not other.done()
    fake_table.offsets = {0: 5, 1: 3}
    async with asyncio.timeout(5):
        await asyncio.gather(high, other)
    await watermark.close()


async def test_nobody_waiting_means_no_reading(fake_table: FakeTable) -> None:
    watermark = Watermark(fake_table.read)
    fake_table.offsets = {0: 9}
    await watermark.wait_for_offset(0, 9)
    reads = fake_table.reads
    await asyncio.sleep(0.03)
    assert fake_table.reads == reads == 1
    await watermark.close()


async def test_tables_that_moved_back_are_waited_for_again(fake_table: FakeTable) -> None:
    watermark = Watermark(fake_table.read)
    fake_table.offsets = {0: 100}
    await watermark.wait_for_offset(0, 100)
    fake_table.offsets = {0: 40}  # a replica that lacked the last commits was promoted
    reads = fake_table.reads
    waiting = asyncio.create_task(watermark.wait_for_offset(0, 100))
    await eventually(lambda: fake_table.reads > reads + 1, timeout=5)
    assert not waiting.done()
    fake_table.offsets = {0: 100}
    async with asyncio.timeout(5):
        await waiting
    await watermark.close()


async def test_a_reading_that_began_before_the_question_is_no_answer() -> None:
    reading, answers = asyncio.Event(), asyncio.Queue[Mapping[int, int]]()

    async def read() -> Mapping[int, int]:
        reading.set()
        return await answers.get()

    watermark = Watermark(read)
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
    async with asyncio.timeout(5):
        await second
    await watermark.close()


async def test_waiters_share_one_poll(fake_table: FakeTable) -> None:
    watermark = Watermark(fake_table.read, interval=0.01)
    waiting = [asyncio.create_task(watermark.wait_for_offset(n % 4, 1)) for n in range(100)]
    await eventually(lambda: fake_table.reads >= 3, timeout=5)
    assert fake_table.reads < 100
    fake_table.offsets = dict.fromkeys(range(4), 1)
    async with asyncio.timeout(5):
        await asyncio.gather(*waiting)
    await watermark.close()


async def test_a_database_that_is_away_is_waited_for(fake_table: FakeTable) -> None:
    watermark = Watermark(fake_table.read, sleep=lambda _: asyncio.sleep(0))
    fake_table.away = True
    waiting = asyncio.create_task(watermark.wait_for_offset(0, 1))
    await eventually(lambda: fake_table.reads > 3, timeout=5)
    assert not waiting.done()
    fake_table.offsets, fake_table.away = {0: 1}, False
    async with asyncio.timeout(5):
        await waiting
    await watermark.close()


async def test_a_waiter_that_gave_up_is_not_polled_for(fake_table: FakeTable) -> None:
    watermark = Watermark(fake_table.read)
    waiting = asyncio.create_task(watermark.wait_for_offset(0, 1))
    await eventually(lambda: fake_table.reads, timeout=5)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await eventually(lambda: len(asyncio.all_tasks()) == 1, timeout=5)
    await watermark.close()


async def test_closing_cancels_who_waits(fake_table: FakeTable) -> None:
    watermark = Watermark(fake_table.read)
    waiting = asyncio.create_task(watermark.wait_for_offset(0, 1))
    await eventually(lambda: fake_table.reads, timeout=5)
    await watermark.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting


NEVER = 1000.0
"""Seconds of a pause that no test waits for."""


async def test_who_comes_is_answered_at_once_and_a_hint_ends_the_pause(fake_table: FakeTable) -> None:
    watermark = Watermark(fake_table.read, interval=NEVER)
    early = asyncio.create_task(watermark.wait_for_offset(0, 2))
    await eventually(lambda: fake_table.reads, timeout=5)
    fake_table.offsets = {0: 1}
    async with asyncio.timeout(5):
        await watermark.wait_for_offset(0, 1)
    assert not early.done()
    fake_table.offsets = {0: 2}
    watermark.wake()
    async with asyncio.timeout(5):
        await early
    assert fake_table.reads == 3
    await watermark.close()


async def test_a_hint_while_a_reading_runs_leads_to_another_one() -> None:
    reading, answers = asyncio.Event(), asyncio.Queue[Mapping[int, int]]()

    async def read() -> Mapping[int, int]:
        reading.set()
        return await answers.get()

    watermark = Watermark(read, interval=NEVER)
    waiting = asyncio.create_task(watermark.wait_for_offset(0, 1))
    await reading.wait()
    watermark.wake()
    answers.put_nowait({})
    answers.put_nowait({0: 1})
    async with asyncio.timeout(5):
        await waiting
    await watermark.close()


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


async def test_a_database_that_is_away_is_not_asked_more_often_for_hints(fake_table: FakeTable) -> None:
    pauses, resumed = list[float](), asyncio.Event()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await resumed.wait()

    watermark = Watermark(fake_table.read, sleep=sleep)
    fake_table.away = True
    waiting = [asyncio.create_task(watermark.wait_for_offset(0, 1)) for _ in range(3)]
    await eventually(lambda: pauses, timeout=5)
    watermark.wake()
    await eventually(lambda: len(asyncio.all_tasks()) == 5, timeout=5)
    assert fake_table.reads == 1
    fake_table.offsets, fake_table.away = {0: 1}, False
    resumed.set()
    async with asyncio.timeout(5):
        await asyncio.gather(*waiting)
    await watermark.close()
