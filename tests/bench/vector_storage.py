"""What search, match, filling and updates of facts cost where vectors are stored in other ways.

`python -m tests.bench.vector_storage` fills one table, copies it into others that store vectors differently, and runs
the same statements on each, in turn.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, LiteralString

from psycopg import AsyncConnection
from psycopg.rows import TupleRow
from psycopg.sql import SQL, Identifier

from mnemolog.projections.db.pools import Pool, open_pool
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.options import SearchOptions
from mnemolog.projections.search.search import search
from mnemolog.projections.stores.candidates import CandidateFinder, CandidateRequest
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import CandidateQuery
from mnemolog.schemas.vector import Vector
from tests.bench.environment import environment, servers
from tests.bench.statistics import Percentiles
from tests.support.filled_scopes import MODEL, fill_scopes

DIMENSIONS: Final = 1536
SMALL_USERS: Final = 200
AT: Final = datetime(2026, 12, 1, tzinfo=UTC)
UPDATED: Final = 1000

_WIDE: Final[LiteralString] = "CREATE TABLE facts (LIKE mnemolog.facts INCLUDING ALL)"
_GENERATED: Final[LiteralString] = "ALTER TABLE facts ALTER COLUMN words DROP EXPRESSION"
WAYS: Final[Mapping[str, tuple[LiteralString, ...]]] = {
    "inline, MAIN": (_WIDE, _GENERATED),
    "inline, PLAIN": (_WIDE, _GENERATED, "ALTER TABLE facts ALTER COLUMN embedding SET STORAGE PLAIN"),
    "out of line, EXTERNAL": (
        _WIDE,
        _GENERATED,
        "ALTER TABLE facts ALTER COLUMN embedding SET STORAGE EXTERNAL, SET (toast_tuple_target = 2040)",
    ),
    "a narrow table of vectors": (
        "CREATE TABLE texts (LIKE mnemolog.facts INCLUDING ALL)",
        "ALTER TABLE texts ALTER COLUMN words DROP EXPRESSION",
        "ALTER TABLE texts DROP COLUMN embedding",
        "CREATE TABLE vectors (fact_id uuid PRIMARY KEY, embedding public.halfvec NOT NULL)",
        "ALTER TABLE vectors ALTER COLUMN embedding SET STORAGE MAIN, SET (toast_tuple_target = 4080)",
        "CREATE VIEW facts AS SELECT texts.*, vectors.embedding FROM texts JOIN vectors USING (fact_id)",
    ),
}
"""Each way with the statements that make its tables, in a schema of its own."""

_COPY: Final = SQL("INSERT INTO {table} ({names}) SELECT {names} FROM mnemolog.facts")
_END: Final = SQL(
    "UPDATE {table} SET status = 'archived' "
    "WHERE fact_id IN (SELECT fact_id FROM {table} WHERE status = 'active' ORDER BY fact_id LIMIT %s)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageFigures:
    """One way: round trips at the median for reading, seconds for filling, round trips and kB of WAL for one update."""

    way: str
    fill_seconds: float
    bytes_per_fact: float
    small_search: float
    large_search: float
    small_match: float
    large_match: float
    update: float
    update_wal: float

    @property
    def row(self) -> tuple[str, ...]:
        reads = (self.small_search, self.large_search, self.small_match, self.large_match)
        return (
            *(self.way, f"{self.fill_seconds:.1f}", f"{self.bytes_per_fact:.0f}"),
            *(*(f"{one:.0f}" for one in reads), f"{self.update:.2f}", f"{self.update_wal:.1f}"),
        )


HEAD: Final = (
    *("vectors", "filling, s", "bytes a fact", "search of 100", "of the large scope", "match of 5 in 100"),
    *("in the large scope", "update of one fact", "kB of WAL"),
)


async def measure_storage(database: str, large: int, *, repeats: int) -> tuple[StorageFigures, ...]:
    """Compare the ways with `large` facts in one scope, and 200 users of 100."""
    users = {f"small{number}": 100 for number in range(SMALL_USERS)} | {"large": large}
    await asyncio.to_thread(fill_scopes, database, users, dimensions=DIMENSIONS)
    return tuple([await _measure(database, way, repeats, number) for number, way in enumerate(WAYS)])


async def _measure(database: str, way: str, repeats: int, number: int) -> StorageFigures:
    schema = f"way{number}"
    async with _open(database, schema) as (pool, matching):
        async with pool.connection() as connection:
            seconds, facts = await _fill(connection, way, schema)
            (size,) = await _one(
                connection,
                "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class AS c "
                "JOIN pg_namespace AS n ON n.oid = relnamespace WHERE relkind = 'r' AND nspname = current_schema()",
            )
        finder = CandidateFinder(matching, user_words=("user",))
        small = [f"small{one}" for one in range(0, SMALL_USERS, 10)]
        reads = [
            await _trips(pool, [await _search_of(pool, user) for user in asked], count)
            for asked, count in ((small, repeats), (["large"], repeats // 10))
        ] + [
            await _trips(pool, [await _match_of(pool, finder, user) for user in asked], count)
            for asked, count in ((small, repeats), (["large"], repeats // 10))
        ]
        async with pool.connection() as connection:
            update, wal = await _update(connection, way)
    return StorageFigures(
        way=way,
        fill_seconds=seconds,
        bytes_per_fact=float(size) / facts,
        small_search=reads[0],
        large_search=reads[1],
        small_match=reads[2],
        large_match=reads[3],
        update=update / await _round_trip(database),
        update_wal=wal,
    )


@asynccontextmanager
async def _open(database: str, schema: str) -> AsyncIterator[tuple[Pool, Pool]]:
    """A connection as searches have it and one as matches have it; `schema` is new, and comes first in their path."""
    async with AsyncExitStack() as opened:
        pools = [
            await opened.enter_async_context(
                open_pool(database, min_size=1, max_size=1, application_name="bench", autocommit=True, looks_up=generic)
            )
            for generic in (False, True)
        ]
        for pool in pools:
            async with pool.connection() as connection:
                await connection.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}".encode())
                await connection.execute(f"SET search_path = {schema}, mnemolog, mnemolog_journal, public".encode())
        yield pools[0], pools[1]


async def _fill(connection: AsyncConnection[TupleRow], way: str, schema: str) -> tuple[float, int]:
    """Seconds of filling the tables with all of their indexes, and the number of facts."""
    for statement in WAYS[way]:
        await connection.execute(statement)
    columns = (
        "SELECT string_agg(quote_ident(attname), ', ') FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped AND "
    )
    started = time.perf_counter()
    for (table,) in await (
        await connection.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = %s::regnamespace ORDER BY 1", [schema]
        )
    ).fetchall():
        (names,) = await _one(connection, f"{columns} attrelid = '{table}'::regclass")
        await connection.execute(_COPY.format(table=Identifier(table), names=SQL(names)))
    seconds = time.perf_counter() - started
    await connection.execute("VACUUM ANALYZE")
    (facts,) = await _one(connection, "SELECT count(*) FROM facts")
    return seconds, int(facts)


async def _search_of(pool: Pool, user: str) -> Callable[[], Awaitable[None]]:
    ((text, vector), *_) = await _samples(pool, user)

    async def run() -> None:
        async with pool.connection() as connection:
            assert (
                len(await search(connection, ScopeFilter(user_id=user), text, vector, SearchOptions(top_k=10), at=AT))
                == 10
            )

    return run


async def _match_of(pool: Pool, finder: CandidateFinder, user: str) -> Callable[[], Awaitable[None]]:
    asked = [
        CandidateQuery(vector=vector, content_hash="new", key="key_3", subject="user", min_similarity=0.65)
        for _, vector in await _samples(pool, user)
    ]

    async def run() -> None:
        found = await finder.find(CandidateRequest(scope=Scope(user_id=user), queries=asked, at=AT))
        assert all(found.candidates)

    return run


async def _samples(pool: Pool, user: str) -> list[tuple[str, Vector]]:
    query = "SELECT text, embedding::real[] FROM facts WHERE user_id = %s AND status = 'active' LIMIT 5"
    async with pool.connection() as connection:
        rows = await (await connection.execute(query, [user])).fetchall()
    return [(text, Vector.from_values(MODEL, values)) for text, values in rows]


async def _trips(pool: Pool, works: Sequence[Callable[[], Awaitable[None]]], count: int) -> float:
    """The median of `count` runs, in medians of `SELECT 1` between them."""
    waits, trips = list[float](), list[float]()
    for number in range(12 + max(10, count)):
        waits.append(await _seconds(works[number % len(works)]))
        async with pool.connection() as connection:
            trips.append(await _seconds(lambda: _ask(connection)))
    return Percentiles.of(waits[12:]).p50 / Percentiles.of(trips[12:]).p50


async def _ask(connection: AsyncConnection[TupleRow]) -> None:
    await connection.execute("SELECT 1")


async def _round_trip(database: str) -> float:
    async with await AsyncConnection.connect(database, autocommit=True) as connection:
        return Percentiles.of([await _seconds(lambda: _ask(connection)) for _ in range(100)]).p50


async def _seconds(work: Callable[[], Awaitable[None]]) -> float:
    started = time.perf_counter()
    await work()
    return time.perf_counter() - started


async def _update(connection: AsyncConnection[TupleRow], way: str) -> tuple[float, float]:
    """Seconds and kB of WAL of ending one fact, of many in one statement."""
    table = "texts" if "narrow" in way else "facts"
    await connection.execute("CHECKPOINT")
    (before,) = await _one(connection, "SELECT pg_current_wal_lsn()::text")
    started = time.perf_counter()
    await connection.execute(_END.format(table=Identifier(table)), [UPDATED])
    seconds = time.perf_counter() - started
    (written,) = await _one(connection, f"SELECT pg_current_wal_lsn() - '{before}'::pg_lsn")
    return seconds / UPDATED, float(written) / UPDATED / 1000


async def _one(connection: AsyncConnection[TupleRow], query: str) -> TupleRow:
    (row,) = await (await connection.execute(query.encode())).fetchall()
    return row


async def main(large: int, repeats: int) -> None:
    async with servers() as running, environment(running, "storage") as arena:
        figures = await measure_storage(arena.database, large, repeats=repeats)
    sys.stdout.write("\n".join(" | ".join(row) for row in [HEAD, *(one.row for one in figures)]) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", type=int, default=20_000, help="facts of the large scope")
    parser.add_argument("--repeats", type=int, default=200)
    given = parser.parse_args()
    asyncio.run(main(given.large, given.repeats))
