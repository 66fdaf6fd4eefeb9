"""What one more commit, one search and one match cost in scopes of growing size: round trips, and CPU of Postgres."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

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
from tests.bench.environment import Environment, cpu_seconds
from tests.bench.figures import Percentiles
from tests.bench.markdown import table
from tests.support.filled_scopes import MODEL, fill_scopes

DIMENSIONS: Final = 1536
SMALL_USERS: Final = 300
WARM_UP: Final = 12
AT: Final = datetime(2026, 12, 1, tzinfo=UTC)
_SAMPLES: Final = "SELECT text, embedding::real[] FROM facts WHERE user_id = %s AND status = 'active' LIMIT 20"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One kind of work, in medians of `SELECT 1` of the same connection at the same time, and in CPU milliseconds.

    `cpu` is the mean of what all processes of Postgres spend. `trips` say how long it takes; on busy cores a short
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


def scopes_table(costs: Sequence[ScopeCost]) -> str:
    searches = ("search: p50", "p95")
    spent = ("CPU ms: match of 1", "of 5", "search")
    rows = [
        (
            str(one.facts),
            *(f"{each.trips.p50:.0f}" for each in (one.profile, one.limits, *one.matches)),
            *one.search.trips.cells(0),
            *(f"{each.cpu:.2f}" for each in (*one.matches, one.search)),
        )
        for one in costs
    ]
    return table(("facts", "profile", "limits", "match of 1", "of 5", *searches, *spent), rows)


async def measure_scope_costs(arena: Environment, sizes: Sequence[int], *, repeats: int) -> tuple[ScopeCost, ...]:
    """Fill a database with a scope of each size and many small ones; large ones are measured less often."""
    users = {f"scope{size}": size for size in sizes} | {f"small{number}": 100 for number in range(SMALL_USERS)}
    await asyncio.to_thread(fill_scopes, arena.database, users, dimensions=DIMENSIONS)
    async with (
        open_pool(arena.database, min_size=1, max_size=1, application_name="bench", autocommit=True) as pool,
        open_pool(arena.database, min_size=1, max_size=1, application_name="match", looks_up=True) as matching,
    ):
        postgres = arena.servers.pids["postgres"]
        return tuple([await _scope_cost(pool, matching, postgres, size, repeats) for size in sizes])


async def _scope_cost(  # noqa: C901 -- one kind of work after another
    pool: Pool, matching: Pool, postgres: int, size: int, repeats: int
) -> ScopeCost:
    scope = Scope(user_id=f"scope{size}")
    repeats = max(5, repeats * 1000 // max(size, 1000))
    finder, reservations = CandidateFinder(matching, user_words=("user",)), LimitReservations(pool)
    async with pool.connection() as connection:
        samples = await (await connection.execute(_SAMPLES, [scope.user_id])).fetchall()
    vectors = [Vector.from_values(MODEL, values) for _, values in samples]

    rules = EffectivePolicy()
    for level in ("scope", "tenant"):
        limits = Limits(active_facts=10**9, turns_per_minute=10**6, tokens_per_day=10**12)
        rules = rules.overlaid_by(Policy(limits=limits), level)
    usage = TurnUsage(owner=scope.owner, source_id="new", scope=scope, published_at=AT, facts=1, tokens=100)

    async def refresh_profile() -> None:
        async with pool.connection() as connection:
            await refresh_profiles(connection, [scope_columns(scope)])

    async def check_limits() -> None:
        assert await reservations.check(usage, rules) is None

    async def match(facts: int) -> None:
        asked = [
            CandidateQuery(vector=vector, content_hash="new", key="key_3", subject="user", min_similarity=0.65)
            for vector in vectors[:facts]
        ]
        found = await finder.find(CandidateRequest(scope=scope, queries=asked, at=AT))
        assert all(found.candidates)

    async def search_ten() -> None:
        text, options = samples[0][0], SearchOptions(limit=10)
        async with pool.connection() as connection:
            hits = await search(connection, ScopeFilter.of_scope(scope), text, vectors[0], options, at=AT)
        assert len(hits) == 10

    async def round_trips() -> list[float]:
        trips = []
        async with pool.connection() as connection:
            for _ in range(50):
                started = time.perf_counter()
                await connection.execute("SELECT 1")
                trips.append(time.perf_counter() - started)
        return trips

    async def cost_of(work: Callable[[], Awaitable[None]]) -> Cost:
        trips = await round_trips()
        for _ in range(WARM_UP):
            await work()
        before, waits = cpu_seconds({"postgres": postgres})["postgres"], []
        for _ in range(repeats):
            started = time.perf_counter()
            await work()
            waits.append(time.perf_counter() - started)
        spent = cpu_seconds({"postgres": postgres})["postgres"] - before
        trip = Percentiles.of(trips + await round_trips()).p50
        return Cost(trips=Percentiles.of([wait / trip for wait in waits]), cpu=spent * 1000 / len(waits))

    return ScopeCost(
        facts=size,
        profile=await cost_of(refresh_profile),
        limits=await cost_of(check_limits),
        matches=(await cost_of(lambda: match(1)), await cost_of(lambda: match(5))),
        search=await cost_of(search_ten),
    )
