"""What a window remembers: the records of each key, and what is unfinished in each partition."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from mnemolog.streams.kafka.record import KafkaRecord, Partition

FailureHandler = Callable[[BaseException], Awaitable[None]]
Process = Callable[[Sequence[KafkaRecord]], Awaitable[KafkaRecord | None]]
"""Processes a batch. Gives the record to hand on, or None where the batch is finished."""


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

    @classmethod
    def of(
        cls,
        partitions: "Iterable[PartitionProgress]",
        queues: "Iterable[KeyQueue]",
        *,
        running: int,
        pending: int,
        handed_on: int,
        now: float,
        last_at: float,
    ) -> "WindowProgress":
        """Of a window that finished or handed on a record `last_at`."""
        oldest = [since for progress in partitions if (since := progress.oldest) is not None]
        return cls(
            running=running,
            pending=pending,
            handed_on=handed_on,
            overflowed=sum(queue.overflow.count for queue in queues if queue.overflow),
            oldest_age=now - min(oldest, default=now),
            stalled_for=now - last_at if pending > handed_on else 0.0,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainResult:
    """What a drain left: the offset to commit per partition, and what will be delivered again.

    Of `dropped` records, `started` were started or even finished and will be processed twice.
    """

    offsets: Mapping[Partition, int]
    cancelled: int
    dropped: int
    started: int

    @classmethod
    def of(
        cls, partitions: "Iterable[PartitionProgress]", *, offsets: Mapping[Partition, int], cancelled: int
    ) -> "DrainResult":
        """The result of a drain that leaves `partitions` like this."""
        repeats = [progress.to_repeat for progress in partitions]
        dropped, started = sum(records for records, _ in repeats), sum(started for _, started in repeats)
        return cls(offsets=offsets, cancelled=cancelled, dropped=dropped, started=started)


@dataclass(slots=True, eq=False)
class WindowEntry:
    """A record's place in the window; `finished` is called when it and what it was handed on as are finished."""

    sequence: int
    record: KafkaRecord
    admitted_at: float
    finished: Callable[[], None]
    is_started: bool = False


def by_partition(entries: Iterable[WindowEntry]) -> Mapping[Partition, list[WindowEntry]]:
    """The entries of each partition."""
    found: dict[Partition, list[WindowEntry]] = {}
    for entry in entries:
        found.setdefault(entry.record.topic_partition, []).append(entry)
    return found


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

    `is_running` means that none of those that wait may begin; `handed_on` counts the key's records in the next window.
    """

    waiting: deque[WindowEntry] = field(default_factory=deque)
    is_running: bool = False
    handed_on: int = 0
    overflow: Overflow | None = None
    is_refilling: bool = False
    arrival: asyncio.Event | None = None

    def append(self, entry: WindowEntry) -> None:
        """Let a record wait."""
        self.waiting.append(entry)
        self.look_again()

    def look_again(self) -> None:
        """Let who waits for more records see whether it is enough."""
        if self.arrival is not None:
            self.arrival.set()

    def leave_out(self, record: KafkaRecord, since: float) -> Overflow:
        """Keep a record out of memory, as the newest of the overflow."""
        if self.overflow is None:
            self.overflow = Overflow(record.topic_partition, record.offset, record.offset, 0, since)
        self.overflow.last_offset = record.offset
        self.overflow.count += 1
        return self.overflow

    async def wait_for(self, is_enough: Callable[[], bool], seconds: float) -> None:
        """Return when `is_enough`, or after `seconds`, or when `stop_waiting` says so."""
        if seconds <= 0 or is_enough():
            return
        arrival = self.arrival = asyncio.Event()
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.arrival is arrival and not is_enough():
                    arrival.clear()
                    await arrival.wait()
        self.stop_waiting()

    def stop_waiting(self) -> None:
        """Let nobody wait for more records."""
        if self.arrival is not None:
            arrival, self.arrival = self.arrival, None
            arrival.set()

    @property
    def is_idle(self) -> bool:
        return not (self.waiting or self.is_running or self.handed_on or self.overflow)


@dataclass(frozen=True, slots=True)
class KeyState:
    """How many records of a key wait, and whether the log had more of its partition at the last fetch."""

    waiting: int
    has_unread: bool

    @classmethod
    def of(cls, queue: KeyQueue | None, progress: "PartitionProgress | None") -> "KeyState":
        has_unread = progress is not None and progress.newest_offset + 1 < progress.log_end
        if queue is None:
            return cls(0, has_unread)
        return cls(len(queue.waiting), has_unread)


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
    def oldest(self) -> float | None:
        """When the oldest unfinished record was delivered."""
        times = [entry.admitted_at for entry in self._unfinished.values()]
        return min([*times, *(overflow.since for overflow in self._overflows)], default=None)

    @property
    def newest_worth_finishing(self) -> int:
        """The newest started offset, and none behind the place where re-reading would go on: that is not committed."""
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
