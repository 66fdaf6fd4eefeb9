"""How a fact came to be what it is: its versions, and every event that made or touched them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from projections.fetching import fetch, with_fact_columns
from projections.query_errors import UnknownFactError
from projections.results import Fact
from projections.sql import queries


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """One event: `candidates` are the known facts that the decision weighed, `[{fact_id, similarity}]`."""

    event_id: UUID
    event: str
    fact_id: UUID
    targets: list[UUID]
    source_id: str
    occurred_at: datetime
    decided_at: datetime
    decided_by: str
    reason: str
    stale: bool
    candidates: list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """Versions in the order in which they were learned, events in the order of the log."""

    versions: list[Fact]
    events: list[Touch]


async def history(conn: AsyncConnection[TupleRow], tenant: str, fact_id: UUID) -> History:
    """The fact, what it came from, what came from it, and why. Raises `UnknownFactError`."""
    named = {"tenant": tenant, "fact_id": fact_id}
    versions = await fetch(conn, Fact, with_fact_columns(queries("history")["versions"]), named)
    if not versions:
        raise UnknownFactError(tenant, fact_id)
    one = versions[0]
    parameters = {
        "tenant": tenant,
        "user_id": one.user_id or "",
        "agent_id": one.agent_id or "",
        "app_id": one.app_id or "",
        "run_id": one.run_id or "",
        "fact_ids": [version.fact_id for version in versions],
    }
    return History(versions=versions, events=await fetch(conn, Touch, queries("history")["events"], parameters))
