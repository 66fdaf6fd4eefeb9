"""From parts to stages: what each stage reads, does and writes, in one place."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from time import monotonic

from mnemolog.projections.rebuild.log_source import TableLogSource
from mnemolog.projections.stores.candidates import CandidateFinder
from mnemolog.projections.stores.event_history import EventHistoryStore
from mnemolog.projections.stores.facts import FactStore
from mnemolog.projections.stores.journal import Journal
from mnemolog.projections.stores.policies import PolicyStore
from mnemolog.projections.write.projector import Projector
from mnemolog.schemas.envelopes import EmbeddedFacts, ExtractedFacts, MatchedFacts
from mnemolog.schemas.provenance import Stage
from mnemolog.streams.commands.handler import CommandHandler
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
from mnemolog.streams.resolution.limits import LimitEnforcer
from mnemolog.streams.runtime.effective_settings import EffectiveSettings
from mnemolog.streams.runtime.models import StageModels
from mnemolog.streams.runtime.read_your_writes import ReadYourWrites
from mnemolog.streams.runtime.watermark import Watermark
from mnemolog.streams.settings import StreamsSettings, default_rules
from mnemolog.streams.stages.embed import EmbedStage, finish_embed
from mnemolog.streams.stages.extract import ExtractStage, finish_extract, parse_source
from mnemolog.streams.stages.journal import JournalStage
from mnemolog.streams.stages.match import MatchStage, finish_match
from mnemolog.streams.stages.processor import I, O, StageDefinition, StageProcessor
from mnemolog.streams.stages.project import ProjectStage, start_offsets
from mnemolog.streams.stages.received import envelope_reader
from mnemolog.streams.stages.resolve import ResolveStage

ALL_STAGES: tuple[Stage, ...] = ("journal", "extract", "embed", "match", "resolve", "project")
BATCH_RECORDS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedResources:
    """What the stages of one process share."""

    journal: Journal
    matcher: CandidateFinder
    policies: PolicyStore
    limiting: LimitEnforcer
    known_facts: FactStore
    event_history: EventHistoryStore
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
        self._standards = EffectiveSettings(settings, resources.policies)
        self._matching = MatchStage(resources.matcher, self._standards.thresholds_for, self._standards.rules_for)
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
        steps = StageDefinition(
            stage="extract",
            topic=self._topic_name(EXTRACTED_FACTS),
            read=partial(
                parse_source, max_bytes=self._settings.max_turn_bytes, command_token=self._settings.command_token
            ),
            work=ExtractStage(
                self._resources.models.chat,
                categories=self._settings.categories,
                rules_for=self._standards.rules_for,
                precheck=self._resources.limiting.precheck,
            ),
            finish=finish_extract,
        )
        return self._keyed_window(steps, sender)

    def _embed(self, sender: Sender) -> Window:
        steps = StageDefinition(
            stage="embed",
            topic=self._topic_name(EMBEDDED_FACTS),
            read=envelope_reader(ExtractedFacts),
            work=EmbedStage(self._resources.models.embedder, self._standards.thresholds_for),
            finish=finish_embed,
        )
        return self._keyed_window(steps, sender)

    def _match(self, sender: Sender) -> Window:
        steps = StageDefinition(
            stage="match",
            topic=self._topic_name(MATCHED_FACTS),
            read=envelope_reader(EmbeddedFacts),
            work=self._matching,
            finish=finish_match,
        )
        return self._keyed_window(steps, sender)

    def _resolve(self, sender: Sender) -> Window:
        freshness = ReadYourWrites(
            self._resources.watermark, self._resources.kafka_log.end_offset, lambda: window.epoch
        )
        resolver = ResolveStage(
            matcher=self._resources.matcher,
            match_stage=self._matching,
            model=self._resources.models.chat,
            embedder=self._resources.models.embedder,
            read_your_writes=freshness,
            thresholds_for=self._standards.thresholds_for,
            default_rules=default_rules(self._settings),
            rules_for=self._standards.rules_for,
            limits=self._resources.limiting,
            handle_command=CommandHandler(
                known=self._resources.known_facts, event_history=self._resources.event_history, clock=utc_now
            ),
            lookups=self._resources.known_facts,
            clock=utc_now,
        )
        steps = StageDefinition(
            stage="resolve",
            topic=self._topic_name(MEMORY_EVENTS),
            read=envelope_reader(MatchedFacts),
            work=resolver,
            finish=resolver.finish,
            on_sent=lambda commit, sent: freshness.record_commit(commit.owner, sent.partition, sent.offset),
        )
        window = self._keyed_window(steps, sender)
        return window

    def _project(self, _: Sender) -> Window:
        return self._batch_window(ProjectStage(self._resources.projector))

    def _keyed_window(self, steps: StageDefinition[I, O], sender: Sender) -> KeyedWindow:
        """One record of an owner at a time, read, worked on and sent as `steps` say."""
        dead_letters = DeadLetterWriter(sender, prefix=self._settings.topic_prefix, now=utc_now)
        return KeyedWindow(
            StageProcessor(steps, sender=sender, dead_letters=dead_letters, seen=SeenOrigins()),
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
