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


async def lasting_facts(conn: AsyncConnection[TupleRow], scopes: Sequence[ScopeFilter], at: datetime) -> list[Fact]:
    """Constraints, tasks and preferences of exactly these scopes that hold at `at`, in no order.

    Raises `QueryError` for a wider scope.
    """
    if not all(scope.is_exact for scope in scopes):
        raise QueryError("a context belongs to exact scopes: name each id, or leave it out, instead of '*'")
    query = read_query("context", "lasting_facts", at="%(at)s")
    common = {"at": at, "categories": list(SECTION_OF_CATEGORY), "events": list(EVENT_KINDS)}
    found = [await fetch_rows(conn, Fact, query, {**scope.parameters, **common}) for scope in scopes]
    return [fact for facts in found for fact in facts]
