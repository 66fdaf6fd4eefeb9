"""Tells an application how what it published has ended, without its asking."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from mnemolog.common.logs import get_logger
from mnemolog.common.retry import growing_delay
from mnemolog.projections.queries.results import Result

OnEnd = Callable[[Result], object]
"""Called with the result of each turn and command that a client published, once it has ended."""
MAX_SECONDS: Final = 3600.0
"""So long an end is looked for; later ones are in the topic `memory_outcomes` alone."""
PAUSE: Final = growing_delay(0.02, 0.5, factor=1.5)

_log = get_logger(__name__)


class EndWatch:
    """Looks for the ends of what was published, in turn, and calls `on_end` with each, one at a time.

    `look` gives the result of what has ended, else a text. A function is called in a thread of its own where
    `in_thread`, so that it may wait; what it returns is awaited if it can be. What it raises is logged.
    """

    def __init__(self, on_end: OnEnd, look: Callable[[Result], Awaitable[Result | str]], *, in_thread: bool) -> None:
        self._on_end = on_end
        self._look = look
        self._in_thread = in_thread
        self._waiting: dict[tuple[str, str | None], tuple[Result, float]] = {}
        self._task: asyncio.Task[None] | None = None

    def add(self, sent: Iterable[Result]) -> None:
        loop = asyncio.get_running_loop()
        self._waiting |= {(one.turn_id, one.position): (one, loop.time() + MAX_SECONDS) for one in sent}
        if self._waiting and (self._task is None or self._task.done()):
            self._task = loop.create_task(self._run())

    async def close(self) -> None:
        """Look no further: ends that have not been told are not told any more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def _run(self) -> None:
        polls = 0
        while self._waiting:
            for key, (one, until) in list(self._waiting.items()):
                if isinstance(found := await self._look(one), Result):
                    del self._waiting[key]
                    await self._tell(found)
                    polls = 0
                elif asyncio.get_running_loop().time() > until:
                    del self._waiting[key]
                    _log.warning("end_not_seen", turn_id=one.turn_id, seconds=MAX_SECONDS)
            polls += 1
            await asyncio.sleep(PAUSE(polls))

    async def _tell(self, end: Result) -> None:
        try:
            answer = await asyncio.to_thread(self._on_end, end) if self._in_thread else self._on_end(end)
            if inspect.isawaitable(answer):
                await answer
        except Exception:  # noqa: BLE001 - of the application; the other ends are told all the same
            _log.exception("on_end_failed", turn_id=end.turn_id)
