"""Runs the chosen stages in one process: from the settings to stages, windows and Apps, and the loops beside them."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterator, Mapping, MutableMapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from typing import Any, Final

from mnemolog.common.cancellation import cancel_all, first_of
from mnemolog.common.logs import get_logger
from mnemolog.projections.database import Pool, open_pool
from mnemolog.projections.rebuild.replay import TableLogSource
from mnemolog.projections.sql import queries
from mnemolog.projections.stores.facts import FactStore
from mnemolog.projections.stores.turns import Journal, ReplyStore
from mnemolog.projections.write.projector import Projector
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.envelopes import EmbeddedFacts, ExtractedFacts, MatchedFacts
from mnemolog.schemas.outcome import SourceOutcome
from mnemolog.schemas.provenance import Stage
from mnemolog.streams import metrics
from mnemolog.streams.errors import MixedLayouts, StageCrash, StartRefused
from mnemolog.streams.kafka import connected_admin
from mnemolog.streams.kafka.app import StageApp, build_app
from mnemolog.streams.kafka.dead_letters import DeadLetterWriter
from mnemolog.streams.kafka.lag import BacklogReader, chaining_workers, group_members, stage_lags
from mnemolog.streams.kafka.readers import KafkaLogReader
from mnemolog.streams.kafka.record import KafkaRecord, SeenOrigins
from mnemolog.streams.kafka.sender import Sender
from mnemolog.streams.kafka.topics import (
    CHAINED_BEHIND,
    CONVERSATION_TURNS,
    MEMORY_OUTCOMES,
    TOPICS,
    Topic,
    group_id,
    topic_name,
)
from mnemolog.streams.kafka.window import KeyedWindow, Window
from mnemolog.streams.kafka_address import KafkaAddress
from mnemolog.streams.llm.shared_prompt import CallTurn
from mnemolog.streams.runtime.decision_stages import DecisionStages, Stores
from mnemolog.streams.runtime.loops import (
    FIGURES,
    BackgroundLoop,
    Timer,
    check_projected_offsets,
    publish_command,
    running_loops,
    update_backlog,
    update_lag,
    update_quality_metrics,
)
from mnemolog.streams.runtime.metrics_server import Health, serve_metrics
from mnemolog.streams.runtime.models import StageModels
from mnemolog.streams.runtime.read_your_writes import ProjectionNotices, ReadYourWrites, Watermark
from mnemolog.streams.runtime.supervisor import run_stages
from mnemolog.streams.settings import StreamsSettings
from mnemolog.streams.stages.extract import ParsedSource, has_asked_model, leading_turns, parse_source, rekeying
from mnemolog.streams.stages.journal import JournalStage
from mnemolog.streams.stages.processor import (
    FailureBudgets,
    StageDefinition,
    StageProcessor,
    ended_envelope,
    envelope_reader,
)
from mnemolog.streams.stages.project import ProjectStage, checked_end, start_offsets
from mnemolog.streams.stages.shared_calls import CallWait

ALL_STAGES: Final[tuple[Stage, ...]] = ("journal", "extract", "embed", "match", "resolve", "project")
CHAINABLE: Final[tuple[Stage, ...]] = ("extract", *CHAINED_BEHIND)
"""The stages that one worker may chain, in the order of a turn's way: each hands its records on to the next."""
SOURCES: Final[Mapping[str, Topic]] = {stage: topic for topic in TOPICS for stage in topic.consumers}
"""What each stage reads; the later stages of a chain get their records in memory."""
OUTPUTS: Final = {stage: SOURCES[following] for stage, following in pairwise((*CHAINABLE, "project"))}
BATCH_RECORDS: Final = 256
BATCHES_AT_ONCE: Final = 2
"""Of different partitions: while the database works on one batch, another is read and folded."""
READY_POLL_SECONDS: Final = 0.05
PURGE_SECONDS: Final = 3600.0
LAG_SECONDS: Final = 5.0
BACKLOG_SECONDS: Final = 15.0
QUALITY_SECONDS: Final = 30.0
PROBLEM_SECONDS: Final = 3.0
POSITION_SECONDS: Final = 5.0

log = get_logger(__name__)


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerReport:
    """The stages of a worker, all members of their groups, and where its metrics are."""

    stages: tuple[Stage, ...]
    metrics_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedResources:
    """What the stages of one process share."""

    journal: Journal
    stages: DecisionStages
    projector: Projector
    models: StageModels
    kafka_log: KafkaLogReader
    table_log: TableLogSource
    watermark: Watermark


async def run_worker(
    settings: StreamsSettings,
    stages: Sequence[Stage],
    stop: asyncio.Event,
    *,
    on_ready: Callable[[WorkerReport], None] | None = None,
    prepare: Callable[[MutableMapping[str, str]], Coroutine[Any, Any, None]] | None = None,
    failing: Mapping[str, str] | None = None,
) -> None:
    """Run `stages` until `stop` is set, then drain and return.

    `failing` is what fails already. `prepare` comes first, while `/health` shows what it waits for; a stop during it
    ends at once. Then topics and tables must exist. Raises `StartRefused` for what a person has to change first, and
    `ProviderConfigurationError` for a model that cannot be built. What fails later is retried or restarted.
    """
    if settings.kafka is None or settings.postgres is None:
        raise StartRefused("a worker needs MNEMOLOG_KAFKA and MNEMOLOG_POSTGRES")
    health = Health(stages=dict.fromkeys(stages, False), failing=dict(failing or {}))
    async with serve_metrics(settings.metrics_host, settings.metrics_port, health) as metrics_url:
        report = WorkerReport(stages=tuple(stages), metrics_url=metrics_url)

        async def announce() -> None:
            while not all(health.stages.values()):  # noqa: ASYNC110 -- the runner keeps a mapping, for /health as well
                await asyncio.sleep(READY_POLL_SECONDS)
            log.info("worker_ready", stages=list(stages), metrics_url=metrics_url)
            if on_ready is not None:
                on_ready(report)

        log.info("worker_starting", stages=list(stages), metrics_url=metrics_url)
        if prepare is not None:
            await first_of(stop.wait(), prepare(health.waiting_for))
        if not stop.is_set():
            announcing = asyncio.create_task(announce())
            try:
                await _run_prepared(settings, stages, stop, health)
            finally:
                await cancel_all([announcing])
    log.info("worker_stopped", stages=list(stages))


async def _run_prepared(
    settings: StreamsSettings, stages: Sequence[Stage], stop: asyncio.Event, health: Health
) -> None:
    matching_size = max(1, settings.postgres_pool_size // 4)  # a lookup takes about a millisecond
    open_own_pool = partial(
        open_pool,
        settings.postgres or "",
        statement_timeout=settings.postgres_statement_timeout,
        autocommit=True,
        looks_up=True,
    )
    async with (
        open_own_pool(
            application_name="mnemolog-worker", min_size=1, max_size=settings.postgres_pool_size - matching_size
        ) as pool,
        # What compares vectors in large scopes takes no connection from the rest.
        open_own_pool(application_name="mnemolog-matching", min_size=0, max_size=matching_size) as matching,
        _shared_resources(settings, pool, matching, health) as shared,
    ):
        factory = StageFactory(settings, shared, stages)
        builders = {stage: factory.builder(stage) for stage in factory.app_stages}
        # Decisions under way wait for the projection of earlier ones of their owner.
        last = [build for stage, build in builders.items() if stage == "project"]
        first = [build for stage, build in builders.items() if stage != "project"]
        async with running_loops(background_loops(factory, stages, pool, health.failing), health.failing):
            await run_stages(first, stop, last=last, ready=health.stages, stall_timeout=settings.watchdog)


@asynccontextmanager
async def _shared_resources(
    settings: StreamsSettings, pool: Pool, matching: Pool, health: Health
) -> AsyncIterator[SharedResources]:
    projector = Projector(pool)
    journal = Journal(pool)
    models = StageModels(settings, ReplyStore(pool), health.failing, stored=await journal.stored_vectors())
    shared = SharedResources(
        journal=journal,
        stages=DecisionStages(Stores.of_pool(pool, settings, matching=matching), models, settings, clock=utc_now),
        projector=projector,
        models=models,
        kafka_log=KafkaLogReader(settings.kafka_address, prefix=settings.topic_prefix),
        table_log=TableLogSource(pool),
        watermark=Watermark(projector.next_offsets),
    )
    try:
        yield shared
    finally:
        for part in (shared.watermark, shared.stages, shared.models, shared.kafka_log):
            await part.close()


def background_loops(
    factory: "StageFactory", stages: Collection[Stage], pool: Pool, failing: Mapping[str, str]
) -> Iterator[BackgroundLoop]:
    """Everything that a worker with these `stages` does again and again beside them."""
    settings, shared = factory.settings, factory.shared
    worker, has_rows = f"{socket.gethostname()} {os.getpid()}", False

    async def write_problems() -> None:
        """What fails in this worker, for whoever waits for a turn; nothing while nothing fails."""
        nonlocal has_rows
        now = dict(failing)
        if now or has_rows:
            values = {"worker": worker, "parts": [*now], "problems": [*now.values()]}
            async with pool.connection() as connection:
                await connection.execute(queries("journal")["write_problems"], values)
            has_rows = bool(now)

    async def purge_replies() -> None:
        """Delete replies that are older than any turn that can still be delivered again."""
        purged = await ReplyStore(pool).purge(utc_now() - timedelta(days=settings.reply_retention_days))
        if purged:
            log.info("replies_purged", count=purged)

    async def check_position() -> None:
        await check_projected_offsets(shared.projector, factory.written_offsets, partial(factory.crash, "project"))

    yield BackgroundLoop("problems", PROBLEM_SECONDS, write_problems)
    yield BackgroundLoop("purge", PURGE_SECONDS, purge_replies)
    if "project" in stages:
        for figures in FIGURES:
            metrics.FIGURES_SUCCEEDED.labels(figures=figures)  # 0 until the first success
        backlog = BacklogReader(settings.kafka_address, prefix=settings.topic_prefix)
        yield BackgroundLoop("lag", LAG_SECONDS, lambda: update_lag(shared.projector, shared.kafka_log))
        yield BackgroundLoop("backlog", BACKLOG_SECONDS, lambda: update_backlog(backlog, utc_now), backlog.close)
        yield BackgroundLoop("quality", QUALITY_SECONDS, lambda: update_quality_metrics(pool, utc_now()))
        yield BackgroundLoop("position", POSITION_SECONDS, check_position)
    if "resolve" in stages:
        notices = ProjectionNotices(settings.postgres or "", shared.watermark.wake)
        yield BackgroundLoop("notices", 0, notices.listen)
        timer = Timer(settings, FactStore(pool), partitions=lambda: factory.partitions("resolve"))
        yield BackgroundLoop("timer", settings.expiry_interval, timer.run_sweep, timer.close)


class StageFactory:
    """Builds the Apps of a process: each with its window, or the windows of its chain, and the stages behind them.

    `stages` are those of this process: with the setting `chain`, and all of `CHAINABLE` among them, the App of the
    first hands its records on to the others in memory. Apps and windows are built afresh at each call, because a
    stopped App cannot be started again; the budgets of failures outlive them, so that a crash gives no new budget.
    """

    def __init__(self, settings: StreamsSettings, shared: SharedResources, stages: Collection[Stage]) -> None:
        self.settings = settings
        self.shared = shared
        self._budgets = FailureBudgets()
        self._chained = settings.chain and set(CHAINABLE) <= set(stages)
        later = CHAINABLE[1:] if self._chained else ()
        self.app_stages = tuple(stage for stage in ALL_STAGES if stage in stages and stage not in later)
        """The stages that have an App of their own."""
        self._built: dict[Stage, StageApp] = {}

    def partitions(self, stage: Stage) -> frozenset[int]:
        """The partitions that `stage` has now in this process."""
        return self._built[stage].assigned_partitions if stage in self._built else frozenset()

    def written_offsets(self) -> dict[int, int]:
        """Per partition of the log, where this process's `project` has written up to since it was assigned."""
        app = self._built.get("project")
        return {partition: offset for (_, partition), offset in app.window.finished.items()} if app else {}

    async def crash(self, stage: Stage, error: StageCrash) -> None:
        await self._built[stage].crash(error)

    def builder(self, stage: Stage) -> Callable[[], StageApp]:
        """A way to build the stage's App. Raises `ProviderConfigurationError` for a model that it cannot have."""
        settings, shared = self.settings, self.shared
        chain = CHAINABLE if self._chained and stage == CHAINABLE[0] else (stage,)
        for one in chain:
            shared.models.build_for(one)
        offsets = start_offsets(shared.projector, shared.kafka_log, shared.table_log) if stage == "project" else None

        def build() -> StageApp:
            app = build_app(
                stage,
                SOURCES[stage],
                partial(self._window, chain),
                settings,
                start_offsets=offsets,
                chain=chain,
                check_start=partial(check_layout, settings.kafka_address, chain, prefix=settings.topic_prefix),
            )
            self._built.update(dict.fromkeys(chain, app))
            return app

        return build

    def _window(self, chain: Sequence[Stage], sender: Sender) -> Window:
        """The window of the first of `chain`, from which records go on through those of the others."""
        if chain[0] in ("journal", "project"):
            return Window(
                JournalStage(self.shared.journal, max_bytes=self.settings.max_turn_bytes)
                if chain[0] == "journal"
                else ProjectStage(self.shared.projector, on_written=self.shared.watermark.wake),
                max_records=BATCH_RECORDS,
                joins_keys=True,
                max_in_flight=BATCHES_AT_ONCE,
                max_pending=max(self.settings.max_pending, 4 * BATCH_RECORDS),
            )
        seen, dead_letters = SeenOrigins(), DeadLetterWriter(sender, prefix=self.settings.topic_prefix)
        windows: dict[Stage, KeyedWindow] = {}
        following: KeyedWindow | None = None
        for stage in reversed(chain):
            topic = None if following else topic_name(OUTPUTS[stage], self.settings.topic_prefix)
            definition = self._definition(stage, topic, sender, partial(windows.__getitem__, stage))
            following = windows[stage] = KeyedWindow(
                StageProcessor(definition, sender, dead_letters, seen, self._budgets),
                max_in_flight=self.settings.max_in_flight,
                max_pending=self.settings.max_pending,
                next_window=following,
            )
        return windows[chain[0]]

    def _definition(
        self, stage: Stage, topic: str | None, sender: Sender, own_window: Callable[[], KeyedWindow]
    ) -> StageDefinition[Any, Any]:
        shared = self.shared
        match stage:
            case "extract":
                return self._extract(topic, sender, own_window)
            case "embed":
                return StageDefinition(
                    stage=stage,
                    topic=topic,
                    read=envelope_reader(ExtractedFacts),
                    work=shared.stages.embed,
                    finish=ended_envelope(EmbeddedFacts),
                )
            case "match":
                return StageDefinition(
                    stage=stage,
                    topic=topic,
                    read=envelope_reader(EmbeddedFacts),
                    work=shared.stages.match,
                    finish=ended_envelope(MatchedFacts),
                )
        end_offset = checked_end(shared.projector, shared.kafka_log)
        writes = ReadYourWrites(shared.watermark, end_offset, lambda: own_window().epoch)
        publish = partial(publish_command, self.settings, sender)
        resolver = shared.stages.build_resolver(writes.wait_until_projected, publish)
        return StageDefinition(
            stage=stage,
            topic=topic,
            read=envelope_reader(MatchedFacts),
            work=resolver,
            finish=resolver.finish,
            on_sent=lambda commit, sent: writes.record_commit(commit.owner, sent.partition, sent.offset),
            before_send=partial(publish_outcome, sender, topic_name(MEMORY_OUTCOMES, self.settings.topic_prefix)),
        )

    def _extract(
        self, topic: str | None, sender: Sender, own_window: Callable[[], KeyedWindow]
    ) -> StageDefinition[Any, Any]:
        settings, stages = self.settings, self.shared.stages
        read = partial(parse_source, max_bytes=settings.max_turn_bytes, command_token=settings.command_token)

        async def extract(source: ParsedSource, record: KafkaRecord) -> ExtractedFacts:
            async def waiting_turns(enough: int, most: int, wait: CallWait) -> Sequence[CallTurn | None]:
                records = await own_window().next_records(
                    record, enough=enough, most=most, arriving=wait.arriving, linger=wait.linger
                )
                return leading_turns(records, read)

            return await stages.extract(source, record, waiting_turns)

        turns = topic_name(CONVERSATION_TURNS, settings.topic_prefix)
        return StageDefinition(
            stage="extract",
            topic=topic,
            read=read,
            work=rekeying(extract, sender, topic=turns, partitions=settings.partitions),
            finish=ended_envelope(ExtractedFacts),
            shows_health=has_asked_model,
            before_retry=stages.forget_replies,
        )


async def publish_outcome(sender: Sender, topic: str, commit: Commit) -> None:
    """Tell who does not wait for a source that it did not do what it should, before the commit that says so."""
    outcome = SourceOutcome.of_commit(commit)
    if outcome is not None:
        await sender.send(topic, key=outcome.key, value=outcome.to_bytes())


async def check_layout(address: KafkaAddress, stages: Sequence[Stage], *, prefix: str = "") -> None:
    """Raise `MixedLayouts` where an App with these stages must not start; they are `CHAINABLE`, or one stage.

    Raises aiokafka's errors where no broker answers.
    """
    killed = "a killed one counts until its session has timed out"
    if len(stages) > 1:
        unread = [one for one in await stage_lags(address, prefix=prefix) if one.stage in CHAINED_BEHIND and one.lag]
        if unread:
            listed = ", ".join(
                f"{one.lag} records of {topic_name(SOURCES[one.stage], prefix)} (read by {one.stage})" for one in unread
            )
            raise MixedLayouts(
                f"workers of single stages have left unread {listed}: this worker chains its stages, and "
                f"would never read them. Start `mnemolog worker {' '.join(CHAINED_BEHIND)} project` until these topics "
                "are read (`mnemolog status`), stop it, and start this worker again; or set MNEMOLOG_CHAIN=false "
                "everywhere"
            )
        async with connected_admin(address) as admin:
            alive = [stage for stage in CHAINED_BEHIND if await group_members(admin, group_id(stage, prefix))]
        if alive:
            raise MixedLayouts(
                f"workers run single stages ({', '.join(alive)}), and this one chains its stages: stop them first "
                f"({killed}), or set MNEMOLOG_CHAIN=false everywhere"
            )
    elif stages[0] in CHAINABLE:
        # A chain leaves nothing unread between its stages: only a worker that chains now is in the way.
        async with connected_admin(address) as admin:
            if not await chaining_workers(admin, prefix):
                return
        raise MixedLayouts(
            f"workers chain the stages {', '.join(CHAINABLE)}, and this one runs single stages: stop them first "
            f"({killed}), or start this one with all of these stages and MNEMOLOG_CHAIN=true"
        )
