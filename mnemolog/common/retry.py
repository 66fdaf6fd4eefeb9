"""Retry an operation while its errors are temporary, with growing delays; based on tenacity."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt, stop_never

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
    try:  # nearly every call succeeds, and tenacity takes a tenth of a millisecond to find that out
        return await operation()
    except Exception as error:
        if not is_temporary(error) or attempts == 1:
            raise
        on_retry(1, error)
    await sleep(delay(1))

    def before_sleep(state: RetryCallState) -> None:
        if state.outcome and (error := state.outcome.exception()):
            on_retry(state.attempt_number + 1, error)

    retrying = AsyncRetrying(
        retry=retry_if_exception(is_temporary),
        wait=lambda state: delay(state.attempt_number + 1),
        stop=stop_never if attempts is None else stop_after_attempt(attempts - 1),
        before_sleep=before_sleep,
        sleep=sleep,
        reraise=True,
    )

    async def attempt() -> T:  # tenacity awaits only what is a coroutine function
        return await operation()

    return await retrying(attempt)
