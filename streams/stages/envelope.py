"""One envelope from another: what every hop hands on, and what a stage adds."""

from datetime import UTC, datetime
from typing import Any, TypeVar

from mnemolog.schemas.admission import Refusal
from mnemolog.schemas.command import Command
from mnemolog.schemas.envelopes import End, Envelope, ExtractedFacts
from mnemolog.schemas.policy import LIMIT_ADVICE, LimitHit
from mnemolog.schemas.provenance import Origin, Step
from mnemolog.schemas.turn import Turn
from mnemolog.streams.kafka.record import KafkaRecord

E = TypeVar("E", bound=Envelope)

MAX_DETAIL = 2000


def new_envelope(record: KafkaRecord, parsed: Turn | Command | Refusal) -> ExtractedFacts:
    """The first envelope of a turn or a command: its identity and times, without facts yet."""
    published_at = datetime.fromtimestamp(record.timestamp, UTC)
    return ExtractedFacts(
        scope=parsed.scope,
        source_kind=parsed.kind,
        origin=origin_of(record),
        published_at=published_at,
        size=len(record.value or b""),
        **_source_fields(parsed, published_at),
    )


def _source_fields(parsed: Turn | Command | Refusal, published_at: datetime) -> dict[str, Any]:
    match parsed:
        case Turn():
            names = ("occurred_at", "infer", "speaker", "metadata", "overrides")
            return {"source_id": parsed.turn_id, **{name: getattr(parsed, name) for name in names}}
        case Command(order=order, actor=actor):
            return {"source_id": parsed.command_id, "occurred_at": parsed.issued_at, "order": order, "actor": actor}
        case Refusal():
            return {"source_id": parsed.source_id, "occurred_at": published_at}


def limit_end(hit: LimitHit) -> End:
    """The end of a turn that is refused for a limit: told so that it can be published again."""
    again = "raise the limit (`mnemolog policy set`) and publish the turn again under its turn_id"
    detail = f"{hit}: {again}, or {LIMIT_ADVICE[hit.name]}"
    return End(outcome="rejected", reason="limit", detail=detail, limit=hit)


def origin_of(record: KafkaRecord) -> Origin:
    return Origin(topic=record.topic, partition=record.partition, offset=record.offset)


def next_envelope(kind: type[E], envelope: Envelope, **changes: Any) -> E:
    """Make the next hop's envelope from this one's common part and `changes`."""
    common = {name: getattr(envelope, name) for name in Envelope.model_fields}
    return kind(**(common | changes))


def ended_envelope(kind: type[E], envelope: Envelope, end: End, step: Step | None) -> E:
    """Send a turn on without facts: later stages pass it through to its commit."""
    steps = envelope.steps if step is None else (*envelope.steps, step)
    bounded = end.model_copy(update={"detail": end.detail[:MAX_DETAIL]})
    return next_envelope(kind, envelope, end=bounded, steps=steps)
