"""Searches in small and large scopes: alone, eight at once, and while commits are projected; with and without indexes.

`python -m tests.bench.search_load --facts 1000000` measures that alone and prints it.
"""

import argparse
import asyncio
import random
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.database import Pool, open_pool
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.rebuild.scope_indexes import LEAST_FACTS, index_scopes
from mnemolog.projections.search.search import Findings, Hit, SearchOptions, search
from mnemolog.schemas.vector import Vector
from tests.bench.commit_writer import commits_written
from tests.bench.environment import Environment, environment, servers
from tests.bench.processes import cpu_seconds
from tests.bench.statistics import Percentiles
from tests.support.filled_scopes import MODEL, fill_scopes

DIMENSIONS: Final = 1536
FACTS_PER_USER: Final = 100
LARGE: Final = {"one": 50_000, "shared": 200_000}
AT_ONCE: Final = 8
WARM_UP: Final = 12
LEAST: Final = 3
SECONDS: Final = 10.0
COMMITS_PER_SECOND: Final = 100.0
RECALL_QUESTIONS: Final = 30
UNKNOWN_WORD: Final = "xyzzy"
AT: Final = datetime(2027, 12, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Searches of one kind: milliseconds of each, how many a second, and a median `SELECT 1` in milliseconds.

    `cpu` are the milliseconds that all processes of Postgres spend on each, those of a writer beside them too.
    """

    milliseconds: Percentiles
    per_second: float
    round_trip: float
    cpu: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFigures:
    """Searches in scopes of `scope_facts` facts, of `facts` in all; beside the last `written` commits a second went on.

    `recall` is the share of the 100 nearest facts of a scan that the indexes find too; None without indexes.
    """

    facts: int
    scope_facts: int
    indexed: bool
    alone: Load
    at_once: Load
    while_writing: Load
    written: float
    recall: float | None = None

    @property
    def row(self) -> tuple[str, ...]:
        """Cells of a table: milliseconds, and in brackets round trips."""
        cells = [
            f"{value:.1f} ({value / load.round_trip:.0f})"
            for load in (self.alone, self.at_once, self.while_writing)
            for value in (load.milliseconds.p50, load.milliseconds.p95)
        ]
        scope = f"{self.scope_facts}{', indexed' if self.indexed else ''}"
        recall = "" if self.recall is None else f"{self.recall:.3f}"
        rates = (f"{self.at_once.per_second:.0f}", f"{self.written:.0f}")
        return (str(self.facts), scope, *cells, *rates, f"{self.alone.cpu:.2f}", recall)


HEAD: Final = (
    *("facts", "of the scope", "alone: p50", "p95", "8 at once: p50", "p95", "while writing: p50", "p95"),
    *("searches/s at once", "commits/s written", "CPU ms of Postgres, alone", "recall"),
)


async def measure_search_load(arena: Environment, facts: int, *, seconds: float = SECONDS) -> tuple[SearchFigures, ...]:
    """Fill a database with `facts` facts, of large scopes as far as they fit into a half, and of users of 100."""
    sizes = {user: size for user, size in LARGE.items() if size <= facts / 2}
    users = (facts - sum(sizes.values())) // FACTS_PER_USER
    small = {f"small{number}": FACTS_PER_USER for number in range(users)}
    await asyncio.to_thread(fill_scopes, arena.database, small | sizes, dimensions=DIMENSIONS)
    async with open_pool(
        arena.database, min_size=AT_ONCE, max_size=AT_ONCE, application_name="bench", autocommit=True
    ) as pool:
        meter = _Meter(arena, pool, facts, users, seconds)
        figures = [await meter.measure(sorted(small)[:500], FACTS_PER_USER)]
        exact = {user: await meter.exact_hits(user) for user in sizes}
        figures += [await meter.measure([user], size) for user, size in sizes.items()]
        await index_scopes(arena.database, least=LEAST_FACTS)
        figures.append(replace(await meter.measure(sorted(small)[:500], FACTS_PER_USER), indexed=True))
        for user, size in sizes.items():
            recall = await meter.recall(user, exact[user])
            figures.append(replace(await meter.measure([user], size), indexed=True, recall=recall))
    return tuple(figures)


class _Meter:
    """Searches in scopes of a filled database."""

    def __init__(self, arena: Environment, pool: Pool, facts: int, users: int, seconds: float) -> None:
        self._url = arena.database
        self._postgres = {"postgres": arena.servers.pids["postgres"]}
        self._pool = pool
        self._facts = facts
        self._users = users
        self._seconds = seconds

    async def measure(self, users: Sequence[str], size: int) -> SearchFigures:
        """Search in the scopes of `users`, which have `size` facts each."""
        asked = [one for user in users for one in await self._questions(user, 1 if len(users) > 1 else 40)]
        await self._searches(await self._questions("small0", 1), WARM_UP, at_once=AT_ONCE)  # each connection has a plan
        await self._searches(asked, 1, at_once=AT_ONCE)
        alone, at_once = await self._load(asked), await self._load(asked, at_once=AT_ONCE)
        async with commits_written(self._url, self._users, COMMITS_PER_SECOND) as writing:
            while_writing = await self._load(asked)
        return SearchFigures(
            facts=self._facts,
            scope_facts=size,
            indexed=False,
            alone=alone,
            at_once=at_once,
            while_writing=replace(while_writing, round_trip=alone.round_trip),
            written=writing.per_second,
        )

    async def exact_hits(self, user: str) -> list[list[Hit]]:
        async with self._pool.connection() as connection:
            questions = await self._questions(user, RECALL_QUESTIONS)
            return [[*await _search(connection, user, UNKNOWN_WORD, vector, 100)] for _, _, vector in questions]

    async def recall(self, user: str, exact: Sequence[Sequence[Hit]]) -> float:
        """The share of `exact` hits that are found now."""
        found = await self.exact_hits(user)
        shares = [
            len({hit.fact.fact_id for hit in one} & {hit.fact.fact_id for hit in other}) / len(other)
            for one, other in zip(found, exact, strict=True)
        ]
        return sum(shares) / len(shares)

    async def _questions(self, user: str, count: int) -> list[tuple[str, str, Vector]]:
        """The user, and texts and vectors between those of two facts each."""
        query = """
            SELECT text, embedding::real[] FROM facts
            WHERE tenant = 'default' AND user_id = %s AND status = 'active' ORDER BY fact_id LIMIT %s
        """
        async with self._pool.connection() as connection:
            rows = await (await connection.execute(query, [user, 2 * count])).fetchall()
        return [
            (
                user,
                text,
                Vector.from_values(MODEL, [0.8 * one + 0.6 * two for one, two in zip(here, there, strict=True)]),
            )
            for (text, here), (_, there) in zip(rows[::2], rows[1::2], strict=True)
        ]

    async def _load(self, asked: Sequence[tuple[str, str, Vector]], *, at_once: int = 1) -> Load:
        trips = [await self._round_trip() for _ in range(100)]
        started, before = time.perf_counter(), cpu_seconds(self._postgres)["postgres"]
        waits = await self._searches(asked, None, at_once=at_once)
        seconds, spent = time.perf_counter() - started, cpu_seconds(self._postgres)["postgres"] - before
        trips += [await self._round_trip() for _ in range(100)]
        return Load(
            milliseconds=Percentiles.of(waits),
            per_second=len(waits) / seconds,
            round_trip=Percentiles.of(trips).p50,
            cpu=spent * 1000 / len(waits),
        )

    async def _searches(
        self, asked: Sequence[tuple[str, str, Vector]], count: int | None, *, at_once: int
    ) -> list[float]:
        """Milliseconds of each search, of `count` over each connection, or of as many as fit into the time."""
        waits: list[float] = []
        end = time.perf_counter() + self._seconds
        chance = random.Random(at_once)

        async def run() -> None:
            async with self._pool.connection() as connection:
                done = 0
                while done < count if count else done < LEAST or time.perf_counter() < end:
                    user, text, vector = chance.choice(asked)
                    started = time.perf_counter()
                    assert len(await _search(connection, user, text, vector, 10)) == 10
                    waits.append((time.perf_counter() - started) * 1000)
                    done += 1

        await asyncio.gather(*[run() for _ in range(at_once)])
        return waits

    async def _round_trip(self) -> float:
        async with self._pool.connection() as connection:
            started = time.perf_counter()
            await connection.execute("SELECT 1")
            return (time.perf_counter() - started) * 1000


async def _search(connection: AsyncConnection[TupleRow], user: str, text: str, vector: Vector, limit: int) -> Findings:
    return await search(connection, ScopeFilter(user_id=user), text, vector, SearchOptions(top_k=limit), at=AT)


@asynccontextmanager
async def _arena(facts: int) -> AsyncIterator[Environment]:
    async with servers() as running, environment(running, f"searched{facts}") as arena:
        yield arena


async def main(facts: int, seconds: float) -> None:
    async with _arena(facts) as arena:
        figures = await measure_search_load(arena, facts, seconds=seconds)
    sys.stdout.write("\n".join(" | ".join(row) for row in [HEAD, *(one.row for one in figures)]) + "\n")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    given = parser.parse_args()
    asyncio.run(main(given.facts, given.seconds))
