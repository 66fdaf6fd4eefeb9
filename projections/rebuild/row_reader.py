"""Reads large results over a connection of its own, in a thread."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from psycopg import Connection
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Composed
from psycopg.types.json import set_json_loads

from mnemolog.projections.rebuild.connections import session_settings


class RowReader:
    """One connection, whose queries wait for each other; it sees what is committed.

    An asyncio connection waits anew for every 16 kB of a result, which takes three times as long as reading them.
    """

    def __init__(self, connection: Connection[TupleRow]) -> None:
        self._connection = connection

    async def fetch(self, query: SQL | Composed, parameters: Mapping[str, Any]) -> list[TupleRow]:
        """All rows. Where this is cancelled, so is the query, and nothing uses the connection any more."""
        reading = asyncio.ensure_future(asyncio.to_thread(self._fetch, query, parameters))
        try:
            return await asyncio.shield(reading)
        except asyncio.CancelledError:
            await asyncio.to_thread(self._connection.cancel_safe)
            await asyncio.gather(reading, return_exceptions=True)
            raise

    def _fetch(self, query: SQL | Composed, parameters: Mapping[str, Any]) -> list[TupleRow]:
        return self._connection.execute(query, parameters, binary=True).fetchall()


@asynccontextmanager
async def open_row_reader(
    url: str, name: str, *, schema: str, json_loads: Callable[[str | bytes], Any] | None = None
) -> AsyncIterator[RowReader]:
    """A reader of the tables in `schema`; `json_loads` makes the values of its JSON."""
    settings = session_settings(url, name, schema=schema)
    connection = await asyncio.to_thread(Connection.connect, url, autocommit=True, **settings)
    try:
        if json_loads:
            set_json_loads(json_loads, connection)
        yield RowReader(connection)
    finally:
        connection.close()
