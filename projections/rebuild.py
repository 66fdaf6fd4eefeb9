"""All tables made anew from the log, beside the live ones, held against them, and swapped in.

Nothing here asks a model: everything that a table needs is in the log.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Final

import structlog
from psycopg import AsyncConnection, IsolationLevel

from mnemolog.projections.bulk import Connection, refresh_all_profiles
from mnemolog.projections.digest import TableComparison, compare
from mnemolog.projections.log_source import LogSource
from mnemolog.projections.migrate import LIVE_SCHEMA
from mnemolog.projections.pools import connection_settings, prepare
from mnemolog.projections.query_errors import SwapRefusedError
from mnemolog.projections.refolding import BATCH, Refolding
from mnemolog.projections.sql import queries
from mnemolog.projections.swapping import (
    NEXT_SCHEMA,
    OLD_SCHEMA,
    analyze,
    begin,
    drop,
    live_offsets,
    paused,
    refuse_dependents,
    shed_indexes,
    swap,
)

CATCH_UPS: Final = 20
"""Live commits go on meanwhile: so often they are caught up with before the projectors are paused for the rest."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a step of a rebuild is, in records or tables."""

    step: str
    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildReport:
    """What a rebuild found: every table live and rebuilt, at the same offsets of the log.

    `records` counts the folded records of the log, `seconds` the whole of it.
    """

    tables: tuple[TableComparison, ...]
    offsets: dict[int, int]
    records: int
    swapped: bool
    seconds: float

    @property
    def equal(self) -> bool:
        return all(table.equal for table in self.tables)


Told = Callable[[Progress], None]


async def rebuild(
    url: str, source: LogSource, *, verify_only: bool = False, progress: Told | None = None
) -> RebuildReport:
    """Fold the whole log into a new schema, compare every row with the live tables, and swap.

    Tables that differ are swapped as well: mending them is what a rebuild is for. With `verify_only` nothing is.
    Projectors pause for moments, readers never. Commits that arrive meanwhile are in the new tables. Interrupted,
    it leaves the live tables as they were. `progress` is told of every batch; what it raises ends the rebuild.

    Raises `mnemolog.projections.query_errors.RebuildError` and `LogGapError`, each of which says what to do.
    """
    started = perf_counter()
    async with _connection(url, "rebuild") as connection, _connection(url, "rebuild-compare") as reader:
        await begin(connection)
        if not verify_only:
            await refuse_dependents(connection)
        telling = _Telling(progress)
        refolding = Refolding(connection, source, telling.folded)
        await _fill(connection, refolding, telling)
        tables = await _compare(connection, reader, refolding, telling)
        if verify_only:
            await drop(connection, NEXT_SCHEMA)
        else:
            await _swap(connection, refolding, await _ends(source))
        return RebuildReport(
            tables=tuple(tables),
            offsets=refolding.offsets,
            records=telling.records,
            swapped=not verify_only,
            seconds=perf_counter() - started,
        )


async def _fill(connection: Connection, refolding: Refolding, telling: "_Telling") -> None:
    targets = await live_offsets(connection)
    telling.expect(refolding.behind(targets))
    indexes = await shed_indexes(connection)
    await refolding.fill(targets)
    for statement in indexes:
        await connection.execute(statement)
    await analyze(connection)
    await refresh_all_profiles(connection)


async def _compare(
    connection: Connection, reader: Connection, refolding: Refolding, telling: "_Telling"
) -> list[TableComparison]:
    """Compare in a snapshot that sees both schemas at the same offsets, so that the projectors need not wait for it."""
    await _catch_up(connection, refolding)
    await reader.set_isolation_level(IsolationLevel.REPEATABLE_READ)
    async with reader.transaction():
        async with paused(connection):
            await refolding.settle(await live_offsets(connection))
            await reader.execute(queries("rebuild")["take_snapshot"])
        return await compare(reader, LIVE_SCHEMA, NEXT_SCHEMA, compared=telling.compared)


async def _swap(connection: Connection, refolding: Refolding, ends: Mapping[int, int]) -> None:
    """Swap at the live offsets, or at the end that the log had: tables that lag or were lost are made whole."""
    await refolding.settle(ends)
    await _catch_up(connection, refolding)
    async with paused(connection):
        await refolding.settle(await live_offsets(connection))
        await swap(connection)
    try:
        await drop(connection, OLD_SCHEMA)
    except SwapRefusedError:
        log.warning("old_tables_kept", schema=OLD_SCHEMA)  # a reader is still in them; the next rebuild drops them


async def _catch_up(connection: Connection, refolding: Refolding) -> None:
    for _ in range(CATCH_UPS):
        targets = await live_offsets(connection)
        if refolding.behind(targets) <= BATCH:
            return
        await refolding.settle(targets)


async def _ends(source: LogSource) -> dict[int, int]:
    return {partition: await source.end_offset(partition) for partition in await source.partitions()}


@asynccontextmanager
async def _connection(url: str, name: str) -> AsyncIterator[Connection]:
    """A connection that works in the schema of the rebuild and may take its time."""
    settings = connection_settings(
        url,
        application_name=f"mnemolog-{name}",
        statement_timeout=0,
        search_path=f"{NEXT_SCHEMA},mnemolog_journal,public",
    )
    async with await AsyncConnection.connect(url, autocommit=True, **settings) as connection:
        await prepare(connection)
        yield connection


class _Telling:
    """Turns what happens into `Progress`."""

    def __init__(self, told: Told | None) -> None:
        self._told = told
        self._expected = 0
        self.records = 0

    def expect(self, records: int) -> None:
        self._expected = records
        self._tell("folding", 0, records)

    def folded(self, records: int) -> None:
        self.records += records
        self._tell("folding", self.records, max(self.records, self._expected))

    def compared(self, done: int, total: int) -> None:
        self._tell("comparing", done, total)

    def _tell(self, step: str, done: int, total: int) -> None:
        if self._told is not None:
            self._told(Progress(step=step, done=done, total=total))
