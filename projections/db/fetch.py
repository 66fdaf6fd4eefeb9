"""Runs a query and converts its rows to values."""

from collections.abc import Mapping
from typing import Any, TypeVar

from psycopg import AsyncConnection
from psycopg.rows import TupleRow, class_row
from psycopg.sql import SQL, Composed

Row = TypeVar("Row")
Query = SQL | Composed


async def fetch_rows(
    conn: AsyncConnection[TupleRow], row: type[Row], query: Query, parameters: Mapping[str, Any]
) -> list[Row]:
    """Run `query` and make a `row` of each of its rows, by the names of its columns."""
    async with conn.cursor(row_factory=class_row(row)) as cursor:
        await cursor.execute(query, parameters)
        return await cursor.fetchall()


async def fetch_value(conn: AsyncConnection[TupleRow], query: Query, parameters: Mapping[str, Any]) -> Any:
    """The only column of the only row of `query`."""
    ((value,),) = await (await conn.execute(query, parameters)).fetchall()
    return value
