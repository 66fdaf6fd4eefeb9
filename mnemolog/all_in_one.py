"""`mnemolog up`: embedded servers where none are set, topics, tables and all stages in one process."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, TypeVar

from mnemolog.admin import create_topics, migrate_tables
from mnemolog.client.discovery import ServerAddresses, check_addresses, discovery_file
from mnemolog.embedded.data_folder import is_free
from mnemolog.embedded.jars import Progress
from mnemolog.embedded.stack import EmbeddedStack
from mnemolog.settings import Settings
from mnemolog.streams.runtime.wiring import ALL_STAGES
from mnemolog.streams.runtime.worker import WorkerReport, run_worker

EMBEDDED_PARTITIONS: Final = 4
DRAIN_SECONDS_WITHOUT_SERVER: Final = 15.0
"""Seconds the stages get to end after a server has ended by itself."""

R = TypeVar("R")


class StopRequested(Exception):  # noqa: N818 - not an error: the user stopped it
    """The stop came before the work was done."""


async def run_all_in_one(
    settings: Settings,
    *,
    stop: asyncio.Event,
    announce: Callable[[ServerAddresses], None],
    progress: Progress | None = None,
    test: bool = False,
) -> None:
    """Run everything until `stop` is set; then drain the stages and stop the servers, in this order.

    Kafka and Postgres are started only where `settings` name none. `announce` is called once all stages run.
    Raises `SettingsError`, `EmbeddedError`, `StartRefused`, `ServerUnavailableError`; nothing is left running then.
    """
    check_addresses(settings)
    try:
        async with AsyncExitStack() as held:
            running, stack = await held.enter_async_context(_servers(settings, stop, progress, test=test))
            await cancel_on_stop(stop, create_topics_and_tables(running))

            def on_ready(report: WorkerReport) -> None:
                addresses = ServerAddresses(
                    kafka=running.kafka or "",
                    postgres=running.postgres or "",
                    topic_prefix=running.topic_prefix,
                    metrics_url=report.metrics_url,
                    pid=os.getpid(),
                )
                if stack:
                    held.enter_context(discovery_file(running.data_dir, addresses))
                announce(addresses)

            await _run_stages(running, stack, stop, on_ready)
    except StopRequested:
        return


async def create_topics_and_tables(settings: Settings) -> None:
    """Create what is missing: topics and tables. Raises `StartRefused` and `ServerUnavailableError`."""
    await create_topics(settings, forward_commands=True)
    await migrate_tables(settings)


@asynccontextmanager
async def _servers(
    settings: Settings, stop: asyncio.Event, progress: Progress | None, *, test: bool
) -> AsyncIterator[tuple[Settings, EmbeddedStack | None]]:
    if settings.kafka and settings.postgres:
        yield settings, None
        return
    start = EmbeddedStack.start(
        settings.data_dir, kafka=not settings.kafka, postgres=not settings.postgres, test=test, progress=progress
    )
    async with await cancel_on_stop(stop, start) as stack:
        yield _embedded_settings(settings, stack), stack


def _embedded_settings(settings: Settings, stack: EmbeddedStack) -> Settings:
    """The settings with embedded servers: few partitions, and any free port where the usual one is taken."""
    update: dict[str, Any] = {"postgres": settings.postgres or stack.postgres_url}
    if not settings.kafka:
        update["kafka"] = stack.bootstrap
        if "partitions" not in settings.model_fields_set:
            update["partitions"] = EMBEDDED_PARTITIONS
    if "metrics_port" not in settings.model_fields_set and not is_free(settings.metrics_port):
        update["metrics_port"] = 0
    return settings.model_copy(update=update)


async def _run_stages(
    settings: Settings, stack: EmbeddedStack | None, stop: asyncio.Event, on_ready: Callable[[WorkerReport], None]
) -> None:
    """Run the stages until `stop`, or until a server ends by itself, which is raised."""
    ending = asyncio.Event()
    worker = asyncio.create_task(run_worker(settings, ALL_STAGES, ending, on_ready=on_ready))
    watch = asyncio.create_task(stack.watch() if stack else asyncio.Event().wait())
    stopped = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({worker, watch, stopped}, return_when=asyncio.FIRST_COMPLETED)
        ending.set()
        await asyncio.wait({worker}, timeout=DRAIN_SECONDS_WITHOUT_SERVER if watch.done() else None)
    finally:
        for task in (worker, watch, stopped):
            task.cancel()
        ends = await asyncio.gather(watch, worker, return_exceptions=True)
    for end in ends:
        if isinstance(end, Exception):
            raise end


async def cancel_on_stop(stop: asyncio.Event, coroutine: Coroutine[Any, Any, R]) -> R:
    """Run `coroutine`; cancel it and raise `StopRequested` when `stop` is set first."""
    task = asyncio.create_task(coroutine)
    stopped = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopped.cancel()
        task.cancel()
    try:
        return await task
    except asyncio.CancelledError:
        if stop.is_set():
            raise StopRequested from None
        raise
