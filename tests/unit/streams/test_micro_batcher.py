"""Micro-batches: items of many callers in one call."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from mnemolog.streams.errors import BatcherClosedError, ResultCountMismatch
from mnemolog.streams.micro_batcher import MicroBatcher
from tests.support.polling import eventually


class Calls:
    """Gives the items back once `gate` is set, unless `bad` is among them; remembers all calls."""

    def __init__(self, *, waits: bool = False, bad: int | None = None) -> None:
        self.items: list[list[int]] = []
        self.bad = bad
        self.gate = asyncio.Event()
        if not waits:
            self.gate.set()

    async def __call__(self, items: list[int]) -> list[int]:
        self.items.append(items)
        await self.gate.wait()
        if self.bad in items:
            raise ValueError("a bad one")
        return items


async def submitted(batcher: MicroBatcher[int, int], *items: int) -> list[int | BaseException]:
    return await asyncio.gather(*map(batcher.submit, items), return_exceptions=True)


async def test_items_that_come_together_are_one_call_and_a_failed_one_fails_its_own_items_only() -> None:
    calls = Calls(bad=5)
    batcher = MicroBatcher(calls, max_items=4)
    results = await submitted(batcher, *range(10))
    await batcher.close()
    assert calls.items == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert [n for n, result in enumerate(results) if isinstance(result, ValueError)] == [4, 5, 6, 7]
    assert [result for result in results if isinstance(result, int)] == [0, 1, 2, 3, 8, 9]


async def test_items_gather_while_all_calls_are_busy() -> None:
    calls = Calls(waits=True)
    batcher = MicroBatcher(calls, max_wait=0, max_concurrent=1)
    first = asyncio.create_task(batcher.submit(0))
    await eventually(lambda: calls.items, timeout=5)
    others = [asyncio.create_task(batcher.submit(n)) for n in range(1, 6)]
    await asyncio.sleep(0)
    calls.gate.set()
    assert await asyncio.gather(first, *others) == list(range(6))
    await batcher.close()
    assert len(calls.items) < 6


async def test_an_item_waits_for_others_only_if_one_came_just_before() -> None:
    calls = Calls()
    batcher = MicroBatcher(calls, max_items=2, max_wait=3600)
    async with asyncio.timeout(10):
        await batcher.submit(0)
        one = asyncio.create_task(batcher.submit(1))
        for _ in range(10):
            await asyncio.sleep(0)
        assert calls.items == [[0]]
        assert [await batcher.submit(2), await one] == [2, 1]
    await batcher.close()
    assert calls.items == [[0], [1, 2]]


async def test_an_answer_for_fewer_items_is_refused() -> None:
    async def short(items: list[int]) -> list[int]:
        return items[1:]

    batcher: MicroBatcher[int, int] = MicroBatcher(short)
    with pytest.raises(ResultCountMismatch):
        await batcher.submit(1)
    await batcher.close()


async def test_an_item_nobody_waits_for_is_left_out() -> None:
    calls = Calls(waits=True)
    batcher = MicroBatcher(calls, max_items=1, max_concurrent=1)
    first = asyncio.create_task(batcher.submit(0))
    await eventually(lambda: calls.items, timeout=5)
    second, third = asyncio.create_task(batcher.submit(1)), asyncio.create_task(batcher.submit(2))
    await asyncio.sleep(0)
    second.cancel()
    calls.gate.set()
    assert list(await asyncio.gather(first, third)) == [0, 2]
    await batcher.close()
    assert calls.items == [[0], [2]]


async def test_closing_answers_everybody() -> None:
    calls = Calls(waits=True)
    batcher = MicroBatcher(calls, max_items=1, max_concurrent=1, max_queued=1)
    waiting = asyncio.create_task(submitted(batcher, *range(4)))
    await eventually(lambda: calls.items, timeout=5)
    await batcher.close()
    results = await asyncio.wait_for(waiting, 5)
    assert [type(result) for result in results] == [BatcherClosedError] * 4
    with pytest.raises(BatcherClosedError):
        await batcher.submit(5)


@pytest.mark.parametrize(
    ("max_concurrent", "sizes"),
    [
        (2, {256: 1, 128: 2, 64: 2, 32: 2, 16: 2, 8: 2, 4: 2, 2: 2, 1: 2}),
        (4, {256: 1, 64: 4, 16: 4, 4: 4, 1: 4}),
        (16, {256: 1, 16: 16, 1: 16}),
    ],
)
async def test_a_spoilt_batch_is_divided_into_as_many_parts_as_may_run_at_once(
    max_concurrent: int, sizes: dict[int, int]
) -> None:
    calls = Calls(bad=37)
    batcher = MicroBatcher(calls, max_items=256, max_concurrent=max_concurrent, isolate_on=(ValueError,))
    answers = await submitted(batcher, *range(256))
    await batcher.close()
    assert [number for number, answer in enumerate(answers) if answer != number] == [37]
    assert isinstance(answers[37], ValueError)
    assert Counter(map(len, calls.items)) == sizes


async def test_the_parts_of_a_spoilt_batch_run_side_by_side_and_a_lone_item_is_run_alone_at_once() -> None:
    running: list[list[int]] = []
    alone: list[int] = []
    all_parts_run = asyncio.Event()

    async def run(items: list[int]) -> list[int]:
        if len(items) == 13:
            raise ValueError("a part of it")
        running.append(items)
        if len(running) == 3:
            all_parts_run.set()
        await all_parts_run.wait()
        return items

    async def run_alone(item: int) -> int:
        alone.append(item)
        return item

    batcher = MicroBatcher(run, run_alone=run_alone, max_items=13, max_concurrent=4, isolate_on=(ValueError,))
    assert await asyncio.wait_for(submitted(batcher, *range(13)), 5) == list(range(13))
    await batcher.close()
    assert (running, alone) == ([[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]], [12])


async def test_an_error_that_isolates_nothing_fails_the_whole_batch() -> None:
    calls = Calls(bad=2)
    batcher = MicroBatcher(calls, max_items=4, isolate_on=(LookupError,))
    answers: list[Any] = await submitted(batcher, *range(4))
    await batcher.close()
    assert (list(map(type, answers)), calls.items) == ([ValueError] * 4, [[0, 1, 2, 3]])


async def test_an_item_that_fails_for_long_is_run_alone_and_holds_up_no_batch() -> None:
    alone: list[int] = []

    async def run(items: list[int]) -> list[int]:
        if any(item < 0 for item in items):
            raise ValueError("negative")
        return items

    async def run_alone(item: int) -> int:
        if item < 0:
            alone.append(item)
            await asyncio.Event().wait()
        return item

    batcher = MicroBatcher(run, run_alone=run_alone, max_concurrent=2, isolate_on=(ValueError,))
    stuck = asyncio.create_task(submitted(batcher, *range(-8, 0)))
    await asyncio.sleep(0)
    assert await asyncio.wait_for(submitted(batcher, *range(20)), 5) == list(range(20))
    assert sorted(alone) == list(range(-8, 0))
    await batcher.close()
    assert {type(end) for end in await stuck} == {BatcherClosedError}


async def test_a_call_that_nobody_waits_for_is_cancelled_and_its_slot_is_free() -> None:
    started: list[list[int]] = []
    cancelled: list[list[int]] = []

    async def run(items: list[int]) -> list[int]:
        started.append(items)
        if 0 in items:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(items)
                raise
        return items

    batcher = MicroBatcher(run, max_concurrent=1)
    waiting = [asyncio.create_task(batcher.submit(number)) for number in range(3)]
    await eventually(lambda: started, timeout=5)
    for task in waiting[:2]:
        task.cancel()
    await asyncio.sleep(0)
    assert cancelled == []
    waiting[2].cancel()
    assert await asyncio.wait_for(batcher.submit(7), 5) == 7
    assert cancelled == [[0, 1, 2]]
    await batcher.close()
    await asyncio.gather(*waiting, return_exceptions=True)
