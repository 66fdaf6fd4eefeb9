"""The summaries of entities that a context may hold."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.context.result import ContextSummary
from mnemolog.projections.db.fetch import fetch_rows
from mnemolog.projections.queries.fact_rows import read_query
from mnemolog.projections.queries.results import Fact
from mnemolog.projections.sql import queries

MAX_SUMMARIES: Final = 3


async def summaries_of_facts(conn: AsyncConnection[TupleRow], facts: Iterable[Fact]) -> list[ContextSummary]:
    """The summaries of the entities that most of these facts name, at most `MAX_SUMMARIES`."""
    asked: dict[str, list[UUID] | int] = {"fact_ids": [fact.fact_id for fact in facts], "limit": MAX_SUMMARIES}
    return await fetch_rows(conn, ContextSummary, queries("summaries")["summaries_of_facts"], asked)


async def facts_of_summaries(
    conn: AsyncConnection[TupleRow], summaries: Sequence[ContextSummary], at: datetime
) -> list[Fact]:
    """The facts that these summaries were written from, as they are at `at`."""
    query = read_query("summaries", "facts_of_summaries", at="%(at)s")
    asked = {"fact_ids": [fact_id for one in summaries for fact_id in one.fact_ids], "at": at}
    return await fetch_rows(conn, Fact, query, asked)
