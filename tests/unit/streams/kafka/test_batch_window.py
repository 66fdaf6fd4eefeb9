"""Batches: consecutive records of a partition, and items of many callers in one call."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from functools import partial

import pytest

from mnemolog.streams.errors import BatcherClosedError, ResultCountMismatch
from mnemolog.streams.kafka.batch_window import BatchWindow, MicroBatcher
from mnemolog.streams.kafka.keyed_window import Delivery
from mnemolog.streams.kafka.record import KafkaRecord
from tests.support.polling import eventually


class Fold:
    """A batch window whose batches wait until they are let through."""

    def __init__(self, *, max_records: int = 3, max_in_flight: int = 4) -> None:
        self.batches: list[list[str]] = []
        self.gates: dict[int, asyncio.Future[None]] = {}
        self.acked: list[str] = []
        self.failures: list[BaseException] = []
        self.window = BatchWindow(self.process, max_records=max_records, max_in_flight=max_in_flight)

    async def process(self, records: Sequence[KafkaRecord]) -> None:
        self.batches.append([record.position for record in records])
        gate = self.gates[records[0].partition] = asyncio.get_running_loop().create_future()
        await gate

    async def fail(self, error: BaseException) -> None:
        self.failures.append(error)

    async def take(self, *offsets: int, partition: int = 0) -> None:
        async def deliveries() -> AsyncIterator[Delivery]:
            for offset in offsets:
                record = KafkaRecord(topic="t", partition=partition, offset=offset, key=b"k", value=b"", timestamp=0.0)
                yield Delivery(record=record, ack=partial(self.acked.append, record.position))

        await self.window.run(deliveries(), self.fail)

    async def begun(self, count: int) -> None:
        await eventually(lambda: len(self.batches) == count, timeout=5)


async def test_what_arrives_meanwhile_is_the_next_batch() -> None:
    fold = Fold()
    await fold.take(0, 1, 2, 3, 4)
    await fold.begun(1)
    fold.gates[0].set_result(None)
    await fold.begun(2)
    assert fold.batches == [["t/0/0"], ["t/0/1", "t/0/2", "t/0/3"]]
    assert fold.acked == ["t/0/0"]
    fold.gates[0].set_result(None)
    await fold.begun(3)
    fold.gates[0].set_result(None)
    await eventually(lambda: not fold.window.progress.pending, timeout=5)
    assert fold.acked == [f"t/0/{n}" for n in range(5)]


async def test_partitions_do_not_wait_for_each_other() -> None:
    fold = Fold(max_in_flight=2)
    await fold.take(0, 1, partition=0)
    await fold.take(0, partition=1)
    await fold.take(0, partition=2)
    await fold.begun(2)
    assert fold.batches == [["t/0/0"], ["t/1/0"]]
    fold.gates[1].set_result(None)
    await fold.begun(3)
    assert fold.batches[2] == ["t/2/0"]
    await fold.window.drain(0)


async def test_a_drain_finishes_the_batch_and_begins_none() -> None:
    fold = Fold()
    await fold.take(0, 1, 2)
    await fold.begun(1)
    drain = asyncio.create_task(fold.window.drain(60))
    await asyncio.sleep(0)
    fold.gates[0].set_result(None)
    drained = await drain
    assert len(fold.batches) == 1
    assert drained.offsets == {("t", 0): 1}
    assert (drained.dropped, drained.started) == (2, 0)


async def test_a_failed_batch_breaks_the_stage_unacknowledged() -> None:
    fold = Fold()
    await fold.take(0, 1)
    await fold.begun(1)
    fold.gates[0].set_exception(RuntimeError("the table is gone"))
    await eventually(lambda: fold.failures, timeout=5)
    assert fold.acked == []
    assert len(fold.batches) == 1


async def test_items_that_come_together_are_one_call() -> None:
    calls: list[list[int]] = []

    async def double(items: list[int]) -> list[int]:
        calls.append(items)
        return [2 * item for item in items]

    batcher: MicroBatcher[int, int] = MicroBatcher(double, max_items=4)
    results = await asyncio.gather(*(batcher.submit(n) for n in range(10)))
    await batcher.close()
    assert results == [2 * n for n in range(10)]
    assert calls == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


async def test_items_gather_while_all_calls_are_busy() -> None:
    gate = asyncio.Event()
    calls: list[list[int]] = []

    async def wait(items: list[int]) -> list[int]:
        calls.append(items)
        await gate.wait()
        return items

    batcher: MicroBatcher[int, int] = MicroBatcher(wait, max_wait=0, max_concurrent=1)
    first = asyncio.create_task(batcher.submit(0))
    await eventually(lambda: calls, timeout=5)
    others = [asyncio.create_task(batcher.submit(n)) for n in range(1, 6)]
    await asyncio.sleep(0)
    gate.set()
    assert await asyncio.gather(first, *others) == list(range(6))
    await batcher.close()
    assert len(calls) < 6


async def test_a_failed_call_fails_its_own_items_only() -> None:
    async def fussy(items: list[int]) -> list[int]:
        if 2 in items:
            raise ValueError("not two")
        return items

    batcher: MicroBatcher[int, int] = MicroBatcher(fussy, max_items=2)
    results = await asyncio.gather(*(batcher.submit(n) for n in range(6)), return_exceptions=True)
    await batcher.close()
    assert [n for n, result in enumerate(results) if isinstance(result, ValueError)] == [2, 3]
    assert [result for result in results if isinstance(result, int)] == [0, 1, 4, 5]


async def test_an_answer_for_fewer_items_is_refused() -> None:
    async def short(items: list[int]) -> list[int]:
        return items[1:]

    batcher: MicroBatcher[int, int] = MicroBatcher(short)
    with pytest.raises(ResultCountMismatch):
        await batcher.submit(1)
    await batcher.close()


async def test_an_item_nobody_waits_for_is_left_out() -> None:
    gate = asyncio.Event()
    calls: list[list[int]] = []

    async def wait(items: list[int]) -> list[int]:
        calls.append(items)
        await gate.wait()
        return items

    batcher: MicroBatcher[int, int] = MicroBatcher(wait, max_items=1, max_concurrent=1)
    first = asyncio.create_task(batcher.submit(0))
    await eventually(lambda: calls, timeout=5)
    second, third = asyncio.create_task(batcher.submit(1)), asyncio.create_task(batcher.submit(2))
    await asyncio.sleep(0)
    second.cancel()
    gate.set()
    assert list(await asyncio.gather(first, third)) == [0, 2]
    await batcher.close()
    assert calls == [[0], [2]]


async def test_closing_answers_everybody() -> None:
    started = asyncio.Event()

    async def hang(items: list[int]) -> list[int]:
        started.set()
        await asyncio.Event().wait()
        return items

    batcher: MicroBatcher[int, int] = MicroBatcher(hang, max_items=1, max_concurrent=1, max_queued=1)
    waiting = [asyncio.create_task(batcher.submit(n)) for n in range(4)]
    await started.wait()
    await batcher.close()
    async with asyncio.timeout(5):
        results = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(result) for result in results] == [BatcherClosedError] * 4
    with pytest.raises(BatcherClosedError):
        await batcher.submit(5)
