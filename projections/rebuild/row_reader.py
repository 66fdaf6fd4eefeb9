"""Reads large results over a connection of its own, in a thread."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TypeVar

import psycopg
from psycopg import Connection
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Composed
from psycopg.types.json import set_json_loads

from mnemolog.projections.rebuild.connections import session_settings

CANCEL_SECONDS: Final = 0.1
T = TypeVar("T")


class RowReader:
    """One connection, whose queries wait for each other; it sees what is committed.

    An asyncio connection waits anew for every 16 kB of a result, which takes three times as long as reading them.
    """

    def __init__(self, connection: Connection[TupleRow]) -> None:
        self._connection = connection
        self._in_use = asyncio.Lock()

    async def fetch(self, query: SQL | Composed, parameters: Mapping[str, Any]) -> list[TupleRow]:
        """All rows. Where this is cancelled, so is the query, and nothing uses the connection any more."""
        async with self._in_use:
            reading = asyncio.ensure_future(asyncio.to_thread(self._fetch, query, parameters))
            try:
                return await asyncio.shield(reading)
            except asyncio.CancelledError:
                await _completed(asyncio.ensure_future(self._stop(reading)))
                raise

    async def _stop(self, reading: "asyncio.Future[list[TupleRow]]") -> None:
        """Cancel the query, again and again: it may not have begun yet."""
        while not reading.done():
            await asyncio.gather(asyncio.to_thread(self._connection.cancel_safe), return_exceptions=True)
            await asyncio.wait([reading], timeout=CANCEL_SECONDS)
        await asyncio.gather(reading, return_exceptions=True)

    def _fetch(self, query: SQL | Composed, parameters: Mapping[str, Any]) -> list[TupleRow]:
        return self._connection.execute(query, parameters, binary=True).fetchall()


@asynccontextmanager
async def open_row_reader(
    url: str, name: str, *, schema: str, json_loads: Callable[[str | bytes], Any] | None = None
) -> AsyncIterator[RowReader]:
    """A reader of the tables in `schema`; `json_loads` makes the values of its JSON."""
    settings = session_settings(url, name, schema=schema)
    connecting = asyncio.ensure_future(asyncio.to_thread(Connection.connect, url, autocommit=True, **settings))
    try:
        connection = await asyncio.shield(connecting)
    except asyncio.CancelledError:
        with suppress(psycopg.Error):
            (await _completed(connecting)).close()
        raise
    try:
        if json_loads:
            set_json_loads(json_loads, connection)
        yield RowReader(connection)
    finally:
        connection.close()


async def _completed(work: "asyncio.Future[T]") -> T:
    """The result, however often this is cancelled meanwhile: a thread cannot be left alone with a connection."""
    while not work.done():
        try:
            await asyncio.wait([work])
        except asyncio.CancelledError:
            continue
    return work.result()
