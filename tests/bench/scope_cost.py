"""What one more commit, one search and one match cost in scopes of growing size: round trips, and CPU of Postgres."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.database import Pool, open_pool
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.search import SearchOptions, search
from mnemolog.projections.stores.facts import CandidateFinder, CandidateRequest
from mnemolog.projections.stores.turns import LimitReservations
from mnemolog.projections.write.row_writer import refresh_profiles
from mnemolog.schemas.policy import EffectivePolicy, Limits, Policy, TurnUsage
from mnemolog.schemas.scope import Scope, scope_columns
from mnemolog.schemas.stored import CandidateQuery
from mnemolog.schemas.vector import Vector
from tests.bench.environment import Environment
from tests.bench.processes import cpu_seconds
from tests.bench.statistics import Percentiles
from tests.support.filled_scopes import MODEL, fill_scopes

DIMENSIONS: Final = 1536
SMALL_USERS: Final = 300
WARM_UP: Final = 12
AT_ONCE: Final = 8
AT: Final = datetime(2026, 12, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One kind of work, in medians of `SELECT 1` of the same connection at the same time, and in CPU milliseconds.

    `cpu` is the mean of what all processes of Postgres spend. `trips` tell how long it takes; on busy cores a short
    statement waits for nobody, and a long one shares its core.
    """

    trips: Percentiles
    cpu: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeCost:
    """Figures of a scope of `facts` facts.

    `profile` and `limits` are what a commit costs beyond its rows; `matches` are of one and of five new facts.
    """

    facts: int
    profile: Cost
    limits: Cost
    matches: tuple[Cost, Cost]
    search: Cost
    search_at_once: Cost


async def measure_scope_costs(arena: Environment, sizes: Sequence[int], *, repeats: int) -> tuple[ScopeCost, ...]:
    """Fill one database with a scope of each size and many small ones, and measure in each."""
    users = {_user(size): size for size in sizes} | {f"small{number}": 100 for number in range(SMALL_USERS)}
    await asyncio.to_thread(fill_scopes, arena.database, users, dimensions=DIMENSIONS)
    async with (
        open_pool(
            arena.database, min_size=AT_ONCE, max_size=AT_ONCE, application_name="bench", autocommit=True
        ) as pool,
        open_pool(arena.database, min_size=1, max_size=1, application_name="match", looks_up=True) as matching,
    ):
        return tuple([await _Meter(arena, pool, matching, size, repeats).cost() for size in sizes])


def _user(size: int) -> str:
    return f"scope{size}"


class _Meter:
    """Measures in one scope; large ones less often."""

    def __init__(self, arena: Environment, pool: Pool, matching: Pool, size: int, repeats: int) -> None:
        self._postgres = {"postgres": arena.servers.pids["postgres"]}
        self._pool = pool
        self._finder = CandidateFinder(matching, user_words=("user",))
        self._reservations = LimitReservations(pool)
        self._scope = Scope(user_id=_user(size))
        self._size = size
        self._repeats = max(5, repeats * 1000 // max(size, 1000))

    async def cost(self) -> ScopeCost:
        async with self._pool.connection() as connection:
            self._texts, self._vectors = await self._samples(connection)
        return ScopeCost(
            facts=self._size,
            profile=await self._timed(self._refresh_profile),
            limits=await self._timed(self._check_limits),
            matches=(await self._timed(lambda: self._match(1)), await self._timed(lambda: self._match(5))),
            search=await self._timed(self._search),
            search_at_once=await self._timed(self._search, at_once=AT_ONCE),
        )

    async def _samples(self, connection: AsyncConnection[TupleRow]) -> tuple[list[str], list[Vector]]:
        query = "SELECT text, embedding::real[] FROM facts WHERE user_id = %s AND status = 'active' LIMIT 20"
        rows = await (await connection.execute(query, [self._scope.user_id])).fetchall()
        return [text for text, _ in rows], [Vector.from_values(MODEL, values) for _, values in rows]

    async def _timed(self, work: Callable[[], Awaitable[None]], *, at_once: int = 1) -> Cost:
        waits: list[float] = []
        trips = [await self._round_trip() for _ in range(50)]

        async def run(count: int) -> None:
            for _ in range(count):
                started = time.perf_counter()
                await work()
                waits.append(time.perf_counter() - started)

        await asyncio.gather(*[run(WARM_UP) for _ in range(at_once)])
        waits.clear()
        before = self._cpu_milliseconds()
        await asyncio.gather(*[run(self._repeats) for _ in range(at_once)])
        spent = self._cpu_milliseconds() - before
        trips += [await self._round_trip() for _ in range(50)]
        trip = Percentiles.of(trips).p50
        return Cost(trips=Percentiles.of([wait / trip for wait in waits]), cpu=spent / len(waits))

    def _cpu_milliseconds(self) -> float:
        return cpu_seconds(self._postgres)["postgres"] * 1000

    async def _round_trip(self) -> float:
        async with self._pool.connection() as connection:
            started = time.perf_counter()
            await connection.execute("SELECT 1")
            return time.perf_counter() - started

    async def _refresh_profile(self) -> None:
        async with self._pool.connection() as connection:
            await refresh_profiles(connection, [scope_columns(self._scope)])

    async def _check_limits(self) -> None:
        rules = EffectivePolicy()
        for level in ("scope", "tenant"):
            limits = Limits(active_facts=10**9, turns_per_minute=10**6, tokens_per_day=10**12)
            rules = rules.overlaid_by(Policy(limits=limits), level)
        usage = TurnUsage(
            owner=self._scope.owner, source_id="new", scope=self._scope, published_at=AT, facts=1, tokens=100
        )
        assert await self._reservations.check(usage, rules) is None

    async def _match(self, facts: int) -> None:
        asked = [
            CandidateQuery(vector=vector, content_hash="new", key="key_3", subject="user", min_similarity=0.65)
            for vector in self._vectors[:facts]
        ]
        found = await self._finder.find(CandidateRequest(scope=self._scope, queries=asked, at=AT))
        assert all(found.candidates)

    async def _search(self) -> None:
        async with self._pool.connection() as connection:
            hits = await search(
                connection,
                ScopeFilter.of_scope(self._scope),
                self._texts[0],
                self._vectors[0],
                SearchOptions(top_k=10),
                at=AT,
            )
        assert len(hits) == 10
