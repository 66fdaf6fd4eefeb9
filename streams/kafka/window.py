"""Windows: many records are processed at once and acknowledged in offset order.

A window pulls deliveries from a stream, works on several at a time and acknowledges only the finished prefix of
each partition, because a consumer group commits nothing finer than "everything below this offset". It knows
neither what is processed nor who delivers.
"""

import asyncio
import heapq
import time
from collections import deque
from collections.abc import AsyncIterable, Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(slots=True, eq=False)
class WindowEntry:
    """A delivery's place in the window."""

    sequence: int
    delivery: Delivery
    admitted_at: float
    is_started: bool = False
    is_done: bool = False

    @property
    def record(self) -> KafkaRecord:
        return self.delivery.record

    @property
    def partition(self) -> Partition:
        return self.record.topic_partition


class Window:
    """Processes records as batches, several at once, with back-pressure, bounded drain and progress.

    A batch is what has arrived of one key, at most `max_records` in offset order, and is never waited for; it lies
    within one partition. Up to `max_in_flight` keys are worked on at once, the one that waits longest first. `process`
    returns when the effect of a batch is durable; what it raises crashes the stage.
    """

    def __init__(
        self,
        process: Callable[[Sequence[KafkaRecord]], Awaitable[None]],
        *,
        key_of: Callable[[KafkaRecord], Hashable] = lambda record: record.topic_partition,
        max_records: int = 500,
        max_in_flight: int = 4,
        max_pending: int = 2048,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._process = process
        self._key_of = key_of
        self._max_records = max_records
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

    def _reset(self) -> None:
        self._entries_by_partition: dict[Partition, deque[WindowEntry]] = {}
        self._newest_offsets: dict[Partition, int] = {}
        self._acked_offsets: dict[Partition, int] = {}
        self._waiting_by_key: dict[Hashable, deque[WindowEntry]] = {}
        self._ready: list[tuple[int, Hashable]] = []  # the first waiting entry of each key that is not worked on
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
        key = self._key_of(entry.record)
        if key not in self._waiting_by_key:
            self._waiting_by_key[key] = deque()
            heapq.heappush(self._ready, (entry.sequence, key))
        self._waiting_by_key[key].append(entry)
        self._launch()

    def _newest_started(self) -> dict[Partition, int]:
        return {
            partition: max((entry.record.offset for entry in lane if entry.is_started), default=-1)
            for partition, lane in self._entries_by_partition.items()
        }

    def _launch(self) -> None:
        while len(self._running) < self.max_in_flight and (entries := self._take_next()):
            for entry in entries:
                entry.is_started = True
            task = asyncio.create_task(self._run_entries(entries, self._epoch))
            self._running[entries[0].sequence] = task

    def _take_next(self) -> Sequence[WindowEntry]:
        """The entries to work on next; while draining, none that is newer than the horizon."""
        while self._ready:
            waiting = self._waiting_by_key[heapq.heappop(self._ready)[1]]
            head = waiting[0]
            if self._horizon is None or head.record.offset <= self._horizon.get(head.partition, -1):
                return [waiting.popleft() for _ in range(min(len(waiting), self._max_records))]
        return ()

    async def _run_entries(self, entries: Sequence[WindowEntry], epoch: int) -> None:
        failure: BaseException | None = None
        try:
            await self._process([entry.record for entry in entries])
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
            entry.is_done = True
        self._last_progress_at = self._clock()
        lane = self._entries_by_partition[entries[0].partition]
        while lane and lane[0].is_done:
            entry = lane.popleft()
            self._pending -= 1
            entry.delivery.ack()
            self._acked_offsets[entry.partition] = entry.record.offset + 1
        key = self._key_of(entries[0].record)
        if waiting := self._waiting_by_key[key]:
            heapq.heappush(self._ready, (waiting[0].sequence, key))
        else:
            del self._waiting_by_key[key]
        self._launch()
        self._has_capacity.set()

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
            started=sum(entry.is_started for entry in entries),
        )
        self._epoch += 1
        self._reset()
        room.set()
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=CANCEL_SECONDS)
        return drained


class KeyedWindow(Window):
    """One record per key at a time, many keys at once; records of a partition without a key count as of one key."""

    def __init__(
        self,
        process: Callable[[KafkaRecord], Awaitable[None]],
        *,
        max_in_flight: int = 256,
        max_pending: int = 1024,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(
            lambda records: process(records[0]),
            key_of=lambda record: record.topic_partition if record.key is None else record.key,
            max_records=1,
            max_in_flight=max_in_flight,
            max_pending=max_pending,
            clock=clock,
        )
