"""Puts each stage together: what it reads, does and writes."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from mnemolog.projections.rebuild.log_source import TableLogSource
from mnemolog.projections.stores.journal import Journal
from mnemolog.projections.write.projector import Projector
from mnemolog.schemas.envelopes import EmbeddedFacts, ExtractedFacts, MatchedFacts
from mnemolog.schemas.provenance import Stage
from mnemolog.streams.errors import StageCrash
from mnemolog.streams.kafka.app import KafkaTuning, StageApp, build_app
from mnemolog.streams.kafka.dead_letters import DeadLetterWriter
from mnemolog.streams.kafka.dedup import SeenOrigins
from mnemolog.streams.kafka.log_reader import KafkaLogReader
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.sender import Sender
from mnemolog.streams.kafka.topics import (
    CONVERSATION_TURNS,
    EMBEDDED_FACTS,
    EXTRACTED_FACTS,
    MATCHED_FACTS,
    MEMORY_EVENTS,
    Topic,
    topic_name,
)
from mnemolog.streams.kafka.window import KeyedWindow, Window
from mnemolog.streams.runtime.decision_stages import DecisionStages, E
from mnemolog.streams.runtime.models import StageModels
from mnemolog.streams.runtime.read_your_writes import ReadYourWrites, Watermark
from mnemolog.streams.settings import StreamsSettings
from mnemolog.streams.stages.envelope import ended_envelope, envelope_reader
from mnemolog.streams.stages.extract import has_asked_model, parse_source
from mnemolog.streams.stages.failure_budget import FailureBudgets
from mnemolog.streams.stages.journal import JournalStage
from mnemolog.streams.stages.processor import I, O, StageDefinition, StageProcessor
from mnemolog.streams.stages.project import ProjectStage, checked_end, start_offsets

ALL_STAGES: tuple[Stage, ...] = ("journal", "extract", "embed", "match", "resolve", "project")
BATCH_RECORDS = 256


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


class StageFactory:
    """Builds a stage's App, afresh at each call: a stopped App cannot be started again."""

    def __init__(self, settings: StreamsSettings, bootstrap: str, resources: SharedResources) -> None:
        self._settings = settings
        self._bootstrap = bootstrap
        self._resources = resources
        self._built: dict[Stage, StageApp] = {}
        self._budgets = FailureBudgets()  # not the App's: a crash is to give no new ones

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
        shared.models.build_for(stage)
        topic, make_window = self._topic_and_window(stage)
        offsets = start_offsets(shared.projector, shared.kafka_log, shared.table_log) if stage == "project" else None
        tuning = KafkaTuning(
            session_timeout=settings.session_timeout,
            heartbeat_interval=settings.heartbeat_interval,
            drain_timeout=settings.drain_grace,
            compression=None if settings.compression == "none" else settings.compression,
        )

        def build() -> StageApp:
            self._built[stage] = build_app(
                stage,
                topic,
                make_window,
                bootstrap=self._bootstrap,
                prefix=settings.topic_prefix,
                tuning=tuning,
                start_offsets=offsets,
            )
            return self._built[stage]

        return build

    def _topic_and_window(self, stage: Stage) -> tuple[Topic, Callable[[Sender], Window]]:
        """What the stage reads, and a way to make its window."""
        stages, max_bytes = self._resources.stages, self._settings.max_turn_bytes
        match stage:
            case "journal":
                journal = JournalStage(self._resources.journal, max_bytes=max_bytes)
                return CONVERSATION_TURNS, partial(self._batch_window, journal)
            case "extract":
                read = partial(parse_source, max_bytes=max_bytes, command_token=self._settings.command_token)
                window = self._enriching(
                    stage,
                    EXTRACTED_FACTS,
                    read,
                    stages.extract,
                    ExtractedFacts,
                    shows_health=has_asked_model,
                    before_retry=stages.forget_replies,
                )
                return CONVERSATION_TURNS, window
            case "embed":
                facts = envelope_reader(ExtractedFacts)
                return EXTRACTED_FACTS, self._enriching(stage, EMBEDDED_FACTS, facts, stages.embed, EmbeddedFacts)
            case "match":
                vectors = envelope_reader(EmbeddedFacts)
                return EMBEDDED_FACTS, self._enriching(stage, MATCHED_FACTS, vectors, stages.match, MatchedFacts)
            case "resolve":
                return MATCHED_FACTS, self._resolve
            case "project":
                return MEMORY_EVENTS, partial(self._batch_window, ProjectStage(self._resources.projector))

    def _enriching(
        self,
        stage: Stage,
        output: Topic,
        read: Callable[[KafkaRecord], I],
        work: Callable[[I, KafkaRecord], Awaitable[E]],
        kind: type[E],
        **more: Any,
    ) -> Callable[[Sender], Window]:
        """The window of a stage whose output is an envelope of this kind; `more` is of its definition."""
        topic = topic_name(output, self._settings.topic_prefix)
        finish = ended_envelope(kind)
        definition = StageDefinition(stage=stage, topic=topic, read=read, work=work, finish=finish, **more)
        return partial(self._keyed_window, definition)

    def _resolve(self, sender: Sender) -> Window:
        end_offset = checked_end(self._resources.projector, self._resources.kafka_log)
        writes = ReadYourWrites(self._resources.watermark, end_offset, lambda: window.epoch)
        resolver = self._resources.stages.build_resolver(writes.wait_until_projected)
        definition = StageDefinition(
            stage="resolve",
            topic=topic_name(MEMORY_EVENTS, self._settings.topic_prefix),
            read=envelope_reader(MatchedFacts),
            work=resolver,
            finish=resolver.finish,
            on_sent=lambda commit, sent: writes.record_commit(commit.owner, sent.partition, sent.offset),
        )
        window = self._keyed_window(definition, sender)
        return window

    def _keyed_window(self, definition: StageDefinition[I, O], sender: Sender) -> KeyedWindow:
        """One record of an owner at a time, processed as `definition` says."""
        dead_letters = DeadLetterWriter(sender, prefix=self._settings.topic_prefix)
        return KeyedWindow(
            StageProcessor(
                definition, sender=sender, dead_letters=dead_letters, seen=SeenOrigins(), budgets=self._budgets
            ),
            max_in_flight=self._settings.max_in_flight,
            max_pending=self._settings.max_pending,
        )

    def _batch_window(self, work: Callable[[Sequence[KafkaRecord]], Awaitable[None]], _: Sender) -> Window:
        max_pending = max(self._settings.max_pending, 4 * BATCH_RECORDS)
        return Window(work, max_records=BATCH_RECORDS, max_pending=max_pending)


def utc_now() -> datetime:
    return datetime.now(UTC)
