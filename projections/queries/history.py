"""The history of a fact: its versions, the events that added or changed them, and its relations."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.db.fetch import fetch_rows
from mnemolog.projections.queries.errors import UnknownFactError
from mnemolog.projections.queries.fact_rows import read_query
from mnemolog.projections.queries.results import Fact, counted
from mnemolog.projections.sql import queries


@dataclass(frozen=True, slots=True, kw_only=True)
class FactEvent:
    """One event: `candidates` are the known facts that the decision weighed, `[{fact_id, similarity}]`.

    `undone` says that it is not in effect any more. An undo is about no single fact. `moved_ends` are the facts that
    the event gave another end, or none, `[{fact_id, ender, ended_at, ended_by, unresolved}]`. `promoted_from` is the
    fact of another scope whose statement led to it: in the history of that one `fact_id` is what it was promoted to.
    """

    event_id: UUID
    event: str
    fact_id: UUID | None
    targets: list[UUID]
    source_id: str
    occurred_at: datetime
    decided_at: datetime
    decided_by: str
    reason: str
    model: str | None
    prompt_version: str | None
    guard: str | None
    stale: bool
    undone: bool
    candidates: list[dict[str, Any]]
    moved_ends: list[dict[str, Any]]
    promoted_from: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FactRelation:
    """`fact_id` extends, or is similar to, `related_id`; it `holds` while both facts are active."""

    fact_id: UUID
    relation: Literal["extends", "similar"]
    related_id: UUID
    text: str
    related_text: str
    since: datetime
    holds: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Versions in the order in which they were learned, events in the order of the log."""

    versions: list[Fact]
    events: list[FactEvent]
    relations: list[FactRelation]

    def __repr__(self) -> str:
        """The versions, and the events by name with their reasons, a line for each."""
        versions = [f"  {one.status}: {one.text} ({one.fact_id})" for one in self.versions]
        events = [f"  {one.decided_at:%Y-%m-%d %H:%M %Z} {one.event}: {one.reason}" for one in self.events]
        return "\n".join(
            [f"History, {counted(len(versions), 'version')}:", *versions, f"{counted(len(events), 'event')}:", *events]
        )


async def history(conn: AsyncConnection[TupleRow], tenant: str, fact_id: UUID) -> History:
    """The fact, what it came from, what came from it, and why. Raises `UnknownFactError`."""
    named = {"tenant": tenant, "fact_id": fact_id}
    versions = await fetch_rows(conn, Fact, read_query("history", "versions"), named)
    if not versions:
        raise UnknownFactError(tenant, fact_id)
    fact_ids = [version.fact_id for version in versions]
    relations = await fetch_rows(conn, FactRelation, queries("history")["relations"], {"fact_ids": fact_ids})
    return History(versions=versions, events=await fact_events(conn, versions[0], fact_ids), relations=relations)


async def fact_events(conn: AsyncConnection[TupleRow], fact: Fact, fact_ids: list[UUID]) -> list[FactEvent]:
    """The events of the scope of `fact` that made, touched or challenged any of these facts, or promoted one."""
    parameters = {**fact.scope.columns, "fact_ids": fact_ids}
    return await fetch_rows(conn, FactEvent, queries("history")["events"], parameters)
