"""Run the chosen stages in one process, and the background tasks that belong to them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, MutableMapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from mnemolog.projections.db.pools import Pool, open_pool
from mnemolog.projections.logs import get_logger
from mnemolog.projections.rebuild.log_source import TableLogSource
from mnemolog.projections.stores.journal import Journal
from mnemolog.projections.stores.replies import ReplyStore
from mnemolog.projections.write.projector import Projector
from mnemolog.schemas.provenance import Stage
from mnemolog.streams.errors import StartRefused
from mnemolog.streams.kafka.log_reader import KafkaLogReader
from mnemolog.streams.runtime.background import background_loops, check_projected_offsets
from mnemolog.streams.runtime.decision_stages import DecisionStages
from mnemolog.streams.runtime.health import Health
from mnemolog.streams.runtime.loops import running_loops
from mnemolog.streams.runtime.metrics_server import serve_metrics
from mnemolog.streams.runtime.models import StageModels
from mnemolog.streams.runtime.read_your_writes import Watermark
from mnemolog.streams.runtime.stage_windows import SharedResources
from mnemolog.streams.runtime.supervisor import SupervisorSettings, run_stages
from mnemolog.streams.runtime.wiring import StageFactory, utc_now
from mnemolog.streams.settings import StreamsSettings
from mnemolog.streams.stages.shared_lookups import SharedCandidateFinder, SharedPolicies

log = get_logger(__name__)

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
    prepare: Callable[[MutableMapping[str, str]], Coroutine[Any, Any, None]] | None = None,
) -> None:
    """Run `stages` until `stop` is set, then drain and return.

    `prepare` comes first, while `/health` shows what it waits for; a stop during it ends at once. Then topics and
    tables must exist. Raises `StartRefused` for what a person has to change first, and
    `ProviderConfigurationError` for a model that cannot be built. What fails later is retried or restarted.
    """
    if settings.kafka is None or settings.postgres is None:
        raise StartRefused("a worker needs MNEMOLOG_KAFKA and MNEMOLOG_POSTGRES")
    health = Health(stages=dict.fromkeys(stages, False))
    async with serve_metrics(settings.metrics_host, settings.metrics_port, health) as metrics_url:
        log.info("worker_starting", stages=list(stages), metrics_url=metrics_url)
        if prepare is None or await _finished_before(stop, prepare(health.waiting_for)):
            report = WorkerReport(stages=tuple(stages), metrics_url=metrics_url)
            announce = partial(_report_when_ready, report, health.stages, on_ready)
            await _run_prepared(settings, stages, stop, health, announce)
    log.info("worker_stopped", stages=list(stages))


async def _finished_before(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
    """Run `work`; whether it ended before `stop` was set, at which it is cancelled."""
    task, stopped = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            return False
        task.result()
        return True
    finally:
        for one in (task, stopped):
            one.cancel()
        await asyncio.gather(task, stopped, return_exceptions=True)


async def _run_prepared(
    settings: StreamsSettings,
    stages: Sequence[Stage],
    stop: asyncio.Event,
    health: Health,
    announce: Callable[[], Coroutine[Any, Any, None]],
) -> None:
    kafka = settings.kafka or ""
    matching_size = max(1, settings.postgres_pool_size // 4)  # a lookup takes about a millisecond
    size = settings.postgres_pool_size - matching_size
    async with (
        _open_pool(settings, "mnemolog-worker", min_size=1, max_size=size) as pool,
        # What compares vectors in large scopes takes no connection from the rest.
        _open_pool(settings, "mnemolog-matching", min_size=0, max_size=matching_size) as matching,
        _shared_resources(settings, kafka, pool, matching) as parts,
    ):
        assembly = StageFactory(settings, kafka, parts, stages)
        builders = {stage: assembly.builder(stage) for stage in assembly.app_stages}
        # Decisions under way wait for the projection of earlier ones of their owner.
        last = [build for stage, build in builders.items() if stage == "project"]
        first = [build for stage, build in builders.items() if stage != "project"]
        loops = background_loops(
            settings,
            stages,
            pool=pool,
            projector=parts.projector,
            log_reader=parts.kafka_log,
            partitions=partial(assembly.partitions, "resolve"),
            check_position=partial(
                check_projected_offsets, parts.projector, assembly.written_offsets, partial(assembly.crash, "project")
            ),
            on_projected=parts.watermark.wake,
            clock=utc_now,
        )
        supervision = SupervisorSettings(stall_timeout=settings.watchdog)
        async with (
            _running_in_background(announce()),
            running_loops(loops, health.failing),
        ):
            await run_stages(first, stop, last=last, ready=health.stages, settings=supervision)


def _open_pool(settings: StreamsSettings, application_name: str, *, min_size: int, max_size: int) -> Pool:
    return open_pool(
        settings.postgres or "",
        min_size=min_size,
        max_size=max_size,
        application_name=application_name,
        statement_timeout=settings.postgres_statement_timeout,
        autocommit=True,
        looks_up=True,
    )


@asynccontextmanager
async def _shared_resources(
    settings: StreamsSettings, kafka: str, pool: Pool, matching: Pool
) -> AsyncIterator[SharedResources]:
    projector, models = Projector(pool), StageModels(settings, ReplyStore(pool))
    finder, policies = SharedCandidateFinder(matching, limit=settings.candidates), SharedPolicies(pool)
    parts = SharedResources(
        journal=Journal(pool),
        stages=DecisionStages(pool, models, settings, clock=utc_now, finder=finder, policies=policies),
        projector=projector,
        models=models,
        kafka_log=KafkaLogReader(kafka, prefix=settings.topic_prefix),
        table_log=TableLogSource(pool),
        watermark=Watermark(projector.next_offsets),
    )
    try:
        yield parts
    finally:
        for part in (parts.watermark, parts.stages, parts.models, parts.kafka_log, finder, policies):
            await part.close()


@asynccontextmanager
async def _running_in_background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def _report_when_ready(
    report: WorkerReport, ready: Mapping[str, bool], on_ready: Callable[[WorkerReport], None] | None
) -> None:
    while not all(ready.values()):  # noqa: ASYNC110 -- the runner keeps a mapping, for /health as well
        await asyncio.sleep(READY_POLL_SECONDS)
    log.info("worker_ready", stages=list(report.stages), metrics_url=report.metrics_url)
    if on_ready is not None:
        on_ready(report)
