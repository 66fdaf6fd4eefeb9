"""The window that joins partitions in a batch, against a model: batches end in any order, or are drained."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from itertools import chain
from typing import Any, Final, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mnemolog.streams.kafka.record import KafkaRecord, Partition
from mnemolog.streams.kafka.window import Delivery, Window

T = TypeVar("T")

PARTITIONS: Final = 4
ROUNDS: Final = 10  # turns of the loop after which nothing moves any more
CHOICES: Final = st.integers(min_value=0, max_value=1000)


class BatchMachine(RuleBasedStateMachine):
    """Records of several partitions; each is processed in its partition's order, and committed when it is done."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.log: dict[Partition, list[int]] = {("t", number): [] for number in range(PARTITIONS)}
        self.taken: dict[Partition, int] = dict.fromkeys(self.log, 0)
        self.done: dict[Partition, int] = dict.fromkeys(self.log, 0)
        self.running: dict[int, Sequence[KafkaRecord]] = {}
        self.gates: dict[int, asyncio.Future[None]] = {}
        self.batches = 0

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        async def and_settle() -> T:
            result = await work
            for _ in range(ROUNDS):
                await asyncio.sleep(0)
            return result

        return self.loop.run_until_complete(and_settle())

    def teardown(self) -> None:
        self.run(self.window.drain(0))
        self.loop.close()

    @initialize(max_records=st.integers(1, 5), max_in_flight=st.integers(1, 3), joins_keys=st.booleans())
    def begin(self, max_records: int, max_in_flight: int, joins_keys: bool) -> None:
        self.max_records, self.max_in_flight, self.joins_keys = max_records, max_in_flight, joins_keys
        self.window = Window(self.process, max_records=max_records, max_in_flight=max_in_flight, joins_keys=joins_keys)

    async def process(self, records: Sequence[KafkaRecord]) -> None:
        number = self.batches = self.batches + 1
        self.running[number] = records
        gate = self.gates[number] = asyncio.get_running_loop().create_future()
        try:
            await gate
        finally:
            del self.running[number], self.gates[number]

    async def fail(self, error: BaseException) -> None:
        raise AssertionError("nothing fails here") from error

    @rule(number=st.integers(0, PARTITIONS - 1), gaps=st.lists(st.integers(0, 2), min_size=1, max_size=4))
    def arrive(self, number: int, gaps: Sequence[int]) -> None:
        offsets = self.log["t", number]
        for gap in gaps:
            offsets.append((offsets[-1] + 1 if offsets else 0) + gap)
        self.deliver(("t", number))

    def deliver(self, partition: Partition) -> None:
        new = self.log[partition][self.taken[partition] :]
        self.taken[partition] = len(self.log[partition])

        async def deliveries() -> AsyncIterator[Delivery]:
            for offset in new:
                record = KafkaRecord(topic="t", partition=partition[1], offset=offset, key=b"", value=b"", timestamp=0)
                yield Delivery(record=record, epoch=self.window.epoch)

        self.run(self.window.run(deliveries(), self.fail))

    @precondition(lambda self: self.running)
    @rule(choice=CHOICES)
    def finish_one(self, choice: int) -> None:
        number = sorted(self.running)[choice % len(self.running)]
        for partition, offsets in by_partition(self.running[number]).items():
            assert offsets == self.log[partition][self.done[partition] :][: len(offsets)], "not in the order of the log"
            self.done[partition] += len(offsets)
        self.gates[number].set_result(None)
        self.run(asyncio.sleep(0))

    @rule(finishes=st.booleans())
    def drain_and_deliver_again(self, finishes: bool) -> None:
        """What is not finished is delivered to the same window in its next epoch."""
        if finishes:
            for number in sorted(self.running):
                for partition, offsets in by_partition(self.running[number]).items():
                    self.done[partition] += len(offsets)
            batches = self.batches
            drain = self.loop.create_task(self.window.drain(60))
            for gate in list(self.gates.values()):
                gate.set_result(None)
            drained = self.run(drained_by(drain))
            assert self.batches == batches, "a batch began although the window drains"
            self.check_offsets(drained.offsets)
        else:
            self.check_offsets(self.run(self.window.drain(0)).offsets)
        assert not self.running
        self.log = {partition: offsets[self.done[partition] :] for partition, offsets in self.log.items()}
        self.taken, self.done = dict.fromkeys(self.log, 0), dict.fromkeys(self.log, 0)
        for partition in self.log:
            self.deliver(partition)

    def check_offsets(self, committed: Mapping[Partition, int]) -> None:
        """What is committed is behind all that is done, and before all that is not."""
        assert set(committed) == {partition for partition, done in self.done.items() if done}
        for partition, offset in committed.items():
            done, offsets = self.done[partition], self.log[partition]
            assert offsets[done - 1] < offset <= (offsets[done] if done < len(offsets) else offset)

    @invariant()
    def what_is_finished_may_be_committed(self) -> None:
        if hasattr(self, "window"):
            self.check_offsets(self.window.finished)

    @invariant()
    def no_partition_is_in_two_batches(self) -> None:
        places = list(chain.from_iterable(by_partition(records) for records in self.running.values()))
        assert len(places) == len(set(places))
        assert len(self.running) <= getattr(self, "max_in_flight", 0)
        for records in self.running.values():
            assert len(records) <= self.max_records
            assert self.joins_keys or len(by_partition(records)) == 1

    @invariant()
    def nothing_waits_that_could_begin(self) -> None:
        busy = set(chain.from_iterable(by_partition(records) for records in self.running.values()))
        waits = {one for one in self.log if self.taken[one] > self.done[one]} - busy
        assert not waits or len(self.running) == self.max_in_flight


async def drained_by(task: "asyncio.Task[Any]") -> Any:
    return await task


def by_partition(records: Sequence[KafkaRecord]) -> Mapping[Partition, list[int]]:
    found: dict[Partition, list[int]] = defaultdict(list)
    for record in records:
        found[record.topic_partition].append(record.offset)
    return found


TestBatchWindowModel = BatchMachine.TestCase
TestBatchWindowModel.settings = settings(
    max_examples=50, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
