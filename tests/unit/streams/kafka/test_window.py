"""What the models of the window do not say: which record comes first, progress, odd deliveries, waiting for records."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from mnemolog.streams.errors import OffsetRegression
from mnemolog.streams.kafka.record import KafkaRecord, Partition
from mnemolog.streams.kafka.window import MAX_HANDED_ON_PER_KEY, Delivery, KeyedWindow, Window
from tests.support.polling import eventually
from tests.support.virtual_time import run_in_virtual_time

LONG = 1000.0
"""Seconds that no test waits for."""


def record(offset: int, key: bytes | None = b"a", *, topic: str = "t", partition: int = 0) -> KafkaRecord:
    return KafkaRecord(topic=topic, partition=partition, offset=offset, key=key, value=b"", timestamp=0.0)


async def deliver(window: Window, records: Sequence[KafkaRecord], fail: Any, log_end: int = 0) -> None:
    async def deliveries() -> AsyncIterator[Delivery]:
        for one in records:
            yield Delivery(record=one, epoch=window.epoch, log_end=log_end)

    await window.run(deliveries(), fail)


class Gated:
    """A keyed window, or with `max_records` one of batches, whose work waits until it is let through."""

    def __init__(self, *, max_records: int = 0, **limits: Any) -> None:
        self.now = 100.0
        self.begun: list[KafkaRecord] = []
        self.batches: list[list[str]] = []
        self.running: dict[str, asyncio.Future[None]] = {}
        self.failures: list[BaseException] = []
        limits |= {"clock": lambda: self.now}
        self.window = (
            Window(self.process, max_records=max_records, **limits)
            if max_records
            else KeyedWindow(lambda one: self.process([one]), **limits)
        )

    async def process(self, records: Sequence[KafkaRecord]) -> None:
        self.begun += records
        self.batches.append([one.position for one in records])
        gate = self.running[records[0].position] = asyncio.get_running_loop().create_future()
        try:
            await gate
        finally:
            del self.running[records[0].position]

    async def fail(self, error: BaseException) -> None:
        self.failures.append(error)

    async def take(self, *records: KafkaRecord, log_end: int = 0) -> None:
        await deliver(self.window, records, self.fail, log_end)

    async def shows(self, *positions: str) -> None:
        await eventually(lambda: set(self.running) == set(positions), timeout=5)

    async def finish(self, *positions: str) -> None:
        for position in positions:
            self.running[position].set_result(None)
        await eventually(lambda: not set(positions) & set(self.running), timeout=5)

    async def next(
        self, one: KafkaRecord | None = None, *, enough: int = 9, most: int = 10, **wait: float
    ) -> list[int]:
        """The offsets of the records that wait for `one`, or for the first that was begun."""
        found = await self.window.next_records(one or self.begun[0], enough=enough, most=most, **wait)
        return [record.offset for record in found]


# Records of one key after another.


async def test_the_oldest_free_key_is_next() -> None:
    gated = Gated(max_in_flight=1)
    await gated.take(record(0, b"a"), record(1, b"a"), record(2, b"b"), record(3, b"c"))
    for offset in range(4):
        await gated.shows(f"t/0/{offset}")
        await gated.finish(f"t/0/{offset}")


async def test_a_key_is_in_order_over_two_topics() -> None:
    gated = Gated()
    await gated.take(record(0))
    await gated.take(record(0, topic="commands"))
    await gated.shows("t/0/0")
    await gated.finish("t/0/0")
    await gated.shows("commands/0/0")
    await gated.finish("commands/0/0")
    assert gated.window.finished == {("t", 0): 1, ("commands", 0): 1}


async def test_an_offset_that_comes_twice_breaks_the_stage() -> None:
    gated = Gated()
    await gated.take(record(5), record(5))
    assert [type(error) for error in gated.failures] == [OffsetRegression]
    assert (await gated.window.drain(0)).offsets == {}


async def test_a_cancellation_nobody_asked_for_breaks_the_stage() -> None:
    gated = Gated()
    await gated.take(record(0))
    await gated.shows("t/0/0")
    gated.running["t/0/0"].cancel()
    await eventually(lambda: gated.failures, timeout=5)
    assert gated.window.finished == {}


async def test_only_the_first_failure_is_reported_and_a_broken_window_stays_broken_after_its_drain() -> None:
    gated = Gated()
    await gated.take(record(0, b"a"), record(1, b"b"))
    await gated.shows("t/0/0", "t/0/1")
    for future in list(gated.running.values()):
        future.set_exception(RuntimeError("a bug"))
    await gated.shows()
    assert len(gated.failures) == 1
    await gated.window.drain(60)
    await gated.take(record(0, b"a"))
    assert gated.window.progress.pending == 0


async def test_progress_tells_ages() -> None:
    gated = Gated()
    await gated.take(record(0, b"a"))
    gated.now += 3
    await gated.take(record(1, b"b"))
    gated.now += 4
    assert (gated.window.progress.oldest_age, gated.window.progress.stalled_for) == (7.0, 7.0)
    await gated.shows("t/0/0", "t/0/1")
    await gated.finish("t/0/1")
    gated.now += 2
    progress = gated.window.progress
    assert (progress.running, progress.pending) == (1, 1)
    assert (progress.oldest_age, progress.stalled_for) == (9.0, 2.0)
    await gated.finish("t/0/0")
    assert (gated.window.progress.oldest_age, gated.window.progress.stalled_for) == (0.0, 0.0)


async def test_a_drain_gives_the_offsets_to_commit_and_counts_what_is_left() -> None:
    gated = Gated()
    await gated.take(record(0, b"a"), record(1, b"b"), record(2, b"c"), record(3, b"c"))
    await gated.shows("t/0/0", "t/0/1", "t/0/2")
    await gated.finish("t/0/0", "t/0/2")
    await gated.shows("t/0/1", "t/0/3")
    drained = await gated.window.drain(0)
    assert drained.offsets == {("t", 0): 1}
    assert (drained.cancelled, drained.dropped, drained.started) == (2, 3, 3)


async def test_a_drain_begins_what_holds_back_acknowledgements_and_nothing_newer() -> None:
    gated = Gated(max_in_flight=2)
    await gated.take(record(0, b"a"), record(1, b"a"), record(2, b"b"), record(3, b"c"), record(4, b"a"))
    await gated.shows("t/0/0", "t/0/2")
    drain = asyncio.create_task(gated.window.drain(60))
    await asyncio.sleep(0)
    await gated.finish("t/0/2")
    await gated.shows("t/0/0")
    await gated.finish("t/0/0")
    await gated.shows("t/0/1")
    await gated.finish("t/0/1")
    drained = await drain
    assert drained.offsets == {("t", 0): 3}
    assert (drained.dropped, drained.started) == (2, 0)


@pytest.mark.parametrize("waits", [True, False], ids=["while it waits for room", "on its way to the window"])
async def test_a_delivery_of_an_earlier_epoch_is_dropped(*, waits: bool) -> None:
    gated = Gated(max_pending=1)
    late = Delivery(record=record(1), epoch=gated.window.epoch)

    async def deliveries() -> AsyncIterator[Delivery]:
        yield late

    if waits:
        await gated.take(record(0))
        await gated.shows("t/0/0")
        running = asyncio.create_task(gated.window.run(deliveries(), gated.fail))
        await asyncio.sleep(0)
        await gated.window.drain(0)
        await running
    else:
        await gated.window.drain(0)
        await gated.window.run(deliveries(), gated.fail)
    assert (gated.window.progress.pending, gated.window.finished) == (0, {})
    assert [one.offset for one in gated.begun] == [0] * waits


async def test_a_task_that_outlives_its_cancellation_does_not_hold_up_the_drain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mnemolog.streams.kafka.window.CANCEL_SECONDS", 0.01)
    release = asyncio.Event()

    async def deaf(_: KafkaRecord) -> None:
        while not release.is_set():
            with suppress(asyncio.CancelledError):
                await release.wait()

    window = KeyedWindow(deaf)
    await deliver(window, [record(0)], None)
    await asyncio.sleep(0)
    assert (await window.drain(0.01)).cancelled == 1
    release.set()
    await eventually(lambda: len(asyncio.all_tasks()) == 1, timeout=5)
    assert window.finished == {}


# Batches.


async def test_what_arrives_of_all_partitions_is_one_batch_where_keys_are_joined() -> None:
    gated = Gated(max_records=3, max_in_flight=1, joins_keys=True)
    await gated.take(record(0))
    await gated.take(record(7, partition=1), record(9, partition=1))
    await gated.take(record(5, partition=2), record(6, partition=2))
    await gated.take(record(1), record(2))
    for first, finished in (
        ("t/0/0", {("t", 0): 1}),
        ("t/1/7", {("t", 0): 1, ("t", 1): 10, ("t", 2): 6}),
        ("t/2/6", {("t", 0): 3, ("t", 1): 10, ("t", 2): 7}),
    ):
        await gated.shows(first)
        await gated.finish(first)
        assert gated.window.finished == finished
    assert gated.batches == [["t/0/0"], ["t/1/7", "t/1/9", "t/2/5"], ["t/2/6", "t/0/1", "t/0/2"]]


@pytest.mark.parametrize("joins_keys", [True, False])
async def test_what_arrives_while_a_partition_is_worked_on_is_its_next_batch(*, joins_keys: bool) -> None:
    gated = Gated(max_records=3, max_in_flight=2, joins_keys=joins_keys)
    await gated.take(*map(record, range(5)), *(record(0, partition=number) for number in range(1, 4)))
    await gated.shows("t/0/0", "t/1/0")
    await gated.finish("t/0/0")
    await gated.shows("t/0/1", "t/1/0")
    await gated.finish("t/1/0")
    await gated.shows("t/0/1", "t/2/0")
    drain = asyncio.create_task(gated.window.drain(60))
    await asyncio.sleep(0)
    await gated.finish("t/0/1", "t/2/0")
    drained = await drain
    together = ["t/2/0", "t/3/0"] if joins_keys else ["t/2/0"]
    assert gated.batches == [["t/0/0"], ["t/1/0"], ["t/0/1", "t/0/2", "t/0/3"], together]
    assert drained.offsets == {("t", 0): 4, **{("t", number): 1 for number in range(1, len(together) + 2)}}
    assert (drained.cancelled, drained.dropped, drained.started) == (0, 3 - len(together), 0)


async def test_a_failed_batch_breaks_the_stage_unacknowledged() -> None:
    gated = Gated(max_records=3)
    await gated.take(record(0), record(1))
    await gated.shows("t/0/0")
    gated.running["t/0/0"].set_exception(RuntimeError("the table is gone"))
    await eventually(lambda: gated.failures, timeout=5)
    assert (gated.window.finished, gated.batches) == ({}, [["t/0/0"]])


# Chains.


class Chain:
    """Two windows: the first lets everything through, the second records of `other`, and others as it is told."""

    def __init__(self, *, max_pending: int = 100) -> None:
        self.now = 100.0
        self.log: list[KafkaRecord] = []
        self.started: dict[str, list[int]] = defaultdict(list)
        self.ended: list[int] = []
        self.may_end = asyncio.Semaphore(0)
        limits: dict[str, Any] = {"max_pending": max_pending, "clock": lambda: self.now}
        self.second = KeyedWindow(self._end, **limits)
        self.first = KeyedWindow(self._begin, reread=self._reread, next_window=self.second, **limits)

    async def _begin(self, one: KafkaRecord) -> KafkaRecord:
        self.started["first"].append(one.offset)
        return replace(one, content=one.offset)

    async def _end(self, one: KafkaRecord) -> None:
        assert one.content == one.offset
        self.started["second"].append(one.offset)
        if one.key != b"other":
            await self.may_end.acquire()
        self.ended.append(one.offset)

    async def _reread(self, _: Partition, start: int, stop: int) -> tuple[Sequence[KafkaRecord], int]:
        return self.log[start:stop], stop

    async def take(self, *keys: bytes) -> None:
        self.log += [record(offset, key) for offset, key in enumerate(keys)]
        await deliver(self.first, self.log, None)

    def let_end(self, count: int) -> None:
        for _ in range(count):
            self.may_end.release()


async def test_of_a_slow_owner_only_so_many_records_are_behind_the_first_window() -> None:
    chain, count = Chain(), 3 * MAX_HANDED_ON_PER_KEY
    await chain.take(*[b"slow"] * count)
    await eventually(lambda: len(chain.started["first"]) == MAX_HANDED_ON_PER_KEY)
    await asyncio.sleep(0)
    assert chain.first.progress.handed_on == chain.second.progress.pending == MAX_HANDED_ON_PER_KEY
    assert chain.started["second"] == [0]
    chain.let_end(1)
    await eventually(lambda: chain.started["second"] == [0, 1])
    await eventually(lambda: len(chain.started["first"]) == MAX_HANDED_ON_PER_KEY + 1)
    assert chain.first.finished == {("t", 0): 1}
    chain.let_end(count)
    await eventually(lambda: chain.ended == list(range(count)))
    await eventually(lambda: chain.first.finished == {("t", 0): count})
    assert chain.first.progress.pending == chain.first.progress.handed_on == 0


async def test_an_owner_that_fills_the_chain_does_not_hold_up_the_others_and_is_read_again() -> None:
    chain, hot = Chain(max_pending=32), 200
    await chain.take(*[b"hot"] * hot, *[b"other"] * 20)
    await eventually(lambda: len(chain.ended) == 20)
    assert set(chain.ended) == set(range(hot, hot + 20))
    assert chain.first.progress.overflowed
    chain.let_end(hot)
    await eventually(lambda: len(chain.ended) == hot + 20, timeout=10)
    assert chain.ended[20:] == list(range(hot))
    await eventually(lambda: chain.first.finished == {("t", 0): hot + 20})


async def test_a_window_that_hands_everything_on_is_not_the_one_that_stalls() -> None:
    chain = Chain()
    await chain.take(b"a", b"a")
    await eventually(lambda: chain.first.progress.handed_on == 2)
    chain.now += 7
    assert (chain.first.progress.stalled_for, chain.second.progress.stalled_for) == (0.0, 7.0)
    assert chain.first.progress.oldest_age == 7.0
    await chain.first.drain(0)


# Waiting for more records of a key that is worked on.


async def test_the_records_of_the_key_and_partition_that_wait_are_seen_and_left_where_they_are() -> None:
    gated = Gated()
    await gated.take(record(0), record(1), record(2, b"b"), record(3), record(4, partition=1), record(5))
    await gated.shows("t/0/0", "t/0/2")
    assert await gated.next() == [1, 3, 5]
    assert await gated.next(most=2) == [1, 3]
    for offset in (0, 1, 3):
        await gated.shows(f"t/0/{offset}", "t/0/2")
        await gated.finish(f"t/0/{offset}")
    await gated.shows("t/1/4", "t/0/2")
    await gated.window.drain(0)
    assert await gated.next(enough=1, linger=LONG) == [], "nothing waits behind a record that is forgotten"


def test_who_waits_for_records_has_them_when_there_are_enough_or_the_time_is_over() -> None:
    async def run() -> float:
        gated, loop = Gated(), asyncio.get_running_loop()
        await gated.take(record(0), record(1))
        await gated.shows("t/0/0")
        begun = loop.time()
        assert await gated.next(enough=2, linger=5.0) == [1]
        assert 5.0 <= loop.time() - begun < 6.0
        waiting = asyncio.create_task(gated.next(enough=2, linger=LONG))
        await gated.take(record(2, b"b"))
        await asyncio.sleep(1)
        assert not waiting.done()
        await gated.take(record(3))
        assert await waiting == [1, 3]
        return loop.time()

    assert run_in_virtual_time(run()) < LONG / 2


def test_a_drain_lets_nobody_wait_and_begins_nothing_new() -> None:
    async def run() -> float:
        gated = Gated()
        await gated.take(record(0), record(1))
        await gated.shows("t/0/0")
        waiting = asyncio.create_task(gated.next(enough=5, linger=LONG))
        await asyncio.sleep(0)
        draining = asyncio.create_task(gated.window.drain(10))
        assert await waiting == []
        assert await gated.next(enough=5, linger=LONG) == []
        await gated.finish("t/0/0")
        await draining
        return asyncio.get_running_loop().time()

    assert run_in_virtual_time(run()) < LONG / 2


async def test_of_the_places_of_a_window_only_a_quarter_is_held_by_those_that_wait() -> None:
    gated = Gated(max_in_flight=8)
    await gated.take(*(record(offset, key) for offset, key in enumerate((b"a", b"b", b"c"))))
    await gated.shows("t/0/0", "t/0/1", "t/0/2")
    a, b, c = gated.begun
    waiting = [asyncio.create_task(gated.next(one, linger=LONG)) for one in (a, b)]
    await asyncio.sleep(0)
    async with asyncio.timeout(5):
        assert await gated.next(c, linger=LONG) == []
    assert not any(task.done() for task in waiting)
    await gated.take(*(record(offset) for offset in range(3, 12)))
    assert await waiting[0] == list(range(3, 12))
    more = asyncio.create_task(gated.next(c, linger=LONG))
    await asyncio.sleep(0)
    assert not more.done()
    for task in (waiting[1], more):
        task.cancel()


async def test_nobody_waits_for_more_while_delivery_pauses() -> None:
    gated = Gated(max_pending=3)
    await gated.take(record(0), record(1, b"b"), record(2, b"b"))
    await gated.shows("t/0/0", "t/0/1")
    first, other = gated.begun
    gated.window.max_pending = 4
    waiting = asyncio.create_task(gated.next(first, linger=LONG))
    await asyncio.sleep(0)
    assert not waiting.done()
    delivery = asyncio.create_task(gated.take(record(3, b"b"), record(4, b"c")))
    async with asyncio.timeout(5):
        assert await waiting == []
        assert await gated.next(other, linger=LONG) == [2, 3]
    await gated.finish("t/0/0")
    await delivery


async def test_who_waits_for_what_the_log_has_waits_until_all_of_its_partition_was_delivered() -> None:
    gated = Gated()
    await gated.take(record(0), log_end=4)
    await gated.take(record(7, b"b", partition=1), log_end=8)
    await gated.shows("t/0/0", "t/1/7")
    first, other = gated.begun
    waiting = asyncio.create_task(gated.next(first, arriving=LONG))
    async with asyncio.timeout(5):
        assert await gated.next(other, arriving=LONG) == []
    await gated.take(record(1), record(2, b"b"), log_end=4)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not waiting.done()
    await gated.take(record(3, b"b"), log_end=4)
    async with asyncio.timeout(5):
        assert await waiting == await gated.next(first, arriving=LONG) == [1]
