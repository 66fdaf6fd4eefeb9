"""The keyed window: one record per key at a time, many keys at once."""

import heapq
import time
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence

from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.window import Window, WindowEntry


def ordering_key(record: KafkaRecord) -> Hashable:
    """What is handled in order: a record's key, or its partition if it has none."""
    return record.key if record.key is not None else (record.topic, record.partition)


class KeyedWindow(Window):
    """One record per key at a time, in order; up to `max_in_flight` keys at once, the oldest first.

    `process` returns when its output is durable; what it raises crashes the stage.
    """

    def __init__(
        self,
        process: Callable[[KafkaRecord], Awaitable[None]],
        *,
        max_in_flight: int = 256,
        max_pending: int = 1024,
        key_of: Callable[[KafkaRecord], Hashable] = ordering_key,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._process = process
        self._key_of = key_of
        super().__init__(max_in_flight=max_in_flight, max_pending=max_pending, clock=clock)

    def _reset(self) -> None:
        super()._reset()
        self._waiting_by_key: dict[Hashable, deque[WindowEntry]] = {}
        self._ready: list[tuple[int, WindowEntry]] = []

    def _enqueue(self, entry: WindowEntry) -> None:
        key = self._key_of(entry.record)
        if key in self._waiting_by_key:
            self._waiting_by_key[key].append(entry)
        else:
            self._waiting_by_key[key] = deque()
            heapq.heappush(self._ready, (entry.sequence, entry))

    def _take_next(self) -> Sequence[WindowEntry]:
        while self._ready:
            _, entry = heapq.heappop(self._ready)
            if self._is_within_horizon(entry):
                return (entry,)
        return ()

    async def _process_entries(self, entries: Sequence[WindowEntry]) -> None:
        for entry in entries:
            await self._process(entry.record)

    def _release(self, entries: Sequence[WindowEntry]) -> None:
        for entry in entries:
            key = self._key_of(entry.record)
            if behind := self._waiting_by_key[key]:
                following = behind.popleft()
                heapq.heappush(self._ready, (following.sequence, following))
            else:
                del self._waiting_by_key[key]
