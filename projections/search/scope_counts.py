"""How many facts a search could have found, and how many stand beside its scope."""

from dataclasses import dataclass
from datetime import datetime

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.db.fetch import fetch_rows
from mnemolog.projections.queries.fact_rows import ANY_OR_NONE, read_query
from mnemolog.projections.queries.scope_filter import ScopeFilter


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeCount:
    """How many facts a scope holds, and how many stand beside it: in scopes that name its ids and one more.

    `ids` are the ids that those beside it name.
    """

    within: int
    beside: int
    ids: tuple[str, ...]


async def count_facts(conn: AsyncConnection[TupleRow], scope: ScopeFilter, *, at: datetime) -> ScopeCount:
    """Count the facts that hold at `at` in `scope`, and those that it misses because it leaves out an id."""
    left_out = [name for name, value in scope.parameters.items() if not value]
    wider = {**scope.parameters, **dict.fromkeys(left_out, ANY_OR_NONE)}
    rows = await fetch_rows(conn, dict, read_query("search", "count_by_ids", scope=wider), {**wider, "at": at})
    found = [([name for name in left_out if name in row["ids"]], row["facts"]) for row in rows]
    return ScopeCount(
        within=sum(facts for ids, facts in found if not ids),
        beside=sum(facts for ids, facts in found if ids),
        ids=tuple(name for name in left_out if any(name in ids for ids, _ in found)),
    )
