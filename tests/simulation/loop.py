"""An event loop without sockets or threads: time jumps, and a seed chooses which of the ready callbacks runs next.

Each callback belongs to a process, by a context variable that tasks hand on. A process can be frozen, as by SIGSTOP, or
killed, as by SIGKILL: its callbacks wait, or never run.
"""

import asyncio
import heapq
import random
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar
from itertools import count
from typing import Any, Final, TypeVar

T = TypeVar("T")
PROCESS: Final[ContextVar[str | None]] = ContextVar("process", default=None)
MAX_STEPS: Final = 1_000_000  # a seed takes some ten thousand
CLEARING_ROUNDS: Final = 20
FIFO_SHARE: Final = 0.5  # how often the callback that is ready for longest runs next


class EndlessLoop(Exception):  # noqa: N818 -- as below
    """Callback follows callback, and time does not go on."""


class NothingLeftToDo(Exception):  # noqa: N818 -- says what happened
    """No callback is ready and no timer is set: what runs would wait for ever."""


class _Task(asyncio.Task[Any]):
    """Hashed by its number and not by its address: a set of tasks has the same order in each run."""

    def __init__(self, number: int, coro: Any, **named: Any) -> None:
        self._number = number
        super().__init__(coro, **named)

    def __hash__(self) -> int:
        return self._number


class _Future(asyncio.Future[Any]):
    """As a task."""

    def __init__(self, number: int, **named: Any) -> None:
        self._number = number
        super().__init__(**named)

    def __hash__(self) -> int:
        return self._number


class SimulatedLoop(asyncio.BaseEventLoop):
    """Runs one callback after another, of all processes."""

    _ready: deque[Any]
    _scheduled: list[Any]

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._now = 0.0
        self.random = random.Random(seed)
        self.steps = 0
        self._frozen: dict[str, list[asyncio.Handle]] = {}
        self._killed: set[str] = set()
        self._numbers = count()
        self.set_task_factory(self._make_task)
        self.set_exception_handler(self._remember_error)
        self.errors: list[dict[str, Any]] = []

    def time(self) -> float:
        return self._now

    def freeze(self, process: str) -> None:
        """Stop this process until `thaw`."""
        self._frozen.setdefault(process, [])

    def thaw(self, process: str) -> None:
        """Let a frozen process go on, with all that became due meanwhile; a killed one does not."""
        if process in self._killed:
            return
        self._ready.extend(self._frozen.pop(process, []))

    def kill(self, process: str) -> None:
        """Nothing of this process runs any more."""
        self._killed.add(process)
        self.freeze(process)

    def clear(self) -> None:
        """End every task, also of killed processes: what they had open is closed before the loop is."""
        for process in list(self._frozen):
            self._ready.extend(self._frozen.pop(process))
        for _ in range(CLEARING_ROUNDS):
            tasks = asyncio.all_tasks(self)
            if not tasks:
                return
            for task in tasks:
                task.cancel()
            self.run_until_complete(asyncio.wait(tasks, timeout=60))

    def start_process(self, name: str, main: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run `main`, and all it starts, as the process `name`."""
        context = Context()
        context.run(PROCESS.set, name)
        return self.create_task(main, context=context)

    def call_soon_threadsafe(  # type: ignore[override] # fewer overloads
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def create_future(self) -> asyncio.Future[Any]:
        return _Future(next(self._numbers), loop=self)

    def _make_task(self, _loop: object, coro: Any, context: Context | None = None) -> asyncio.Task[Any]:
        return _Task(next(self._numbers), coro, loop=self, context=context)

    def _write_to_self(self) -> None:
        pass

    def _run_once(self) -> None:
        if not self._ready:
            self._advance_time()
        handle = self._take_ready()
        if handle is None or handle._cancelled:
            return
        process = handle._context.get(PROCESS)
        if process is not None and process in self._frozen:
            self._frozen[process].append(handle)
            return
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise EndlessLoop
        handle._run()

    def _take_ready(self) -> Any:
        if not self._ready:
            return None
        if len(self._ready) > 1 and self.random.random() >= FIFO_SHARE:
            self._ready.rotate(-self.random.randrange(len(self._ready)))
        return self._ready.popleft()

    def _advance_time(self) -> None:
        while self._scheduled and self._scheduled[0]._cancelled:
            heapq.heappop(self._scheduled)._scheduled = False
        if not self._scheduled:
            raise NothingLeftToDo
        self._now = max(self._now, self._scheduled[0]._when)
        while self._scheduled and self._scheduled[0]._when <= self._now:
            handle = heapq.heappop(self._scheduled)
            handle._scheduled = False
            self._ready.append(handle)

    def _remember_error(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        self.errors.append(context)


def run_simulated(seed: int, main: Callable[[SimulatedLoop], Coroutine[Any, Any, T]]) -> T:
    """Run `main` in a loop of its own."""
    loop = SimulatedLoop(seed)
    try:
        return loop.run_until_complete(main(loop))
    finally:
        loop.clear()
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
