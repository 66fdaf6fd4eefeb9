"""Windows: many records at once, acknowledged in offset order.

A window pulls deliveries from a stream, works on several at a time and acknowledges only the finished prefix of
each partition, because a consumer group commits nothing finer than "everything below this offset". It knows
neither what is processed nor who delivers.
"""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import count
from typing import Final

from mnemolog.streams.errors import OffsetsWentBack
from mnemolog.streams.records import Record

Partition = tuple[str, int]
Fail = Callable[[BaseException], Awaitable[None]]

CANCEL_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A record and the way to acknowledge it; `ack` must not block."""

    record: Record
    ack: Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How a window stands; ages in seconds, 0 when nothing is pending.

    `pending` counts everything delivered and not acknowledged, `stalled` the time since a record was last finished.
    """

    running: int
    pending: int
    oldest: float
    stalled: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """What a drain left: the offset to commit per partition, and what will be delivered again.

    Of `dropped` records, `redone` were started or even finished and are paid for twice.
    """

    offsets: Mapping[Partition, int]
    cancelled: int
    dropped: int
    redone: int


class State(Enum):
    WAITING = auto()
    RUNNING = auto()
    DONE = auto()


@dataclass(slots=True, eq=False)
class Entry:
    """A delivery's place in the window."""

    sequence: int
    delivery: Delivery
    admitted_at: float
    state: State = State.WAITING

    @property
    def record(self) -> Record:
        return self.delivery.record

    @property
    def partition(self) -> Partition:
        return (self.record.topic, self.record.partition)


async def _raise(error: BaseException) -> None:
    raise error


class Window(ABC):
    """What all windows share: back-pressure, acknowledgement in offset order, bounded drain, progress.

    A subclass decides which waiting entries are worked on next, and together.
    """

    def __init__(self, *, max_in_flight: int, max_pending: int, clock: Callable[[], float]) -> None:
        self.max_in_flight = max_in_flight
        self.max_pending = max_pending
        self._clock = clock
        self._sequence = count()
        self._epoch = 0
        self._broken = False
        self._fail: Fail = _raise
        # While draining: the newest offset per partition that is still worth finishing.
        self._horizon: dict[Partition, int] | None
        self._draining = asyncio.Lock()
        self._begin()

    async def run(self, deliveries: AsyncIterable[Delivery], fail: Fail) -> None:
        """Take deliveries until the stream ends; wait while `max_pending` are unacknowledged.

        May run for several streams at once. An error of the processing is handed to `fail` and the window takes
        nothing more: the record stays unacknowledged and a new consumer gets it again. Deliveries that arrive
        during a drain are dropped for the same reason.
        """
        self._fail = fail
        async for delivery in deliveries:
            epoch = self._epoch
            while self._pending >= self.max_pending and epoch == self._epoch:
                self._room.clear()
                await self._room.wait()
            if epoch == self._epoch and self._horizon is None:
                await self._admit(delivery)

    async def drain(self, grace: float) -> Drained:
        """Finish what is worth finishing within `grace` seconds, cancel the rest, forget everything.

        Nothing newer than the newest started record of a partition is begun: what lies before it is, as it would
        hold back acknowledgements. Afterwards no task of before can acknowledge, and the window takes new records.
        """
        async with self._draining:
            self._horizon = {} if self._broken else self._newest_started()
            self._launch()
            try:
                async with asyncio.timeout(0 if self._broken else grace):
                    while self._running:
                        await asyncio.wait(self._running.values(), return_when=asyncio.FIRST_COMPLETED)
            except TimeoutError:
                pass
            return await self._abandon()

    @property
    def epoch(self) -> int:
        """Changes with every drain: what was known of partitions before it may have changed hands."""
        return self._epoch

    @property
    def progress(self) -> Progress:
        now = self._clock()
        heads = [lane[0].admitted_at for lane in self._lanes.values() if lane]
        return Progress(
            running=len(self._running),
            pending=self._pending,
            oldest=now - min(heads, default=now),
            stalled=now - self._moved_at if self._pending else 0.0,
        )

    @abstractmethod
    def _enqueue(self, entry: Entry) -> None:
        """Remember a new entry."""

    @abstractmethod
    def _next(self) -> Sequence[Entry]:
        """Take the entries to work on next, empty if none is free or wanted."""

    @abstractmethod
    async def _work(self, entries: Sequence[Entry]) -> None:
        """Process entries; return when their effect is durable."""

    @abstractmethod
    def _release(self, entries: Sequence[Entry]) -> None:
        """Free what waited behind finished entries."""

    def _begin(self) -> None:
        self._lanes: dict[Partition, deque[Entry]] = {}
        self._newest: dict[Partition, int] = {}
        self._acked: dict[Partition, int] = {}
        self._running: dict[int, asyncio.Task[None]] = {}
        self._horizon = {} if self._broken else None
        self._pending = 0
        self._moved_at = self._clock()
        self._room = asyncio.Event()

    async def _admit(self, delivery: Delivery) -> None:
        entry = Entry(next(self._sequence), delivery, self._clock())
        newest = self._newest.get(entry.partition, -1)
        if entry.record.offset <= newest:
            await self._break(OffsetsWentBack(f"{entry.record.position} came after offset {newest}"))
            return
        if not self._pending:
            self._moved_at = entry.admitted_at
        self._newest[entry.partition] = entry.record.offset
        self._lanes.setdefault(entry.partition, deque()).append(entry)
        self._pending += 1
        self._enqueue(entry)
        self._launch()

    def _wanted(self, entry: Entry) -> bool:
        return self._horizon is None or entry.record.offset <= self._horizon.get(entry.partition, -1)

    def _newest_started(self) -> dict[Partition, int]:
        return {
            partition: max((e.record.offset for e in lane if e.state is not State.WAITING), default=-1)
            for partition, lane in self._lanes.items()
        }

    def _launch(self) -> None:
        while len(self._running) < self.max_in_flight and (entries := self._next()):
            for entry in entries:
                entry.state = State.RUNNING
            task = asyncio.create_task(self._one(entries, self._epoch))
            self._running[entries[0].sequence] = task

    async def _one(self, entries: Sequence[Entry], epoch: int) -> None:
        failure: BaseException | None = None
        try:
            await self._work(entries)
        # A cancellation that no drain asked for is a failure as well: its record would wait for ever.
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 -- handed to `fail`
            failure = error
        if epoch != self._epoch:
            return  # drained meanwhile: the record will be delivered again, whatever came of it here
        del self._running[entries[0].sequence]
        if failure is None:
            self._finish(entries)
        else:
            await self._break(failure)

    def _finish(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            entry.state = State.DONE
        self._moved_at = self._clock()
        for partition in {entry.partition for entry in entries}:
            self._acknowledge(partition)
        self._release(entries)
        self._launch()
        self._room.set()

    def _acknowledge(self, partition: Partition) -> None:
        lane = self._lanes[partition]
        while lane and lane[0].state is State.DONE:
            entry = lane.popleft()
            self._pending -= 1
            entry.delivery.ack()
            self._acked[partition] = entry.record.offset + 1

    async def _break(self, error: BaseException) -> None:
        if self._broken:
            return
        self._broken = True
        self._horizon = {}
        await self._fail(error)

    async def _abandon(self) -> Drained:
        left, room = list(self._running.values()), self._room
        entries = [entry for lane in self._lanes.values() for entry in lane]
        drained = Drained(
            offsets=self._acked,
            cancelled=len(left),
            dropped=len(entries),
            redone=sum(entry.state is not State.WAITING for entry in entries),
        )
        self._epoch += 1
        self._begin()
        room.set()
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=CANCEL_SECONDS)
        return drained
