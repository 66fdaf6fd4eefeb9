"""Puts each stage together: what it reads, does and writes."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from time import monotonic

from mnemolog.projections.rebuild.log_source import TableLogSource
from mnemolog.projections.stores.journal import Journal
from mnemolog.projections.write.projector import Projector
from mnemolog.schemas.envelopes import EmbeddedFacts, ExtractedFacts, MatchedFacts
from mnemolog.schemas.provenance import Stage
from mnemolog.streams.kafka.app import StageApp, build_app
from mnemolog.streams.kafka.batch_window import BatchWindow
from mnemolog.streams.kafka.dead_letters import DeadLetterWriter
from mnemolog.streams.kafka.dedup import SeenOrigins
from mnemolog.streams.kafka.keyed_window import KeyedWindow
from mnemolog.streams.kafka.log_reader import KafkaLogReader
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
from mnemolog.streams.kafka.tuning import KafkaTuning
from mnemolog.streams.kafka.window import Window
from mnemolog.streams.runtime.decision_stages import DecisionStages
from mnemolog.streams.runtime.models import StageModels
from mnemolog.streams.runtime.read_your_writes import ReadYourWrites
from mnemolog.streams.runtime.watermark import Watermark
from mnemolog.streams.settings import StreamsSettings
from mnemolog.streams.stages.envelope import ended_envelope, envelope_reader
from mnemolog.streams.stages.extract import parse_source
from mnemolog.streams.stages.journal import JournalStage
from mnemolog.streams.stages.processor import I, O, StageDefinition, StageProcessor
from mnemolog.streams.stages.project import ProjectStage, start_offsets

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

    def partitions(self, stage: Stage) -> frozenset[int]:
        """The partitions that `stage` has now in this process."""
        return self._built[stage].assigned_partitions if stage in self._built else frozenset()

    def builder(self, stage: Stage) -> Callable[[], StageApp]:
        """A way to build the stage's App. Raises `ProviderConfigurationError` for a model that it cannot have."""
        self._resources.models.build_for(stage)
        topic, make_window = self._topic_and_window(stage)

        def build() -> StageApp:
            self._built[stage] = build_app(
                stage,
                topic,
                make_window,
                bootstrap=self._bootstrap,
                prefix=self._settings.topic_prefix,
                tuning=kafka_tuning(self._settings),
                start_offsets=start_offsets(
                    self._resources.projector, self._resources.kafka_log, self._resources.table_log
                )
                if stage == "project"
                else None,
            )
            return self._built[stage]

        return build

    def _topic_and_window(self, stage: Stage) -> tuple[Topic, Callable[[Sender], Window]]:
        match stage:
            case "journal":
                return CONVERSATION_TURNS, self._journal
            case "extract":
                return CONVERSATION_TURNS, self._extract
            case "embed":
                return EXTRACTED_FACTS, self._embed
            case "match":
                return EMBEDDED_FACTS, self._match
            case "resolve":
                return MATCHED_FACTS, self._resolve
            case "project":
                return MEMORY_EVENTS, self._project

    def _journal(self, _: Sender) -> Window:
        return self._batch_window(JournalStage(self._resources.journal, max_bytes=self._settings.max_turn_bytes))

    def _extract(self, sender: Sender) -> Window:
        definition = StageDefinition(
            stage="extract",
            topic=self._topic_name(EXTRACTED_FACTS),
            read=partial(
                parse_source, max_bytes=self._settings.max_turn_bytes, command_token=self._settings.command_token
            ),
            work=self._resources.stages.extract,
            finish=ended_envelope(ExtractedFacts),
        )
        return self._keyed_window(definition, sender)

    def _embed(self, sender: Sender) -> Window:
        definition = StageDefinition(
            stage="embed",
            topic=self._topic_name(EMBEDDED_FACTS),
            read=envelope_reader(ExtractedFacts),
            work=self._resources.stages.embed,
            finish=ended_envelope(EmbeddedFacts),
        )
        return self._keyed_window(definition, sender)

    def _match(self, sender: Sender) -> Window:
        definition = StageDefinition(
            stage="match",
            topic=self._topic_name(MATCHED_FACTS),
            read=envelope_reader(EmbeddedFacts),
            work=self._resources.stages.match,
            finish=ended_envelope(MatchedFacts),
        )
        return self._keyed_window(definition, sender)

    def _resolve(self, sender: Sender) -> Window:
        writes = ReadYourWrites(self._resources.watermark, self._resources.kafka_log.end_offset, lambda: window.epoch)
        resolver = self._resources.stages.build_resolver(writes.wait_until_projected)
        definition = StageDefinition(
            stage="resolve",
            topic=self._topic_name(MEMORY_EVENTS),
            read=envelope_reader(MatchedFacts),
            work=resolver,
            finish=resolver.finish,
            on_sent=lambda commit, sent: writes.record_commit(commit.owner, sent.partition, sent.offset),
        )
        window = self._keyed_window(definition, sender)
        return window

    def _project(self, _: Sender) -> Window:
        return self._batch_window(ProjectStage(self._resources.projector))

    def _keyed_window(self, definition: StageDefinition[I, O], sender: Sender) -> KeyedWindow:
        """One record of an owner at a time, processed as `definition` says."""
        dead_letters = DeadLetterWriter(sender, prefix=self._settings.topic_prefix, now=utc_now)
        return KeyedWindow(
            StageProcessor(definition, sender=sender, dead_letters=dead_letters, seen=SeenOrigins()),
            max_in_flight=self._settings.max_in_flight,
            max_pending=self._settings.max_pending,
            clock=monotonic,
        )

    def _batch_window(self, work: Callable[..., Awaitable[None]]) -> BatchWindow:
        return BatchWindow(
            work,
            max_records=BATCH_RECORDS,
            max_pending=max(self._settings.max_pending, 4 * BATCH_RECORDS),
            clock=monotonic,
        )

    def _topic_name(self, topic: Topic) -> str:
        return topic_name(topic, self._settings.topic_prefix)


def kafka_tuning(settings: StreamsSettings) -> KafkaTuning:
    return KafkaTuning(
        session_timeout=settings.session_timeout,
        heartbeat_interval=settings.heartbeat_interval,
        drain_timeout=settings.drain_grace,
        compression=None if settings.compression == "none" else settings.compression,
    )


def utc_now() -> datetime:
    return datetime.now(UTC)
