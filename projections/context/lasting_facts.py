"""Reads the facts that a context holds whatever the question is."""

from collections.abc import Sequence
from datetime import datetime

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.context.entries import EVENT_KINDS, SECTION_OF_CATEGORY
from mnemolog.projections.db.fetch import fetch_rows
from mnemolog.projections.queries.errors import QueryError
from mnemolog.projections.queries.fact_rows import read_query
from mnemolog.projections.queries.results import Fact
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.statement import scope_parameters
from mnemolog.projections.sql import queries


async def lasting_facts(conn: AsyncConnection[TupleRow], scopes: Sequence[ScopeFilter], at: datetime) -> list[Fact]:
    """Constraints, tasks and preferences of exactly these scopes that hold at `at`, in no order.

    What was promoted from one of the scopes into another one is there as it is in that one, if at all.

    Raises `QueryError` for a wider scope.
    """
    if not all(scope.is_exact for scope in scopes):
        raise QueryError("a context belongs to exact scopes: name each id, or leave it out, instead of '*'")
    query = read_query("context", "lasting_facts", at="%(at)s")
    common = {"at": at, "categories": list(SECTION_OF_CATEGORY), "events": list(EVENT_KINDS)}
    by_scope = [await fetch_rows(conn, Fact, query, {**scope.parameters, **common}) for scope in scopes]
    found = [fact for facts in by_scope for fact in facts]
    return found if len(scopes) == 1 else await _without_promoted(conn, scopes, found)


async def _without_promoted(
    conn: AsyncConnection[TupleRow], scopes: Sequence[ScopeFilter], found: Sequence[Fact]
) -> list[Fact]:
    """The facts without those that were promoted into another one of the scopes."""
    asked = {"fact_ids": [fact.fact_id for fact in found], **scope_parameters(scopes)}
    rows = await (await conn.execute(queries("context")["promoted"], asked)).fetchall()
    promoted = {fact_id for (fact_id,) in rows}
    return [fact for fact in found if fact.fact_id not in promoted]
