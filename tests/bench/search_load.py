"""`python -m tests.bench.search_load --facts 1000000`: searches in small and large scopes, with and without indexes.

Prints the table of "Large scopes" in docs/performance.md: searches alone and eight at once, in milliseconds.
"""

import argparse
import asyncio
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.database import Pool, open_pool
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.rebuild.scope_indexes import LEAST_FACTS, index_scopes
from mnemolog.projections.search.search import Findings, SearchOptions, search
from mnemolog.schemas.vector import Vector
from tests.bench.environment import cpu_seconds, environment, servers
from tests.bench.figures import Percentiles
from tests.bench.markdown import table
from tests.support.filled_scopes import MODEL, fill_scopes

DIMENSIONS: Final = 1536
FACTS_PER_USER: Final = 100
LARGE: Final = {"one": 50_000, "shared": 200_000}
AT_ONCE: Final = 8
LEAST: Final = 3
"""Searches over each connection, also where they take longer than the time of a measurement."""
RECALL_QUESTIONS: Final = 30
UNKNOWN_WORD: Final = "xyzzy"
AT: Final = datetime(2027, 12, 1, tzinfo=UTC)
_FACTS: Final = """
SELECT text, embedding::real[] FROM facts
WHERE tenant = 'default' AND user_id = %s AND status = 'active' ORDER BY fact_id LIMIT %s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Words of one fact of a user, and a vector between those of this fact and another one."""

    user: str
    text: str
    vector: Vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Searches: milliseconds of each, how many a second, and CPU milliseconds of all processes of Postgres for each."""

    milliseconds: Percentiles
    per_second: float
    cpu: float


async def questions_of(pool: Pool, user: str, count: int) -> list[Question]:
    async with pool.connection() as connection:
        rows = await (await connection.execute(_FACTS, [user, 2 * count])).fetchall()
    pairs = zip(rows[::2], rows[1::2], strict=True)
    return [
        Question(
            user=user,
            text=text,
            vector=Vector.from_values(MODEL, [0.8 * one + 0.6 * two for one, two in zip(here, there, strict=True)]),
        )
        for (text, here), (_, there) in pairs
    ]


async def ask(connection: AsyncConnection[TupleRow], user: str, text: str, vector: Vector, limit: int) -> Findings:
    return await search(connection, ScopeFilter(user_id=user), text, vector, SearchOptions(limit=limit), at=AT)


async def load(pool: Pool, asked: Sequence[Question], postgres: int, *, seconds: float, at_once: int) -> Load:
    """Each connection searches for so many seconds."""
    waits: list[float] = []
    chance = random.Random(at_once)
    started, before = time.perf_counter(), cpu_seconds({"postgres": postgres})["postgres"]

    async def run() -> None:
        async with pool.connection() as connection:
            done = 0
            while done < LEAST or time.perf_counter() < started + seconds:
                one = chance.choice(asked)
                began = time.perf_counter()
                assert len(await ask(connection, one.user, one.text, one.vector, 10)) == 10
                waits.append((time.perf_counter() - began) * 1000)
                done += 1

    await asyncio.gather(*[run() for _ in range(at_once)])
    took, spent = time.perf_counter() - started, cpu_seconds({"postgres": postgres})["postgres"] - before
    return Load(milliseconds=Percentiles.of(waits), per_second=len(waits) / took, cpu=spent * 1000 / len(waits))


async def nearest(pool: Pool, user: str) -> list[set[object]]:
    """The 100 facts nearest to each of some questions, by vector alone."""
    async with pool.connection() as connection:
        asked = await questions_of(pool, user, RECALL_QUESTIONS)
        found = [await ask(connection, user, UNKNOWN_WORD, one.vector, 100) for one in asked]
    return [{hit.fact.fact_id for hit in hits} for hits in found]


async def measure(facts: int, seconds: float) -> list[tuple[str, ...]]:
    """Rows for users of 100 facts and for the large scopes that fit into a half; then the large ones with indexes."""
    sizes = {user: size for user, size in LARGE.items() if size <= facts / 2}
    small = [f"small{number}" for number in range((facts - sum(sizes.values())) // FACTS_PER_USER)]
    async with servers() as running, environment(running, f"searched{facts}") as arena:
        postgres = running.pids["postgres"]
        every = dict.fromkeys(small, FACTS_PER_USER) | sizes
        await asyncio.to_thread(fill_scopes, arena.database, every, dimensions=DIMENSIONS)
        async with open_pool(
            arena.database, min_size=AT_ONCE, max_size=AT_ONCE, application_name="bench", autocommit=True
        ) as pool:

            async def row(name: str, asked: Sequence[Question], recall: str = "") -> tuple[str, ...]:
                for _ in range(2):  # after six searches a connection has a plan
                    await load(pool, asked, postgres, seconds=0, at_once=AT_ONCE)
                alone = await load(pool, asked, postgres, seconds=seconds, at_once=1)
                both = await load(pool, asked, postgres, seconds=seconds, at_once=AT_ONCE)
                waits = (*alone.milliseconds.cells(1), f"{both.milliseconds.p50:.1f}")
                return (name, *waits, f"{both.per_second:.0f}", f"{alone.cpu:.2f}", recall)

            of_small = [one for user in sorted(small)[:500] for one in await questions_of(pool, user, 1)]
            rows = [await row(str(FACTS_PER_USER), of_small)]
            asked = {user: await questions_of(pool, user, 40) for user in sizes}
            scanned = {user: await nearest(pool, user) for user in sizes}
            rows += [await row(f"{size}, scanned", asked[user]) for user, size in sizes.items()]
            await index_scopes(arena.database, least=LEAST_FACTS)
            for user, size in sizes.items():
                pairs = list(zip(await nearest(pool, user), scanned[user], strict=True))
                recall = sum(len(found & exact) / len(exact) for found, exact in pairs) / len(pairs)
                rows.append(await row(f"{size}, indexed", asked[user], f"{recall:.3f}"))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    given = parser.parse_args()
    head = ("facts of the scope", "alone: p50", "p95", "8 at once: p50", "searches/s, 8 at once", "CPU ms of Postgres")
    rows = asyncio.run(measure(given.facts, given.seconds))
    sys.stdout.write(table((*head, "recall"), rows) + "\n")


if __name__ == "__main__":
    main()
