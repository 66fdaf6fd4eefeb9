"""The batch window: consecutive records of a partition together."""

import asyncio
from collections.abc import AsyncIterator, Sequence

from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.window import Delivery, Window
from tests.support.polling import eventually


class Fold:
    """A batch window whose batches wait until they are let through."""

    def __init__(self, *, max_records: int = 3, max_in_flight: int = 4, joins_keys: bool = False) -> None:
        self.batches: list[list[str]] = []
        self.gates: dict[int, asyncio.Future[None]] = {}
        self.failures: list[BaseException] = []
        self.window = Window(self.process, max_records=max_records, max_in_flight=max_in_flight, joins_keys=joins_keys)

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
                yield Delivery(record=record, epoch=self.window.epoch)

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
    assert fold.window.finished == {("t", 0): 1}
    fold.gates[0].set_result(None)
    await fold.begun(3)
    fold.gates[0].set_result(None)
    await eventually(lambda: not fold.window.progress.pending, timeout=5)
    assert fold.window.finished == {("t", 0): 5}


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
    assert fold.window.finished == {}
    assert len(fold.batches) == 1


async def test_what_arrives_of_all_partitions_is_one_batch_where_keys_are_joined() -> None:
    fold = Fold(max_records=3, max_in_flight=1, joins_keys=True)
    await fold.take(0, partition=0)
    await fold.take(7, 9, partition=1)
    await fold.take(5, partition=2)
    await fold.take(1, 2, partition=0)
    await fold.begun(1)
    fold.gates[0].set_result(None)
    await fold.begun(2)
    assert fold.batches == [["t/0/0"], ["t/1/7", "t/1/9", "t/2/5"]]
    assert fold.window.finished == {("t", 0): 1}
    fold.gates[1].set_result(None)
    await fold.begun(3)
    assert fold.batches[2] == ["t/0/1", "t/0/2"]
    assert fold.window.finished == {("t", 0): 1, ("t", 1): 10, ("t", 2): 6}
    await fold.take(6, partition=2)
    fold.gates[0].set_result(None)
    await fold.begun(4)
    assert fold.batches[3] == ["t/2/6"]
    await fold.window.drain(0)


async def test_a_key_that_is_worked_on_joins_no_other_batch() -> None:
    fold = Fold(max_in_flight=2, joins_keys=True)
    await fold.take(0, 1, partition=0)
    await fold.take(0, partition=1)
    await fold.begun(2)
    assert fold.batches == [["t/0/0"], ["t/1/0"]]
    await fold.window.drain(0)
