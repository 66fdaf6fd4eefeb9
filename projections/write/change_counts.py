"""Counts what a batch of commits changed in the tables, for Prometheus."""

from collections import Counter
from datetime import datetime
from typing import Final

from mnemolog.projections import metrics
from mnemolog.projections.write.rows import Changes
from mnemolog.schemas.events import (
    EVENT_CLASSES,
    ConflictResolved,
    DecisionUndone,
    FactCorrected,
    FactPending,
    MemoryEvent,
    PendingRejected,
)

REVERSIBLE_OVERWRITES: Final = frozenset(
    name for name, event in EVENT_CLASSES.items() if event.fixed_overwrite or event is FactPending
)
"""The names of the events in the view `overwrites`: ends of known facts, carried out or held back."""


def count_changes(changes: Changes, now: datetime) -> None:
    """Count what has been committed to the tables; `now` is when it was seen there."""
    for outcome, number in Counter(row.commit.outcome for row in changes.commits).items():
        metrics.COMMITS.labels(outcome=outcome).inc(number)
    for event, number in Counter(row.event.event for row in changes.events).items():
        metrics.EVENTS.labels(event=event).inc(number)
    for reason, number in Counter(row.reason for row in changes.rejections).items():
        metrics.REJECTIONS.labels(reason=reason).inc(number)
    undoing_ids = {row.undone_by for row in changes.undone}
    for row in changes.events:
        is_overwrite = row.event.overwrite is not None and not isinstance(row.event, ConflictResolved)
        if is_overwrite and row.targets and not row.stale:
            metrics.OVERWRITES.labels(event=row.event.event, by=row.event.decision.by).inc()
        is_stale_undo = isinstance(row.event, DecisionUndone) and row.event.event_id not in undoing_ids
        if not is_stale_undo and (how := _taken_back(row.event)):
            metrics.OVERWRITES_TAKEN_BACK.labels(how=how).inc()
    metrics.STALE.inc(sum(row.stale for row in changes.events))
    for commit in (row.commit for row in changes.commits):
        if commit.outcome == "facts":
            metrics.TURN_TO_FACT_SECONDS.observe(max(0.0, (now - commit.published_at).total_seconds()))


def _taken_back(event: MemoryEvent) -> str | None:
    match event:
        case DecisionUndone(undone_event=name) if name in REVERSIBLE_OVERWRITES:
            return "undone"
        case PendingRejected():
            return "rejected"
        case FactCorrected():
            return "corrected"
    return None
