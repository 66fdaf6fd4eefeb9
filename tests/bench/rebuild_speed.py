"""How fast tables are made anew from their log, beside Postgres' own COPY of the same rows into the same tables.

`python -m tests.bench.rebuild_speed --facts 1000000 --runs 3` measures that alone, several times, and prints it.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from psycopg import AsyncConnection
from psycopg.sql import SQL, Composed, Identifier

from mnemolog.admin import Source, rebuild
from mnemolog.projections.migrations.upgrade import create_projection_schema
from mnemolog.projections.rebuild.digest import ComparedTable, tables_of
from mnemolog.projections.rebuild.rebuild import RebuildReport
from mnemolog.streams.kafka.readers import open_kafka_log
from tests.bench.environment import Environment, environment, servers
from tests.bench.markdown import table
from tests.bench.samples import fill_log

# With the copy of the log verified and kept, and with all tables written.
REBUILDS: Final[tuple[tuple[Source, bool], ...]] = (("kafka", False), ("table", False), ("kafka", True))
COPY_SCHEMA: Final = "bench_copy"
CHUNK: Final = 1 << 20
# Two parts of about the same size: the pages with even and with odd numbers.
_EXPORT: Final = SQL(
    "COPY (SELECT {columns} FROM mnemolog.{table} WHERE mod((ctid::text::point)[0]::bigint, 2) = {part}) "
    "TO STDOUT (FORMAT binary)"
)
_IMPORT: Final = SQL("COPY {table} ({columns}) FROM STDIN (FORMAT binary)")


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildFigures:
    """A rebuild with its comparison of all rows, without the swap; facts a second over the whole of it."""

    source: Source
    full: bool
    seconds: float
    facts_per_second: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildSpeed:
    """Rebuilds of `facts` facts; seconds of COPY of the same rows into the same tables, over one or two connections."""

    facts: int
    copy_by_one: float
    copy_by_two: float
    rebuilds: tuple[RebuildFigures, ...]


def rebuild_table(measured: Sequence[RebuildSpeed]) -> str:
    head = ("facts", "log read from", "seconds", "facts/s", "times COPY by one connection", "times COPY by two")
    rows = [
        (
            *(str(speed.facts), f"{one.source}, --full" if one.full else one.source),
            *(f"{one.seconds:.1f}", f"{one.facts_per_second:.0f}"),
            *(f"{one.seconds / copy:.2f} ({copy:.1f} s)" for copy in (speed.copy_by_one, speed.copy_by_two)),
        )
        for speed in measured
        for one in speed.rebuilds
    ]
    return table(head, rows)


async def measure_rebuilds(arena: Environment, facts: int) -> RebuildSpeed:
    """Rebuild the tables of `arena`, which have `facts` facts, from both sources."""
    by_one, by_two = await _copy_seconds(arena)
    rebuilds = []
    for source, full in REBUILDS:
        report = await _rebuild(arena, source, verify_only=True, full=full)
        if not report.equal or any(table.kept for table in report.tables) == full:
            raise RuntimeError(f"the rebuild from {source} is not what it should be: the figures mean nothing")
        speed = facts / report.seconds
        rebuilds.append(RebuildFigures(source=source, full=full, seconds=report.seconds, facts_per_second=speed))
    return RebuildSpeed(facts=facts, copy_by_one=by_one, copy_by_two=by_two, rebuilds=tuple(rebuilds))


async def _rebuild(arena: Environment, source: Source, *, verify_only: bool, full: bool) -> RebuildReport:
    return await rebuild(arena.settings, source, verify_only=verify_only, full=full, on_progress=lambda *_: None)


async def _copy_seconds(arena: Environment) -> tuple[float, float]:
    """Seconds over one and over two connections."""
    async with await AsyncConnection.connect(arena.database, autocommit=True) as connection:
        tables = await tables_of(connection, "mnemolog")
        folder = arena.servers.folder / f"copy_{connection.info.dbname}"
        folder.mkdir()
        for one in tables:
            for part in (0, 1):
                query = _EXPORT.format(columns=_columns(one), table=Identifier(one.name), part=part)
                with (folder / f"{one.name}.{part}").open("wb") as file:
                    async with connection.cursor() as cursor, cursor.copy(query) as copy:
                        async for data in copy:
                            file.write(data)
        seconds = []
        for parts in ([(0, 1)], [(0,), (1,)]):
            await create_projection_schema(connection, COPY_SCHEMA)
            started = time.perf_counter()
            await asyncio.gather(*(_import(arena.database, tables, chosen, folder) for chosen in parts))
            seconds.append(time.perf_counter() - started)
            await connection.execute(SQL("DROP SCHEMA {} CASCADE").format(Identifier(COPY_SCHEMA)))
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    return seconds[0], seconds[1]


async def _import(database: str, tables: Sequence[ComparedTable], parts: Sequence[int], folder: Path) -> None:
    async with await AsyncConnection.connect(database, autocommit=True) as connection:
        for one in tables:
            query = _IMPORT.format(columns=_columns(one), table=Identifier(COPY_SCHEMA, one.name))
            for part in parts:
                with (folder / f"{one.name}.{part}").open("rb") as file:
                    async with connection.cursor() as cursor, cursor.copy(query) as copy:
                        while data := file.read(CHUNK):
                            await copy.write(data)


def _columns(compared: ComparedTable) -> Composed:
    return SQL(", ").join(map(Identifier, compared.columns))


async def main(facts: int, runs: int) -> None:
    """The tables are filled by a rebuild for which all rows were lost, which is faster than a projector."""
    async with servers() as running, environment(running, f"rebuild{facts}") as arena:
        await fill_log(arena, facts)
        async with (
            await AsyncConnection.connect(arena.database, autocommit=True) as connection,
            open_kafka_log(arena.settings.kafka_address, prefix=arena.settings.topic_prefix) as log,
        ):
            insert = "INSERT INTO mnemolog.projection_offsets (partition, next_offset) VALUES (%s, %s)"
            for partition in await log.partitions():
                await connection.execute(insert, [partition, await log.end_offset(partition)])
        await _rebuild(arena, "kafka", verify_only=False, full=True)
        for _ in range(runs):
            sys.stdout.write(rebuild_table([await measure_rebuilds(arena, facts)]) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=1)
    given = parser.parse_args()
    asyncio.run(main(given.facts, given.runs))
