"""Verifies the copy of the log in the live tables, row by row, while the log is folded."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final, LiteralString

import orjson
from psycopg.sql import SQL, Composed, Identifier
from psycopg.types.json import Jsonb

from mnemolog.projections.database import LIVE_SCHEMA, RowConnection, fetch_value
from mnemolog.projections.errors import LogCopyDamagedError
from mnemolog.projections.rebuild.connections import RowReader, open_row_reader
from mnemolog.projections.rebuild.digest import TableComparison
from mnemolog.projections.rebuild.swap import KEPT_TABLES
from mnemolog.projections.sql import queries
from mnemolog.projections.write.row_writer import copy_fact_rows
from mnemolog.projections.write.rows import Changes
from mnemolog.projections.write.tables import COMMITS, COMMITS_WITHOUT_RECORDS, MEMORY_EVENTS, Table

_SQL: Final = queries("rebuild")


def _kept_rows(table: Table[Any], order: LiteralString) -> Composed:
    live = Identifier(LIVE_SCHEMA, table.name)
    return _SQL["kept_rows"].format(columns=table.names, table=live, order=SQL(order))


_KEPT_EVENTS: Final = _kept_rows(MEMORY_EVENTS, "log_offset, ordinal")


class LogCopyVerifier:
    """Writes the rows of a fold without commits and events, which have to be in the live tables already.

    With `with_records` the bytes of the records are compared too; a log that is read from the copy itself needs none.
    Numbers in JSON are compared as floats: one that Postgres writes in another way may be taken for damage.
    """

    def __init__(self, live: RowReader, *, with_records: bool) -> None:
        self._live = live
        self._commits = COMMITS if with_records else COMMITS_WITHOUT_RECORDS
        self._kept_commits = _kept_rows(self._commits, "log_offset")

    async def write_rows(self, connection: RowConnection, changes: Changes) -> None:
        """Raises `LogCopyDamagedError` where a row is missing, differs, or is one too many."""
        await copy_fact_rows(connection, changes)
        # The changes are those of a batch: each of its records is a commit or a rejection.
        positions = [row.position for row in changes.commits] + [row.position for row in changes.rejections]
        first, last = min(positions), max(positions)
        partition, start, stop = first.partition, first.offset, last.offset + 1
        asked = {"partition": partition, "start": start, "stop": stop}
        commits = await self._live.fetch(self._kept_commits, asked)
        if commits != list(map(self._commits.values, changes.commits)):
            raise LogCopyDamagedError("commits", partition, start, stop)
        events = await self._live.fetch(_KEPT_EVENTS, asked)
        if events != list(map(MEMORY_EVENTS.values, changes.events)):
            raise LogCopyDamagedError("memory_events", partition, start, stop)


@asynccontextmanager
async def open_live_copy(url: str) -> AsyncIterator[RowReader]:
    """The reader that a `LogCopyVerifier` needs."""
    async with open_row_reader(url, "rebuild-verify", schema=LIVE_SCHEMA, json_loads=_StoredValue) as reader:
        yield reader


class _StoredValue:
    """A value of a jsonb column, equal to JSON that is to be stored and says the same."""

    __hash__ = None  # type: ignore[assignment] # equal values may have different texts

    def __init__(self, text: str | bytes) -> None:
        self._text = text

    def __eq__(self, other: object) -> bool:
        try:
            return isinstance(other, Jsonb) and bool(orjson.loads(self._text) == orjson.loads(other.obj))
        except orjson.JSONDecodeError:  # a number that jsonb holds and no commit does
            return False


async def compare_kept_tables(connection: RowConnection) -> list[TableComparison]:
    """The comparisons of tables that were verified while the log was folded.

    Raises `LogCopyDamagedError` where one has rows outside of the log.
    """
    offsets = Identifier(LIVE_SCHEMA, "projection_offsets")
    compared = []
    for table in KEPT_TABLES:
        live = Identifier(LIVE_SCHEMA, table)
        outside = await connection.execute(_SQL["row_outside_log"].format(table=live, offsets=offsets))
        if found := await outside.fetchone():
            raise LogCopyDamagedError(table, found[0], found[1], found[1] + 1)
        rows = await fetch_value(connection, SQL("SELECT count(*) FROM {}").format(live), {})
        compared.append(TableComparison(table=table, live_rows=rows, rebuilt_rows=rows, kept=True))
    return compared
