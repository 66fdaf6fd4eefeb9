"""How many turns a second the pipeline stores, and how long a turn takes at a moderate rate."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Final, LiteralString

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.client.producer import OutgoingRecord, RecordProducer, as_async
from mnemolog.schemas.provenance import Stage
from mnemolog.schemas.turn import Turn
from tests.bench.environment import Environment
from tests.bench.processes import cpu_seconds, workers
from tests.bench.statistics import Percentiles, Rate, Sample, due_count, rate_between

IN_FLIGHT: Final = 1200
"""Turns between publication and projection: enough for every stage, fewer than users, so that no turn waits for
another one of its user."""
POLL_SECONDS: Final = 0.05
DRAIN_SECONDS: Final = 180
MEASURED: Final = "measured-"
WARMING: Final = "warming-"

_DONE: Final[LiteralString] = "SELECT coalesce(sum(next_offset), 0)::bigint FROM mnemolog.projection_offsets"
_COSTS: Final[LiteralString] = """
SELECT count(*), avg(llm_calls)::float8, avg(step.tokens)::float8, avg(step.said)::float8, avg(embedding_calls)::float8,
    (SELECT count(*) FROM mnemolog.facts)::float8 / count(*), count(*) FILTER (WHERE outcome <> 'facts')
FROM mnemolog.commits
CROSS JOIN LATERAL (
    SELECT
        coalesce(sum((one ->> 'input_tokens')::bigint) FILTER (WHERE one ->> 'stage' <> 'embed'), 0) AS tokens,
        coalesce(sum((one ->> 'output_tokens')::bigint), 0) AS said
    FROM jsonb_array_elements(provenance -> 'steps') AS one
) AS step
"""
_LATENCIES: Final[LiteralString] = """
SELECT extract(epoch FROM pg_xact_commit_timestamp(xmin) - published_at)::float8, llm_calls
FROM mnemolog.commits
WHERE source_id LIKE %(measured)s
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What one turn cost and gave, over all turns of a run."""

    turns: int
    llm_calls: float
    prompt_tokens: float
    reply_tokens: float
    embedding_calls: float
    facts: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """Turns stored at steady state, by which processes, and what they cost."""

    rate: Rate
    costs: Costs


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Turns published at a fixed rate. Milliseconds; `without_model` leaves out the sleep of the model server."""

    offered: float
    rate: Rate
    total: Percentiles
    without_model: Percentiles
    acknowledged: Percentiles


async def throughput(
    arena: Environment,
    layout: Sequence[Sequence[Stage]],
    turns: Iterator[Turn],
    pids: dict[str, int],
    *,
    warm_up: float,
    seconds: float,
) -> Throughput:
    """Keep `IN_FLIGHT` turns in the pipeline and count those that come out, once that is steady.

    `pids` names further processes whose CPU time is to be told.
    """
    async with workers(arena.settings, layout, arena.servers.folder) as started, connected(arena) as connection:
        watch = ProgressReader(connection, arena.servers.pids | pids | started)
        feed = TurnPublisher(arena, turns, watch)
        await feed.run(warm_up, at_least=IN_FLIGHT)
        before = await watch.sample()
        await feed.run(seconds)
        after = await watch.sample()
        await watch.until_done(feed.published)
        return Throughput(rate=rate_between(before, after), costs=await costs(connection))


async def latency(
    arena: Environment,
    layout: Sequence[Sequence[Stage]],
    turns: tuple[Iterator[Turn], Iterator[Turn]],
    pids: dict[str, int],
    *,
    rate: float,
    warm_up: float,
    seconds: float,
    model_seconds: float,
) -> Latency:
    """Publish `rate` turns a second through a client; from publication to the commit of the facts' transaction.

    The first of `turns` warm up, the second ones count.
    """
    async with (
        workers(arena.settings, layout, arena.servers.folder) as started,
        connected(arena) as connection,
        AsyncMemoryClient.from_settings(arena.settings) as client,
    ):
        watch = ProgressReader(connection, arena.servers.pids | pids | started)
        warming, measured = turns
        published = len(await publish_at_rate(client, warming, rate, warm_up))
        before = await watch.sample()
        acknowledged = await publish_at_rate(client, measured, rate, seconds)
        after = await watch.sample()
        await watch.until_done(published + len(acknowledged))
        rows = await milliseconds_to_commit(connection)
        return Latency(
            offered=rate,
            rate=rate_between(before, after),
            total=Percentiles.of([waited for waited, _ in rows]),
            without_model=Percentiles.of([waited - calls * model_seconds * 1000 for waited, calls in rows]),
            acknowledged=Percentiles.of(acknowledged),
        )


class ProgressReader:
    """Looks at what is projected and at the CPU time of processes."""

    def __init__(self, connection: AsyncConnection[TupleRow], pids: dict[str, int]) -> None:
        self._connection = connection
        self._pids = pids

    async def done(self) -> int:
        row = await (await self._connection.execute(_DONE)).fetchone()
        assert row is not None
        return int(row[0])

    async def sample(self) -> Sample:
        return Sample(done=await self.done(), at=time.perf_counter(), cpu=cpu_seconds(self._pids))

    async def until_done(self, count: int) -> None:
        async with asyncio.timeout(DRAIN_SECONDS):
            while await self.done() < count:  # noqa: ASYNC110 -- another process's table
                await asyncio.sleep(POLL_SECONDS)


class TurnPublisher:
    """Publishes a new turn for each that is done."""

    def __init__(self, arena: Environment, turns: Iterator[Turn], watch: ProgressReader) -> None:
        self._arena = arena
        self._turns = turns
        self._watch = watch
        self.published = 0

    async def run(self, seconds: float, *, at_least: int = 0) -> None:
        """Feed for `seconds`, and on until `at_least` turns are done."""
        publisher = await RecordProducer.connect(self._arena.servers.kafka, prefix=self._arena.settings.topic_prefix)
        try:
            end = time.perf_counter() + seconds
            while (done := await self._watch.done()) < at_least or time.perf_counter() < end:
                records = [OutgoingRecord.of(turn) for turn in islice(self._turns, IN_FLIGHT - (self.published - done))]
                receipts = [receipt async for receipt in publisher.publish_stream(as_async(records))]
                assert not any(receipt.error for receipt in receipts)
                self.published += len(records)
                await asyncio.sleep(POLL_SECONDS)
        finally:
            await publisher.close()


async def milliseconds_to_commit(connection: AsyncConnection[TupleRow]) -> list[tuple[float, int]]:
    """Of each measured turn, from its publication to the commit of its transaction, and the calls of the model."""
    rows = await (await connection.execute(_LATENCIES, {"measured": f"{MEASURED}%"})).fetchall()
    return [(seconds * 1000, calls) for seconds, calls in rows]


async def costs(connection: AsyncConnection[TupleRow]) -> Costs:
    """Read from the commits; every turn must have come to facts."""
    row = await (await connection.execute(_COSTS)).fetchone()
    assert row is not None
    turns, llm_calls, prompt_tokens, reply_tokens, embedding_calls, facts, other = row
    if other:
        raise RuntimeError(f"{other} of {turns} turns came to another end than facts: the figures mean nothing")
    return Costs(
        turns=turns,
        llm_calls=llm_calls,
        prompt_tokens=prompt_tokens,
        reply_tokens=reply_tokens,
        embedding_calls=embedding_calls,
        facts=facts,
    )


async def acknowledgements(client: AsyncMemoryClient, turns: Iterator[Turn], count: int) -> list[float]:
    """Milliseconds until the broker has a turn, one after another."""
    return [await _acknowledged(client, turn) for turn in islice(turns, count)]


async def publish_at_rate(client: AsyncMemoryClient, turns: Iterator[Turn], rate: float, seconds: float) -> list[float]:
    """Publish at `rate` whatever comes of it; milliseconds until each was acknowledged."""
    count = round(rate * seconds)
    tasks: list[asyncio.Task[float]] = []
    started = time.perf_counter()
    while len(tasks) < count:
        missing = due_count(started, time.perf_counter(), rate, count) - len(tasks)
        tasks += [asyncio.create_task(_acknowledged(client, turn)) for turn in islice(turns, missing)]
        await asyncio.sleep(max(0.0, started + len(tasks) / rate - time.perf_counter()))
    return await asyncio.gather(*tasks)


async def _acknowledged(client: AsyncMemoryClient, turn: Turn) -> float:
    started = time.perf_counter()
    await client.add_many([turn])
    return (time.perf_counter() - started) * 1000


@asynccontextmanager
async def connected(arena: Environment) -> AsyncIterator[AsyncConnection[TupleRow]]:
    async with await AsyncConnection.connect(arena.database, autocommit=True) as connection:
        yield connection
