"""Retry an operation while its errors are temporary, with growing delays."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

T = TypeVar("T")
Delay = Callable[[int], float]
"""Seconds to wait after the n-th failure in a row, from 1."""
MAX_GROWTHS: Final = 50  # any maximum is reached before; the power would overflow some day


def growing_delay(
    initial: float, maximum: float, *, factor: float = 2.0, jitter: Callable[[], float] = lambda: 1.0
) -> Delay:
    """Delays from `initial` to `maximum` seconds; `jitter` (0..1) takes away up to half of each."""
    return lambda failures: min(maximum, initial * factor ** min(failures - 1, MAX_GROWTHS)) * (0.5 + jitter() / 2)


async def retry_while(
    is_temporary: Callable[[BaseException], bool],
    operation: Callable[[], Awaitable[T]],
    *,
    delay: Delay,
    on_retry: Callable[[int, BaseException], None] = lambda _failures, _error: None,
    attempts: int | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> T:
    """Repeat `operation` while its error `is_temporary`, for ever or for so many `attempts`; other errors pass through.

    `on_retry` is called before each wait with the number of failures so far and the latest error.
    """
    failures = 0
    while True:
        try:
            return await operation()
        except Exception as error:
            failures += 1
            if not is_temporary(error) or failures == attempts:
                raise
            on_retry(failures, error)
        await sleep(delay(failures))
