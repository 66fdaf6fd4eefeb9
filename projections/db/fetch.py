"""Runs a query and converts its rows to values."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeVar

from psycopg import AsyncConnection, AsyncRawCursor
from psycopg.rows import TupleRow, class_row, dict_row
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


@lru_cache(maxsize=64)
def numbered(text: str) -> tuple[str, tuple[str, ...]]:
    """A statement with `$1` for its first named parameter and so on, as it is sent, and the names in this order."""
    places: dict[str, int] = {}
    sent = re.sub(r"%\((\w+)\)s", lambda found: f"${places.setdefault(found[1], len(places) + 1)}", text)
    return sent.replace("%%", "%"), tuple(places)


async def fetch_long(
    conn: AsyncConnection[TupleRow], query: Query, parameters: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The rows of a long statement. Psycopg looks for the parameters of one beyond 4096 characters at each call."""
    text, names = numbered(query.as_string())
    async with AsyncRawCursor(conn, row_factory=dict_row) as cursor:
        await cursor.execute(text.encode(), [parameters[name] for name in names])
        return await cursor.fetchall()
