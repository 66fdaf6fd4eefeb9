"""From parts to stages: what each stage reads, does and writes, in one place."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from time import monotonic

from mnemolog.projections.journal import Journal
from mnemolog.projections.known import KnownFacts
from mnemolog.projections.log_source import TableLog
from mnemolog.projections.matching import Matcher
from mnemolog.projections.past import PastReader
from mnemolog.projections.policies import Policies
from mnemolog.projections.projector import Projector
from mnemolog.schemas.envelopes import EmbeddedFacts, ExtractedFacts, MatchedFacts
from mnemolog.schemas.provenance import Stage
from mnemolog.streams.app import StageApp, StageSpec, build_app
from mnemolog.streams.base_window import Window
from mnemolog.streams.batches import BatchWindow
from mnemolog.streams.dead_letters import DeadLetters
from mnemolog.streams.log_source import KafkaLog
from mnemolog.streams.models import Models
from mnemolog.streams.seen import Seen
from mnemolog.streams.send import Sender
from mnemolog.streams.settings import StreamsSettings, default_rules
from mnemolog.streams.stages.commanding import Commanding
from mnemolog.streams.stages.embed import Embedding, finish_embed
from mnemolog.streams.stages.extract import Extractor, finish_extract, read_source
from mnemolog.streams.stages.freshness import Freshness
from mnemolog.streams.stages.hop import Hop, I, O, Steps
from mnemolog.streams.stages.journal import Journalling
from mnemolog.streams.stages.limiting import Limiting
from mnemolog.streams.stages.match import Matching, finish_match
from mnemolog.streams.stages.project import Projecting, start_offsets
from mnemolog.streams.stages.reading import reader
from mnemolog.streams.stages.resolve import Resolver
from mnemolog.streams.standards import Standards
from mnemolog.streams.topics import (
    CONVERSATION_TURNS,
    EMBEDDED_FACTS,
    EXTRACTED_FACTS,
    MATCHED_FACTS,
    MEMORY_COMMANDS,
    MEMORY_EVENTS,
    Topic,
    topic_name,
)
from mnemolog.streams.tuning import KafkaTuning
from mnemolog.streams.watermark import Watermark
from mnemolog.streams.window import KeyedWindow

ALL_STAGES: tuple[Stage, ...] = ("journal", "extract", "embed", "match", "resolve", "project")
BATCH_RECORDS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What the stages of one process share."""

    journal: Journal
    matcher: Matcher
    policies: Policies
    limiting: Limiting
    known: KnownFacts
    past: PastReader
    projector: Projector
    models: Models
    turns: KafkaLog
    log: KafkaLog
    folded: TableLog
    watermark: Watermark


class Assembly:
    """Builds a stage's App, afresh at each call: a stopped App cannot be started again."""

    def __init__(self, settings: StreamsSettings, bootstrap: str, parts: Parts) -> None:
        self._settings = settings
        self._bootstrap = bootstrap
        self._parts = parts
        self._standards = Standards(settings, parts.policies)
        self._matching = Matching(parts.matcher, self._standards.thresholds_for, self._standards.rules_for)
        self._built: dict[Stage, StageApp] = {}

    def partitions(self, stage: Stage) -> frozenset[int]:
        """The partitions that `stage` has now in this process."""
        return self._built[stage].partitions if stage in self._built else frozenset()

    def builder(self, stage: Stage) -> Callable[[], StageApp]:
        """A way to build the stage's App. Raises `ProviderConfigurationError` for a model that it cannot have."""
        self._parts.models.prepare(stage)
        inputs, make_window = self._plan(stage)

        def build() -> StageApp:
            self._built[stage] = build_app(
                StageSpec(name=stage, inputs=inputs),
                make_window,
                bootstrap=self._bootstrap,
                prefix=self._settings.topic_prefix,
                tuning=tuning(self._settings),
                start_offsets=start_offsets(self._parts.projector, self._parts.log, self._parts.folded)
                if stage == "project"
                else None,
                end_of_first=self._parts.turns.end_offset if len(inputs) > 1 else None,
            )
            return self._built[stage]

        return build

    def _plan(self, stage: Stage) -> tuple[tuple[Topic, ...], Callable[[Sender], Window]]:
        match stage:
            case "journal":
                return (CONVERSATION_TURNS,), self._journal
            case "extract":
                return (CONVERSATION_TURNS, MEMORY_COMMANDS), self._extract
            case "embed":
                return (EXTRACTED_FACTS,), self._embed
            case "match":
                return (EMBEDDED_FACTS,), self._match
            case "resolve":
                return (MATCHED_FACTS,), self._resolve
            case "project":
                return (MEMORY_EVENTS,), self._project

    def _journal(self, _: Sender) -> Window:
        return self._batches(Journalling(self._parts.journal, max_bytes=self._settings.max_turn_bytes))

    def _extract(self, sender: Sender) -> Window:
        steps = Steps(
            stage="extract",
            topic=self._name(EXTRACTED_FACTS),
            read=partial(read_source, max_bytes=self._settings.max_turn_bytes, commands=self._name(MEMORY_COMMANDS)),
            work=Extractor(
                self._parts.models.chat,
                categories=self._settings.categories,
                rules_for=self._standards.rules_for,
                precheck=self._parts.limiting.precheck,
            ),
            finish=finish_extract,
        )
        return self._hop(steps, sender)

    def _embed(self, sender: Sender) -> Window:
        steps = Steps(
            stage="embed",
            topic=self._name(EMBEDDED_FACTS),
            read=reader(ExtractedFacts),
            work=Embedding(self._parts.models.embedder, self._standards.thresholds_for),
            finish=finish_embed,
        )
        return self._hop(steps, sender)

    def _match(self, sender: Sender) -> Window:
        steps = Steps(
            stage="match",
            topic=self._name(MATCHED_FACTS),
            read=reader(EmbeddedFacts),
            work=self._matching,
            finish=finish_match,
        )
        return self._hop(steps, sender)

    def _resolve(self, sender: Sender) -> Window:
        freshness = Freshness(self._parts.watermark, self._parts.log.end_offset, lambda: window.epoch)
        resolver = Resolver(
            matcher=self._parts.matcher,
            matching=self._matching,
            model=self._parts.models.chat,
            embedder=self._parts.models.embedder,
            freshness=freshness,
            thresholds_for=self._standards.thresholds_for,
            configured=default_rules(self._settings),
            rules_for=self._standards.rules_for,
            limiting=self._parts.limiting,
            commanding=Commanding(known=self._parts.known, past=self._parts.past, clock=now),
            lookups=self._parts.known,
            clock=now,
        )
        steps = Steps(
            stage="resolve",
            topic=self._name(MEMORY_EVENTS),
            read=reader(MatchedFacts),
            work=resolver,
            finish=resolver.finish,
            sent=lambda commit, sent: freshness.committed(commit.owner, sent.partition, sent.offset),
        )
        window = self._hop(steps, sender)
        return window

    def _project(self, _: Sender) -> Window:
        return self._batches(Projecting(self._parts.projector))

    def _hop(self, steps: Steps[I, O], sender: Sender) -> KeyedWindow:
        """One record of an owner at a time, read, worked on and sent as `steps` say."""
        dead_letters = DeadLetters(sender, prefix=self._settings.topic_prefix, now=now)
        return KeyedWindow(
            Hop(steps, sender=sender, dead_letters=dead_letters, seen=Seen()),
            max_in_flight=self._settings.max_in_flight,
            max_pending=self._settings.max_pending,
            clock=monotonic,
        )

    def _batches(self, work: Callable[..., Awaitable[None]]) -> BatchWindow:
        return BatchWindow(
            work,
            max_records=BATCH_RECORDS,
            max_pending=max(self._settings.max_pending, 4 * BATCH_RECORDS),
            clock=monotonic,
        )

    def _name(self, topic: Topic) -> str:
        return topic_name(topic, self._settings.topic_prefix)


def tuning(settings: StreamsSettings) -> KafkaTuning:
    return KafkaTuning(
        session_timeout=settings.session_timeout,
        heartbeat=settings.heartbeat_interval,
        grace=settings.drain_grace,
        max_in_flight=settings.max_in_flight,
        max_pending=settings.max_pending,
        compression=None if settings.compression == "none" else settings.compression,
    )


def now() -> datetime:
    return datetime.now(UTC)
