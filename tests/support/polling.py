"""Waiting for a condition."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")
POLL_SECONDS = 0.05
GROWTH_POLL_SECONDS = 0.3


# A deadline of its own, because asyncio.timeout would lose the last value.
async def eventually(condition: Callable[[], T | Awaitable[T]], timeout: float = 30) -> T:  # noqa: ASYNC109
    """Poll `condition`, a plain or an async callable, until its value is true, and return that value.

    Raises AssertionError with the last value after `timeout` seconds. What `condition` raises is not caught.
    """
    deadline = time.monotonic() + timeout
    while True:
        result = condition()
        value: T = await result if inspect.isawaitable(result) else result
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout} s; the last value was {value!r}")
        await asyncio.sleep(POLL_SECONDS)


async def until_grown(count: Callable[[], int | Awaitable[int]], wanted: int, *, stalled: float = 240) -> None:
    """Poll `count` until it is `wanted`. Raises AssertionError once it has not grown for `stalled` seconds.

    For long runs: a busy machine is slow, and only what stands still is a fault.
    """
    most, deadline = -1, 0.0
    while True:
        result = count()
        found = await result if inspect.isawaitable(result) else result
        if found >= wanted:
            return
        if found > most:
            most, deadline = found, time.monotonic() + stalled
        assert time.monotonic() < deadline, f"{found} of {wanted}, and no more for {stalled} s"
        await asyncio.sleep(GROWTH_POLL_SECONDS)
