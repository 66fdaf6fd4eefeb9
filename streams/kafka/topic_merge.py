"""Several topics as one: the records of a partition in the order of the broker's clock, whichever topic they came by.

A consumer reads its topics independently. After a pause it may meet the newest command of an owner before the owner's
first turn, and "delete all" would come before what it was to delete.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import structlog

from mnemolog.streams.kafka.window import Delivery, Partition

log = structlog.get_logger(__name__)

EndOf = Callable[[int], Awaitable[int]]
PATIENCE_SECONDS: Final = 10.0
MAX_HELD: Final = 10_000
TICK_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A partition as it is read: the offset that comes next, and the end that it had."""

    next_offset: int
    end: int


@dataclass(slots=True, eq=False)
class _Lane:
    """One topic's part of a partition: what is held, and up to where records are known to be under way."""

    next_offset: int
    end: int
    held: deque[Delivery] = field(default_factory=deque)

    @property
    def is_silent(self) -> bool:
        """Whether an older record than any that is held elsewhere may still come from here."""
        return not self.held and self.next_offset < self.end


class Merge:
    """Holds each record until no older one of the other topics can come; at one time the first topic goes first.

    How far a topic reaches is known from `begin` and `expect`. What waits longer than `patience` seconds, or beyond
    `limit` records, goes on without that knowledge: offsets without records (markers of transactions, what retention
    took) must stop nobody.
    """

    def __init__(
        self,
        topics: Sequence[str],
        *,
        clock: Callable[[], float],
        patience: float = PATIENCE_SECONDS,
        limit: int = MAX_HELD,
    ) -> None:
        self._topics = topics
        self._clock = clock
        self._patience = patience
        self._limit = limit
        self._partitions: dict[int, list[_Lane]] = {}
        self._waiting: dict[int, float] = {}

    @property
    def first(self) -> str:
        """The topic whose records the others wait for."""
        return self._topics[0]

    def begin(self, readings: Mapping[Partition, Reading]) -> None:
        """Forget everything, and begin anew with the partitions that are read from now on."""
        self._partitions.clear()
        self._waiting.clear()
        for (topic, partition), reading in readings.items():
            lane = self._lanes(partition)[self._topics.index(topic)]
            lane.next_offset, lane.end = reading.next_offset, reading.end

    def expect(self, partition: int, end: int) -> None:
        """Learn that a partition of the first topic reaches up to `end`."""
        lane = self._lanes(partition)[0]
        lane.end = max(lane.end, end)

    def add(self, delivery: Delivery) -> Iterator[Delivery]:
        """Take one record; gives those that can go on now, in order."""
        record = delivery.record
        lanes = self._lanes(record.partition)
        lane = lanes[self._topics.index(record.topic)]
        lane.held.append(delivery)
        lane.next_offset = record.offset + 1
        yield from self._released(record.partition)
        if sum(len(lane.held) for lane in lanes) > self._limit:
            yield from self._given_up(record.partition)

    def overdue(self) -> Iterator[Delivery]:
        """Those that have waited too long."""
        latest = self._clock() - self._patience
        for partition in [partition for partition, since in self._waiting.items() if since < latest]:
            yield from self._given_up(partition)

    def _lanes(self, partition: int) -> list[_Lane]:
        return self._partitions.setdefault(partition, [_Lane(0, 0) for _ in self._topics])

    def _released(self, partition: int) -> Iterator[Delivery]:
        lanes = self._lanes(partition)
        while not any(lane.is_silent for lane in lanes) and (lane := _oldest(lanes)):
            self._waiting.pop(partition, None)
            yield lane.held.popleft()
        if any(lane.held for lane in lanes):
            self._waiting.setdefault(partition, self._clock())

    def _given_up(self, partition: int) -> Iterator[Delivery]:
        lanes = self._lanes(partition)
        log.warning("order_of_topics_unknown", partition=partition, held=sum(len(lane.held) for lane in lanes))
        for lane in lanes:
            lane.end = lane.next_offset
        yield from self._released(partition)


def _oldest(lanes: Iterable[_Lane]) -> _Lane | None:
    return min((lane for lane in lanes if lane.held), key=lambda lane: lane.held[0].record.timestamp, default=None)


async def in_order(
    deliveries: AsyncIterator[Delivery],
    merge: Merge,
    *,
    end_of_first: EndOf,
    epoch: Callable[[], int],
) -> AsyncIterator[Delivery]:
    """The deliveries of several topics in the order of `merge`.

    `end_of_first` gives the end of a partition of the first topic as of now: a record of another topic waits for what
    was written there before it. What was held before a change of `epoch` will be delivered again.
    """
    coming = asyncio.ensure_future(anext(deliveries))
    try:
        while True:
            await asyncio.wait({coming}, timeout=TICK_SECONDS)
            began, ready = epoch(), list(merge.overdue())
            if coming.done():
                delivery = coming.result()
                record = delivery.record
                if record.topic != merge.first:
                    merge.expect(record.partition, await end_of_first(record.partition))
                ready += merge.add(delivery)
                coming = asyncio.ensure_future(anext(deliveries))
            for one in ready:
                if epoch() == began:
                    yield one
    except StopAsyncIteration:
        return
    finally:
        coming.cancel()
