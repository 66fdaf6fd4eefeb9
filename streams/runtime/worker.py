"""Runs the chosen stages in one process.

What each stage reads, through which window, what it writes, and the background tasks beside them.
"""

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Hashable,
    Mapping,
    MutableMapping,
    Sequence,
)
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from mnemolog.common.logs import get_logger
from mnemolog.projections.database import Pool, open_pool
from mnemolog.projections.rebuild.replay import TableLogSource
from mnemolog.projections.stores.turns import Journal, ReplyStore
from mnemolog.projections.write.projector import Projector
from mnemolog.schemas.command import Command
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.envelopes import EmbeddedFacts, ExtractedFacts, MatchedFacts
from mnemolog.schemas.provenance import Stage
from mnemolog.streams.errors import MixedLayouts, StageCrash, StartRefused
from mnemolog.streams.kafka.admin import connected_admin
from mnemolog.streams.kafka.app import KafkaTuning, StageApp, build_app
from mnemolog.streams.kafka.dead_letters import DeadLetterWriter
from mnemolog.streams.kafka.lag import StageLag, chaining_workers, group_members, stage_lags
from mnemolog.streams.kafka.readers import KafkaLogReader
from mnemolog.streams.kafka.record import KafkaRecord, SeenOrigins
from mnemolog.streams.kafka.sender import Sender
from mnemolog.streams.kafka.topics import (
    CHAINED_BEHIND,
    CONVERSATION_TURNS,
    EMBEDDED_FACTS,
    EXTRACTED_FACTS,
    MATCHED_FACTS,
    MEMORY_EVENTS,
    TOPICS,
    Topic,
    command_headers,
    group_id,
    topic_name,
)
from mnemolog.streams.kafka.window import KeyedWindow, KeyState, Window
from mnemolog.streams.runtime.background import background_loops, check_projected_offsets, running_loops
from mnemolog.streams.runtime.decision_stages import DecisionStages, E
from mnemolog.streams.runtime.metrics_server import Health, serve_metrics
from mnemolog.streams.runtime.models import StageModels
from mnemolog.streams.runtime.read_your_writes import ReadYourWrites, Watermark
from mnemolog.streams.runtime.supervisor import SupervisorSettings, run_stages
from mnemolog.streams.settings import StreamsSettings
from mnemolog.streams.stages.extract import ParsedSource, has_asked_model, parse_source, rekeying, turns_behind
from mnemolog.streams.stages.journal import JournalStage
from mnemolog.streams.stages.processor import (
    FailureBudgets,
    I,
    ReceivedEnvelope,
    StageDefinition,
    StageProcessor,
    ended_envelope,
    envelope_reader,
)
from mnemolog.streams.stages.project import ProjectStage, checked_end, start_offsets
from mnemolog.streams.stages.shared_calls import CallWait
from mnemolog.streams.stages.shared_lookups import SharedCandidateFinder, SharedPolicies

CHAINABLE: Final[tuple[Stage, ...]] = ("extract", *CHAINED_BEHIND)
"""The stages that one worker may chain, in the order of a turn's way: each hands its records on to the next."""
SOURCES: Final[Mapping[Stage, Topic]] = {
    "journal": CONVERSATION_TURNS,
    "extract": CONVERSATION_TURNS,
    "embed": EXTRACTED_FACTS,
    "match": EMBEDDED_FACTS,
    "resolve": MATCHED_FACTS,
    "project": MEMORY_EVENTS,
}
"""What each stage reads; those of a chain behind its first get their records in memory."""
BATCH_RECORDS: Final = 256
BATCHES_AT_ONCE: Final = 2
"""Of different partitions: while the database works on one batch, another is read and folded."""

Definition = StageDefinition[Any, Any]
RecordsBehind = Callable[[KafkaRecord, int, int, CallWait], Awaitable[Sequence[KafkaRecord]]]
"""`WaitingRecords.records_behind` of a record, with `enough` and `most`, once those are here that are sure to come."""


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


class StageWindows:
    """Makes windows, afresh at each call. Budgets of failures outlive them: a crash is to give no new ones."""

    def __init__(self, settings: StreamsSettings, resources: SharedResources) -> None:
        self._settings = settings
        self._resources = resources
        self._budgets = FailureBudgets()

    def build(self, chain: Sequence[Stage], sender: Sender) -> Window:
        """The window of the first of `chain`, from which records go on through those of the others."""
        resources, seen = self._resources, SeenOrigins()
        match chain[0]:
            case "journal":
                return self._batch_window(JournalStage(resources.journal, max_bytes=self._settings.max_turn_bytes))
            case "project":
                return self._batch_window(ProjectStage(resources.projector, on_written=resources.watermark.wake))
        last, *before = reversed(chain)
        window = self._keyed_window(last, sender, seen, None)
        for stage in before:
            window = self._keyed_window(stage, sender, seen, window)
        return window

    def _keyed_window(self, stage: Stage, sender: Sender, seen: SeenOrigins, next_window: Window | None) -> Window:
        """A window that works on one record of an owner at a time, and hands it on to `next_window` if there is one."""

        async def behind(record: KafkaRecord, enough: int, most: int, wait: CallWait) -> Sequence[KafkaRecord]:
            def has_arrived(behind: KeyState) -> bool:
                return behind.waiting >= enough or not behind.has_unread

            await window.waiting.linger(record, has_arrived, wait.arriving)
            return await window.waiting.records_behind(record, enough=enough, most=most, seconds=wait.linger)

        definition = self._definition(stage, sender, lambda: window.epoch, behind)
        if next_window is not None:
            definition = replace(definition, topic=None)
        dead_letters = DeadLetterWriter(sender, prefix=self._settings.topic_prefix)
        window = KeyedWindow(
            StageProcessor(definition, sender=sender, dead_letters=dead_letters, seen=seen, budgets=self._budgets),
            max_in_flight=self._settings.max_in_flight,
            max_pending=self._settings.max_pending,
            next_window=next_window,
        )
        return window

    def _definition(
        self, stage: Stage, sender: Sender, period: Callable[[], Hashable], behind: RecordsBehind
    ) -> Definition:
        stages = self._resources.stages
        match stage:
            case "extract":
                return self._extract(sender, behind)
            case "embed":
                return self._enriching(
                    stage, EMBEDDED_FACTS, envelope_reader(ExtractedFacts), stages.embed, EmbeddedFacts
                )
            case "match":
                return self._enriching(stage, MATCHED_FACTS, envelope_reader(EmbeddedFacts), stages.match, MatchedFacts)
            case "resolve":
                return self._resolve(sender, period)
        raise ValueError(f"{stage} works on batches")

    def _extract(self, sender: Sender, behind: RecordsBehind) -> Definition:
        settings, stages = self._settings, self._resources.stages
        topic = topic_name(CONVERSATION_TURNS, settings.topic_prefix)
        read = partial(parse_source, max_bytes=settings.max_turn_bytes, command_token=settings.command_token)

        async def extract(source: ParsedSource, record: KafkaRecord) -> ExtractedFacts:
            return await stages.extract(source, record, partial(turns_behind, read, partial(behind, record)))

        return self._enriching(
            "extract",
            EXTRACTED_FACTS,
            read,
            rekeying(extract, sender, topic=topic, partitions=settings.partitions),
            ExtractedFacts,
            shows_health=has_asked_model,
            before_retry=stages.forget_replies,
        )

    def _enriching(
        self,
        stage: Stage,
        output: Topic,
        read: Callable[[KafkaRecord], I],
        work: Callable[[I, KafkaRecord], Awaitable[E | None]],
        kind: type[E],
        **more: Any,
    ) -> Definition:
        """A stage whose output is an envelope of this kind; `more` is of its definition."""
        topic = topic_name(output, self._settings.topic_prefix)
        return StageDefinition(stage=stage, topic=topic, read=read, work=work, finish=ended_envelope(kind), **more)

    def _resolve(self, sender: Sender, period: Callable[[], Hashable]) -> Definition:
        end_offset = checked_end(self._resources.projector, self._resources.kafka_log)
        writes = ReadYourWrites(self._resources.watermark, end_offset, period)
        resolver = self._resources.stages.build_resolver(
            writes.wait_until_projected, partial(self._publish_command, sender)
        )
        read = envelope_reader(MatchedFacts)

        async def resolve(received: ReceivedEnvelope[MatchedFacts], record: KafkaRecord) -> Commit | None:
            return await resolver(received, record)

        return StageDefinition(
            stage="resolve",
            topic=topic_name(MEMORY_EVENTS, self._settings.topic_prefix),
            read=read,
            work=resolve,
            finish=resolver.finish,
            on_sent=lambda commit, sent: writes.record_commit(commit.owner, sent.partition, sent.offset),
        )

    async def _publish_command(self, sender: Sender, command: Command) -> None:
        topic = topic_name(CONVERSATION_TURNS, self._settings.topic_prefix)
        headers = command_headers(self._settings.command_token)
        await sender.send(topic, key=command.scope.key, value=command.to_bytes(), headers=headers)

    def _batch_window(self, work: Callable[[Sequence[KafkaRecord]], Awaitable[None]]) -> Window:
        max_pending = max(self._settings.max_pending, 4 * BATCH_RECORDS)
        return Window(
            work, max_records=BATCH_RECORDS, joins_keys=True, max_in_flight=BATCHES_AT_ONCE, max_pending=max_pending
        )


_KILLED: Final = "a killed one counts until its session has timed out"


async def check_layout(bootstrap: str, stages: Sequence[Stage], *, prefix: str = "") -> None:
    """Raise `MixedLayouts` where an App with these stages must not start; they are `CHAINABLE`, or one stage.

    Raises aiokafka's errors where no broker answers.
    """
    if len(stages) > 1:
        await _check_chain(bootstrap, prefix)
    elif stages[0] in CHAINABLE:
        await _check_single(bootstrap, prefix)


async def _check_chain(bootstrap: str, prefix: str) -> None:
    unread = [one for one in await stage_lags(bootstrap, prefix=prefix) if one.stage in CHAINED_BEHIND and one.lag]
    if unread:
        raise MixedLayouts(
            f"workers of single stages have left unread {_list(unread, prefix)}: this worker chains its stages, and "
            f"would never read them. Start `mnemolog worker {' '.join(CHAINED_BEHIND)} project` until these topics are "
            "read (`mnemolog status`), stop it, and start this worker again; or set MNEMOLOG_CHAIN=false everywhere"
        )
    async with connected_admin(bootstrap) as admin:
        alive = [stage for stage in CHAINED_BEHIND if await group_members(admin, group_id(stage, prefix))]
    if alive:
        raise MixedLayouts(
            f"workers run single stages ({', '.join(alive)}), and this one chains its stages: stop them first "
            f"({_KILLED}), or set MNEMOLOG_CHAIN=false everywhere"
        )


async def _check_single(bootstrap: str, prefix: str) -> None:
    """A chain leaves nothing unread between its stages, so that only a worker that chains now is in the way."""
    async with connected_admin(bootstrap) as admin:
        if not await chaining_workers(admin, prefix):
            return
    raise MixedLayouts(
        f"workers chain the stages {', '.join(CHAINABLE)}, and this one runs single stages: stop them first "
        f"({_KILLED}), or start this one with all of these stages and MNEMOLOG_CHAIN=true"
    )


def _list(unread: Sequence[StageLag], prefix: str) -> str:
    topics = {stage: topic_name(topic, prefix) for topic in TOPICS for stage in topic.consumers}
    return ", ".join(f"{one.lag} records of {topics[one.stage]} (read by {one.stage})" for one in unread)


ALL_STAGES: tuple[Stage, ...] = ("journal", "extract", "embed", "match", "resolve", "project")


class StageFactory:
    """Builds a stage's App, afresh at each call: a stopped App cannot be started again.

    `stages` are those of this process: with the setting `chain`, and all of `CHAINABLE` among them, the App of the
    first hands its records on to the others in memory.
    """

    def __init__(
        self,
        settings: StreamsSettings,
        bootstrap: str,
        resources: SharedResources,
        stages: Collection[Stage] = (),
    ) -> None:
        self._settings = settings
        self._bootstrap = bootstrap
        self._resources = resources
        self._chained = settings.chain and set(CHAINABLE) <= set(stages)
        later = CHAINABLE[1:] if self._chained else ()
        self.app_stages = tuple(stage for stage in ALL_STAGES if stage in stages and stage not in later)
        """The stages that have an App of their own."""
        self._windows = StageWindows(settings, resources)
        self._built: dict[Stage, StageApp] = {}

    def partitions(self, stage: Stage) -> frozenset[int]:
        """The partitions that `stage` has now in this process."""
        return self._built[stage].assigned_partitions if stage in self._built else frozenset()

    def written_offsets(self) -> dict[int, int]:
        """Per partition of the log, where this process's `project` has written up to since it was assigned."""
        app = self._built.get("project")
        return {partition: offset for (_, partition), offset in app.window.finished.items()} if app else {}

    async def crash(self, stage: Stage, error: StageCrash) -> None:
        """Have a stage of this process started again."""
        await self._built[stage].crash(error)

    def builder(self, stage: Stage) -> Callable[[], StageApp]:
        """A way to build the stage's App. Raises `ProviderConfigurationError` for a model that it cannot have."""
        settings, shared = self._settings, self._resources
        is_first = self._chained and stage == CHAINABLE[0]
        chain = CHAINABLE if is_first else (stage,)
        for one in chain:
            shared.models.build_for(one)
        offsets = start_offsets(shared.projector, shared.kafka_log, shared.table_log) if stage == "project" else None
        check = partial(check_layout, self._bootstrap, chain, prefix=settings.topic_prefix)
        tuning = KafkaTuning(
            session_timeout=settings.session_timeout,
            heartbeat_interval=settings.heartbeat_interval,
            drain_timeout=settings.drain_grace,
            compression=None if settings.compression == "none" else settings.compression,
        )

        def build() -> StageApp:
            app = build_app(
                stage,
                SOURCES[stage],
                partial(self._windows.build, chain),
                bootstrap=self._bootstrap,
                prefix=settings.topic_prefix,
                tuning=tuning,
                start_offsets=offsets,
                chain=chain,
                check_start=check,
            )
            self._built.update(dict.fromkeys(chain, app))
            return app

        return build


def utc_now() -> datetime:
    return datetime.now(UTC)


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
