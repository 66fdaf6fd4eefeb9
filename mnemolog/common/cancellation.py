"""The end of tasks that are no longer wanted."""

import asyncio
from collections.abc import Awaitable, Iterable
from typing import Any, Final

CANCEL_AGAIN_SECONDS: Final = 1.0


async def cancel_all(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel these tasks and return when all have ended; what they raise is not raised here.

    A task that goes on is cancelled again: until Python 3.12 `asyncio.wait_for`, with which psycopg's pool waits for a
    connection, loses a cancellation that comes at the moment at which the wait is over.
    """
    every = list(tasks)
    left = {task for task in every if not task.done()}
    while left:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=CANCEL_AGAIN_SECONDS)
    await asyncio.gather(*every, return_exceptions=True)


async def first_of(*waits: Awaitable[object], timeout: float | None = None) -> None:  # noqa: ASYNC109 -- not an error
    """Return when one of these has ended, or after the timeout; raises its error, and cancels the others."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        done, _ = await asyncio.wait(tasks, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        await cancel_all(tasks)
