"""How fast a log becomes tables, how fast these answer, and how fast they are made anew."""

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from prometheus_client import REGISTRY
from psycopg import AsyncConnection

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.client.metrics import SearchPhase
from mnemolog.projections.database import connection_settings, prepare_connection
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.search import SearchOptions, search
from tests.bench.environment import Environment, workers
from tests.bench.figures import Percentiles
from tests.bench.rebuild_speed import RebuildSpeed, measure_rebuilds
from tests.bench.samples import FACTS_PER_COMMIT, FACTS_PER_USER, fact_text, fill_log, random_vector, sentence
from tests.bench.stores import progress

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
    seconds = await project_log(arena, await fill_log(arena, facts))
    users = asked_users(facts, questions)

    chance = random.Random(1)
    in_tables = []
    settings = connection_settings(arena.database, application_name="bench")
    async with await AsyncConnection.connect(arena.database, autocommit=True, **settings) as connection:
        await prepare_connection(connection)
        for user in users:
            scope = ScopeFilter(tenant="default", user_id=f"user{user}")
            vector, question = random_vector(chance), question_of(user)
            started = time.perf_counter()
            hits = await search(connection, scope, question, vector, SearchOptions(limit=LIMIT), at=datetime.now(UTC))
            in_tables.append((time.perf_counter() - started) * 1000)
            assert len(hits) == LIMIT

    async with AsyncMemoryClient(settings=arena.settings) as client:
        started = time.perf_counter()
        await client.search(question_of(0), user_id="user0")
        first = (time.perf_counter() - started) * 1000
        embedded, read = phase_seconds("embed"), phase_seconds("sql")
        through_client, _ = await client_searches(client, users)
        embed, sql = phase_seconds("embed") - embedded, phase_seconds("sql") - read

    return QueryFigures(
        facts=facts,
        projected_per_second=facts / seconds,
        in_tables=Percentiles.of(in_tables),
        through_client=Percentiles.of(through_client),
        first=first,
        embed=embed * 1000 / questions,
        sql=sql * 1000 / questions,
        rebuild_speed=await measure_rebuilds(arena, facts),
    )


async def project_log(arena: Environment, count: int) -> float:
    """Seconds from the first projected commit on; the start of the process is not the projector's."""
    async with progress(arena) as watch:
        async with workers(arena.settings, [("project",)], arena.servers.folder):
            started, before = time.perf_counter(), await watch.done()
            await watch.until_done(count)
            seconds = time.perf_counter() - started
        await watch.connection.execute("VACUUM (ANALYZE) mnemolog.facts")
    return seconds * count / (count - before)


async def client_searches(client: AsyncMemoryClient, users: Sequence[int]) -> tuple[list[float], list[list[str]]]:
    """Milliseconds and texts of one search for each user, one after another.

    Raises RuntimeError where the question could not be embedded.
    """
    waits, texts = [], []
    for user in users:
        started = time.perf_counter()
        result = await client.search(question_of(user), user_id=f"user{user}", limit=LIMIT)
        waits.append((time.perf_counter() - started) * 1000)
        texts.append([hit.fact.text for hit in result])
        if result.mode != "hybrid":
            raise RuntimeError(f"a search by words alone: {result.notice}")
    return waits, texts


def phase_seconds(phase: SearchPhase) -> float:
    """What this part of all searches of this process has taken."""
    return REGISTRY.get_sample_value("mnemolog_client_search_seconds_sum", {"phase": phase}) or 0.0


def asked_users(facts: int, questions: int) -> list[int]:
    """The users in whose memories is searched."""
    chance = random.Random(questions)
    return [chance.randrange(facts // FACTS_PER_USER) for _ in range(questions)]


def question_of(user: int) -> str:
    """Some words of `asked_fact`."""
    return " ".join(sentence(user, _turn_of(user), 0)[:WORDS_PER_QUERY])


def asked_fact(user: int) -> str:
    """The fact that answers `question_of`."""
    return fact_text(user, _turn_of(user), 0)


def _turn_of(user: int) -> int:
    return user % (FACTS_PER_USER // FACTS_PER_COMMIT)
