"""Running what serves until told to stop: signals, progress, and a certain end of the process."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any, NoReturn, Self

import uvloop
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from mnemolog.cli.errors import INTERRUPTED, print_error
from mnemolog.cli.output import stderr


def run_and_exit(coroutine: Coroutine[Any, Any, int]) -> NoReturn:
    """Run `coroutine` and end the process with the exit code that it returns.

    At once, without Python's own clean-up: what a crashed stage leaves behind (a consumer's thread) could block that.
    """
    runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    try:
        code = runner.run(coroutine)
    except (KeyboardInterrupt, asyncio.CancelledError):
        code = INTERRUPTED
    # Told as everywhere else; only the way out is another.
    except BaseException as error:  # noqa: BLE001
        code = print_error(error)
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


@asynccontextmanager
async def stop_on_signals() -> AsyncIterator[asyncio.Event]:
    """An event that the first Ctrl-C or SIGTERM sets; the second one gives up waiting."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()

    def on_signal() -> None:
        if stop.is_set() and task:
            stderr().print(
                "stopping without waiting for work under way; nothing is lost, it is done again at the start"
            )
            task.cancel()
        else:
            stderr().print("finishing what is under way ... (again to stop at once)")
            stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    try:
        yield stop
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


class ProgressBars:
    """Progress bars on stderr, one for each step that is told of; gone after `close`."""

    def __init__(self) -> None:
        console = stderr()
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=30),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, step: str, done: int, total: int) -> None:
        """Show that `done` of `total` are done."""
        if step not in self._tasks:
            self._tasks[step] = self._bars.add_task(step, total=total)
        self._bars.update(self._tasks[step], completed=done, total=total)

    def close(self) -> None:
        self._bars.stop()

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
