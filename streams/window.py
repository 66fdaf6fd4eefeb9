"""The keyed window: one record per key at a time, many keys at once."""

import heapq
import time
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Sequence

from mnemolog.streams.base_window import Delivery, Drained, Entry, Fail, Partition, Progress, Window
from mnemolog.streams.records import Record

__all__ = ["Delivery", "Drained", "Fail", "KeyedWindow", "Partition", "Progress", "Window", "order_key"]


def order_key(record: Record) -> Hashable:
    """Tell what is handled in order: a record's key, over all topics, or its partition if it has none."""
    return record.key if record.key is not None else (record.topic, record.partition)


class KeyedWindow(Window):
    """One record per key at a time, in order; up to `max_in_flight` keys at once, the oldest first.

    `process` returns when its output is durable; what it raises crashes the stage.
    """

    def __init__(
        self,
        process: Callable[[Record], Awaitable[None]],
        *,
        max_in_flight: int = 256,
        max_pending: int = 1024,
        key_of: Callable[[Record], Hashable] = order_key,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._process = process
        self._key_of = key_of
        super().__init__(max_in_flight=max_in_flight, max_pending=max_pending, clock=clock)

    def _begin(self) -> None:
        super()._begin()
        self._behind: dict[Hashable, deque[Entry]] = {}
        self._free: list[tuple[int, Entry]] = []

    def _enqueue(self, entry: Entry) -> None:
        key = self._key_of(entry.record)
        if key in self._behind:
            self._behind[key].append(entry)
        else:
            self._behind[key] = deque()
            heapq.heappush(self._free, (entry.sequence, entry))

    def _next(self) -> Sequence[Entry]:
        while self._free:
            _, entry = heapq.heappop(self._free)
            if self._wanted(entry):
                return (entry,)
        return ()

    async def _work(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            await self._process(entry.record)

    def _release(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            key = self._key_of(entry.record)
            if behind := self._behind[key]:
                following = behind.popleft()
                heapq.heappush(self._free, (following.sequence, following))
            else:
                del self._behind[key]
