"""What waits for somebody's word: overwrites that were held back, and conflicts that nobody could decide."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow, dict_row

from mnemolog.projections.queries.errors import QueryError
from mnemolog.projections.queries.fact_rows import MAX_ROWS, with_fact_columns
from mnemolog.projections.queries.results import Fact
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.sql import queries


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictingFact:
    """A known fact that a new one would overwrite, or stands beside."""

    fact_id: UUID
    text: str
    status: str
    confidence: float
    authority: str
    excerpt: str
    source_id: str
    true_from: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingFact:
    """An overwrite that was held back. Until it is settled `fact` is found and flagged, and `challenged` stands.

    `action` is what it would do to them, `guard` what holds it, `verdict` what the model said; `needs_human` says that
    no further statement can confirm it. `age` is since when it has waited.
    """

    fact: Fact
    challenged: tuple[ConflictingFact, ...]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class UnresolvedFact:
    """A fact that was added beside others because no valid decision on their conflict could be had; `reason` says why.

    `beside` are those others as far as they still stand, the most similar first.
    """

    fact: Fact
    beside: tuple[ConflictingFact, ...]
    reason: str
    model: str | None
    since: datetime
    age: timedelta
    event_id: UUID


async def pending(conn: AsyncConnection[TupleRow], scope: ScopeFilter, at: datetime) -> list[PendingFact]:
    """What waits for a confirmation, the oldest first, with its age at `at`.

    Raises `QueryError` for more than 10 000 of them.
    """
    return [
        PendingFact(
            fact=_fact(row),
            challenged=_conflicting_facts(row["challenged"]),
            **{name: row[name] for name in ("action", "ended_at", "guard", "reason", "verdict", "decided_by", "model")},
            needs_human=row["needs_human"],
            since=row["since"],
            age=at - row["since"],
            event_id=row["event_id"],
        )
        for row in await _rows(conn, "open", scope)
    ]


async def unresolved(conn: AsyncConnection[TupleRow], scope: ScopeFilter, at: datetime) -> list[UnresolvedFact]:
    """The active facts whose conflict is open, the oldest first, with its age at `at`. Raises as `pending` does."""
    return [
        UnresolvedFact(
            fact=_fact(row),
            beside=_conflicting_facts(row["beside"]),
            reason=row["reason"],
            model=row["model"],
            since=row["recorded_at"],
            age=at - row["recorded_at"],
            event_id=row["event_id"],
        )
        for row in await _rows(conn, "unresolved", scope)
    ]


_FACT_FIELDS: Final = tuple(field.name for field in fields(Fact))


async def _rows(conn: AsyncConnection[TupleRow], name: str, scope: ScopeFilter) -> list[dict[str, Any]]:
    async with conn.cursor(row_factory=dict_row) as cursor:
        query = with_fact_columns(queries("pendings")[name])
        await cursor.execute(query, {**scope.parameters, "bound": MAX_ROWS + 1})
        found = await cursor.fetchall()
    if len(found) > MAX_ROWS:
        raise QueryError(f"the answer has more than {MAX_ROWS} rows: ask for a narrower scope")
    return found


def _fact(row: Mapping[str, Any]) -> Fact:
    return Fact(**{name: row[name] for name in _FACT_FIELDS})


def _conflicting_facts(facts: list[dict[str, Any]]) -> tuple[ConflictingFact, ...]:
    return tuple(
        ConflictingFact(
            **fact | {"fact_id": UUID(fact["fact_id"]), "true_from": datetime.fromisoformat(fact["true_from"])},
        )
        for fact in facts
    )
