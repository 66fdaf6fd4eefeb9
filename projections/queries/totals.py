"""What the tables hold in all, over all tenants."""

from dataclasses import dataclass
from datetime import datetime

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.db.fetch import fetch_rows
from mnemolog.projections.sql import queries


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Counts of rows: turns that were received, those without an end yet, and those whose end is failed or rejected."""

    turns: int
    in_flight: int
    last_turn_at: datetime | None
    active_facts: int
    pending_facts: int
    failed_turns: int


async def totals(conn: AsyncConnection[TupleRow]) -> Totals:
    """Count the rows now."""
    (found,) = await fetch_rows(conn, Totals, queries("audit")["totals"], {})
    return found
