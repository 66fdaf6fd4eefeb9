"""Compares two schemas row by row, inside Postgres."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Composable, Identifier

from mnemolog.projections.db.fetch import fetch_rows
from mnemolog.projections.sql import queries

MAX_EXAMPLES: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A row that differs: `missing` in the live table, `unfounded` (not in the log), or `changed`.

    `key` is the primary key as Postgres writes a row.
    """

    key: str
    kind: Literal["missing", "unfounded", "changed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TableComparison:
    """One table live and rebuilt. Equal digests mean equal rows.

    `live_digest` is empty where the live table is missing or has other columns. `examples` holds at most 10 of the
    `differing` rows.
    """

    table: str
    live_rows: int
    rebuilt_rows: int
    live_digest: str
    rebuilt_digest: str
    differing: int
    examples: tuple[Difference, ...]

    @property
    def equal(self) -> bool:
        return self.live_digest == self.rebuilt_digest and self.differing == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedTable:
    """The columns of a table that are compared; those of its primary key identify a row."""

    name: str
    columns: list[str]
    vectors: list[str]
    bytes: list[str]
    key: list[str] | None


async def compare_schemas(
    conn: AsyncConnection[TupleRow], live: str, rebuilt: str, *, on_progress: Callable[[int, int], None]
) -> list[TableComparison]:
    """Compare every table of schema `rebuilt` with its twin in `live`, in the caller's transaction.

    Sets the formats of the transaction and lifts its statement timeout. Reads both schemas whole; `on_progress` gets
    the numbers of compared tables and of all tables.
    """
    await conn.execute(queries("digest")["settings"])
    live_tables = {table.name: table for table in await tables_of(conn, live)}
    tables = await tables_of(conn, rebuilt)
    comparisons: list[TableComparison] = []
    for table in tables:
        twin = live if live_tables.get(table.name) == table else None
        comparisons.append(await _compare(conn, table, twin, rebuilt))
        on_progress(len(comparisons), len(tables))
    return comparisons


async def tables_of(conn: AsyncConnection[TupleRow], schema: str) -> list[ComparedTable]:
    """The tables of a schema by name, views left out."""
    return await fetch_rows(conn, ComparedTable, queries("digest")["tables"], {"schema": schema})


async def _compare(
    conn: AsyncConnection[TupleRow], table: ComparedTable, live: str | None, rebuilt: str
) -> TableComparison:
    query = queries("digest")["compare_alone" if live is None else "compare"].format(
        live=Identifier(live or rebuilt, table.name),
        rebuilt=Identifier(rebuilt, table.name),
        key=SQL(", ").join(Identifier(name) for name in table.key or table.columns),
        columns=SQL(", ").join(_comparable_column(name, table) for name in table.columns),
    )
    (row,) = await fetch_rows(conn, dict, query, {"examples": MAX_EXAMPLES})
    examples = tuple(Difference(**one) for one in row.pop("examples"))
    return TableComparison(table=table.name, **row, examples=examples)


def _comparable_column(column: str, table: ComparedTable) -> Composable:
    if column in table.vectors:
        return SQL("sha256(halfvec_send({}))").format(Identifier(column))
    if column in table.bytes:
        return SQL("sha256({})").format(Identifier(column))
    return Identifier(column)
