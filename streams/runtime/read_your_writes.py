"""Waits until earlier commits of an owner are projected, so that each decision sees all earlier ones of its owner.

After a start or a rebalance another worker may have committed, so each partition first waits for the end that its log
had at that moment.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from mnemolog.streams.runtime.watermark import Watermark

MAX_REMEMBERED_OWNERS: Final = 100_000


class ReadYourWrites:
    """`end_offset` gives the next offset of a partition of the log; `epoch` changes with every rebalance."""

    def __init__(
        self, watermark: Watermark, end_offset: Callable[[int], Coroutine[Any, Any, int]], epoch: Callable[[], int]
    ) -> None:
        self._watermark = watermark
        self._end_offset = end_offset
        self._epoch = epoch
        self._ends: dict[int, tuple[int, asyncio.Task[int]]] = {}
        self._committed: dict[str, tuple[int, int]] = {}
        self._floors: dict[int, int] = {}

    async def wait_until_projected(self, owner: str, partition: int) -> None:
        """Wait until the projection of `partition` holds everything that was committed for `owner`."""
        end = await asyncio.shield(self._log_end(partition))
        await self._watermark.wait_for_offset(partition, max(end, self._floors.get(partition, 0)))
        if owner in self._committed:
            await self._watermark.wait_for_offset(*self._committed[owner])

    def record_commit(self, owner: str, partition: int, offset: int) -> None:
        """Remember that `owner`'s newest commit lies at `offset`."""
        self._committed[owner] = (partition, offset + 1)
        if len(self._committed) > MAX_REMEMBERED_OWNERS:
            # From now on their turns wait for whole partitions: rarely a moment longer, never too short.
            for place, end in self._committed.values():
                self._floors[place] = max(end, self._floors.get(place, 0))
            self._committed.clear()

    def _log_end(self, partition: int) -> asyncio.Task[int]:
        """The end of the partition's log in this epoch, asked once for all who wait."""
        epoch = self._epoch()
        asked, task = self._ends.get(partition, (None, None))
        failed = task is not None and task.done() and (task.cancelled() or task.exception() is not None)
        if task is None or asked != epoch or failed:
            task = asyncio.ensure_future(self._end_offset(partition))
            self._ends[partition] = (epoch, task)
        return task
