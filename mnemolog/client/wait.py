"""Waiting until a turn or command has ended: the tables are polled with growing pauses."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from mnemolog.errors import ServerUnavailableError, WaitTimeoutError
from mnemolog.projections.queries.errors import UnknownTurnError
from mnemolog.projections.queries.results import WriteResult
from mnemolog.projections.retry import growing_delay

_PAUSE: Final = growing_delay(0.02, 0.5, factor=1.5)
_NOT_FOUND_YET: Final = "not in the tables yet: check the tenant, and that a worker runs"


async def wait_for_end(
    status: Callable[[], Awaitable[WriteResult]], turn_id: str, *, timeout_seconds: float, attempt: int = 1
) -> WriteResult:
    """The result of a turn once it has ended, polled for up to `timeout_seconds`.

    A turn that is not known yet, an end of an earlier `attempt`, and a Postgres that is away are waited for as well.
    Raises `WaitTimeoutError` that says how far the turn is.
    """
    so_far, polls = "it is not known yet", 0
    try:
        async with asyncio.timeout(timeout_seconds):
            while True:
                result, so_far = await _poll(status)
                if result and result.status != "pending" and result.attempt >= attempt:
                    return result
                polls += 1
                await asyncio.sleep(_PAUSE(polls))
    except TimeoutError as error:
        raise WaitTimeoutError(f"turn {turn_id} did not finish within {timeout_seconds:g} s: {so_far}") from error


async def _poll(status: Callable[[], Awaitable[WriteResult]]) -> tuple[WriteResult | None, str]:
    """The status of a turn, and how far it is."""
    try:
        result = await status()
    except UnknownTurnError:
        return None, _NOT_FOUND_YET
    except ServerUnavailableError as error:
        return None, str(error)
    if result.status != "pending":
        return result, f"its attempt {result.attempt} ended {result.status}, a later one has not finished"
    return result, "it is being processed; look at the worker's log, or wait longer"
