"""What each stage reads, does and writes, and the windows in which a process runs it."""

from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from mnemolog.projections.rebuild.log_source import TableLogSource
from mnemolog.projections.stores.journal import Journal
from mnemolog.projections.write.projector import Projector
from mnemolog.schemas.command import Command
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.envelopes import EmbeddedFacts, ExtractedFacts, MatchedFacts
from mnemolog.schemas.provenance import Stage
from mnemolog.streams.kafka.dead_letters import DeadLetterWriter
from mnemolog.streams.kafka.dedup import SeenOrigins
from mnemolog.streams.kafka.log_reader import KafkaLogReader
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.sender import Sender
from mnemolog.streams.kafka.topics import (
    CHAINED_BEHIND,
    CONVERSATION_TURNS,
    EMBEDDED_FACTS,
    EXTRACTED_FACTS,
    MATCHED_FACTS,
    MEMORY_EVENTS,
    Topic,
    command_headers,
    topic_name,
)
from mnemolog.streams.kafka.window import Window
from mnemolog.streams.kafka.windows.keyed_window import KeyedWindow
from mnemolog.streams.kafka.windows.state import KeyState
from mnemolog.streams.runtime.decision_stages import DecisionStages, E
from mnemolog.streams.runtime.models import StageModels
from mnemolog.streams.runtime.read_your_writes import ReadYourWrites, Watermark
from mnemolog.streams.settings import StreamsSettings
from mnemolog.streams.shared_calls.call_wait import CallWait
from mnemolog.streams.stages.envelope import ReceivedEnvelope, ended_envelope, envelope_reader
from mnemolog.streams.stages.extract import ParsedSource, has_asked_model, parse_source, turns_behind
from mnemolog.streams.stages.failure_budget import FailureBudgets
from mnemolog.streams.stages.journal import JournalStage
from mnemolog.streams.stages.processor import I, StageDefinition, StageProcessor
from mnemolog.streams.stages.project import ProjectStage, checked_end
from mnemolog.streams.stages.rekey import rekeying

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
