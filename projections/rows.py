"""The rows that a fold makes: values, not yet written anywhere."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal
from uuid import UUID

from schemas.commit import Commit
from schemas.events import MemoryEvent
from schemas.facts import NewFact

ScopeColumns = tuple[str, str, str, str, str]
"""tenant, user, agent, app and run; what is not set is the empty string."""
NO_SCOPE: ScopeColumns = ("", "", "", "", "")

Status = Literal["active", "superseded", "archived", "pending_confirmation", "expired", "retracted"]
Reason = Literal["duplicate_source", "not_a_commit", "not_storable", "stale_target", "foreign_target"]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class LogPosition:
    """A record's place in `memory_events`."""

    partition: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FactState:
    """All of a fact that later commits can change."""

    status: Status = "active"
    confidence: float
    mention_count: int = 1
    last_confirmed_at: datetime | None = None
    true_to: datetime | None = None
    closed_at: datetime | None = None
    believed_to: datetime | None = None
    superseded_by: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFact:
    """A fact as the fold knows it: whose it is, and how it stands."""

    fact_id: UUID
    scope: ScopeColumns
    state: FactState


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitRow:
    """An applied commit with the exact bytes of its record."""

    position: LogPosition
    commit: Commit
    record: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """One event; `stale` where a target no longer stood as the decision saw it."""

    position: LogPosition
    commit: Commit
    event: MemoryEvent
    fact_id: UUID
    targets: tuple[UUID, ...]
    stale: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FactRow:
    """A new fact; `supersedes` names the versions that it really ended."""

    commit: Commit
    fact: NewFact
    supersedes: tuple[UUID, ...]
    unresolved: bool
    stale: bool
    state: FactState


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """What was not done, and why. Item 0 is the whole record, kept in `record`; item n is event n - 1."""

    position: LogPosition
    item: int
    owner: str | None
    source_id: str | None
    reason: Reason
    detail: str
    record: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeStep:
    """How many commits with events a scope has seen more than before."""

    scope: ScopeColumns
    owner: str
    commits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What one or many commits do to the tables. `updates` are facts that stood before, as they stand now."""

    commits: tuple[CommitRow, ...] = ()
    events: tuple[EventRow, ...] = ()
    facts: tuple[FactRow, ...] = ()
    updates: tuple[KnownFact, ...] = ()
    steps: tuple[ScopeStep, ...] = ()
    rejections: tuple[Rejection, ...] = ()


def together(parts: Iterable[Changes]) -> Changes:
    """One set of changes that does what `parts` do one after another: each row is written once, as it ends up."""
    parts = tuple(parts)
    updates = {known.fact_id: known for part in parts for known in part.updates}
    facts = tuple(_as_it_ends_up(row, updates) for part in parts for row in part.facts)
    return Changes(
        commits=tuple(row for part in parts for row in part.commits),
        events=tuple(row for part in parts for row in part.events),
        facts=facts,
        updates=tuple(updates.values()),
        steps=_counted(step for part in parts for step in part.steps),
        rejections=tuple(row for part in parts for row in part.rejections),
    )


def _as_it_ends_up(row: FactRow, updates: dict[UUID, KnownFact]) -> FactRow:
    changed = updates.pop(row.fact.fact_id, None)
    return replace(row, state=changed.state) if changed else row


def _counted(steps: Iterable[ScopeStep]) -> tuple[ScopeStep, ...]:
    by_scope: dict[ScopeColumns, ScopeStep] = {}
    for step in steps:
        before = by_scope.get(step.scope)
        by_scope[step.scope] = replace(step, commits=step.commits + before.commits) if before else step
    return tuple(by_scope.values())
