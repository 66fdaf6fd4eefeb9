"""Helpers that tests of every distance share."""

from __future__ import annotations

import asyncio
import inspect
import shutil
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar
from urllib.parse import urlsplit, urlunsplit

import pytest

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


def required_program(name: str, package: str) -> str:
    """The path of a program of Debian's. Skips the test where it is missing, which in CI is a failure."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed (Debian: apt-get install {package})")
    return found


def with_database(url: str, name: str) -> str:
    """The same Postgres server, another database."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))
