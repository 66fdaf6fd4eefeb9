"""Run the chosen stages in one process, and the background tasks that belong to them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from mnemolog.projections.db.pools import Pool, open_pool
from mnemolog.projections.logs import get_logger
from mnemolog.projections.rebuild.log_source import TableLogSource
from mnemolog.projections.stores.candidates import CandidateFinder
from mnemolog.projections.stores.facts import FactStore
from mnemolog.projections.stores.journal import Journal
from mnemolog.projections.stores.replies import ReplyStore
from mnemolog.projections.write.projector import Projector
from mnemolog.schemas.provenance import Stage
from mnemolog.streams.errors import StartRefused
from mnemolog.streams.kafka.backlog import BacklogReader
from mnemolog.streams.kafka.log_reader import KafkaLogReader
from mnemolog.streams.runtime.background import (
    export_backlog,
    export_lag,
    export_quality_metrics,
    purge_replies,
    run_expiry_timer,
)
from mnemolog.streams.runtime.decision_stages import DecisionStages
from mnemolog.streams.runtime.metrics_server import serve_metrics
from mnemolog.streams.runtime.models import StageModels
from mnemolog.streams.runtime.read_your_writes import Watermark
from mnemolog.streams.runtime.supervisor import SupervisorSettings, run_stages
from mnemolog.streams.runtime.wiring import ALL_STAGES, SharedResources, StageFactory, utc_now
from mnemolog.streams.settings import StreamsSettings

log = get_logger(__name__)

BackgroundTask = Coroutine[Any, Any, None]

READY_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerReport:
    """The stages of a worker, all members of their groups, and where its metrics are."""

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

    Topics and tables must exist. Raises `StartRefused` for what a person has to change first, and
    `ProviderConfigurationError` for a model that cannot be built. What fails later is retried or restarted.
    """
    if settings.kafka is None or settings.postgres is None:
        raise StartRefused("a worker needs MNEMOLOG_KAFKA and MNEMOLOG_POSTGRES")
    ready: dict[str, bool] = dict.fromkeys(stages, False)
    matching_size = max(1, settings.postgres_pool_size // 4)  # a lookup takes about a millisecond
    async with (
        serve_metrics(settings.metrics_host, settings.metrics_port, ready) as metrics_url,
        _open_pool(settings, "mnemolog-worker", settings.postgres_pool_size - matching_size) as pool,
        # A lookup of candidates takes longer to plan than to run; generic plans would make other queries slower.
        _open_pool(settings, "mnemolog-matching", matching_size, generic_plans=True) as matching,
        _shared_resources(settings, settings.kafka, pool, matching) as parts,
    ):
        assembly = StageFactory(settings, settings.kafka, parts)
        builders = [assembly.builder(stage) for stage in ALL_STAGES if stage in stages]
        report = WorkerReport(stages=tuple(stages), metrics_url=metrics_url)
        log.info("worker_starting", stages=list(stages), metrics_url=metrics_url)
        async with _running_in_background(
            _report_when_ready(report, ready, on_ready),
            purge_replies(ReplyStore(pool), timedelta(days=settings.reply_retention_days), utc_now),
            *_background_tasks(settings, stages, pool, parts, assembly),
        ):
            await run_stages(builders, stop, ready=ready, settings=SupervisorSettings(stall_timeout=settings.watchdog))
        log.info("worker_stopped", stages=list(stages))


def _open_pool(settings: StreamsSettings, application_name: str, size: int, *, generic_plans: bool = False) -> Pool:
    return open_pool(
        settings.postgres or "",
        min_size=0 if generic_plans else 1,
        max_size=size,
        application_name=application_name,
        statement_timeout=settings.postgres_statement_timeout,
        autocommit=True,
        generic_plans=generic_plans,
    )


@asynccontextmanager
async def _shared_resources(
    settings: StreamsSettings, kafka: str, pool: Pool, matching: Pool
) -> AsyncIterator[SharedResources]:
    projector, models = Projector(pool), StageModels(settings, ReplyStore(pool))
    finder = CandidateFinder(matching, limit=settings.candidates)
    parts = SharedResources(
        journal=Journal(pool),
        stages=DecisionStages(pool, models, settings, clock=utc_now, finder=finder),
        projector=projector,
        models=models,
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
    """The background tasks of `stages`."""
    if "project" in stages:
        yield export_lag(parts.projector, parts.kafka_log)
        yield export_backlog(BacklogReader(settings.kafka or "", prefix=settings.topic_prefix), utc_now)
        yield export_quality_metrics(pool, utc_now)
    if "resolve" in stages:
        yield run_expiry_timer(
            settings, FactStore(pool), partitions=partial(assembly.partitions, "resolve"), clock=utc_now
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
    try:
        await work
    except Exception:  # nothing awaits a background task, so its error is logged here
        log.exception("background_task_failed")
        raise


async def _report_when_ready(
    report: WorkerReport, ready: Mapping[str, bool], on_ready: Callable[[WorkerReport], None] | None
) -> None:
    while not all(ready.values()):  # noqa: ASYNC110 -- the runner keeps a mapping, for /health as well
        await asyncio.sleep(READY_POLL_SECONDS)
    log.info("worker_ready", stages=list(report.stages), metrics_url=report.metrics_url)
    if on_ready is not None:
        on_ready(report)
