"""One envelope from another: what every hop hands on, and what a stage adds."""

from datetime import UTC, datetime
from typing import Any, TypeVar

from schemas.admission import Refusal
from schemas.envelopes import End, Envelope, ExtractedFacts
from schemas.provenance import Origin, Step
from schemas.turn import Turn
from streams.records import Record

E = TypeVar("E", bound=Envelope)

MAX_DETAIL = 2000


def opened(record: Record, verdict: Turn | Refusal) -> ExtractedFacts:
    """Begin a turn's way: its identity and times, without facts yet."""
    origin = origin_of(record)
    published_at = datetime.fromtimestamp(record.timestamp, UTC)
    match verdict:
        case Turn():
            return ExtractedFacts(
                source_id=verdict.turn_id,
                scope=verdict.scope,
                origin=origin,
                occurred_at=verdict.occurred_at,
                published_at=published_at,
                infer=verdict.infer,
                speaker=verdict.speaker,
                metadata=verdict.metadata,
                overrides=verdict.overrides,
            )
        case Refusal():
            return ExtractedFacts(
                source_id=verdict.source_id,
                scope=verdict.scope,
                origin=origin,
                occurred_at=published_at,
                published_at=published_at,
            )


def origin_of(record: Record) -> Origin:
    return Origin(topic=record.topic, partition=record.partition, offset=record.offset)


def carry(kind: type[E], envelope: Envelope, **changes: Any) -> E:
    """Make the next hop's envelope from this one's common part and `changes`."""
    common = {name: getattr(envelope, name) for name in Envelope.model_fields}
    return kind(**(common | changes))


def ended(kind: type[E], envelope: Envelope, end: End, step: Step | None) -> E:
    """Send a turn on without facts: later stages pass it through to its commit."""
    steps = envelope.steps if step is None else (*envelope.steps, step)
    bounded = end.model_copy(update={"detail": end.detail[:MAX_DETAIL]})
    return carry(kind, envelope, end=bounded, steps=steps)
