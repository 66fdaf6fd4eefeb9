"""What is compared, for how long, in which order: stores at steady state and searches of both sides, from the same
turns and the same texts with the same vectors.
"""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import chain, islice
from statistics import fmean
from typing import Any, Final, Literal, LiteralString
from uuid import uuid4

from psycopg import AsyncConnection

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.schemas.vector import Vector
from tests.bench.environment import (
    LAYOUTS,
    MODEL_SECONDS,
    Environment,
    Servers,
    cpu_seconds,
    environment,
    model_server,
    servers,
)
from tests.bench.figures import Percentiles, Rate, Sample
from tests.bench.machine import Machine
from tests.bench.query_speed import asked_fact, asked_users, client_searches, project_log, question_of
from tests.bench.rival.comparison import Comparison, SearchFigures, Side, StoreFigures, Trial
from tests.bench.rival.mem0_process import mem0_process, mem0_version
from tests.bench.samples import DIMENSIONS, FACTS_PER_COMMIT, FACTS_PER_USER, MODEL, USERS, fact_text, fill_log, turns
from tests.bench.stores import throughput
from tests.support.databases import fresh_database
from tests.support.servers.openai_server import hash_embeddings

OWN_TURNS_PER_SECOND: Final = 400
RIVAL_TURNS_PER_SECOND: Final = 300
"""How many turns are prepared for each second; with more, ours are made while it runs, and a run of mem0 ends."""
_STORED: Final[LiteralString] = "SELECT payload ->> 'data', payload ->> 'user_id' FROM mem0"
_FILL: Final = "COPY mem0 (id, vector, payload) FROM STDIN"
Kind = Literal["smart", "raw"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Seconds of warm-up, and those that count."""

    warm_up: float
    seconds: float

    def turns(self, per_second: int) -> int:
        return int((self.warm_up + self.seconds) * per_second)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrangement:
    """How mem0 is called: `at_once` calls in each of `processes`, by threads or by asyncio tasks.

    `pool` is how many connections it may have, if not its default.
    """

    at_once: int
    tasks: bool = False
    processes: int = 1
    pool: int | None = None

    @property
    def name(self) -> str:
        calls = f"{self.at_once} {'asyncio tasks' if self.tasks else 'threads'}"
        pool = "" if self.pool is None else f", pool of {self.pool} connections"
        return f"{calls}{pool}" if self.processes == 1 else f"{self.processes} processes, each with {calls}{pool}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonPlan:
    """`trial` chooses the arrangement of each side and kind, `window` measures it; `facts` are searched in."""

    trial: Window
    window: Window
    layouts: tuple[str, ...]
    arrangements: tuple[Arrangement, ...]
    facts: int
    questions: int


FULL: Final = ComparisonPlan(
    trial=Window(warm_up=5, seconds=10),
    window=Window(warm_up=20, seconds=60),
    layouts=("one process", "two processes"),
    arrangements=(
        Arrangement(at_once=32, tasks=True),
        Arrangement(at_once=8),
        Arrangement(at_once=16),
        Arrangement(at_once=32),
        Arrangement(at_once=32, pool=32),
        Arrangement(at_once=8, processes=2),
        Arrangement(at_once=16, processes=2),
    ),
    facts=10_000,
    questions=500,
)
QUICK: Final = ComparisonPlan(
    trial=Window(warm_up=2, seconds=4),
    window=Window(warm_up=3, seconds=6),
    layouts=("one process", "two processes"),
    arrangements=(Arrangement(at_once=32, tasks=True), Arrangement(at_once=16), Arrangement(at_once=8, processes=2)),
    facts=1_000,
    questions=50,
)


async def compare(plan: ComparisonPlan, tell: Callable[[str], None]) -> Comparison:
    """Start the servers, measure both sides one thing after another, each in a database of its own, and stop them."""
    machine, version = Machine.describe(), mem0_version()
    tell(f"starting Kafka and Postgres, to compare with mem0 {version}")
    async with servers() as running, model_server(running.folder) as (base_url, model_pid):
        trials: list[Trial] = []
        ways: dict[str, dict[str, str | Arrangement]] = {
            "mem0": {one.name: one for one in plan.arrangements},
            "Mnemolog": {layout: layout for layout in plan.layouts},
        }

        @asynccontextmanager
        async def arena(name: str) -> AsyncIterator[Environment]:
            async with environment(running, name) as one:
                yield one.with_model(base_url)

        async def store(kind: Kind, way: str | Arrangement, window: Window) -> StoreFigures:
            infer = kind == "smart"
            if isinstance(way, Arrangement):
                return await rival_stores(running, way, base_url, model_pid, window, infer=infer)
            async with arena(f"{kind}{len(trials)}") as one:
                return await own_stores(one, way, model_pid, window, infer=infer)

        stored: dict[tuple[str, Kind], StoreFigures] = {}
        kinds: tuple[Kind, ...] = ("smart", "raw")
        for kind in kinds:
            for side, named in ways.items():
                rates = {}
                for name, way in named.items():
                    rates[name] = (await store(kind, way, plan.trial)).per_second
                    tell(f"{side}, {kind} stores, {name}: {rates[name]:.1f}/s in a trial")
                    trials.append(Trial(side=side, kind=kind, how=name, per_second=rates[name]))
                best = max(rates, key=rates.__getitem__)
                stored[side, kind] = await store(kind, named[best], plan.window)
                tell(f"{side}, {kind} stores, {best}: {stored[side, kind].per_second:.1f}/s")

        tell(f"mem0: searches in {plan.facts} memories")
        their_search = await rival_searches(running, base_url, plan.facts, plan.questions)
        tell(f"Mnemolog: searches in {plan.facts} facts")
        async with arena("search") as one:
            search = await own_searches(one, plan.facts, plan.questions)
        return Comparison(
            at=machine.at,
            machine=machine.hardware,
            load=machine.load,
            rival=f"mem0ai {version}",
            seconds=plan.window.seconds,
            model_seconds=MODEL_SECONDS,
            users=USERS,
            facts=plan.facts,
            ours=Side(smart=stored["Mnemolog", "smart"], raw=stored["Mnemolog", "raw"], search=search),
            theirs=Side(smart=stored["mem0", "smart"], raw=stored["mem0", "raw"], search=their_search),
            trials=tuple(trials),
        )


async def own_stores(arena: Environment, layout: str, model_pid: int, window: Window, *, infer: bool) -> StoreFigures:
    """The CPU of this process, which publishes, is the client's."""
    ready = turns(infer=infer)
    prepared = list(islice(ready, window.turns(OWN_TURNS_PER_SECOND)))
    pids = {"model": model_pid, "client": os.getpid()}
    feed = chain(prepared, ready)
    done = await throughput(arena, LAYOUTS[layout], feed, pids, warm_up=window.warm_up, seconds=window.seconds)
    return StoreFigures(
        how=layout,
        per_second=done.rate.per_second,
        cpu=StoreFigures.cpu_of(done.rate),
        model_calls=done.costs.llm_calls,
        prompt_tokens=done.costs.prompt_tokens,
        reply_tokens=done.costs.reply_tokens,
        memories=done.costs.facts,
    )


async def rival_stores(
    servers: Servers, arrangement: Arrangement, base_url: str, model_pid: int, window: Window, *, infer: bool
) -> StoreFigures:
    """Raises RuntimeError where mem0's table has not what the turns said."""
    prepared = list(islice(turns(infer=infer), window.turns(RIVAL_TURNS_PER_SECOND)))
    with fresh_database(servers.postgres) as database:
        job = {"task": "store", "postgres": database, "base_url": base_url, "infer": infer}
        job |= {"at_once": arrangement.at_once, "tasks": arrangement.tasks, "pool": arrangement.pool}
        async with AsyncExitStack() as stack:
            running = []
            for number in range(arrangement.processes):
                path = servers.folder / f"turns{number}.jsonl"
                with path.open("w") as file:
                    for turn in prepared[number :: arrangement.processes]:
                        messages = [{"role": one.role, "content": one.content} for one in turn.messages]
                        file.write(json.dumps({"user_id": turn.scope.user_id, "messages": messages}) + "\n")
                start = mem0_process(job | {"turns": str(path)}, servers.folder, f"mem0-{number}")
                running.append(await stack.enter_async_context(start))
            pids = {f"client:{one.pid}": one.pid for one in running}
            pids |= {"postgres": servers.pids["postgres"], "model": model_pid}

            async def sample() -> Sample:
                done = sum([(await one.ask())["done"] for one in running])
                return Sample(done=done, at=time.perf_counter(), cpu=cpu_seconds(pids))

            await asyncio.sleep(window.warm_up)
            before = await sample()
            await asyncio.sleep(window.seconds)
            rate = Rate.between(before, await sample())
            for one in running:
                one.stop()
            reports = [await one.answer() for one in running]
        total: dict[str, Any] = {name: sum(each[name] for each in reports) for name in reports[0] if name != "error"}
        async with await AsyncConnection.connect(database) as connection:
            rows = await (await connection.execute(_STORED)).fetchall()
    roles = ("user",) if infer else ("user", "assistant")
    said = {(one.content, turn.scope.user_id) for turn in prepared for one in turn.messages if one.role in roles}
    strange = [row for row in rows if row not in said]
    if strange or len(rows) != total["memories"]:
        counted = f"mem0 counted {total['memories']} memories and has {len(rows)}"
        raise RuntimeError(f"{counted}; not said by any turn: {strange[:3]}")
    return StoreFigures(
        how=arrangement.name,
        per_second=rate.per_second,
        cpu=StoreFigures.cpu_of(rate),
        model_calls=total["calls"] / total["done"],
        prompt_tokens=total["prompt_tokens"] / total["done"],
        reply_tokens=total["reply_tokens"] / total["done"],
        memories=total["memories"] / total["done"],
    )


async def own_searches(arena: Environment, facts: int, questions: int) -> SearchFigures:
    """Raises RuntimeError where the query could not be embedded."""
    await project_log(arena, await fill_log(arena, facts, lambda text: Vector.from_values(MODEL, _values(text))))
    asked = asked_users(facts, questions)
    async with AsyncMemoryClient(settings=arena.settings) as client:
        await client_searches(client, asked[:1])
        waits, texts = await client_searches(client, asked)
    return search_figures(waits, texts, asked)


async def rival_searches(servers: Servers, base_url: str, facts: int, questions: int) -> SearchFigures:
    """mem0 searches in rows as it writes them, in the table and with the indexes that it has made."""
    asked = asked_users(facts, questions)
    users = facts // FACTS_PER_USER
    with fresh_database(servers.postgres) as database:
        pairs = [(f"user{user}", question_of(user)) for user in asked]
        job = {"task": "search", "postgres": database, "base_url": base_url, "questions": pairs}
        async with (
            mem0_process(job, servers.folder, "mem0-search") as running,
            await AsyncConnection.connect(database, autocommit=True) as connection,
        ):
            async with connection.cursor() as cursor, cursor.copy(_FILL) as rows:
                for number in range(facts):
                    user = number % users
                    turn, place = divmod(number // users, FACTS_PER_COMMIT)
                    text = fact_text(user, turn, place)
                    payload = {"data": text, "text_lemmatized": text, "user_id": f"user{user}", "attributed_to": "user"}
                    await rows.write_row((uuid4(), json.dumps(_values(text)), json.dumps(payload)))
            await connection.execute("VACUUM (ANALYZE) mem0")
            found = await running.ask()
    return search_figures(found["waits"], found["texts"], asked)


def search_figures(waits: Sequence[float], texts: Sequence[Sequence[str]], asked: Sequence[int]) -> SearchFigures:
    """From the milliseconds and the hits of each search. Raises ValueError for different lengths."""
    right = [found[:1] == [asked_fact(user)] for found, user in zip(texts, asked, strict=True)]
    return SearchFigures(waits=Percentiles.of(waits), hits=fmean(map(len, texts)), found=fmean(right))


def _values(text: str) -> list[float]:
    return hash_embeddings([text], DIMENSIONS)[0]
