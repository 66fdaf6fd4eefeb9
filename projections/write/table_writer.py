"""Writes rows to a table by COPY in the binary format."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg.sql import SQL
from psycopg.types.json import Jsonb

Connection = AsyncConnection[TupleRow]
Row = tuple[Any, ...]
SCOPE_TYPES: Final = ["text"] * 5


async def copy_binary(connection: Connection, statement: SQL, types: Sequence[str], rows: Iterable[Row]) -> None:
    """Write `rows` with a COPY statement; without rows nothing is sent."""
    first = next(rows := iter(rows), None)
    if first is None:
        return
    async with connection.cursor() as cursor, cursor.copy(statement) as copy:
        copy.set_types(types)
        await copy.write_row(first)
        for row in rows:
            await copy.write_row(row)


def jsonb(text: str | bytes) -> Jsonb:
    """JSON that is text already."""
    return Jsonb(text, dumps=lambda given: given)
