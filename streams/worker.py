"""A worker: some or all stages in one process and event loop, over one pool and one set of models."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import structlog

from mnemolog.projections.journal import Journal
from mnemolog.projections.known import KnownFacts
from mnemolog.projections.limits import Reservations
from mnemolog.projections.log_source import TableLog
from mnemolog.projections.matching import Matcher
from mnemolog.projections.past import PastReader
from mnemolog.projections.policies import Policies
from mnemolog.projections.pools import Pool, open_pool
from mnemolog.projections.projector import Projector
from mnemolog.projections.query_errors import LogUnreadableError
from mnemolog.projections.replies import Replies
from mnemolog.schemas.provenance import Stage
from mnemolog.streams import metrics
from mnemolog.streams.assembly import ALL_STAGES, Assembly, Parts, now
from mnemolog.streams.errors import StartRefused
from mnemolog.streams.log_source import KafkaLog
from mnemolog.streams.metrics_server import serve_metrics
from mnemolog.streams.models import Models
from mnemolog.streams.quality_watch import watch_quality
from mnemolog.streams.runner import Supervision, run_apps
from mnemolog.streams.settings import StreamsSettings
from mnemolog.streams.stages.limiting import Limiting
from mnemolog.streams.stages.project import lag
from mnemolog.streams.timer import run_timer
from mnemolog.streams.topics import CONVERSATION_TURNS
from mnemolog.streams.watermark import Watermark

log = structlog.get_logger(__name__)

Work = Coroutine[Any, Any, None]

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
        _tables(settings, settings.postgres) as pool,
        _matching(settings, settings.postgres) as matching,
        _parts(settings, settings.kafka, pool, matching) as parts,
    ):
        assembly = Assembly(settings, settings.kafka, parts)
        builders = [assembly.builder(stage) for stage in ALL_STAGES if stage in stages]
        report = WorkerReport(stages=tuple(stages), metrics_url=metrics_url)
        log.info("worker_starting", stages=list(stages), metrics_url=metrics_url)
        async with _background(
            _announce(report, ready, on_ready),
            _purge(Replies(pool), timedelta(days=settings.reply_retention_days)),
            *_chores(settings, stages, pool, parts, assembly),
        ):
            await run_apps(
                builders,
                stop,
                ready=ready,
                supervision=Supervision(stalled_after=settings.watchdog),
            )
        log.info("worker_stopped", stages=list(stages))


def _tables(settings: StreamsSettings, postgres: str) -> Pool:
    return open_pool(
        postgres,
        min_size=1,
        max_size=settings.postgres_pool_size - _for_matching(settings),
        application_name="mnemolog-worker",
        statement_timeout=settings.postgres_statement_timeout,
        autocommit=True,
    )


def _matching(settings: StreamsSettings, postgres: str) -> Pool:
    """Connections of their own for candidates, whose query takes longer to plan than to run in most scopes.

    The setting that spares the planning is a connection's, and would make others slower: those of a range of times.
    """
    return open_pool(
        postgres,
        min_size=0,
        max_size=_for_matching(settings),
        application_name="mnemolog-matching",
        statement_timeout=settings.postgres_statement_timeout,
        autocommit=True,
        generic_plans=True,
    )


def _for_matching(settings: StreamsSettings) -> int:
    """Part of the connections that a process may hold; a lookup takes about a millisecond."""
    return max(1, settings.postgres_pool_size // 4)


@asynccontextmanager
async def _parts(settings: StreamsSettings, kafka: str, pool: Pool, matching: Pool) -> AsyncIterator[Parts]:
    projector, known = Projector(pool), KnownFacts(pool)
    parts = Parts(
        journal=Journal(pool),
        matcher=Matcher(matching, limit=settings.candidates),
        policies=Policies(pool),
        limiting=Limiting(Reservations(pool)),
        known=known,
        past=PastReader(pool, known),
        projector=projector,
        models=Models(settings, Replies(pool)),
        turns=KafkaLog(kafka, topic=CONVERSATION_TURNS, prefix=settings.topic_prefix),
        log=KafkaLog(kafka, prefix=settings.topic_prefix),
        folded=TableLog(pool),
        watermark=Watermark(projector.next_offsets),
    )
    try:
        yield parts
    finally:
        for part in (parts.watermark, parts.models, parts.turns, parts.log):
            await part.close()


def _chores(
    settings: StreamsSettings, stages: Sequence[Stage], pool: Pool, parts: Parts, assembly: Assembly
) -> Iterator[Work]:
    """What runs beside the stages that it belongs to."""
    if "project" in stages:
        yield _watch_lag(parts)
        yield watch_quality(pool, now)
    if "resolve" in stages:
        yield run_timer(settings, parts.known, partitions=partial(assembly.partitions, "resolve"), clock=now)


@asynccontextmanager
async def _background(*works: Work) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(_told(work)) for work in works]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _told(work: Work) -> None:
    """No stage waits for what runs in the background, so nobody else would hear of its fault."""
    try:
        await work
    except Exception:
        log.exception("background_work_failed")
        raise


async def _announce(
    report: WorkerReport, ready: Mapping[str, bool], on_ready: Callable[[WorkerReport], None] | None
) -> None:
    while not all(ready.values()):  # noqa: ASYNC110 -- the runner keeps a mapping, for /health as well
        await asyncio.sleep(READY_POLL_SECONDS)
    log.info("worker_ready", stages=list(report.stages), metrics_url=report.metrics_url)
    if on_ready is not None:
        on_ready(report)


async def _watch_lag(parts: Parts) -> None:
    """Show how far the tables are behind the log."""
    while True:
        try:
            for partition, behind in (await lag(parts.projector, parts.log)).items():
                metrics.PROJECTION_LAG.labels(partition=partition).set(behind)
        except LogUnreadableError as error:
            log.warning("lag_unknown", error=str(error))
        await asyncio.sleep(LAG_SECONDS)


async def _purge(replies: Replies, retention: timedelta) -> None:
    """Forget replies that no re-delivery can ask for any more."""
    while True:
        purged = await replies.purge(now() - retention)
        if purged:
            log.info("replies_purged", count=purged)
        await asyncio.sleep(PURGE_SECONDS)
