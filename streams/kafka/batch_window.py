"""The batch window: consecutive records of one partition are processed together."""

import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from mnemolog.streams.kafka.record import KafkaRecord, Partition
from mnemolog.streams.kafka.window import Window, WindowEntry


class BatchWindow(Window):
    """Consecutive records of one partition together, one batch per partition at a time.

    A batch is what has arrived, at most `max_records`, and is never waited for. `process_batch` gets the records in
    offset order and returns when their effect is durable; what it raises crashes the stage. Up to `max_in_flight`
    partitions are worked on at once, the one that waits longest first.
    """

    def __init__(
        self,
        process_batch: Callable[[Sequence[KafkaRecord]], Awaitable[None]],
        *,
        max_records: int = 500,
        max_in_flight: int = 4,
        max_pending: int = 2048,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._process_batch = process_batch
        self._max_records = max_records
        super().__init__(max_in_flight=max_in_flight, max_pending=max_pending, clock=clock)

    def _reset(self) -> None:
        super()._reset()
        self._waiting: dict[Partition, deque[WindowEntry]] = {}
        self._busy: set[Partition] = set()

    def _enqueue(self, entry: WindowEntry) -> None:
        self._waiting.setdefault(entry.partition, deque()).append(entry)

    def _take_next(self) -> Sequence[WindowEntry]:
        heads = [
            (entries[0].sequence, partition)
            for partition, entries in self._waiting.items()
            if entries and partition not in self._busy and self._is_within_horizon(entries[0])
        ]
        if not heads:
            return ()
        _, partition = min(heads)
        self._busy.add(partition)
        waiting = self._waiting[partition]
        return [waiting.popleft() for _ in range(min(len(waiting), self._max_records))]

    async def _process_entries(self, entries: Sequence[WindowEntry]) -> None:
        await self._process_batch([entry.record for entry in entries])

    def _release(self, entries: Sequence[WindowEntry]) -> None:
        self._busy.discard(entries[0].partition)
