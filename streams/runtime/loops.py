"""Runs what a worker does again and again beside its stages. An error ends one round, never the loop."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from aiokafka.errors import KafkaError  # type: ignore[import-untyped] # aiokafka ships no types
from psycopg import OperationalError
from psycopg_pool import PoolTimeout

from mnemolog.projections.logs import get_logger
from mnemolog.projections.rebuild.errors import LogUnreadableError
from mnemolog.projections.retry import growing_delay
from mnemolog.streams import metrics

FIRST_DELAY_SECONDS: Final = 5.0
MAX_DELAY_SECONDS: Final = 300.0
ROUND_SECONDS: Final = 600.0
UNAVAILABLE_ERRORS: Final = (KafkaError, OperationalError, PoolTimeout, LogUnreadableError, TimeoutError)
"""Errors of a server that is away: a warning without a traceback."""

log = get_logger(__name__)


async def _nothing() -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundLoop:
    """`run_round` is called every `interval` seconds, `close` once at the end. A round may take `ROUND_SECONDS`."""

    name: str
    interval: float
    run_round: Callable[[], Awaitable[object]]
    close: Callable[[], Awaitable[object]] = _nothing


async def run_loop(
    loop: BackgroundLoop,
    failing: MutableMapping[str, str],
    *,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> None:
    """Run rounds until cancelled. After a failed round the pause grows up to five minutes, or to the interval.

    `failing` has the error of a loop whose last round failed; the metric `background_failures` counts all.
    """
    delay, failures = growing_delay(FIRST_DELAY_SECONDS, max(MAX_DELAY_SECONDS, loop.interval)), 0
    try:
        while True:
            error = await _run_round(loop)
            if error is None:
                failures = 0
                failing.pop(loop.name, None)
            else:
                failures += 1
                failing[loop.name] = repr(error)
                metrics.BACKGROUND_FAILURES.labels(operation=loop.name).inc()
                unexpected = None if isinstance(error, UNAVAILABLE_ERRORS) else error
                log.warning(
                    "background_round_failed",
                    loop=loop.name,
                    failures=failures,
                    error=repr(error),
                    exc_info=unexpected,
                )
            await sleep(delay(failures) if failures else loop.interval)
    finally:
        await loop.close()


async def _run_round(loop: BackgroundLoop) -> BaseException | None:
    """The error of a round, if any. A cancellation that nobody asked this task for is one as well."""
    task = asyncio.current_task()
    try:
        async with asyncio.timeout(ROUND_SECONDS):
            await loop.run_round()
    except Exception as error:  # noqa: BLE001 -- whatever it is, the next round may succeed
        return error
    except asyncio.CancelledError as error:
        if task is None or task.cancelling():
            raise
        return error
    return None


@asynccontextmanager
async def running_loops(loops: Iterable[BackgroundLoop], failing: MutableMapping[str, str]) -> AsyncIterator[None]:
    """Run loops while the context lasts."""
    tasks = [asyncio.create_task(run_loop(loop, failing)) for loop in loops]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
