"""The base of all windows: many records are processed at once and acknowledged in offset order.

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

from mnemolog.streams.errors import OffsetRegression
from mnemolog.streams.kafka.record import KafkaRecord, Partition

FailureHandler = Callable[[BaseException], Awaitable[None]]

CANCEL_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A record and the way to acknowledge it; `ack` must not block."""

    record: KafkaRecord
    ack: Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowProgress:
    """How a window stands; ages in seconds, 0 when nothing is pending.

    `pending` counts everything delivered and not acknowledged, `stalled_for` the time since a record was last finished.
    """

    running: int
    pending: int
    oldest_age: float
    stalled_for: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainResult:
    """What a drain left: the offset to commit per partition, and what will be delivered again.

    Of `dropped` records, `started` were started or even finished and will be processed twice.
    """

    offsets: Mapping[Partition, int]
    cancelled: int
    dropped: int
    started: int


class EntryState(Enum):
    WAITING = auto()
    RUNNING = auto()
    DONE = auto()


@dataclass(slots=True, eq=False)
class WindowEntry:
    """A delivery's place in the window."""

    sequence: int
    delivery: Delivery
    admitted_at: float
    state: EntryState = EntryState.WAITING

    @property
    def record(self) -> KafkaRecord:
        return self.delivery.record

    @property
    def partition(self) -> Partition:
        return (self.record.topic, self.record.partition)


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
        self._failed = False
        self._fail: FailureHandler  # set by `run`
        # While draining: the newest offset per partition that is still worth finishing.
        self._horizon: dict[Partition, int] | None
        self._draining = asyncio.Lock()
        self._reset()

    async def run(self, deliveries: AsyncIterable[Delivery], fail: FailureHandler) -> None:
        """Take deliveries until the stream ends; wait while `max_pending` are unacknowledged.

        May run for several streams at once. An error of the processing is handed to `fail` and the window takes
        nothing more: the record stays unacknowledged and a new consumer gets it again. Deliveries that arrive
        during a drain are dropped for the same reason.
        """
        self._fail = fail
        async for delivery in deliveries:
            epoch = self._epoch
            while self._pending >= self.max_pending and epoch == self._epoch:
                self._has_capacity.clear()
                await self._has_capacity.wait()
            if epoch == self._epoch and self._horizon is None:
                await self._admit(delivery)

    async def drain(self, grace: float) -> DrainResult:
        """Finish the started records and those before them within `grace` seconds, cancel the rest, forget everything.

        Nothing newer than the newest started record of a partition is begun. Records before it are, as they hold back
        its acknowledgement. Afterwards no earlier task can acknowledge, and the window takes new records.
        """
        async with self._draining:
            self._horizon = {} if self._failed else self._newest_started()
            self._launch()
            try:
                async with asyncio.timeout(0 if self._failed else grace):
                    while self._running:
                        await asyncio.wait(self._running.values(), return_when=asyncio.FIRST_COMPLETED)
            except TimeoutError:
                pass
            return await self._cancel_and_reset()

    @property
    def epoch(self) -> int:
        """Changes with every drain: what was learned of partitions before it may be outdated."""
        return self._epoch

    @property
    def progress(self) -> WindowProgress:
        now = self._clock()
        heads = [lane[0].admitted_at for lane in self._entries_by_partition.values() if lane]
        return WindowProgress(
            running=len(self._running),
            pending=self._pending,
            oldest_age=now - min(heads, default=now),
            stalled_for=now - self._last_progress_at if self._pending else 0.0,
        )

    @abstractmethod
    def _enqueue(self, entry: WindowEntry) -> None:
        """Remember a new entry."""

    @abstractmethod
    def _take_next(self) -> Sequence[WindowEntry]:
        """Take the entries to work on next, empty if none is free or wanted."""

    @abstractmethod
    async def _process_entries(self, entries: Sequence[WindowEntry]) -> None:
        """Process entries; return when their effect is durable."""

    @abstractmethod
    def _release(self, entries: Sequence[WindowEntry]) -> None:
        """Free what waited behind finished entries."""

    def _reset(self) -> None:
        self._entries_by_partition: dict[Partition, deque[WindowEntry]] = {}
        self._newest_offsets: dict[Partition, int] = {}
        self._acked_offsets: dict[Partition, int] = {}
        self._running: dict[int, asyncio.Task[None]] = {}
        self._horizon = {} if self._failed else None
        self._pending = 0
        self._last_progress_at = self._clock()
        self._has_capacity = asyncio.Event()

    async def _admit(self, delivery: Delivery) -> None:
        entry = WindowEntry(next(self._sequence), delivery, self._clock())
        newest = self._newest_offsets.get(entry.partition, -1)
        if entry.record.offset <= newest:
            await self._stop_with(OffsetRegression(f"{entry.record.position} came after offset {newest}"))
            return
        if not self._pending:
            self._last_progress_at = entry.admitted_at
        self._newest_offsets[entry.partition] = entry.record.offset
        self._entries_by_partition.setdefault(entry.partition, deque()).append(entry)
        self._pending += 1
        self._enqueue(entry)
        self._launch()

    def _is_within_horizon(self, entry: WindowEntry) -> bool:
        return self._horizon is None or entry.record.offset <= self._horizon.get(entry.partition, -1)

    def _newest_started(self) -> dict[Partition, int]:
        return {
            partition: max((e.record.offset for e in lane if e.state is not EntryState.WAITING), default=-1)
            for partition, lane in self._entries_by_partition.items()
        }

    def _launch(self) -> None:
        while len(self._running) < self.max_in_flight and (entries := self._take_next()):
            for entry in entries:
                entry.state = EntryState.RUNNING
            task = asyncio.create_task(self._run_entries(entries, self._epoch))
            self._running[entries[0].sequence] = task

    async def _run_entries(self, entries: Sequence[WindowEntry], epoch: int) -> None:
        failure: BaseException | None = None
        try:
            await self._process_entries(entries)
        # A cancellation that no drain asked for is a failure as well: its record would wait for ever.
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 -- handed to `fail`
            failure = error
        if epoch != self._epoch:
            return  # drained meanwhile: the record will be delivered again, whatever came of it here
        del self._running[entries[0].sequence]
        if failure is None:
            self._finish(entries)
        else:
            await self._stop_with(failure)

    def _finish(self, entries: Sequence[WindowEntry]) -> None:
        for entry in entries:
            entry.state = EntryState.DONE
        self._last_progress_at = self._clock()
        for partition in {entry.partition for entry in entries}:
            self._acknowledge(partition)
        self._release(entries)
        self._launch()
        self._has_capacity.set()

    def _acknowledge(self, partition: Partition) -> None:
        lane = self._entries_by_partition[partition]
        while lane and lane[0].state is EntryState.DONE:
            entry = lane.popleft()
            self._pending -= 1
            entry.delivery.ack()
            self._acked_offsets[partition] = entry.record.offset + 1

    async def _stop_with(self, error: BaseException) -> None:
        if self._failed:
            return
        self._failed = True
        self._horizon = {}
        await self._fail(error)

    async def _cancel_and_reset(self) -> DrainResult:
        left, room = list(self._running.values()), self._has_capacity
        entries = [entry for lane in self._entries_by_partition.values() for entry in lane]
        drained = DrainResult(
            offsets=self._acked_offsets,
            cancelled=len(left),
            dropped=len(entries),
            started=sum(entry.state is not EntryState.WAITING for entry in entries),
        )
        self._epoch += 1
        self._reset()
        room.set()
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=CANCEL_SECONDS)
        return drained
