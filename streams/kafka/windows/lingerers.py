"""Who waits in a window for more records of its key: so few at once that the others have room."""

from collections.abc import Callable
from typing import Final

from mnemolog.streams.kafka.windows.state import KeyQueue

LINGERING_PART: Final = 4
"""One of so many places may be held by those that wait for more records."""


class Lingerers:
    """Lets a part of all places be held by those that wait: each holds one among those that are worked on."""

    def __init__(self, places: int) -> None:
        self._most = max(1, places // LINGERING_PART)
        self._queues: dict[KeyQueue, None] = {}  # in the order in which they began to wait

    async def wait(self, queue: KeyQueue, is_enough: Callable[[], bool], seconds: float) -> None:
        """Return when there are enough in `queue`, or after `seconds`; at once where too many wait already."""
        if len(self._queues) >= self._most:
            return
        self._queues[queue] = None
        try:
            await queue.wait_for(is_enough, seconds)
        finally:
            self._queues.pop(queue, None)

    def look_again(self) -> None:
        """Let those that wait see whether it is enough."""
        for queue in self._queues:
            queue.look_again()

    def stop(self) -> None:
        """Let nobody wait any more."""
        for queue in self._queues:
            queue.stop_waiting()
