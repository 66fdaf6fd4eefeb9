"""Waiting for a condition."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")
POLL_SECONDS = 0.05


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
