"""A worker: some or all stages in one process and event loop, over one pool and one set of models."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import structlog

from mnemolog.projections.db.pools import Pool, open_pool
from mnemolog.projections.queries.errors import LogUnreadableError
from mnemolog.projections.rebuild.log_source import TableLogSource
from mnemolog.projections.stores.candidates import CandidateFinder
from mnemolog.projections.stores.event_history import EventHistoryStore
from mnemolog.projections.stores.facts import FactStore
from mnemolog.projections.stores.journal import Journal
from mnemolog.projections.stores.limits import LimitReservations
from mnemolog.projections.stores.policies import PolicyStore
from mnemolog.projections.stores.replies import ReplyStore
from mnemolog.projections.write.projector import Projector
from mnemolog.schemas.provenance import Stage
from mnemolog.streams import metrics
from mnemolog.streams.errors import StartRefused
from mnemolog.streams.kafka.log_reader import KafkaLogReader
from mnemolog.streams.resolution.limits import LimitEnforcer
from mnemolog.streams.runtime.metrics_server import serve_metrics
from mnemolog.streams.runtime.models import StageModels
from mnemolog.streams.runtime.quality_metrics import export_quality_metrics
from mnemolog.streams.runtime.supervisor import SupervisorSettings, run_stages
from mnemolog.streams.runtime.timer import run_expiry_timer
from mnemolog.streams.runtime.watermark import Watermark
from mnemolog.streams.runtime.wiring import ALL_STAGES, SharedResources, StageFactory, utc_now
from mnemolog.streams.settings import StreamsSettings
from mnemolog.streams.stages.project import projection_lag

log = structlog.get_logger(__name__)

BackgroundTask = Coroutine[Any, Any, None]

READY_POLL_SECONDS = 0.1
PURGE_SECONDS = 3600.0
LAG_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerReport:
    """What a worker tells once all its stages take part in their groups."""

    stages: tuple[Stage, ...]
    metrics_url: str


async def run_worker(
    settings: StreamsSettings,
    stages: Sequence[Stage],
    stop: asyncio.Event,
    *,
    on_ready: Callable[[WorkerReport], None] | None = None,
) -> None:
    """Run `stages` until `stop` is set, then drain and return.

    Topics and tables must be there. Raises `StartRefused` for what a person has to mend first, and
    `ProviderConfigurationError` for models that cannot be had. What fails later is waited out or restarted.
    """
    if settings.kafka is None or settings.postgres is None:
        raise StartRefused("a worker needs MNEMOLOG_KAFKA and MNEMOLOG_POSTGRES")
    ready: dict[str, bool] = dict.fromkeys(stages, False)
    async with (
        serve_metrics(settings.metrics_host, settings.metrics_port, ready) as metrics_url,
        _main_pool(settings, settings.postgres) as pool,
        _matching_pool(settings, settings.postgres) as matching,
        _shared_resources(settings, settings.kafka, pool, matching) as parts,
    ):
        assembly = StageFactory(settings, settings.kafka, parts)
        builders = [assembly.builder(stage) for stage in ALL_STAGES if stage in stages]
        report = WorkerReport(stages=tuple(stages), metrics_url=metrics_url)
        log.info("worker_starting", stages=list(stages), metrics_url=metrics_url)
        async with _running_in_background(
            _report_when_ready(report, ready, on_ready),
            _purge_replies(ReplyStore(pool), timedelta(days=settings.reply_retention_days)),
            *_background_tasks(settings, stages, pool, parts, assembly),
        ):
            await run_stages(
                builders,
                stop,
                ready=ready,
                settings=SupervisorSettings(stall_timeout=settings.watchdog),
            )
        log.info("worker_stopped", stages=list(stages))


def _main_pool(settings: StreamsSettings, postgres: str) -> Pool:
    return open_pool(
        postgres,
        min_size=1,
        max_size=settings.postgres_pool_size - _matching_pool_size(settings),
        application_name="mnemolog-worker",
        statement_timeout=settings.postgres_statement_timeout,
        autocommit=True,
    )


def _matching_pool(settings: StreamsSettings, postgres: str) -> Pool:
    """Connections of their own for candidates, whose query takes longer to plan than to run in most scopes.

    The setting that spares the planning is a connection's, and would make others slower: those of a range of times.
    """
    return open_pool(
        postgres,
        min_size=0,
        max_size=_matching_pool_size(settings),
        application_name="mnemolog-matching",
        statement_timeout=settings.postgres_statement_timeout,
        autocommit=True,
        generic_plans=True,
    )


def _matching_pool_size(settings: StreamsSettings) -> int:
    """Part of the connections that a process may hold; a lookup takes about a millisecond."""
    return max(1, settings.postgres_pool_size // 4)


@asynccontextmanager
async def _shared_resources(
    settings: StreamsSettings, kafka: str, pool: Pool, matching: Pool
) -> AsyncIterator[SharedResources]:
    projector, known = Projector(pool), FactStore(pool)
    parts = SharedResources(
        journal=Journal(pool),
        matcher=CandidateFinder(matching, limit=settings.candidates),
        policies=PolicyStore(pool),
        limiting=LimitEnforcer(LimitReservations(pool)),
        known_facts=known,
        event_history=EventHistoryStore(pool, known),
        projector=projector,
        models=StageModels(settings, ReplyStore(pool)),
        kafka_log=KafkaLogReader(kafka, prefix=settings.topic_prefix),
        table_log=TableLogSource(pool),
        watermark=Watermark(projector.next_offsets),
    )
    try:
        yield parts
    finally:
        for part in (parts.watermark, parts.models, parts.kafka_log):
            await part.close()


def _background_tasks(
    settings: StreamsSettings, stages: Sequence[Stage], pool: Pool, parts: SharedResources, assembly: StageFactory
) -> Iterator[BackgroundTask]:
    """What runs beside the stages that it belongs to."""
    if "project" in stages:
        yield _watch_lag(parts)
        yield export_quality_metrics(pool, utc_now)
    if "resolve" in stages:
        yield run_expiry_timer(
            settings, parts.known_facts, partitions=partial(assembly.partitions, "resolve"), clock=utc_now
        )


@asynccontextmanager
async def _running_in_background(*works: BackgroundTask) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(_log_failure(work)) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _log_failure(work: BackgroundTask) -> None:
    """No stage waits for what runs in the background, so nobody else would hear of its fault."""
    try:
        await work
    except Exception:
        log.exception("background_work_failed")
        raise


async def _report_when_ready(
    report: WorkerReport, ready: Mapping[str, bool], on_ready: Callable[[WorkerReport], None] | None
) -> None:
    while not all(ready.values()):  # noqa: ASYNC110 -- the runner keeps a mapping, for /health as well
        await asyncio.sleep(READY_POLL_SECONDS)
    log.info("worker_ready", stages=list(report.stages), metrics_url=report.metrics_url)
    if on_ready is not None:
        on_ready(report)


async def _watch_lag(parts: SharedResources) -> None:
    """Show how far the tables are behind the log."""
    while True:
        try:
            for partition, behind in (await projection_lag(parts.projector, parts.kafka_log)).items():
                metrics.PROJECTION_LAG.labels(partition=partition).set(behind)
        except LogUnreadableError as error:
            log.warning("lag_unknown", error=str(error))
        await asyncio.sleep(LAG_SECONDS)


async def _purge_replies(replies: ReplyStore, retention: timedelta) -> None:
    """Forget replies that no re-delivery can ask for any more."""
    while True:
        purged = await replies.purge(utc_now() - retention)
        if purged:
            log.info("replies_purged", count=purged)
        await asyncio.sleep(PURGE_SECONDS)
