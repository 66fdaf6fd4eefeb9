"""Turns and commands that running workers store: how many a second, how long each takes, and what idle workers cost."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Final, LiteralString

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.client.producer import OutgoingRecord, RecordProducer, as_async
from mnemolog.schemas.turn import Turn
from mnemolog.streams.kafka_address import KafkaAddress
from tests.bench.environment import MODEL_SECONDS, Environment, Layout, cpu_seconds, workers
from tests.bench.figures import Percentiles, Rate, Sample, due_count
from tests.bench.samples import as_text, sentence, turns

IN_FLIGHT: Final = 1200
"""Turns between publication and projection: enough for every stage, fewer than users, so that no turn waits for
another one of its user."""
POLL_SECONDS: Final = 0.05
DRAIN_SECONDS: Final = 180
MEASURED: Final = "measured-"
WARMING: Final = "warming-"
WARM_UP_PAIRS: Final = 10
WARM_UP_USERS: Final = 5
"""Users whose commands do not count."""
KINDS: Final = ("update", "delete", "undo")
IDLE_TURNS: Final = 20
"""Before the measurement of idle workers, so that every connection is open."""
SETTLING_SECONDS: Final = 5

_DONE: Final[LiteralString] = "SELECT coalesce(sum(next_offset), 0)::bigint FROM mnemolog.projection_offsets"
_COSTS: Final[LiteralString] = """
SELECT count(*), avg(llm_calls)::float8, avg(step.tokens)::float8, avg(step.said)::float8, avg(embedding_calls)::float8,
    (SELECT count(*) FROM mnemolog.facts)::float8 / count(*), count(*) FILTER (WHERE outcome <> 'stored')
FROM mnemolog.commits
CROSS JOIN LATERAL (
    SELECT
        coalesce(sum((one ->> 'input_tokens')::bigint) FILTER (WHERE one ->> 'stage' <> 'embed'), 0) AS tokens,
        coalesce(sum((one ->> 'output_tokens')::bigint), 0) AS said
    FROM jsonb_array_elements(provenance -> 'steps') AS one
) AS step
"""
_LATENCIES: Final[LiteralString] = """
SELECT user_id, extract(epoch FROM pg_xact_commit_timestamp(xmin) - published_at)::float8 * 1000, llm_calls
FROM mnemolog.commits
WHERE source_id LIKE %(sources)s
"""
_FACTS: Final[LiteralString] = (
    "SELECT DISTINCT ON (user_id) user_id, fact_id::text FROM mnemolog.facts ORDER BY user_id"
)
_NEW: Final[LiteralString] = "SELECT fact_id::text FROM mnemolog.facts WHERE source_id = %(source_id)s"


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


@dataclass(frozen=True, slots=True)
class ProgressReader:
    """Looks at what is projected and at the CPU time of processes."""

    connection: AsyncConnection[TupleRow]
    pids: dict[str, int]

    async def done(self) -> int:
        ((count,),) = await (await self.connection.execute(_DONE)).fetchall()
        return int(count)

    async def sample(self) -> Sample:
        return Sample(done=await self.done(), at=time.perf_counter(), cpu=cpu_seconds(self.pids))

    async def until_done(self, count: int) -> None:
        async with asyncio.timeout(DRAIN_SECONDS):
            while await self.done() < count:  # noqa: ASYNC110 -- another process's table
                await asyncio.sleep(POLL_SECONDS)


@asynccontextmanager
async def progress(arena: Environment, pids: dict[str, int] | None = None) -> AsyncIterator[ProgressReader]:
    async with await AsyncConnection.connect(arena.database, autocommit=True) as connection:
        yield ProgressReader(connection, pids or {})


@asynccontextmanager
async def running(
    arena: Environment, layout: Layout, pids: dict[str, int] | None = None
) -> AsyncIterator[tuple[AsyncMemoryClient, ProgressReader]]:
    """Workers run, with a client; the CPU of `pids` is looked at beside that of the workers and servers."""
    async with (
        workers(arena.settings, layout, arena.servers.folder) as started,
        progress(arena, arena.servers.pids | (pids or {}) | started) as watch,
        AsyncMemoryClient(settings=arena.settings) as client,
    ):
        yield client, watch


class TurnPublisher:
    """Publishes a new turn for each that is done, so that `IN_FLIGHT` are in the pipeline."""

    def __init__(self, arena: Environment, turns: Iterator[Turn], watch: ProgressReader) -> None:
        self._arena = arena
        self._turns = turns
        self._watch = watch
        self.published = 0

    async def run(self, seconds: float, *, at_least: int = 0) -> None:
        """Feed for `seconds`, and on until `at_least` turns are done."""
        publisher = await RecordProducer.connect(
            KafkaAddress(self._arena.servers.kafka), prefix=self._arena.settings.topic_prefix
        )
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


async def throughput(
    arena: Environment, layout: Layout, turns: Iterator[Turn], pids: dict[str, int], *, warm_up: float, seconds: float
) -> Throughput:
    """Keep `IN_FLIGHT` turns in the pipeline and count those that come out, once that is steady.

    Raises RuntimeError where a turn came to another end than facts.
    """
    async with (
        workers(arena.settings, layout, arena.servers.folder) as started,
        progress(arena, arena.servers.pids | pids | started) as watch,
    ):
        feed = TurnPublisher(arena, turns, watch)
        await feed.run(warm_up, at_least=IN_FLIGHT)
        before = await watch.sample()
        await feed.run(seconds)
        rate = Rate.between(before, await watch.sample())
        await watch.until_done(feed.published)
        ((*figures, other),) = await (await watch.connection.execute(_COSTS)).fetchall()
    if other:
        raise RuntimeError(f"{other} of {figures[0]} turns came to another end than facts: the figures mean nothing")
    names = ("turns", "llm_calls", "prompt_tokens", "reply_tokens", "embedding_calls", "facts")
    return Throughput(rate=rate, costs=Costs(**dict(zip(names, figures, strict=True))))


async def latency(
    arena: Environment, layout: Layout, pids: dict[str, int], *, rate: float, warm_up: float, seconds: float
) -> Latency:
    """Publish `rate` turns a second through a client; from publication to the commit of the facts' transaction."""
    async with running(arena, layout, pids) as (client, watch):
        published = len(await publish_at_rate(client, turns(prefix=WARMING), rate, warm_up))
        before = await watch.sample()
        acknowledged = await publish_at_rate(client, turns(prefix=MEASURED), rate, seconds)
        after = await watch.sample()
        await watch.until_done(published + len(acknowledged))
        waits = await commit_waits(watch.connection, f"{MEASURED}%")
        return Latency(
            offered=rate,
            rate=Rate.between(before, after),
            total=Percentiles.of([waited for _, waited, _ in waits]),
            without_model=Percentiles.of([waited - calls * MODEL_SECONDS * 1000 for _, waited, calls in waits]),
            acknowledged=Percentiles.of(acknowledged),
        )


async def commit_waits(connection: AsyncConnection[TupleRow], sources: str) -> list[tuple[str, float, int]]:
    """The user, milliseconds from the publication to the commit of its transaction, and the calls of the model."""
    return await (await connection.execute(_LATENCIES, {"sources": sources})).fetchall()


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


async def added_by_second(arena: Environment, layout: Layout, *, pairs: int) -> Percentiles:
    """Publish two raw turns of one user together, pair after pair with no other load.

    By how many milliseconds the second of a pair takes longer than the first, from publication to its transaction.
    """
    async with running(arena, layout) as (client, watch):
        done = 0
        for prefix, users in ((WARMING, WARM_UP_PAIRS), (MEASURED, pairs)):
            made = [*islice(turns(infer=False, prefix=prefix, users=users, seed=len(prefix)), 2 * users)]
            for pair in zip(made[:users], made[users:], strict=True):
                await client.add_many(pair)
                done += 2
                await watch.until_done(done)
        firsts, seconds = [
            {user: waited for user, waited, _ in await commit_waits(watch.connection, f"{MEASURED}{turn}-%")}
            for turn in range(2)
        ]
    return Percentiles.of([seconds[user] - firsts[user] for user in firsts])


async def command_latencies(arena: Environment, layout: Layout, *, count: int) -> dict[str, Percentiles]:
    """For each of `count` users update a fact, delete the new one, and undo that, one command after another.

    Milliseconds from publication to the commit of the transaction of a command's end, by the kind of command.
    """
    users = count + WARM_UP_USERS
    async with running(arena, layout) as (client, watch):
        await client.add_many(islice(turns(infer=False, users=users), users))
        await watch.until_done(users)
        known = await (await watch.connection.execute(_FACTS)).fetchall()
        for number, (user_id, fact_id) in enumerate(known):
            prefix = WARMING if number < WARM_UP_USERS else ""
            update, delete, undo = (f"{prefix}{kind}-{user_id}" for kind in KINDS)
            text = as_text(sentence("updated", user_id))
            await client.update(fact_id, text, user_id=user_id, command_id=update)
            await _until_carried_out(client, update, user_id)
            ((new,),) = await (await watch.connection.execute(_NEW, {"source_id": update})).fetchall()
            await client.delete(new, user_id=user_id, command_id=delete)
            await _until_carried_out(client, delete, user_id)
            await client.undo(turn_id=delete, user_id=user_id, command_id=undo)
            await _until_carried_out(client, undo, user_id)
        waits = {kind: await commit_waits(watch.connection, f"{kind}-%") for kind in KINDS}
    return {kind: Percentiles.of([waited for _, waited, _ in found]) for kind, found in waits.items()}


async def _until_carried_out(client: AsyncMemoryClient, command_id: str, user_id: str) -> None:
    result = await client.wait(command_id, user_id=user_id)
    assert result.status == "done", f"{command_id}: {result}"


async def idle_cost(arena: Environment, layout: Layout, *, seconds: float) -> float:
    """Percent of one core that all workers together use while no turn comes."""
    async with running(arena, layout) as (client, every):
        workers_alone = {name: pid for name, pid in every.pids.items() if name.startswith("worker:")}
        watch = ProgressReader(every.connection, workers_alone)
        await client.add_many(islice(turns(), IDLE_TURNS))
        await watch.until_done(IDLE_TURNS)
        await asyncio.sleep(SETTLING_SECONDS)
        before = await watch.sample()
        await asyncio.sleep(seconds)
        return Rate.between(before, await watch.sample()).cores * 100
