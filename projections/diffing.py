"""What changed in belief between two instants."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from projections.fetching import fetch, fetch_bounded
from projections.query_errors import QueryError
from projections.scoping import ScopeFilter
from projections.sql import queries


@dataclass(frozen=True, slots=True, kw_only=True)
class OldFact:
    """A fact that a change ended."""

    fact_id: UUID
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One decision: `fact_id` and `text` are the new fact, or the one confirmed; `old` are those it ended.

    `stale` says that a target no longer stood when the decision arrived: it stayed as it was.
    """

    at: datetime
    fact_id: UUID
    text: str | None
    old: tuple[OldFact, ...]
    reason: str
    decided_by: str
    stale: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Diff:
    """The changes of an interval by kind, each in the order in which they were decided."""

    since: datetime
    until: datetime
    added: tuple[Change, ...]
    replaced: tuple[Change, ...]
    contradicted: tuple[Change, ...]
    merged: tuple[Change, ...]
    confirmed: tuple[Change, ...]
    skipped: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    event: str
    at: datetime
    fact_id: UUID
    text: str | None
    reason: str
    decided_by: str
    stale: bool
    old: list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class _Skipped:
    skipped: int


async def diff(conn: AsyncConnection[TupleRow], scope: ScopeFilter, since: datetime, until: datetime) -> Diff:
    """What was decided from `since` on and before `until`.

    Raises `QueryError` where that is no interval, or one with more than 10 000 changes.
    """
    if since.tzinfo is None or until.tzinfo is None:
        raise QueryError("since and until need a zone, for example 2026-01-31T00:00:00+00:00")
    if since > until:
        raise QueryError(f"since ({since}) is after until ({until}): exchange them")
    parameters = {**scope.parameters, "since": since, "until": until}
    rows = await fetch_bounded(conn, _Row, queries("history")["changes"], parameters)
    (counted,) = await fetch(conn, _Skipped, queries("history")["count_skipped"], parameters)
    return Diff(
        since=since,
        until=until,
        added=_changes(rows, "fact_added"),
        replaced=_changes(rows, "fact_replaced"),
        contradicted=_changes(rows, "fact_contradicted"),
        merged=_changes(rows, "facts_merged"),
        confirmed=_changes(rows, "fact_confirmed"),
        skipped=counted.skipped,
    )


def _changes(rows: Iterable[_Row], event: str) -> tuple[Change, ...]:
    return tuple(
        Change(
            at=row.at,
            fact_id=row.fact_id,
            text=row.text,
            old=tuple(OldFact(fact_id=UUID(old["fact_id"]), text=old["text"]) for old in row.old),
            reason=row.reason,
            decided_by=row.decided_by,
            stale=row.stale,
        )
        for row in rows
        if row.event == event
    )
