"""Verifies the copy of the log in the live tables, row by row, while the log is folded."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from psycopg.sql import Identifier
from psycopg.types.json import Jsonb, set_json_loads
from pydantic_core import from_json

from mnemolog.projections.db.fetch import fetch_value
from mnemolog.projections.db.pools import LIVE_SCHEMA
from mnemolog.projections.rebuild.digest import TableComparison
from mnemolog.projections.rebuild.errors import LogCopyDamagedError
from mnemolog.projections.rebuild.kept_tables import KEPT_TABLES
from mnemolog.projections.sql import queries
from mnemolog.projections.write.log_rows import commit_row, event_row
from mnemolog.projections.write.row_writer import copy_fact_rows
from mnemolog.projections.write.rows import Changes
from mnemolog.projections.write.table_writer import Connection, Row

_SQL: Final = queries("rebuild")
_COMMITS, _EVENTS = (Identifier(LIVE_SCHEMA, table) for table in KEPT_TABLES)


class LogCopyVerifier:
    """Writes the rows of a fold, but for those of the copy of the log: these have to be in the live tables already.

    With `with_records` the bytes of the records are compared too; a log that is read from the copy itself needs none.
    Numbers in JSON are compared as floats: one that Postgres writes in another way may be taken for damage.
    """

    def __init__(self, connection: Connection, *, with_records: bool) -> None:
        set_json_loads(from_json, connection)
        self._with_records = with_records

    async def write_rows(self, connection: Connection, changes: Changes) -> None:
        """Raises `LogCopyDamagedError` where a row is missing, differs, or is one too many."""
        await copy_fact_rows(connection, changes)
        expected_commits = [commit_row(row) for row in changes.commits]
        if not self._with_records:
            expected_commits = [(*row[:-1], None) for row in expected_commits]
        expected_events = [event_row(row) for row in changes.events]
        asked = _offsets(changes) | {"with_records": self._with_records}
        commits = await connection.execute(_SQL["kept_commits"].format(table=_COMMITS), asked, binary=True)
        _check("commits", asked, await commits.fetchall(), expected_commits)
        events = await connection.execute(_SQL["kept_events"].format(table=_EVENTS), asked, binary=True)
        _check("memory_events", asked, await events.fetchall(), expected_events)


async def compare_kept_tables(connection: Connection) -> list[TableComparison]:
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


def _check(table: str, asked: dict[str, Any], live: Sequence[Row], expected: Iterable[Row]) -> None:
    if live != [tuple(map(_read, row)) for row in expected]:
        raise LogCopyDamagedError(table, asked["partition"], asked["start"], asked["stop"])


def _read(value: Any) -> Any:
    """A value as it comes back from Postgres."""
    return from_json(value.obj) if isinstance(value, Jsonb) else value
