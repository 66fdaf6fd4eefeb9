"""What the model of the window does not say of a chain: one owner's share, late tasks, where something went wrong."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import replace

from mnemolog.streams.kafka.record import KafkaRecord, Partition
from mnemolog.streams.kafka.window import MAX_HANDED_ON_PER_KEY, Delivery, KeyedWindow
from tests.support.polling import eventually

PATIENCE, DEADLINE = 1000.0, 5.0


class Chain:
    """Two windows: the first lets everything through unless `holds_first`, the second what it is told to."""

    def __init__(self, *, max_pending: int = 100, holds_first: bool = False) -> None:
        self.log: list[KafkaRecord] = []
        self.started: dict[str, list[int]] = defaultdict(list)
        self.ended: list[int] = []
        self.failures: list[BaseException] = []
        self.error: Exception | None = None
        self.may_leave = asyncio.Event()
        self.may_end = asyncio.Semaphore(0)
        self.ends_freely = {b"other"}
        if not holds_first:
            self.may_leave.set()
        self.second = KeyedWindow(self._end, max_pending=max_pending)
        self.first = KeyedWindow(self._begin, max_pending=max_pending, reread=self._reread, next_window=self.second)

    async def _begin(self, record: KafkaRecord) -> KafkaRecord:
        self.started["first"].append(record.offset)
        with suppress(asyncio.CancelledError):  # a task that does not mind
            await self.may_leave.wait()
        return replace(record, content=record.offset)

    async def _end(self, record: KafkaRecord) -> None:
        assert record.content == record.offset
        self.started["second"].append(record.offset)
        if self.error:
            raise self.error
        if record.key not in self.ends_freely:
            await self.may_end.acquire()
        self.ended.append(record.offset)

    async def _reread(self, _: Partition, start: int, stop: int) -> tuple[Sequence[KafkaRecord], int]:
        return self.log[start:stop], stop

    async def fail(self, error: BaseException) -> None:
        self.failures.append(error)

    async def take(self, *keys: bytes) -> None:
        first = len(self.log)
        self.log += [
            KafkaRecord(topic="t", partition=0, offset=first + place, key=key, value=b"", timestamp=0.0)
            for place, key in enumerate(keys)
        ]

        async def deliveries() -> AsyncIterator[Delivery]:
            for record in self.log[first:]:
                yield Delivery(record=record, epoch=self.first.epoch)

        await self.first.run(deliveries(), self.fail)

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


async def test_a_full_chain_takes_no_more_until_its_last_window_has_finished_a_record() -> None:
    chain = Chain(max_pending=3)
    taking = asyncio.create_task(chain.take(b"a", b"b", b"c", b"d"))
    await eventually(lambda: chain.second.progress.pending == 3)
    assert chain.started["first"] == [0, 1, 2]
    assert not taking.done()
    chain.let_end(1)
    await asyncio.wait_for(taking, 5)
    await eventually(lambda: chain.started["first"] == [0, 1, 2, 3])
    await chain.first.drain(0)


async def test_what_a_drain_has_cancelled_is_not_handed_on_when_it_ends_later() -> None:
    chain = Chain(holds_first=True)
    await chain.take(b"a")
    await eventually(lambda: chain.started["first"] == [0])
    drained = await chain.first.drain(0)
    await asyncio.sleep(0)
    assert (drained.offsets, drained.cancelled, drained.dropped, drained.started) == ({}, 1, 1, 1)
    assert chain.second.progress.pending == 0
    assert chain.started["second"] == []


async def test_a_drain_finishes_what_later_windows_have_and_begins_nothing_new() -> None:
    chain = Chain(holds_first=True)
    chain.ends_freely = set()
    await chain.take(b"a", b"a")
    await eventually(lambda: chain.started["first"] == [0])
    drain = asyncio.create_task(chain.first.drain(60))
    chain.may_leave.set()
    await eventually(lambda: chain.started["second"] == [0])
    assert not drain.done()
    chain.let_end(1)
    drained = await asyncio.wait_for(drain, 5)
    assert (dict(drained.offsets), drained.cancelled) == ({("t", 0): 1}, 0)
    assert chain.started == {"first": [0], "second": [0]}


async def test_a_failure_of_the_last_window_stops_the_first() -> None:
    chain = Chain()
    chain.error = RuntimeError("a bug")
    await chain.take(b"a")
    await eventually(lambda: chain.failures == [chain.error])
    await chain.take(b"b")
    assert chain.started["first"] == [0]
    drained = await chain.first.drain(60)
    assert drained.offsets == {}


async def test_a_window_that_hands_everything_on_is_not_the_one_that_stalls() -> None:
    chain, now = Chain(), [100.0]
    for window in chain.first.chain:
        window._clock = lambda: now[0]
    await chain.take(b"a", b"a")
    await eventually(lambda: chain.first.progress.handed_on == 2)
    now[0] += 7
    assert (chain.first.progress.stalled_for, chain.second.progress.stalled_for) == (0.0, 7.0)
    assert chain.first.progress.oldest_age == 7.0
    await chain.first.drain(0)
