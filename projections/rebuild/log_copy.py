"""Verifies the copy of the log in the live tables, row by row, while the log is folded."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import orjson
from psycopg.sql import Identifier
from psycopg.types.json import Jsonb

from mnemolog.projections.database import LIVE_SCHEMA, CopyRow, RowConnection, fetch_value
from mnemolog.projections.errors import LogCopyDamagedError
from mnemolog.projections.rebuild.connections import RowReader, open_row_reader
from mnemolog.projections.rebuild.digest import TableComparison
from mnemolog.projections.rebuild.swap import KEPT_TABLES
from mnemolog.projections.sql import queries
from mnemolog.projections.write.row_writer import commit_row, copy_fact_rows, event_row
from mnemolog.projections.write.rows import Changes

_SQL: Final = queries("rebuild")
_COMMITS, _EVENTS = (Identifier(LIVE_SCHEMA, table) for table in KEPT_TABLES)


class LogCopyVerifier:
    """Writes the rows of a fold, but for those of the copy of the log: these have to be in the live tables already.

    With `with_records` the bytes of the records are compared too; a log that is read from the copy itself needs none.
    Numbers in JSON are compared as floats: one that Postgres writes in another way may be taken for damage.
    """

    def __init__(self, live: RowReader, *, with_records: bool) -> None:
        self._live = live
        self._with_records = with_records

    async def write_rows(self, connection: RowConnection, changes: Changes) -> None:
        """Raises `LogCopyDamagedError` where a row is missing, differs, or is one too many."""
        await copy_fact_rows(connection, changes)
        expected_commits = [commit_row(row) for row in changes.commits]
        if not self._with_records:
            expected_commits = [(*row[:-1], None) for row in expected_commits]
        expected_events = [event_row(row) for row in changes.events]
        asked = _offsets(changes) | {"with_records": self._with_records}
        commits = await self._live.fetch(_SQL["kept_commits"].format(table=_COMMITS), asked)
        _check("commits", asked, commits, expected_commits)
        events = await self._live.fetch(_SQL["kept_events"].format(table=_EVENTS), asked)
        _check("memory_events", asked, events, expected_events)


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
        rows = await fetch_value(connection, _SQL["count_rows"].format(table=live), {})
        compared.append(TableComparison.of_kept_table(table, rows))
    return compared


def _offsets(changes: Changes) -> dict[str, Any]:
    """From where to where the changes are those of a batch: each of its records is a commit or a rejection."""
    positions = [row.position for row in changes.commits] + [row.position for row in changes.rejections]
    first, last = min(positions), max(positions)
    return {"partition": first.partition, "start": first.offset, "stop": last.offset + 1}


def _check(table: str, asked: dict[str, Any], live: Sequence[CopyRow], expected: Sequence[CopyRow]) -> None:
    if live != expected:
        raise LogCopyDamagedError(table, asked["partition"], asked["start"], asked["stop"])
