"""What queries for facts share: the columns of a fact, and the most rows that an answer has."""

from collections.abc import Mapping
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Composed, Identifier

from mnemolog.projections.db.fetch import Query, Row, fetch_rows
from mnemolog.projections.queries.errors import QueryError
from mnemolog.projections.sql import queries

MAX_ROWS: Final = 10_000


def with_fact_columns(query: SQL, *, state_alias: str = "f") -> Composed:
    """Put the columns of `mnemolog.projections.queries.results.Fact` in the place that the query leaves for them.

    What events can change is read from `state_alias`: the facts themselves, or how they stood.
    """
    return query.format(fact=queries("reading")["fact_columns"].format(standing=Identifier(state_alias)))


async def fetch_bounded_rows(
    conn: AsyncConnection[TupleRow], row: type[Row], query: Query, parameters: Mapping[str, Any]
) -> list[Row]:
    """As `fetch_rows`, for a query with a `bound`. Raises `QueryError` where more than `MAX_ROWS` rows are there."""
    found = await fetch_rows(conn, row, query, {**parameters, "bound": MAX_ROWS + 1})
    if len(found) > MAX_ROWS:
        raise QueryError(f"the answer has more than {MAX_ROWS} rows: ask for a narrower scope or a shorter time")
    return found
