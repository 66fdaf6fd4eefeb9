"""Who waits in a window for more records of its key: so few at once that the others have room."""

from typing import Final

from mnemolog.streams.kafka.windows.state import KeyQueue

LINGERING_PART: Final = 4
"""One of so many places may be held by those that wait for more records."""


class Lingerers:
    """Lets at most `most` wait at once: each of them holds a place among those that are worked on."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._queues: set[KeyQueue] = set()

    async def wait(self, queue: KeyQueue, enough: int, seconds: float) -> None:
        """Return when `enough` records wait in `queue`, or after `seconds`; at once where too many wait already."""
        if len(self._queues) >= self._most:
            return
        self._queues.add(queue)
        try:
            await queue.wait_for(enough, seconds)
        finally:
            self._queues.discard(queue)

    def stop(self) -> None:
        """Let nobody wait any more."""
        for queue in self._queues:
            queue.stop_waiting()
