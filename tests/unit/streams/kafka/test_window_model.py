"""The keyed window, alone and in a chain, against a model.

Arrivals, completions, failures, revokes and redeliveries come in any order.
"""

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mnemolog.streams.kafka.record import KafkaRecord, Partition, Reread
from mnemolog.streams.kafka.window import (
    MAX_HANDED_ON_PER_KEY,
    MAX_OVERFLOWING_KEYS,
    Delivery,
    DrainResult,
    KeyedWindow,
)

T = TypeVar("T")

TOPIC: Final = "turns"
PARTITIONS: Final = 3
KEYS: Final = 7
MAX_STAGES: Final = 3
ROUNDS: Final = 150  # turns of the loop after which nothing moves any more
CHOICES: Final = st.integers(min_value=0, max_value=1000)


class Consumer:
    """One life of a chain of windows, or of one alone: what was fetched for it, what it took and what it runs."""

    def __init__(
        self,
        in_flight: int,
        pending: int,
        started: Callable[[int, KafkaRecord], None],
        reread: Reread | None,
        stages: int,
    ) -> None:
        self.stream: asyncio.Queue[KafkaRecord] = asyncio.Queue()
        self.fetched: list[KafkaRecord] = []
        self.admitted: list[KafkaRecord] = []
        self.running: dict[tuple[int, str], asyncio.Future[None]] = {}
        self.stage_of: dict[str, int] = {}
        self.processed: set[str] = set()
        self.failures: list[BaseException] = []
        self.stubborn = False
        self._started = started
        self._stages = stages
        window: KeyedWindow | None = None
        for stage in reversed(range(stages)):
            window = KeyedWindow(
                partial(self.process, stage),
                max_in_flight=in_flight,
                max_pending=pending,
                reread=None if stage else reread,
                next_window=window,
            )
        assert window is not None
        self.window = window
        self.task: asyncio.Task[None] | None = None

    def fetch(self, record: KafkaRecord) -> None:
        self.fetched.append(record)
        self.stream.put_nowait(record)

    async def drain(self, grace: float) -> DrainResult:
        """Empty the stream, as the transport does before it lets a window drain."""
        while not self.stream.empty():
            self.stream.get_nowait()
        return await self.window.drain(grace)

    def forget(self) -> None:
        """Partitions are taken away: what is fetched will be fetched again."""
        self.fetched.clear()
        self.admitted.clear()
        self.stage_of.clear()

    async def deliveries(self) -> AsyncIterator[Delivery]:
        while True:
            record = await self.stream.get()
            epoch = self.window.epoch
            yield Delivery(record=record, epoch=epoch)
            if epoch == self.window.epoch:
                self.admitted.append(record)

    async def fail(self, error: BaseException) -> None:
        self.failures.append(error)

    async def process(self, stage: int, record: KafkaRecord) -> KafkaRecord | None:
        self._started(stage, record)
        assert record.content == (stage or None), "a record came as another stage had left it"
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.running[stage, record.position] = done
        epoch = self.window.epoch
        try:
            await done
        except asyncio.CancelledError:
            if not self.stubborn:
                raise
        finally:
            del self.running[stage, record.position]
        if epoch == self.window.epoch:
            self.stage_of[record.position] = stage + 1
        if stage + 1 < self._stages:
            return replace(record, content=stage + 1)
        self.processed.add(record.position)
        return None


class WindowMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.unhandled: list[object] = []
        self.loop.set_exception_handler(lambda _, context: self.unhandled.append(context.get("exception")))
        self.log: dict[int, list[KafkaRecord]] = {number: [] for number in range(PARTITIONS)}
        self.committed: dict[int, int] = dict.fromkeys(range(PARTITIONS), 0)
        self.position: dict[int, int] = dict.fromkeys(range(PARTITIONS), 0)
        self.processed: set[str] = set()
        self.first_starts: dict[tuple[int, bytes | None, int], list[int]] = defaultdict(list)
        self.started: list[set[str]] = [set() for _ in range(MAX_STAGES)]

    @initialize(
        in_flight=st.integers(1, 5),
        pending=st.integers(1, 24),
        rereads=st.booleans(),
        stages=st.integers(1, MAX_STAGES),
    )
    def begin(self, in_flight: int, pending: int, *, rereads: bool, stages: int) -> None:
        self.in_flight, self.pending, self.rereads, self.stages = in_flight, pending, rereads, stages
        self.start()

    async def reread(self, partition: Partition, start: int, stop: int) -> tuple[Sequence[KafkaRecord], int]:
        chunk = [record for record in self.log[partition[1]] if start <= record.offset < stop][:3]
        return chunk, chunk[-1].offset + 1 if chunk else stop

    def start(self) -> None:
        reread = self.reread if self.rereads else None
        self.consumer = Consumer(self.in_flight, self.pending, self.note_start, reread, self.stages)
        consumer = self.consumer
        consumer.task = self.loop.create_task(consumer.window.run(consumer.deliveries(), consumer.fail))
        self.settle()

    def run(self, work: Coroutine[Any, Any, T] | asyncio.Task[T]) -> T:
        return self.loop.run_until_complete(work)

    def settle(self) -> None:
        async def rounds() -> None:
            for _ in range(ROUNDS):
                await asyncio.sleep(0)

        self.run(rounds())

    def note_start(self, stage: int, record: KafkaRecord) -> None:
        if record.position not in self.started[stage]:
            self.started[stage].add(record.position)
            self.first_starts[stage, record.key, record.partition].append(record.offset)

    @rule(key=st.integers(0, KEYS - 1), gap=st.integers(0, 2))
    def produce(self, key: int, gap: int) -> None:
        lane = self.log[key % PARTITIONS]
        offset, name = lane[-1].offset + 1 + gap if lane else gap, b"key-%d" % key if key else None
        lane.append(
            KafkaRecord(topic=TOPIC, partition=key % PARTITIONS, offset=offset, key=name, value=b"", timestamp=0)
        )

    @rule(partition=st.integers(0, PARTITIONS - 1), count=st.integers(1, 6))
    def fetch(self, partition: int, count: int) -> None:
        fresh = [record for record in self.log[partition] if record.offset >= self.position[partition]][:count]
        for record in fresh:
            self.consumer.fetch(record)
            self.position[partition] = record.offset + 1
        self.settle()

    def choose(self, choice: int) -> asyncio.Future[None]:
        running = sorted(self.consumer.running.items())
        return running[choice % len(running)][1]

    @precondition(lambda self: self.consumer.running)
    @rule(choice=CHOICES)
    def finish(self, choice: int) -> None:
        self.choose(choice).set_result(None)
        self.settle()

    @precondition(lambda self: self.consumer.running)
    @rule(choice=CHOICES)
    def fail(self, choice: int) -> None:
        error = RuntimeError("a bug")
        self.choose(choice).set_exception(error)
        self.settle()
        assert self.consumer.failures == [error]
        before = set(self.started[0])
        self.fetch(0, 1)
        assert self.started[0] == before, "a broken window begins nothing"
        self.commit()
        self.take_away(self.run(self.consumer.drain(60.0)))
        self.close()
        self.start()

    @rule(stubborn=st.booleans())
    def revoke_at_once(self, stubborn: bool) -> None:
        self.consumer.stubborn = stubborn
        running = len(self.consumer.running)
        self.commit()
        drained = self.run(self.consumer.drain(0.0))
        self.settle()
        assert drained.cancelled == running
        assert self.consumer.window.finished == {}, "a late task counts"
        assert not self.consumer.running
        self.consumer.stubborn = False
        self.take_away(drained)

    @rule(order=st.randoms(use_true_random=False))
    def revoke_gently(self, order: random.Random) -> None:
        limits: dict[int, int] = defaultdict(lambda: -1)
        for record in self.consumer.admitted:
            if self.has_begun(record):
                limits[record.partition] = max(limits[record.partition], record.offset)
        before = set(self.started[0])
        drain = self.loop.create_task(self.consumer.drain(60.0))
        self.settle()
        while self.consumer.running:
            self.choose(order.randrange(1000)).set_result(None)
            self.settle()
        drained = self.run(drain)
        assert drained.cancelled == 0
        if not self.rereads:
            self.no_hole_was_left(drained.offsets)
        begun = self.started[0] - before
        fetched = {record.position: record for record in self.consumer.fetched}
        assert all(fetched[position].offset <= limits[fetched[position].partition] for position in begun)
        self.take_away(drained)

    def has_begun(self, record: KafkaRecord) -> bool:
        return (0, record.position) in self.consumer.running or record.position in self.consumer.stage_of

    def no_hole_was_left(self, offsets: Mapping[Partition, int]) -> None:
        finished = [record for record in self.consumer.admitted if record.position in self.consumer.processed]
        assert all(record.offset < offsets[TOPIC, record.partition] for record in finished)

    def commit(self) -> None:
        for (_, partition), offset in self.consumer.window.finished.items():
            self.committed[partition] = offset

    def take_away(self, drained: DrainResult) -> None:
        """Commit what the drain gave, then fetch from there, as a new assignment does."""
        for (_, partition), offset in drained.offsets.items():
            assert offset >= self.committed[partition]
            self.committed[partition] = offset
        self.processed |= self.consumer.processed
        self.consumer.processed.clear()
        self.consumer.forget()
        self.position = dict(self.committed)
        assert self.consumer.window.progress.pending == 0

    def close(self) -> None:
        task = self.consumer.task
        assert task is not None
        task.cancel()
        self.settle()
        assert task.done()

    @invariant()
    def bounds_hold(self) -> None:
        for stage, window in enumerate(self.consumer.window.chain):
            progress = window.progress
            running = [position for place, position in self.consumer.running if place == stage]
            assert progress.running == len(running) <= self.in_flight
            assert progress.pending <= self.pending + (MAX_OVERFLOWING_KEYS if self.rereads else 0)
        handed_on = sum(0 < stage < self.stages for stage in self.consumer.stage_of.values())
        assert self.consumer.window.progress.handed_on == handed_on

    @invariant()
    def what_may_be_committed_is_the_finished_prefix(self) -> None:
        for number in range(PARTITIONS):
            offsets = [record.offset for record in self.consumer.admitted if record.partition == number]
            unfinished = [record.offset for record in self.unfinished() if record.partition == number]
            floor = min(unfinished, default=max(offsets, default=-1) + 1)
            prefix = [offset for offset in offsets if offset < floor]
            finished = self.consumer.window.finished.get((TOPIC, number))
            if finished is not None:
                assert finished <= floor
            # Other keys' records before the next one of a hot key do not have to be known as finished.
            if prefix and not self.rereads:
                assert finished is not None
                assert finished > prefix[-1]

    def unfinished(self) -> list[KafkaRecord]:
        return [record for record in self.consumer.admitted if record.position not in self.consumer.processed]

    @invariant()
    def every_free_key_runs(self) -> None:
        """A key is free at a stage when its record has been handed on, unless many of it are behind that stage."""
        waiting: list[set[object]] = [set() for _ in range(self.stages)]
        handed_on: Counter[object] = Counter()
        for record in self.unfinished():
            stage, key = self.consumer.stage_of.get(record.position, 0), record.key or record.partition
            waiting[stage].add(key)
            handed_on[key] += stage > 0
        waiting[0] -= {key for key, count in handed_on.items() if count == MAX_HANDED_ON_PER_KEY}
        for stage, keys in enumerate(waiting):
            running = sum(place == stage for place, _ in self.consumer.running)
            assert running == min(self.in_flight, len(keys))

    @invariant()
    def first_starts_are_in_order(self) -> None:
        for offsets in self.first_starts.values():
            assert offsets == sorted(offsets)

    def teardown(self) -> None:
        try:
            if hasattr(self, "consumer"):
                self.finish_everything()
                self.close()
        finally:
            for task in asyncio.all_tasks(self.loop):
                task.cancel()
            self.settle()
            self.loop.close()
        assert not self.unhandled

    def finish_everything(self) -> None:
        for number in range(PARTITIONS):
            self.fetch(number, len(self.log[number]) + 1)
        while self.consumer.running:
            self.choose(0).set_result(None)
            self.settle()
        self.commit()
        everything = [record for lane in self.log.values() for record in lane]
        assert {record.position for record in everything} <= self.processed | self.consumer.processed
        ends = {number: lane[-1].offset + 1 if lane else 0 for number, lane in self.log.items()}
        assert self.committed == ends


TestWindowModel = WindowMachine.TestCase
TestWindowModel.settings = settings(
    max_examples=50, stateful_step_count=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
