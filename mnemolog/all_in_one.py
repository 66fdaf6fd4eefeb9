"""`mnemolog up`: embedded servers where none are set, topics, tables and all stages in one process.

The servers start while the packages of the stages are imported: both take long.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mnemolog.client.discovery import ServerAddresses, check_addresses, discovery_file
from mnemolog.embedded.data_folder import is_free
from mnemolog.embedded.jars import Progress
from mnemolog.embedded.stack import EmbeddedStack
from mnemolog.errors import SettingsError
from mnemolog.extras import is_installed
from mnemolog.settings import Settings

if TYPE_CHECKING:
    from mnemolog.streams.llm.ports import Problems
    from mnemolog.streams.runtime.worker import WorkerReport

EMBEDDED_PARTITIONS: Final = 4
DRAIN_SECONDS_WITHOUT_SERVER: Final = 15.0
"""Seconds the stages get to end after a server has ended by itself."""
STAGES_STEP: Final = "starting the stages"

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
    Raises `SettingsError` before anything starts, and later `EmbeddedError`, `StartRefused` and
    `ServerUnavailableError`; nothing is left running then.
    """
    check_before_start(settings)
    start = _Start(settings, progress or (lambda *_: None))
    with suppress(StopRequested):
        async with AsyncExitStack() as held:
            running, stack = await held.enter_async_context(start.servers(stop, test=test))
            problems = await cancel_on_stop(stop, start.loading)
            http_url = await held.enter_async_context(_http_server(running))

            def on_ready(report: "WorkerReport") -> None:
                start.progress(STAGES_STEP, 1, 1)
                addresses = ServerAddresses(
                    kafka=running.kafka or "",
                    postgres=running.postgres or "",
                    topic_prefix=running.topic_prefix,
                    metrics_url=report.metrics_url,
                    http_url=http_url,
                    pid=os.getpid(),
                    partitions=running.partitions,
                )
                if stack:
                    held.enter_context(discovery_file(running.data_dir, addresses))
                announce(addresses)

            start.progress(STAGES_STEP, 0, 1)
            await _run_stages(running, stack, stop, on_ready, problems)


@asynccontextmanager
async def _http_server(settings: Settings) -> AsyncIterator[str | None]:
    """The HTTP server, where its packages are installed: without keys on a loopback address.

    It gets any free port where the usual one is taken.
    """
    if not is_installed("server-http"):
        yield None
        return
    from mnemolog.server.serve import is_loopback, serving  # noqa: PLC0415 - an extra

    any_port = "http_port" not in settings.model_fields_set
    async with serving(settings, without_keys=is_loopback(settings.http_host), any_port=any_port) as url:
        yield url


def check_before_start(settings: Settings) -> None:
    """Raise `SettingsError` for what would stop the start later: an address, a missing key, a taken port."""
    check_addresses(settings)
    asks_openai = "openai" in (settings.provider, settings.embedding_provider)
    if asks_openai and not (settings.base_url or settings.api_key or os.environ.get("OPENAI_API_KEY")):
        raise SettingsError(
            "the provider openai needs a key: set MNEMOLOG_API_KEY or OPENAI_API_KEY; a server of your own is named by "
            "MNEMOLOG_BASE_URL"
        )
    if "metrics_port" in settings.model_fields_set and settings.metrics_port:
        address = (settings.metrics_host, settings.metrics_port)
        try:
            socket.create_server(address).close()
        except OSError as error:
            why = os.strerror(error.errno or 0)
            raise SettingsError(
                f"metrics cannot be served on {address[0]}:{address[1]} ({why}): set MNEMOLOG_METRICS_PORT to another "
                "port, or to 0 for a free one; MNEMOLOG_METRICS_HOST is the address"
            ) from error


class _Start:
    """The steps up to the stages, each reported to `progress` when it begins and when it is done."""

    def __init__(self, settings: Settings, progress: Progress) -> None:
        self.progress = progress
        self._settings = settings
        self._admin = asyncio.create_task(asyncio.to_thread(import_module, "mnemolog.admin"))
        self.loading = asyncio.create_task(self._load())
        """Ends when all packages are imported and the model is loaded; gives which models fail."""

    @asynccontextmanager
    async def servers(self, stop: asyncio.Event, *, test: bool) -> AsyncIterator[tuple[Settings, EmbeddedStack | None]]:
        """The settings with the addresses of all servers, which have topics and tables.

        Metrics of embedded servers get any free port where the usual one is taken.
        """
        settings = self._settings
        if settings.kafka:
            await cancel_on_stop(stop, self._create_topics(settings.kafka))
        if settings.postgres:
            await cancel_on_stop(stop, self._migrate_tables(settings.postgres))
        if settings.kafka and settings.postgres:
            yield settings, None
            return
        stack = EmbeddedStack.start(
            settings.data_dir,
            kafka=not settings.kafka,
            postgres=not settings.postgres,
            test=test,
            progress=self.progress,
            prepare_kafka=self._create_topics,
            prepare_postgres=self._migrate_tables,
        )
        async with await cancel_on_stop(stop, stack) as running:
            update: dict[str, Any] = {
                "kafka": settings.kafka or running.bootstrap,
                "postgres": settings.postgres or running.postgres_url,
                "partitions": partitions_of(settings),
            }
            if "metrics_port" not in settings.model_fields_set and not is_free(settings.metrics_port):
                update["metrics_port"] = 0
            yield settings.model_copy(update=update), running

    async def _load(self) -> "Problems":
        with self._step("loading the model"):
            await self._admin
            await asyncio.to_thread(import_module, "mnemolog.streams.runtime.worker")
            from mnemolog.streams.runtime.models import (  # noqa: PLC0415 - now it takes no time
                failing_models,
                preload_models,
            )

            await asyncio.to_thread(preload_models, self._settings)
        return await failing_models(self._settings)

    async def _create_topics(self, kafka: str) -> None:
        await self._admin
        from mnemolog.admin import create_topics  # noqa: PLC0415 - as above

        with self._step("creating topics"):
            partitions = partitions_of(self._settings)
            settings = self._settings.model_copy(update={"kafka": kafka, "partitions": partitions})
            await create_topics(settings)

    async def _migrate_tables(self, postgres: str) -> None:
        await self._admin
        from mnemolog.admin import migrate_tables  # noqa: PLC0415 - as above

        with self._step("migrating tables"):
            await migrate_tables(self._settings.model_copy(update={"postgres": postgres}))

    @contextmanager
    def _step(self, name: str) -> Iterator[None]:
        self.progress(name, 0, 1)
        yield
        self.progress(name, 1, 1)


def partitions_of(settings: Settings) -> int:
    """The number of partitions: few for an embedded Kafka, unless one is set."""
    if settings.kafka or "partitions" in settings.model_fields_set:
        return settings.partitions
    return EMBEDDED_PARTITIONS


async def _run_stages(
    settings: Settings,
    stack: EmbeddedStack | None,
    stop: asyncio.Event,
    on_ready: "Callable[[WorkerReport], None]",
    failing: "Problems",
) -> None:
    """Run the stages until `stop`, or until a server ends by itself, which is raised."""
    from mnemolog.streams.runtime.worker import ALL_STAGES, run_worker  # noqa: PLC0415 - as above

    ending = asyncio.Event()
    worker = asyncio.create_task(run_worker(settings, ALL_STAGES, ending, on_ready=on_ready, failing=failing))
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


async def cancel_on_stop(stop: asyncio.Event, work: Awaitable[R]) -> R:
    """Await `work`; cancel it and raise `StopRequested` when `stop` is set first."""
    task = asyncio.ensure_future(work)
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
