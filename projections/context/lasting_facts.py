"""Reads the facts that a context holds whatever the question is."""

from datetime import datetime

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.context.entries import SECTION_OF_CATEGORY
from mnemolog.projections.db.fetch import fetch_rows
from mnemolog.projections.queries.errors import QueryError
from mnemolog.projections.queries.fact_rows import read_query
from mnemolog.projections.queries.results import Fact
from mnemolog.projections.queries.scope_filter import ScopeFilter


async def lasting_facts(conn: AsyncConnection[TupleRow], scope: ScopeFilter, at: datetime) -> list[Fact]:
    """Constraints, tasks and preferences of exactly one scope that hold at `at`, in no order.

    Raises `QueryError` for a wider scope.
    """
    if not scope.is_exact:
        raise QueryError("a context belongs to one scope: name each id, or leave it out, instead of '*'")
    query = read_query("context", "lasting_facts", at="%(at)s")
    parameters = {**scope.parameters, "at": at, "categories": list(SECTION_OF_CATEGORY)}
    return await fetch_rows(conn, Fact, query, parameters)
