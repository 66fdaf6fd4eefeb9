"""What the events of a turn end, and what the turn adds to what is held."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from uuid import UUID

from mnemolog.schemas.events import (
    ConflictResolved,
    FactAdded,
    FactContradicted,
    FactExpired,
    FactReplaced,
    FactRetracted,
    FactsMerged,
    MemoryEvent,
    PendingConfirmed,
    PendingRejected,
    new_fact,
)
from mnemolog.schemas.provenance import Step


def ended_fact_ids(event: MemoryEvent) -> tuple[UUID, ...]:
    """The facts that an event ends; what is told as history has ended as it comes."""
    match event:
        case FactsMerged() | FactReplaced() | FactContradicted() | FactRetracted() | FactExpired() | PendingConfirmed():
            return event.targets
        case ConflictResolved(action="replace" | "contradict"):
            return event.targets
        case ConflictResolved(action="keep_old") | PendingRejected():
            return (event.target,)
        case FactAdded(ended_at=datetime()):
            return (event.fact.fact_id,)
        case _:
            return ()


def count_added(events: Iterable[MemoryEvent]) -> int:
    """How many facts come, history included."""
    return sum(new_fact(event) is not None for event in events)


def count_ended(events: Iterable[MemoryEvent], at: datetime) -> int:
    """How many facts are no longer held `at` that time; an end that was announced has not come."""
    told = (ended_fact_ids(event) for event in events if (getattr(event, "ended_at", None) or at) <= at)
    return len({fact_id for fact_ids in told for fact_id in fact_ids})


def count_tokens(steps: Sequence[Step]) -> int:
    """What the models took, over all stages."""
    return sum(step.input_tokens + step.output_tokens for step in steps)
