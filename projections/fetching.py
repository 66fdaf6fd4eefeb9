"""One query, its rows as values of one type."""

from collections.abc import Mapping
from typing import Any, TypeVar

from psycopg import AsyncConnection
from psycopg.rows import TupleRow, class_row
from psycopg.sql import SQL, Composed

from projections.sql import queries

Row = TypeVar("Row")
Query = SQL | Composed


def with_fact_columns(query: SQL) -> Composed:
    """Put the columns of `projections.results.Fact` in the place that the query leaves for them."""
    return query.format(fact=queries("reading")["fact_columns"])


async def fetch(
    conn: AsyncConnection[TupleRow], row: type[Row], query: Query, parameters: Mapping[str, Any]
) -> list[Row]:
    """Run `query` and make a `row` of each of its rows, by the names of its columns."""
    async with conn.cursor(row_factory=class_row(row)) as cursor:
        await cursor.execute(query, parameters)
        return await cursor.fetchall()
