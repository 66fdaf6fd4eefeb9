"""Held overwrites, proposed merges of entities, and unresolved conflicts."""

from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg.sql import SQL
from pydantic import TypeAdapter

from mnemolog.projections.database import fetch_rows
from mnemolog.projections.queries.results import Fact, brief_repr
from mnemolog.projections.queries.scope_filter import ScopeFilter, read_query
from mnemolog.projections.queries.trace import shown_reason
from mnemolog.schemas.facts import FactStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictingFact:
    """A known fact that a new one would overwrite, or that it was added beside.

    `authority` is `human` where a person stated it, `excerpt` what `source_id` said, `true_from` since when it is so.
    """

    fact_id: UUID
    text: str
    status: FactStatus
    confidence: float
    authority: str
    excerpt: str
    source_id: str
    true_from: datetime

    def __repr__(self) -> str:
        return brief_repr(self, "text", "status", "fact_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingFact:
    """An overwrite that was held back. Until it is settled, `fact` is found too and `challenged` stay active.

    `action` is what a confirmation would do to them. It leaves `beside` as they are, which others have become since, by
    a merge or a correction; then `fact` becomes active beside them, unresolved. `ended_at` is when they would have
    ended, None for the time of the statement. `guard` is why it is held, `reason` and `verdict` what `decided_by` (a
    model, a rule) said of the conflict, `model` which one; `needs_human` says that no further statement can confirm it.
    `since` is when event `event_id` held it, `age` how long it has waited.
    """

    fact: Fact
    challenged: tuple[ConflictingFact, ...]
    beside: tuple[ConflictingFact, ...]
    action: str
    ended_at: datetime | None
    guard: str
    reason: str
    verdict: str | None
    decided_by: str
    model: str | None
    needs_human: bool
    since: datetime
    age: timedelta
    event_id: UUID

    def __repr__(self) -> str:
        return brief_repr(self, "fact", "action", "challenged", "guard", "reason", "needs_human")


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingMerge:
    """Two entities that may be one: confirmed or rejected by `event_id`. `merged` would be a part of `into`.

    `merged_name` and `into_name` are what they are called. `reason` is why a rule (`decided_by`) proposes it,
    `source_id` its turn, `since` when it did, `age` how long it has waited.
    """

    event_id: UUID
    tenant: str
    user_id: str | None
    agent_id: str | None
    app_id: str | None
    run_id: str | None
    merged: UUID
    into: UUID
    merged_name: str
    into_name: str
    reason: str
    decided_by: str
    source_id: str
    since: datetime
    age: timedelta

    def __repr__(self) -> str:
        return brief_repr(self, "merged_name", "into_name", "reason", "event_id")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnresolvedFact:
    """A fact that was added beside others because no valid decision on their conflict could be had; `reason` says why.

    `beside` are those others as far as they are still active or pending, the most similar first. `model` was asked, if
    one was. `since` is when event `event_id` put it there, `age` how long ago that was.
    """

    fact: Fact
    beside: tuple[ConflictingFact, ...]
    reason: str
    model: str | None
    since: datetime
    age: timedelta
    event_id: UUID

    def __repr__(self) -> str:
        return brief_repr(self, "fact", "beside", "reason")


async def pending(conn: AsyncConnection[TupleRow], scope: ScopeFilter, at: datetime) -> list[PendingFact]:
    """What waits for a confirmation, the oldest first, with its age at `at`."""
    rows = await _rows(conn, read_query("pending", "open", scope=scope.parameters, row="waiting"), scope)
    return [
        PendingFact(
            fact=fact,
            challenged=known,
            beside=_CONFLICTING.validate_python(columns.pop("successors")),
            **columns,
            age=at - columns["since"],
        )
        for fact, known, columns in rows
    ]


async def pending_changes(
    conn: AsyncConnection[TupleRow], scope: ScopeFilter, at: datetime
) -> list[PendingFact | PendingMerge]:
    """What waits for a person: facts, then merges of entities, the oldest first, with their age at `at`."""
    query = read_query("pending", "merges", scope=scope.parameters, row="proposed")
    found: list[PendingFact | PendingMerge] = [*await pending(conn, scope, at)]
    for row in await fetch_rows(conn, dict, query, scope.parameters):
        reason = shown_reason(row.pop("reason"), row.pop("names"))
        found.append(PendingMerge(**row, reason=reason, age=at - row["since"]))
    return found


async def unresolved(conn: AsyncConnection[TupleRow], scope: ScopeFilter, at: datetime) -> list[UnresolvedFact]:
    """The active facts whose conflict is open, the oldest first, with its age at `at`."""
    rows = await _rows(conn, read_query("pending", "unresolved", scope=scope.parameters), scope)
    return [
        UnresolvedFact(fact=fact, beside=known, **columns, since=fact.recorded_at, age=at - fact.recorded_at)
        for fact, known, columns in rows
    ]


async def _rows(
    conn: AsyncConnection[TupleRow], query: SQL, scope: ScopeFilter
) -> list[tuple[Fact, tuple[ConflictingFact, ...], dict[str, Any]]]:
    """Each fact, the known ones in conflict with it, and the other columns."""
    return [
        (
            Fact(**{name: row.pop(name) for name in _FACT_FIELDS}),
            _CONFLICTING.validate_python(row.pop("conflicting")),
            row,
        )
        for row in await fetch_rows(conn, dict, query, scope.parameters)
    ]


_CONFLICTING: Final = TypeAdapter(tuple[ConflictingFact, ...])
_FACT_FIELDS: Final = tuple(field.name for field in fields(Fact))
