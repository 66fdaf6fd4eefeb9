"""Turns that ended without an effect, and what the journal has of a turn, to publish it again."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import orjson
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.db.fetch import fetch_rows
from mnemolog.projections.queries.errors import AmbiguousTurnError, check_id_text
from mnemolog.projections.queries.fact_rows import read_query
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.sql import queries
from mnemolog.schemas.turn import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedTurn:
    """A turn whose last end is failed or rejected. A record that named no scope has its position as `turn_id`.

    `can_retry` says that the same turn may have another end if it is published again, and that the journal has it.
    """

    turn_id: str
    status: Literal["failed", "rejected"]
    reason: str | None
    detail: str
    tenant: str
    user_id: str | None
    agent_id: str | None
    app_id: str | None
    run_id: str | None
    attempt: int
    published_at: datetime
    decided_at: datetime
    position: str
    can_retry: bool


async def failed_turns(conn: AsyncConnection[TupleRow], scope: ScopeFilter, *, limit: int) -> list[FailedTurn]:
    """The newest `limit` turns of a scope that ended failed or rejected, the newest first."""
    query = read_query("failed_turns", "failed_turns", row="c")
    return await fetch_rows(conn, FailedTurn, query, {**scope.parameters, "limit": limit})


async def received_turn(
    conn: AsyncConnection[TupleRow], tenant: str, turn_id: str, user_id: str | None = None
) -> Turn | None:
    """A turn as it was first received; None where the journal has none, or what came was no valid turn.

    Raises `AmbiguousTurnError` where several owners of the tenant have one.
    """
    check_id_text(turn_id=turn_id)
    named: dict[str, Any] = {"tenant": tenant, "turn_id": turn_id, "user_id": user_id}
    found = await (await conn.execute(queries("failed_turns")["received_turn"], named)).fetchall()
    if len(found) > 1:
        raise AmbiguousTurnError(turn_id, [owner for owner, _ in found])
    return Turn.model_validate_json(orjson.dumps(found[0][1])) if found else None
