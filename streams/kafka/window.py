"""The window of a stage: records that were delivered and are not finished, and which of them are worked on.

Many records are processed at once, records of one key one after another. What may be committed is the finished prefix
of each partition.
"""

import asyncio
import heapq
import time
from collections import deque
from collections.abc import AsyncIterable, Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count, islice
from typing import Final

from mnemolog.streams.errors import OffsetRegression
from mnemolog.streams.kafka.record import KafkaRecord, Partition, Reread

FailureHandler = Callable[[BaseException], Awaitable[None]]
Process = Callable[[Sequence[KafkaRecord]], Awaitable[KafkaRecord | None]]
"""Processes a batch. Gives the record to hand on, or None where the batch is finished."""

CANCEL_SECONDS: Final = 1.0
LINGERING_PART: Final = 4
"""A window may spend one of so many places on keys that wait for more records."""
MAX_OVERFLOWING_KEYS: Final = 8
MAX_HANDED_ON_PER_KEY: Final = 8
"""Records of one key that may be in the next windows: with more of them a busy key delays the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A record, and the epoch that the window had when the record left the transport's queue.

    The log of its partition is known to go on up to `log_end`; 0 where nothing is known.
    """

    record: KafkaRecord
    epoch: int = 0
    log_end: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowProgress:
    """How a window stands; ages in seconds, 0 when nothing is pending.

    `pending` counts the records in memory that are not finished, and `handed_on` those of them that are in the next
    window; `overflowed` counts those that were delivered and will be read again; `stalled_for` is the time since a
    record was last finished or handed on, while some are pending that are not handed on.
    """

    running: int
    pending: int
    handed_on: int
    overflowed: int
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
    """A record in the window; `finished` is called when it and what it was handed on as are finished."""

    sequence: int
    record: KafkaRecord
    admitted_at: float
    finished: Callable[[], None]
    is_started: bool = False


@dataclass(slots=True, eq=False)
class Overflow:
    """The records of a key that were delivered and not kept: from `next_offset` to `last_offset`, among others'."""

    partition: Partition
    next_offset: int
    last_offset: int
    count: int
    since: float

    @property
    def is_over(self) -> bool:
        return self.next_offset > self.last_offset


@dataclass(slots=True, eq=False)
class KeyQueue:
    """What waits for a key; there is one while anything of the key is unfinished.

    `is_running` means that no waiting record may begin; `handed_on` counts the key's records in the next window.
    """

    waiting: deque[WindowEntry] = field(default_factory=deque)
    is_running: bool = False
    handed_on: int = 0
    overflow: Overflow | None = None
    is_refilling: bool = False

    @property
    def is_idle(self) -> bool:
        return not (self.waiting or self.is_running or self.handed_on or self.overflow)


class PartitionProgress:
    """Which records of one partition are unfinished, and with that the offset below which everything is finished.

    Finished records need no memory, however many of them follow an unfinished one.
    """

    def __init__(self, first_offset: int) -> None:
        self.newest_offset = first_offset - 1
        self.log_end = 0
        self._first = self._finished_to = first_offset
        self._newest_started = -1
        self._unfinished: dict[int, WindowEntry] = {}
        self._overflows: list[Overflow] = []

    @property
    def finished_to(self) -> int | None:
        """The offset to commit; None while nothing new is finished."""
        return self._finished_to if self._finished_to > self._first else None

    @property
    def has_unread(self) -> bool:
        """Whether the log had more of the partition at the last fetch than was delivered."""
        return self.newest_offset + 1 < self.log_end

    @property
    def oldest(self) -> float | None:
        """When the oldest unfinished record was delivered."""
        times = [entry.admitted_at for entry in self._unfinished.values()]
        return min([*times, *(overflow.since for overflow in self._overflows)], default=None)

    @property
    def newest_worth_finishing(self) -> int:
        """The newest started offset, or the last before re-reading would go on: nothing after that is committed."""
        return min([self._newest_started, *(overflow.next_offset - 1 for overflow in self._overflows)])

    @property
    def to_repeat(self) -> tuple[int, int]:
        """What would be delivered again now: how many records, and how many of them were started or finished."""
        overflowed = sum(overflow.count for overflow in self._overflows)
        unstarted = overflowed + sum(not entry.is_started for entry in self._unfinished.values())
        everything = self.newest_offset + 1 - self._finished_to  # gaps of the log count as records
        return everything, everything - unstarted

    def add(self, entry: WindowEntry) -> None:
        self._unfinished[entry.record.offset] = entry
        self.newest_offset = max(self.newest_offset, entry.record.offset)

    def start(self, entry: WindowEntry) -> None:
        entry.is_started = True
        self._newest_started = max(self._newest_started, entry.record.offset)

    def finish(self, entries: Iterable[WindowEntry]) -> None:
        for entry in entries:
            del self._unfinished[entry.record.offset]
        self.advance()

    def overflow(self, overflow: Overflow) -> None:
        """Keep a record out of memory: the newest of this overflow."""
        if overflow not in self._overflows:
            self._overflows.append(overflow)
        self.newest_offset = max(self.newest_offset, overflow.last_offset)

    def advance(self) -> None:
        """Look again how far everything is finished."""
        self._overflows = [overflow for overflow in self._overflows if not overflow.is_over]
        starts = (overflow.next_offset for overflow in self._overflows)
        self._finished_to = min([*self._unfinished, *starts], default=self.newest_offset + 1)


class Window:
    """Processes records as batches, several at once, with back-pressure, bounded drain and progress.

    A batch is what has arrived of one key, or with `joins_keys` of all keys that are not worked on, at most
    `max_records`, of each key in offset order; it is never waited for. Up to `max_in_flight` are worked on at once, the
    key that waits longest first. `process` returns when its effect is durable; what it raises crashes the stage.

    A record that `process` gives goes into `next_window`, which makes the two a chain. Its key is free for the next
    record at once; the record itself is unfinished, and counts as pending, until the last window of the chain has
    finished it. Windows of a chain are drained together, by the first of them.

    With `reread`, a key keeps at most a sixteenth of `max_pending` waiting in memory. What comes beyond that is
    forgotten and read again from its partition when its turn comes, so that the other keys go on. This holds for
    `MAX_OVERFLOWING_KEYS` keys at once; more of them are a general backlog, for which delivery pauses.

    `epoch` changes with every drain: what was learned of partitions before it may be outdated.
    """

    def __init__(
        self,
        process: Process,
        *,
        key_of: Callable[[KafkaRecord], Hashable] = lambda record: record.topic_partition,
        max_records: int = 500,
        joins_keys: bool = False,
        max_in_flight: int = 4,
        max_pending: int = 2048,
        reread: Reread | None = None,
        next_window: "Window | None" = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._process = process
        self._next = next_window
        if next_window is not None:
            next_window.fail = self._stop_with
        self._key_of = key_of
        self._max_records = max_records
        self._joins_keys = joins_keys
        self.max_in_flight = max_in_flight
        self.max_pending = max_pending
        self.max_waiting_per_key = max(1, max_pending // 16)
        self.reread = reread
        self._clock = clock
        self._sequence = count()
        self.epoch = 0
        self.fail: FailureHandler  # set by `run`, or by the window before
        self._failed = False
        # While draining: the newest offset per partition that is still worth finishing.
        self._horizon: dict[Partition, int] | None
        self._draining = asyncio.Lock()
        self._reset()

    def _reset(self) -> None:
        self._partitions: dict[Partition, PartitionProgress] = {}
        self._queues: dict[Hashable, KeyQueue] = {}
        # Keys that are worked on and wait for more records, with what wakes them, in the order in which they began.
        self._lingering: dict[KeyQueue, asyncio.Event] = {}
        self._ready: list[tuple[int, Hashable]] = []  # the first waiting entry of each key that is not worked on
        self._running: dict[int, asyncio.Task[None]] = {}
        self._refills: set[asyncio.Task[None]] = set()
        self._horizon = {} if self._failed else None
        self._pending = self._handed_on = 0
        self._last_progress_at = self._clock()
        self._has_capacity = asyncio.Event()

    async def run(self, deliveries: AsyncIterable[Delivery], fail: FailureHandler) -> None:
        """Take deliveries until the stream ends; wait while `max_pending` records are unfinished.

        May run for several streams at once. An error of the processing is handed to `fail` and the window takes
        nothing more: the record stays uncommitted and a new consumer gets it again. Deliveries of an earlier epoch,
        and those that arrive during a drain, are dropped for the same reason.
        """
        self.fail = fail
        async for delivery in deliveries:
            record = delivery.record
            while delivery.epoch == self.epoch and self.is_full and not self._overflows(record):
                self._stop_lingering()
                self._has_capacity.clear()
                await self._has_capacity.wait()
            if delivery.epoch == self.epoch and self._horizon is None:
                await self._admit(record, delivery.log_end)

    async def drain(self, grace: float) -> DrainResult:
        """Finish the started records and those before them within `grace` seconds, cancel the rest, forget everything.

        Nothing newer than the newest started record of a partition is begun. Records before it are, as they hold back
        its commit. Afterwards no earlier task has an effect on what is committed, and the window takes new records.
        """
        async with self._draining:
            self._stop_lingering()
            newest = {partition: progress.newest_worth_finishing for partition, progress in self._partitions.items()}
            self._horizon = {} if self._failed else newest
            self._launch()
            with suppress(TimeoutError):
                async with asyncio.timeout(0 if self._failed else grace):
                    while running := self.tasks:
                        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            return await self._cancel_and_reset()

    async def _cancel_and_reset(self) -> DrainResult:
        left = self.tasks
        repeats = [progress.to_repeat for progress in self._partitions.values()]
        drained = DrainResult(
            offsets=self.finished,
            cancelled=len(left),
            dropped=sum(records for records, _ in repeats),
            started=sum(started for _, started in repeats),
        )
        for window in self.chain:
            window.forget_everything()
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=CANCEL_SECONDS)
        return drained

    def forget_everything(self) -> None:
        """Begin a new epoch: nothing that was taken before has an effect any more."""
        room = self._has_capacity
        for refill in self._refills:
            refill.cancel()
        self.epoch += 1
        self._reset()
        room.set()

    @property
    def chain(self) -> "tuple[Window, ...]":
        """This window and those that records are handed on to."""
        return (self, *self._next.chain) if self._next else (self,)

    @property
    def tasks(self) -> list[asyncio.Task[None]]:
        """What this window and the next ones are working on."""
        return [*self._running.values(), *(self._next.tasks if self._next else ())]

    @property
    def finished(self) -> Mapping[Partition, int]:
        """The offsets to commit: in this epoch, everything below them that was delivered is finished."""
        return {place: to for place, one in self._partitions.items() if (to := one.finished_to) is not None}

    @property
    def is_full(self) -> bool:
        return self._pending >= self.max_pending

    @property
    def progress(self) -> WindowProgress:
        now = self._clock()
        oldest = [since for progress in self._partitions.values() if (since := progress.oldest) is not None]
        return WindowProgress(
            running=len(self._running),
            pending=self._pending,
            handed_on=self._handed_on,
            overflowed=sum(queue.overflow.count for queue in self._queues.values() if queue.overflow),
            oldest_age=now - min(oldest, default=now),
            stalled_for=now - self._last_progress_at if self._pending > self._handed_on else 0.0,
        )

    # Waiting for records of the key that is worked on.

    async def next_records(
        self, record: KafkaRecord, *, enough: int, most: int, arriving: float = 0.0, linger: float = 0.0
    ) -> Sequence[KafkaRecord]:
        """At most `most` records of the key and partition of `record`, which is worked on, that wait for it to finish.

        Waits until there are `enough` of them: up to `arriving` seconds while the log has records of the partition
        that were not delivered, and then up to `linger` seconds; not at all while a quarter of the places is held by
        keys that wait so, or the window is full. While it drains there are none.
        """

        def has_next() -> bool:
            queue = self._queues.get(self._key_of(record))
            return queue is not None and len(queue.waiting) >= enough

        def has_unread() -> bool:
            progress = self._partitions.get(record.topic_partition)
            return progress is not None and progress.has_unread

        await self._linger(record, lambda: has_next() or not has_unread(), arriving)
        await self._linger(record, has_next, linger)
        queue = self._queues.get(self._key_of(record))
        if queue is None or self._horizon is not None:
            return ()
        waiting = (entry.record for entry in islice(queue.waiting, most))
        return [one for one in waiting if one.topic_partition == record.topic_partition]

    async def _linger(self, record: KafkaRecord, is_enough: Callable[[], bool], seconds: float) -> None:
        queue = self._queues.get(self._key_of(record))
        is_busy = self._horizon is not None or self.is_full
        places = max(1, self.max_in_flight // LINGERING_PART)
        if queue is None or is_busy or seconds <= 0 or is_enough() or len(self._lingering) >= places:
            return
        arrival = self._lingering[queue] = asyncio.Event()
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    while self._lingering.get(queue) is arrival and not is_enough():
                        arrival.clear()
                        await arrival.wait()
        finally:
            if self._lingering.get(queue) is arrival:
                del self._lingering[queue]

    def _stop_lingering(self) -> None:
        lingering, self._lingering = self._lingering, {}
        for arrival in lingering.values():
            arrival.set()

    # Taking records.

    def take_over(self, record: KafkaRecord, finished: Callable[[], None]) -> None:
        """Take a record from the window before this one. Its limits hold for the whole chain, so there is room here."""
        progress = self._partitions.setdefault(record.topic_partition, PartitionProgress(record.offset))
        self._keep(record, progress, self._clock(), finished)
        self._launch()

    def _overflows(self, record: KafkaRecord) -> bool:
        """Whether this record has to be read again, because its key has too many before it in memory."""
        queue = self._queues.get(self._key_of(record))
        if self.reread is None or queue is None:
            return False
        if queue.overflow is not None:
            return queue.overflow.partition == record.topic_partition
        is_hot = len(queue.waiting) >= self.max_waiting_per_key
        return is_hot and sum(queue.overflow is not None for queue in self._queues.values()) < MAX_OVERFLOWING_KEYS

    async def _admit(self, record: KafkaRecord, log_end: int = 0) -> None:
        progress = self._partitions.setdefault(record.topic_partition, PartitionProgress(record.offset))
        progress.log_end = max(progress.log_end, log_end)
        if record.offset <= progress.newest_offset:
            await self._stop_with(OffsetRegression(f"{record.position} came after offset {progress.newest_offset}"))
        elif self._overflows(record):
            queue = self._queues[self._key_of(record)]
            if queue.overflow is None:
                queue.overflow = Overflow(record.topic_partition, record.offset, record.offset, 0, self._clock())
            queue.overflow.last_offset = record.offset
            queue.overflow.count += 1
            progress.overflow(queue.overflow)
        else:
            self._keep(record, progress, self._clock())
            self._launch()
        if not progress.has_unread:
            for arrival in self._lingering.values():
                arrival.set()

    def _keep(
        self,
        record: KafkaRecord,
        progress: PartitionProgress,
        since: float,
        finished: Callable[[], None] = lambda: None,
    ) -> None:
        entry = WindowEntry(next(self._sequence), record, since, finished)
        if self._pending == self._handed_on:
            self._last_progress_at = self._clock()
        self._pending += 1
        progress.add(entry)
        key = self._key_of(record)
        queue = self._queues.setdefault(key, KeyQueue())
        if not queue.waiting and not queue.is_running:
            heapq.heappush(self._ready, (entry.sequence, key))
        queue.waiting.append(entry)
        if arrival := self._lingering.get(queue):
            arrival.set()

    # Working on records, and finishing them.

    def _launch(self) -> None:
        while len(self._running) < self.max_in_flight and (entries := self._take_batch()):
            for entry in entries:
                self._partitions[entry.record.topic_partition].start(entry)
            self._running[entries[0].sequence] = asyncio.create_task(self._run_entries(entries, self.epoch))

    def _take_batch(self) -> Sequence[WindowEntry]:
        """The entries to work on next; while draining, of keys whose first is not newer than the horizon."""
        entries: list[WindowEntry] = []
        while self._ready and (not entries or (self._joins_keys and len(entries) < self._max_records)):
            queue = self._queues[heapq.heappop(self._ready)[1]]
            head = queue.waiting[0].record
            if self._horizon is None or head.offset <= self._horizon.get(head.topic_partition, -1):
                queue.is_running = True
                size = min(len(queue.waiting), self._max_records - len(entries))
                entries += [queue.waiting.popleft() for _ in range(size)]
        return entries

    async def _run_entries(self, entries: Sequence[WindowEntry], epoch: int) -> None:
        failure: BaseException | None = None
        output: KafkaRecord | None = None
        try:
            output = await self._process([entry.record for entry in entries])
        # A cancellation that no drain asked for is a failure as well: its record would wait for ever.
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 -- handed to `fail`
            failure = error
        if epoch != self.epoch:
            return  # drained meanwhile: the record will be delivered again, whatever came of it here
        del self._running[entries[0].sequence]
        if failure is not None:
            await self._stop_with(failure)
        elif output is not None and self._next is not None:
            self._hand_on(entries, output, self._next)
        else:
            self._last_progress_at = self._clock()
            self._finish(entries)
            self._free_keys(entries)

    def _hand_on(self, entries: Sequence[WindowEntry], output: KafkaRecord, next_window: "Window") -> None:
        queue = self._queues[self._key_of(entries[0].record)]
        queue.handed_on += 1
        self._handed_on += 1
        self._last_progress_at = self._clock()
        next_window.take_over(output, partial(self._finish_handed_on, entries, queue))
        if queue.handed_on < MAX_HANDED_ON_PER_KEY:
            self._free_keys(entries)

    # The windows of a chain forget everything at once: never called for what was forgotten.
    def _finish_handed_on(self, entries: Sequence[WindowEntry], queue: KeyQueue) -> None:
        key_was_held = queue.handed_on == MAX_HANDED_ON_PER_KEY
        queue.handed_on -= 1
        self._handed_on -= 1
        self._finish(entries)
        if key_was_held:
            self._free_keys(entries)
        else:
            self._forget_idle(self._key_of(entries[0].record), queue)

    def _finish(self, entries: Sequence[WindowEntry]) -> None:
        self._pending -= len(entries)
        by_partition: dict[Partition, list[WindowEntry]] = {}
        for entry in entries:
            by_partition.setdefault(entry.record.topic_partition, []).append(entry)
        for partition, finished in by_partition.items():
            self._partitions[partition].finish(finished)
        self._has_capacity.set()
        for entry in entries:
            entry.finished()

    def _free_keys(self, entries: Sequence[WindowEntry]) -> None:
        """Let the next records of the keys of these entries begin."""
        for key in dict.fromkeys(self._key_of(entry.record) for entry in entries):
            queue = self._queues[key]
            queue.is_running = False
            if queue.waiting:
                heapq.heappush(self._ready, (queue.waiting[0].sequence, key))
            has_room = len(queue.waiting) <= self.max_waiting_per_key // 2 and not queue.is_refilling
            if queue.overflow and self.reread and has_room and self._horizon is None:
                queue.is_refilling = True
                task = asyncio.create_task(self._refill(key, queue, queue.overflow, self.reread))
                self._refills.add(task)
                task.add_done_callback(self._refills.discard)
            self._forget_idle(key, queue)
        self._launch()

    def _forget_idle(self, key: Hashable, queue: KeyQueue) -> None:
        if queue.is_idle:
            del self._queues[key]

    async def _refill(self, key: Hashable, queue: KeyQueue, overflow: Overflow, reread: Reread) -> None:
        """Read records of a key again, as many as it may have in memory."""
        epoch = self.epoch
        while not overflow.is_over and len(queue.waiting) < self.max_waiting_per_key:
            try:
                chunk, next_offset = await reread(overflow.partition, overflow.next_offset, overflow.last_offset + 1)
            except Exception as error:  # noqa: BLE001 -- handed to `fail`
                if epoch == self.epoch:
                    await self._stop_with(error)
                return
            if epoch != self.epoch or self._horizon is not None:
                return
            for record in chunk:
                if self._key_of(record) != key:
                    continue
                if len(queue.waiting) >= self.max_waiting_per_key:
                    next_offset = record.offset
                    break
                self._keep(record, self._partitions[overflow.partition], overflow.since)
                overflow.count -= 1
            overflow.next_offset = next_offset
        queue.is_refilling = False
        if overflow.is_over:
            queue.overflow = None
        self._partitions[overflow.partition].advance()
        self._forget_idle(key, queue)  # what was left of it may be no longer in the log
        self._launch()

    async def _stop_with(self, error: BaseException) -> None:
        if self._failed:
            return
        self._failed = True
        self._horizon = {}
        await self.fail(error)


class KeyedWindow(Window):
    """One record per key at a time, many keys at once; records of a partition without a key count as of one key."""

    def __init__(
        self,
        process: Callable[[KafkaRecord], Awaitable[KafkaRecord | None]],
        *,
        max_in_flight: int = 256,
        max_pending: int = 1024,
        reread: Reread | None = None,
        next_window: Window | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(
            lambda records: process(records[0]),
            key_of=lambda record: record.topic_partition if record.key is None else record.key,
            max_records=1,
            max_in_flight=max_in_flight,
            max_pending=max_pending,
            reread=reread,
            next_window=next_window,
            clock=clock,
        )
