"""How fast a log becomes tables, how fast these answer, and how fast they are made anew."""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, TypedDict

from prometheus_client import REGISTRY
from psycopg import AsyncConnection

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.client.metrics import SearchPhase
from mnemolog.projections.database import connection_settings, prepare_connection
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.search import SearchOptions, search
from tests.bench.environment import Environment
from tests.bench.processes import workers
from tests.bench.rebuild_speed import RebuildSpeed, measure_rebuilds
from tests.bench.sample_commits import FACTS_PER_COMMIT, FACTS_PER_USER, fact_text, fill_log, random_vector
from tests.bench.sample_turns import sentence
from tests.bench.statistics import Percentiles
from tests.bench.turn_throughput import ProgressReader, connected

WORDS_PER_QUERY: Final = 5
LIMIT: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryFigures:
    """Figures of one size of tables; times in milliseconds.

    `in_tables` is `projections.search` with a vector at hand, `through_client` is `AsyncMemoryClient.search` with the
    embedding of the question. `first` is the first search of a new client, which connects and loads what it needs;
    `embed` and `sql` are the means of these parts of a search.
    """

    facts: int
    projected_per_second: float
    in_tables: Percentiles
    through_client: Percentiles
    first: float
    embed: float
    sql: float
    rebuild_speed: RebuildSpeed


async def measure_queries(arena: Environment, facts: int, *, questions: int) -> QueryFigures:
    """Fill a log with `facts` facts, project it, search in it and rebuild it from both sources."""
    count = await fill_log(arena, facts)
    seconds = await project_log(arena, count)
    chance = random.Random(questions)
    users = [chance.randrange(facts // FACTS_PER_USER) for _ in range(questions)]
    return QueryFigures(
        facts=facts,
        projected_per_second=facts / seconds,
        in_tables=await _search_tables(arena, users),
        **await _search_through_client(arena, users),
        rebuild_speed=await measure_rebuilds(arena, facts),
    )


async def project_log(arena: Environment, count: int) -> float:
    """Seconds from the first projected commit on; the start of the process is not the projector's."""
    async with connected(arena) as connection:
        watch = ProgressReader(connection, {})
        async with workers(arena.settings, [("project",)], arena.servers.folder):
            started, before = time.perf_counter(), await watch.done()
            await watch.until_done(count)
            seconds = time.perf_counter() - started
        await connection.execute("VACUUM (ANALYZE) mnemolog.facts")
    return seconds * count / (count - before)


async def _search_tables(arena: Environment, users: Sequence[int]) -> Percentiles:
    chance = random.Random(1)
    waits = []
    settings = connection_settings(arena.database, application_name="bench")
    async with await AsyncConnection.connect(arena.database, autocommit=True, **settings) as connection:
        await prepare_connection(connection)
        for user in users:
            scope = ScopeFilter(tenant="default", user_id=f"user{user}")
            vector, question = random_vector(chance), question_of(user)
            started = time.perf_counter()
            hits = await search(connection, scope, question, vector, SearchOptions(top_k=LIMIT), at=datetime.now(UTC))
            waits.append((time.perf_counter() - started) * 1000)
            assert len(hits) == LIMIT
    return Percentiles.of(waits)


class ClientFigures(TypedDict):
    """What is measured through a client, as `QueryFigures` has it."""

    through_client: Percentiles
    first: float
    embed: float
    sql: float


async def _search_through_client(arena: Environment, users: Sequence[int]) -> ClientFigures:
    waits = []
    async with AsyncMemoryClient.from_settings(arena.settings) as client:
        started = time.perf_counter()
        await client.search(question_of(0), user_id="user0")
        first = (time.perf_counter() - started) * 1000
        embedding, reading = PhaseTime("embed"), PhaseTime("sql")
        for user in users:
            started = time.perf_counter()
            result = await client.search(question_of(user), user_id=f"user{user}", top_k=LIMIT)
            waits.append((time.perf_counter() - started) * 1000)
            assert result.mode == "hybrid", result.notice
    return ClientFigures(through_client=Percentiles.of(waits), first=first, embed=embedding.mean(), sql=reading.mean())


class PhaseTime:
    """The time of a part of searches in this process since this was made."""

    def __init__(self, phase: SearchPhase) -> None:
        self._phase = phase
        self._before = self._totals()

    def mean(self) -> float:
        """In milliseconds."""
        (count, seconds), (earlier, passed) = self._totals(), self._before
        return (seconds - passed) * 1000 / (count - earlier)

    def _totals(self) -> tuple[float, float]:
        count, seconds = (
            REGISTRY.get_sample_value(f"mnemolog_client_search_seconds_{part}", {"phase": self._phase}) or 0.0
            for part in ("count", "sum")
        )
        return count, seconds


def question_of(user: int) -> str:
    """Some words of `asked_fact`."""
    return " ".join(sentence(user, _turn_of(user), 0)[:WORDS_PER_QUERY])


def asked_fact(user: int) -> str:
    """The fact that answers `question_of`."""
    return fact_text(user, _turn_of(user), 0)


def _turn_of(user: int) -> int:
    return user % (FACTS_PER_USER // FACTS_PER_COMMIT)
