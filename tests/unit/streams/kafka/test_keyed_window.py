"""What the model of the window does not say: which key comes first, several streams, progress, odd deliveries."""

import asyncio
from collections.abc import AsyncIterator, Iterable

import pytest

from mnemolog.streams.errors import OffsetRegression
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.window import Delivery, KeyedWindow
from tests.support.polling import eventually


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Stage:
    """A window whose records wait until they are let through."""

    def __init__(self, max_in_flight: int = 10, max_pending: int = 100) -> None:
        self.clock = Clock()
        self.running: dict[str, asyncio.Future[None]] = {}
        self.failures: list[BaseException] = []
        self.window = KeyedWindow(self.process, max_in_flight=max_in_flight, max_pending=max_pending, clock=self.clock)

    async def process(self, record: KafkaRecord) -> None:
        self.running[record.position] = asyncio.get_running_loop().create_future()
        try:
            await self.running[record.position]
        finally:
            del self.running[record.position]

    async def fail(self, error: BaseException) -> None:
        self.failures.append(error)

    async def take(self, records: Iterable[KafkaRecord]) -> None:
        async def deliveries() -> AsyncIterator[Delivery]:
            for record in records:
                yield Delivery(record=record, epoch=self.window.epoch)

        await self.window.run(deliveries(), self.fail)

    async def shows(self, *positions: str) -> None:
        await eventually(lambda: set(self.running) == set(positions), timeout=5)

    async def finish(self, position: str) -> None:
        self.running[position].set_result(None)
        await eventually(lambda: position not in self.running, timeout=5)


def record(offset: int, key: bytes | None = b"a", *, topic: str = "t", partition: int = 0) -> KafkaRecord:
    return KafkaRecord(topic=topic, partition=partition, offset=offset, key=key, value=b"", timestamp=0.0)


async def test_the_oldest_free_key_is_next() -> None:
    stage = Stage(max_in_flight=1)
    await stage.take([record(0, b"a"), record(1, b"a"), record(2, b"b"), record(3, b"c")])
    order: list[str] = []
    for _ in range(4):
        await eventually(lambda: stage.running, timeout=5)
        order.extend(stage.running)
        await stage.finish(order[-1])
    assert order == ["t/0/0", "t/0/1", "t/0/2", "t/0/3"]


async def test_a_key_is_in_order_over_two_topics() -> None:
    stage = Stage()
    await stage.take([record(0)])
    await stage.take([record(0, topic="commands")])
    await stage.shows("t/0/0")
    await stage.finish("t/0/0")
    await stage.shows("commands/0/0")
    await stage.finish("commands/0/0")
    assert stage.window.finished == {("t", 0): 1, ("commands", 0): 1}


async def test_records_without_a_key_wait_for_each_other_in_their_partition() -> None:
    stage = Stage()
    await stage.take([record(0, None), record(1, None), record(0, None, partition=1)])
    await stage.shows("t/0/0", "t/1/0")
    await stage.window.drain(0)


async def test_an_offset_that_comes_twice_breaks_the_stage() -> None:
    stage = Stage()
    await stage.take([record(5), record(5)])
    assert [type(error) for error in stage.failures] == [OffsetRegression]
    drained = await stage.window.drain(0)
    assert drained.offsets == {}


async def test_a_cancellation_nobody_asked_for_breaks_the_stage() -> None:
    stage = Stage()
    await stage.take([record(0)])
    await stage.shows("t/0/0")
    stage.running["t/0/0"].cancel()
    await eventually(lambda: stage.failures, timeout=5)
    assert stage.window.finished == {}


async def test_only_the_first_failure_is_reported() -> None:
    stage = Stage()
    await stage.take([record(0, b"a"), record(1, b"b")])
    await stage.shows("t/0/0", "t/0/1")
    for future in list(stage.running.values()):
        future.set_exception(RuntimeError("a bug"))
    await eventually(lambda: not stage.running, timeout=5)
    assert len(stage.failures) == 1


async def test_a_broken_window_stays_broken_after_its_drain() -> None:
    stage = Stage()
    await stage.take([record(0, b"a")])
    await stage.shows("t/0/0")
    stage.running["t/0/0"].set_exception(RuntimeError("a bug"))
    await eventually(lambda: stage.failures, timeout=5)
    await stage.window.drain(60)
    await stage.take([record(0, b"a")])
    assert stage.window.progress.pending == 0


async def test_progress_tells_ages() -> None:
    stage = Stage()
    await stage.take([record(0, b"a")])
    stage.clock.now += 3
    await stage.take([record(1, b"b")])
    stage.clock.now += 4
    assert (stage.window.progress.oldest_age, stage.window.progress.stalled_for) == (7.0, 7.0)
    await stage.shows("t/0/0", "t/0/1")
    await stage.finish("t/0/1")
    stage.clock.now += 2
    progress = stage.window.progress
    assert (progress.running, progress.pending) == (1, 1)
    assert (progress.oldest_age, progress.stalled_for) == (9.0, 2.0)
    await stage.finish("t/0/0")
    assert (stage.window.progress.oldest_age, stage.window.progress.stalled_for) == (0.0, 0.0)


async def test_a_drain_gives_the_offsets_to_commit_and_counts_what_is_left() -> None:
    stage = Stage()
    await stage.take([record(0, b"a"), record(1, b"b"), record(2, b"c"), record(3, b"c")])
    await stage.shows("t/0/0", "t/0/1", "t/0/2")
    await stage.finish("t/0/0")
    await stage.finish("t/0/2")
    await stage.shows("t/0/1", "t/0/3")
    drained = await stage.window.drain(0)
    assert drained.offsets == {("t", 0): 1}
    assert (drained.cancelled, drained.dropped, drained.started) == (2, 3, 3)


async def test_a_drain_begins_what_holds_back_acknowledgements_and_nothing_newer() -> None:
    stage = Stage(max_in_flight=2)
    await stage.take([record(0, b"a"), record(1, b"a"), record(2, b"b"), record(3, b"c"), record(4, b"a")])
    await stage.shows("t/0/0", "t/0/2")
    drain = asyncio.create_task(stage.window.drain(60))
    await asyncio.sleep(0)
    await stage.finish("t/0/2")
    await stage.shows("t/0/0")
    await stage.finish("t/0/0")
    await stage.shows("t/0/1")
    await stage.finish("t/0/1")
    drained = await drain
    assert drained.offsets == {("t", 0): 3}
    assert (drained.dropped, drained.started) == (2, 0)


async def test_a_task_that_outlives_its_cancellation_does_not_hold_up_the_drain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mnemolog.streams.kafka.window.CANCEL_SECONDS", 0.01)
    release = asyncio.Event()

    async def deaf(_: KafkaRecord) -> None:
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    async def deliveries() -> AsyncIterator[Delivery]:
        yield Delivery(record=record(0))

    window = KeyedWindow(deaf)
    await window.run(deliveries(), Stage().fail)
    await asyncio.sleep(0)
    drained = await window.drain(0.01)
    assert drained.cancelled == 1
    release.set()
    await eventually(lambda: len(asyncio.all_tasks()) == 1, timeout=5)
    assert window.finished == {}
