"""Counts what a batch of commits changed in the tables, for Prometheus."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections import metrics
from mnemolog.projections.db.fetch import fetch_rows
from mnemolog.projections.sql import queries
from mnemolog.projections.write.entities.counts import count_entities
from mnemolog.projections.write.rows import Changes
from mnemolog.schemas.events import EVENT_CLASSES, ConflictResolved, FactCorrected, FactPending

OVERWRITE_EVENTS: Final = frozenset(
    name
    for name, event in EVENT_CLASSES.items()
    if event.fixed_overwrite or event in (FactPending, FactCorrected, ConflictResolved)
)
"""The names of the events in the view `overwrites`: ends of known facts, carried out or held back."""
_COUNTED_EVENTS: Final = OVERWRITE_EVENTS | {"pending_confirmed", "pending_rejected", "decision_undone"}
_SQL: Final = queries("overwrites")


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedOut:
    """How many overwrites of one kind, proposed by `by` with this model and prompt, a batch has carried out."""

    event: str
    by: str
    model: str
    prompt_version: str
    overwrites: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenBack:
    """How many overwrites that a model proposed with a prompt a batch has taken back, and how."""

    how: str
    model: str
    prompt_version: str
    overwrites: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOverwrites:
    """The overwrites of a batch, as the view `overwrites` has them."""

    carried_out: tuple[CarriedOut, ...] = ()
    taken_back: tuple[TakenBack, ...] = ()

    @classmethod
    def joined(cls, parts: Iterable["BatchOverwrites"]) -> "BatchOverwrites":
        found = list(parts)
        return cls(
            carried_out=tuple(one for part in found for one in part.carried_out),
            taken_back=tuple(one for part in found for one in part.taken_back),
        )


async def read_overwrites(connection: AsyncConnection[TupleRow], changes: Changes) -> BatchOverwrites:
    """The overwrites of `changes`, which are in the tables already; most batches have none and ask nothing."""
    event_ids = [row.event.event_id for row in changes.events if row.event.event in _COUNTED_EVENTS]
    if not event_ids:
        return BatchOverwrites()
    asked: dict[str, Any] = {"event_ids": event_ids}
    return BatchOverwrites(
        carried_out=tuple(await fetch_rows(connection, CarriedOut, _SQL["carried_out"], asked)),
        taken_back=tuple(await fetch_rows(connection, TakenBack, _SQL["taken_back"], asked)),
    )


def count_changes(changes: Changes, overwrites: BatchOverwrites, now: datetime) -> None:
    """Count what has been committed to the tables; `now` is when it was seen there."""
    for outcome, number in Counter(row.commit.outcome for row in changes.commits).items():
        metrics.COMMITS.labels(outcome=outcome).inc(number)
    for (event, by), number in Counter((row.event.event, row.event.decision.by) for row in changes.events).items():
        metrics.EVENTS.labels(event=event, by=by).inc(number)
    for reason, number in Counter(row.reason for row in changes.rejections).items():
        metrics.REJECTIONS.labels(reason=reason).inc(number)
    for done in overwrites.carried_out:
        labels = {"model": done.model, "prompt_version": done.prompt_version}
        metrics.OVERWRITES.labels(event=done.event, by=done.by, **labels).inc(done.overwrites)
    for back in overwrites.taken_back:
        labels = {"model": back.model, "prompt_version": back.prompt_version}
        metrics.OVERWRITES_TAKEN_BACK.labels(how=back.how, **labels).inc(back.overwrites)
    count_entities(changes)
    metrics.STALE.inc(sum(row.stale for row in changes.events))
    for commit in (row.commit for row in changes.commits):
        if commit.outcome == "facts":
            metrics.TURN_TO_FACT_SECONDS.observe(max(0.0, (now - commit.published_at).total_seconds()))
