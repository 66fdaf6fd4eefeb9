"""Envelopes between stages: decodes one, makes the next one, and ends a source early."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, Protocol, TypeVar

from mnemolog.schemas.admission import Refusal
from mnemolog.schemas.command import Command, Import
from mnemolog.schemas.envelopes import End, Envelope, ExtractedFacts
from mnemolog.schemas.errors import InvalidRecordError
from mnemolog.schemas.policy import LIMIT_ADVICE, LimitHit
from mnemolog.schemas.provenance import Origin, Step
from mnemolog.schemas.turn import Turn
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.stages.errors import SourceEndedError

E = TypeVar("E", bound=Envelope)


class StageInput(Protocol):
    """What a stage reads from a record: at least the envelope that names the source."""

    @property
    def envelope(self) -> Envelope: ...


@dataclass(frozen=True, slots=True)
class ReceivedEnvelope(Generic[E]):
    """An envelope; `fault` says why the bytes could not be decoded, then the envelope only names the record."""

    envelope: E
    fault: str | None = None

    def require_valid(self) -> E:
        """The envelope. Raises `SourceEndedError` for bytes that could not be decoded."""
        if self.fault is not None:
            raise SourceEndedError("not_a_record", self.fault)
        return self.envelope


def envelope_reader(kind: type[E]) -> Callable[[KafkaRecord], ReceivedEnvelope[E]]:
    """Read records of one kind, or take the envelope that an earlier stage of this process has handed on.

    A record of a newer version escapes: the stage waits to be upgraded.
    """

    def read(record: KafkaRecord) -> ReceivedEnvelope[E]:
        if isinstance(record.content, kind):
            return ReceivedEnvelope(record.content)
        try:
            return ReceivedEnvelope(kind.from_bytes(record.value))
        except InvalidRecordError as error:
            refusal = Refusal(source_id=record.position, scope=None, reason="not_a_record", detail=error.detail)
            return ReceivedEnvelope(next_envelope(kind, new_envelope(record, refusal)), error.detail)

    return read


def new_envelope(record: KafkaRecord, parsed: Turn | Command | Refusal) -> ExtractedFacts:
    """The first envelope of a turn or a command: its identity and times, without facts yet."""
    published_at = datetime.fromtimestamp(record.timestamp, UTC)
    match parsed:
        case Turn():
            names = ("occurred_at", "infer", "speaker", "metadata", "overrides", "immutable")
            fields = {"source_id": parsed.turn_id, **{name: getattr(parsed, name) for name in names}}
        case Command(order=payload, actor=actor):
            fields = {"source_id": parsed.command_id, "occurred_at": parsed.issued_at, "order": payload, "actor": actor}
            fields |= {"metadata": payload.metadata} if isinstance(payload, Import) else {}
        case Refusal():
            fields = {"source_id": parsed.source_id, "occurred_at": published_at}
    return ExtractedFacts(
        scope=parsed.scope,
        source_kind=parsed.kind,
        origin=Origin(topic=record.topic, partition=record.partition, offset=record.offset),
        published_at=published_at,
        size=len(record.value or b""),
        **fields,
    )


def next_envelope(kind: type[E], envelope: Envelope, **changes: Any) -> E:
    """The next stage's envelope from this one's common part and `changes`."""
    common = {name: getattr(envelope, name) for name in Envelope.model_fields}
    return kind(**(common | changes))


def ended_envelope(kind: type[E]) -> Callable[[StageInput, End, Step | None], E]:
    """Makes the output of a source that ends here: later stages pass it on to its commit."""

    def finish(stage_input: StageInput, end: End, step: Step | None) -> E:
        envelope = stage_input.envelope
        return next_envelope(kind, envelope, end=end, steps=(*envelope.steps, *([step] if step else [])))

    return finish


def limit_end(hit: LimitHit) -> End:
    """The end of a turn or an import that is rejected for a limit: it can be published again."""
    again = "raise the limit (`mnemolog policy set`) and publish it again under its id"
    detail = f"{hit}: {again}, or {LIMIT_ADVICE[hit.name]}"
    return End(outcome="rejected", reason="limit", detail=detail, limit=hit)
