"""Counts of what a turn adds, ends and spends."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from mnemolog.schemas.events import MemoryEvent
from mnemolog.schemas.provenance import Step


def count_added(events: Iterable[MemoryEvent]) -> int:
    """How many facts come, history included."""
    return sum(event.new_fact is not None for event in events)


def count_ended(events: Iterable[MemoryEvent], at: datetime) -> int:
    """How many facts are no longer held `at` that time; an end that was announced has not come."""
    return len({fact_id for event in events if (event.end_time or at) <= at for fact_id in event.ended_ids})


def count_tokens(steps: Sequence[Step]) -> int:
    """What the models took, over all stages."""
    return sum(step.input_tokens + step.output_tokens for step in steps)
