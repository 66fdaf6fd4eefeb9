"""How many facts there are, and of whom."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.db.fetch import fetch_rows, fetch_value
from mnemolog.projections.queries.errors import check_limit
from mnemolog.projections.queries.fact_rows import read_query, with_filter
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.filters.model import EVERYTHING, Filter

IdName = Literal["user_id", "agent_id", "run_id"]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdCount:
    """A user, an agent or a run: how many active or pending facts name it, in how many scopes."""

    id: str
    facts: int
    scopes: int


async def count_facts(
    conn: AsyncConnection[TupleRow],
    scope: ScopeFilter,
    wanted: Filter = EVERYTHING,
    *,
    all_versions: bool = False,
    at: datetime,
) -> int:
    """How many facts `facts` of the same arguments lists. It reads the facts of the scope, and no others."""
    states = {"states": "in_any_state" if all_versions or wanted.asks_about_state else "holding"}
    counted = read_query("facts", "counted_facts", scope=scope.parameters, at="%(at)s", parts=states)
    query, parameters = with_filter(counted, wanted)
    found: int = await fetch_value(conn, query, {**parameters, **scope.parameters, "at": at})
    return found


async def named_ids(
    conn: AsyncConnection[TupleRow],
    name: IdName,
    scope: ScopeFilter,
    *,
    limit: int | None = None,
    after: str | None = None,
) -> list[IdCount]:
    """The values that scopes with facts have of one id, in order, from the first or the one that follows `after` on.

    It reads the counts of scopes, and no fact. Raises `QueryError` for a limit below 1.
    """
    check_limit(limit)
    query = read_query("scopes", "named_ids", scope=scope.parameters, row="known", parts={"name": name})
    return await fetch_rows(conn, IdCount, query, {**scope.parameters, "limit": limit, "after": after})
