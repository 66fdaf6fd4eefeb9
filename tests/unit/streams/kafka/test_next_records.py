"""Records that wait for one of their key to finish, and how long it may wait for more of them."""

import asyncio
from collections.abc import AsyncIterator

from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.window import Delivery, KeyedWindow
from tests.support.polling import eventually
from tests.support.virtual_time import run_in_virtual_time

LONG = 1000.0


def record(offset: int, key: bytes = b"a", *, partition: int = 0) -> KafkaRecord:
    return KafkaRecord(topic="t", partition=partition, offset=offset, key=key, value=b"", timestamp=0.0)


class Stage:
    """A window whose records wait until they are let through."""

    def __init__(self, *, max_in_flight: int = 256, max_pending: int = 1024) -> None:
        self.window = KeyedWindow(self.process, max_in_flight=max_in_flight, max_pending=max_pending)
        self.begun: list[KafkaRecord] = []
        self.let_through = asyncio.Event()

    async def process(self, one: KafkaRecord) -> None:
        self.begun.append(one)
        await self.let_through.wait()

    async def fail(self, error: BaseException) -> None:
        raise AssertionError(error)

    async def take(self, *records: KafkaRecord, log_end: int = 0) -> None:
        async def deliveries() -> AsyncIterator[Delivery]:
            for one in records:
                yield Delivery(record=one, epoch=self.window.epoch, log_end=log_end)

        await self.window.run(deliveries(), self.fail)
        await eventually(lambda: bool(self.begun), timeout=5)

    async def next(
        self, one: KafkaRecord | None = None, *, enough: int = 9, most: int = 10, **wait: float
    ) -> list[int]:
        """The offsets of the records that wait for `one`, or the first that was begun."""
        found = await self.window.next_records(one or self.begun[0], enough=enough, most=most, **wait)
        return [record.offset for record in found]


async def test_the_records_of_the_key_and_partition_that_wait_are_seen_and_left_where_they_are() -> None:
    stage = Stage()
    await stage.take(record(0), record(1), record(2, b"b"), record(3), record(4, partition=1), record(5))
    assert await stage.next() == [1, 3, 5]
    assert await stage.next(most=2) == [1, 3]
    stage.let_through.set()
    await eventually(lambda: len(stage.begun) == 6, timeout=5)
    assert [one.offset for one in stage.begun if one.key == b"a" and one.partition == 0] == [0, 1, 3, 5]


async def test_nothing_waits_behind_a_record_that_is_forgotten() -> None:
    stage = Stage()
    await stage.take(record(0), record(1))
    stage.let_through.set()
    await stage.window.drain(1)
    assert await stage.next(enough=1, linger=LONG) == []


def test_who_waits_for_records_has_them_when_there_are_enough() -> None:
    async def run() -> float:
        stage, begun = Stage(), asyncio.get_running_loop().time()
        await stage.take(record(0))
        waiting = asyncio.create_task(stage.next(enough=2, linger=LONG))
        await stage.take(record(1))
        await asyncio.sleep(1)
        assert not waiting.done()
        await stage.take(record(2, b"b"), record(3))
        assert await waiting == [1, 3]
        return asyncio.get_running_loop().time() - begun

    assert run_in_virtual_time(run()) < LONG / 2


def test_who_waits_for_records_has_what_there_is_when_the_time_is_over() -> None:
    async def run() -> float:
        stage, begun = Stage(), asyncio.get_running_loop().time()
        await stage.take(record(0), record(1))
        assert await stage.next(enough=2, linger=5.0) == [1]
        return asyncio.get_running_loop().time() - begun

    assert 5.0 <= run_in_virtual_time(run()) < 6.0


def test_a_drain_lets_nobody_wait_and_begins_nothing_new() -> None:
    async def run() -> float:
        stage, begun = Stage(), asyncio.get_running_loop().time()
        await stage.take(record(0), record(1))
        waiting = asyncio.create_task(stage.next(enough=5, linger=LONG))
        await asyncio.sleep(0)
        draining = asyncio.create_task(stage.window.drain(10))
        assert await waiting == []
        assert await stage.next(enough=5, linger=LONG) == []
        stage.let_through.set()
        await draining
        return asyncio.get_running_loop().time() - begun

    assert run_in_virtual_time(run()) < LONG / 2


async def test_of_the_places_of_a_window_only_a_quarter_is_held_by_those_that_wait() -> None:
    stage = Stage(max_in_flight=8)
    await stage.take(*(record(offset, key) for offset, key in enumerate((b"a", b"b", b"c"))))
    a, b, c = stage.begun
    waiting = [asyncio.create_task(stage.next(one, linger=LONG)) for one in (a, b)]
    await asyncio.sleep(0)
    async with asyncio.timeout(5):
        assert await stage.next(c, linger=LONG) == []
    assert not any(task.done() for task in waiting)
    await stage.take(*(record(offset) for offset in range(3, 12)))
    assert await waiting[0] == list(range(3, 12))
    more = asyncio.create_task(stage.next(c, linger=LONG))
    await asyncio.sleep(0)
    assert not more.done()
    for task in (waiting[1], more):
        task.cancel()


async def test_nobody_waits_for_more_while_delivery_pauses() -> None:
    stage = Stage(max_pending=3)
    await stage.take(record(0), record(1, b"b"), record(2, b"b"))
    first, other = stage.begun
    stage.window.max_pending = 4
    waiting = asyncio.create_task(stage.next(first, linger=LONG))
    await asyncio.sleep(0)
    assert not waiting.done()
    delivery = asyncio.create_task(stage.take(record(3, b"b"), record(4, b"c")))
    async with asyncio.timeout(5):
        assert await waiting == []
        assert await stage.next(other, linger=LONG) == [2, 3]
    stage.let_through.set()
    await delivery


async def test_who_waits_for_what_the_log_has_waits_until_all_of_its_partition_was_delivered() -> None:
    stage = Stage()
    await stage.take(record(0), log_end=4)
    await stage.take(record(7, b"b", partition=1), log_end=8)
    await eventually(lambda: len(stage.begun) == 2, timeout=5)
    first, other = stage.begun
    waiting = asyncio.create_task(stage.next(first, arriving=LONG))
    async with asyncio.timeout(5):
        assert await stage.next(other, arriving=LONG) == []
    await stage.take(record(1), record(2, b"b"), log_end=4)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not waiting.done()
    await stage.take(record(3, b"b"), log_end=4)
    async with asyncio.timeout(5):
        assert await waiting == await stage.next(first, arriving=LONG) == [1]
