"""How a command gets its settings, its client and its event loop, and how one that serves is stopped."""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

import typer

from mnemolog.cli.errors import INTERRUPTED, print_error
from mnemolog.cli.output import NOTHING_CHANGED, print_note, stderr

if TYPE_CHECKING:
    from mnemolog.client.async_client import AsyncMemoryClient
    from mnemolog.settings import Settings

R = TypeVar("R")
SILENCED: Final = ("aiokafka", "psycopg", "mnemolog")
"""Loggers that commands silence: errors and notes are shown once."""


def cli_settings(**given: Any) -> "Settings":
    """The settings with what the command line gives; what it leaves out (None) is read from the environment."""
    from mnemolog.settings import load_settings  # noqa: PLC0415 - as all of this module: only commands that run pay

    return load_settings(**{name: value for name, value in given.items() if value is not None})


def discovered_settings(**given: Any) -> "Settings":
    """The same with the servers of a running `up` where none are set. Raises `NotConnectedError`."""
    from mnemolog.client.discovery import with_discovered_servers  # noqa: PLC0415 - see above

    return with_discovered_servers(cli_settings(**given))


def call_client(
    call: Callable[["AsyncMemoryClient"], Awaitable[R]],
    *,
    tenant: str | None = None,
    interrupted: Callable[[], str] = lambda: NOTHING_CHANGED,
) -> R:
    """Call a client that is made for this command; `interrupted` says after Ctrl-C what state things are in."""

    async def work() -> R:
        from mnemolog.client.async_client import AsyncMemoryClient  # noqa: PLC0415 - see above

        async with AsyncMemoryClient(settings=cli_settings(tenant=tenant)) as client:
            return await call(client)

    return run_async(work(), interrupted=interrupted)


def run_async(coroutine: Coroutine[Any, Any, R], *, interrupted: Callable[[], str] = lambda: NOTHING_CHANGED) -> R:
    """Run a command's work to its end; libraries log nothing, because errors and notes are shown once.

    After Ctrl-C it writes what `interrupted` says and ends the command with exit code 130.
    """
    for library in SILENCED:
        logging.getLogger(library).setLevel(logging.CRITICAL)
    try:
        return asyncio.run(coroutine)
    except KeyboardInterrupt:
        print_note(f"stopped: {interrupted()}")
        raise typer.Exit(INTERRUPTED) from None


def run_and_exit(coroutine: Coroutine[Any, Any, int]) -> NoReturn:
    """Run `coroutine` and end the process with the exit code that it returns.

    At once, without Python's own clean-up: what a crashed stage leaves behind (a consumer's thread) could block that.
    """
    runner = asyncio.Runner(loop_factory=import_module("uvloop").new_event_loop if find_spec("uvloop") else None)
    try:
        code = runner.run(coroutine)
    except (KeyboardInterrupt, asyncio.CancelledError):
        code = INTERRUPTED
    except SystemExit as end:  # of Rich, where nobody reads what is printed any more
        code = end.code if isinstance(end.code, int) else 1
    # Shown as errors of other commands are; only the way out differs.
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
            stderr().print("stopping now; nothing is lost: unfinished work is repeated after the next start")
            task.cancel()
        else:
            stderr().print("finishing work in progress ... (again to stop at once)")
            stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    try:
        yield stop
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
