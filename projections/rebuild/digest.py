"""Compares two schemas row by row, inside Postgres."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from psycopg.sql import SQL, Composed, Identifier

from mnemolog.projections.database import RowConnection, fetch_rows, fetch_value
from mnemolog.projections.rebuild.connections import Job, run_jobs
from mnemolog.projections.sql import queries

BLOCKS_PER_JOB: Final = 16_384
"""128 MiB of a table without what it stores out of line: some seconds' work."""
_SQL: Final = queries("digest")


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
    `differing` rows. Of a table that is `kept` every row was verified while the log was folded, without digests.
    """

    table: str
    live_rows: int
    rebuilt_rows: int
    live_digest: str = ""
    rebuilt_digest: str = ""
    differing: int = 0
    examples: tuple[Difference, ...] = ()
    kept: bool = False

    @property
    def equal(self) -> bool:
        return self.live_digest == self.rebuilt_digest and self.differing == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedTable:
    """The columns of a table that are compared; those of its primary key identify a row. `blocks` are its pages."""

    name: str
    blocks: int = field(compare=False)
    columns: list[str]
    key: list[str] | None


@dataclass(slots=True)
class _Digest:
    """The rows of one table so far: their number, and the exclusive or of their hashes."""

    rows: int = 0
    hash: int = 0

    def add(self, rows: int, hash_: int) -> None:
        self.rows, self.hash = self.rows + rows, self.hash ^ hash_

    def __str__(self) -> str:
        return f"{self.hash % 2**64:016x}"


async def compare_schemas(
    url: str, conn: RowConnection, live: str, rebuilt: str, *, on_progress: Callable[[int, int], None]
) -> list[TableComparison]:
    """Compare every table of schema `rebuilt` with its twin in `live`, as the transaction of `conn` sees them.

    Reads both schemas whole, over one connection for each core; rows are matched by their keys only in tables whose
    digests differ. `on_progress` gets the numbers of compared parts and of all.
    """
    live_tables = {table.name: table for table in await tables_of(conn, live)}
    tables = await tables_of(conn, rebuilt)
    twins = [live_tables[table.name] for table in tables if live_tables.get(table.name) == table]
    digests: dict[tuple[str, str], _Digest] = defaultdict(_Digest)
    sides = [*((rebuilt, table) for table in tables), *((live, table) for table in twins)]
    await run_jobs(
        url,
        [job for schema, table in sides for job in _digest_jobs(schema, table, digests[schema, table.name])],
        on_progress,
        snapshot=await fetch_value(conn, _SQL["export_snapshot"], {}),
    )
    return [await _comparison(conn, table, digests, live, rebuilt) for table in tables]


async def tables_of(conn: RowConnection, schema: str) -> list[ComparedTable]:
    """The tables of a schema by name, views left out."""
    return await fetch_rows(conn, ComparedTable, _SQL["tables"], {"schema": schema})


def _digest_jobs(schema: str, table: ComparedTable, digest: _Digest) -> Iterator[Job]:
    """One for each part of the table. The last one has no end: pages may have been added since they were counted."""
    query = _SQL["digest"].format(table=Identifier(schema, table.name), columns=_columns(table.columns))
    starts = range(0, max(1, table.blocks), BLOCKS_PER_JOB)

    def job(start: int) -> Job:
        stop = f"({start + BLOCKS_PER_JOB},0)" if start != starts[-1] else None

        async def run(conn: RowConnection) -> None:
            part = await conn.execute(query, {"start": f"({start},0)", "stop": stop}, prepare=False)
            ((rows, hash_),) = await part.fetchall()
            digest.add(rows, hash_)

        return run

    return map(job, starts)


async def _comparison(
    conn: RowConnection, table: ComparedTable, digests: dict[tuple[str, str], _Digest], live: str, rebuilt: str
) -> TableComparison:
    live_digest, rebuilt_digest = digests.get((live, table.name)), digests[rebuilt, table.name]
    compared = TableComparison(
        table=table.name,
        live_rows=live_digest.rows if live_digest else 0,
        rebuilt_rows=rebuilt_digest.rows,
        live_digest=str(live_digest or ""),
        rebuilt_digest=str(rebuilt_digest),
    )
    if live_digest is None:
        return replace(compared, differing=rebuilt_digest.rows)
    if live_digest == rebuilt_digest:
        return compared
    await conn.execute(_SQL["settings"])
    query = _SQL["differences"].format(
        live=Identifier(live, table.name),
        rebuilt=Identifier(rebuilt, table.name),
        key=_columns(table.key or table.columns),
        columns=_columns(table.columns),
    )
    (row,) = await fetch_rows(conn, dict, query, {"examples": 10})
    return replace(compared, differing=row["differing"], examples=tuple(Difference(**one) for one in row["examples"]))


def _columns(names: Iterable[str]) -> Composed:
    return SQL(", ").join(map(Identifier, names))
