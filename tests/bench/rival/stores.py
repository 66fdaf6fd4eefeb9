"""Stores of both sides, at steady state, from the same turns."""

import asyncio
import json
import os
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, LiteralString

from psycopg import AsyncConnection

from mnemolog.schemas.turn import Turn
from tests.bench.environment import Environment, Servers
from tests.bench.processes import cpu_seconds
from tests.bench.rival.comparison import StoreFigures
from tests.bench.rival.mem0_process import Mem0Process, mem0_process
from tests.bench.sample_turns import turns
from tests.bench.statistics import Sample, rate_between
from tests.bench.turn_throughput import throughput
from tests.bench.worker_layouts import LAYOUTS
from tests.support.databases import fresh_database

OWN_TURNS_PER_SECOND: Final = 400
RIVAL_TURNS_PER_SECOND: Final = 300
"""How many turns are prepared for each second; with more, ours are made while it runs, and a run of mem0 ends."""
_STORED: Final[LiteralString] = "SELECT payload ->> 'data', payload ->> 'user_id' FROM mem0"


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
    servers: Servers, arrangement: Arrangement, model: tuple[str, int], window: Window, *, infer: bool
) -> StoreFigures:
    """Raises RuntimeError where mem0's table has not what the turns said."""
    base_url, model_pid = model
    prepared = list(islice(turns(infer=infer), window.turns(RIVAL_TURNS_PER_SECOND)))
    with fresh_database(servers.postgres) as database:
        job = {"task": "store", "postgres": database, "base_url": base_url, "infer": infer}
        job |= {"at_once": arrangement.at_once, "tasks": arrangement.tasks, "pool": arrangement.pool}
        async with AsyncExitStack() as stack:
            running = []
            for number in range(arrangement.processes):
                path = _write_turns(prepared[number :: arrangement.processes], servers.folder / f"turns{number}.jsonl")
                start = mem0_process(job | {"turns": str(path)}, servers.folder, f"mem0-{number}")
                running.append(await stack.enter_async_context(start))
            pids = {f"client:{one.pid}": one.pid for one in running} | servers.pids | {"model": model_pid}
            pids.pop("kafka")
            await asyncio.sleep(window.warm_up)
            before = await _sample(running, pids)
            await asyncio.sleep(window.seconds)
            after = await _sample(running, pids)
            total = await _end(running)
        await _check_table(database, prepared, total["memories"], infer=infer)
    rate = rate_between(before, after)
    return StoreFigures(
        how=arrangement.name,
        per_second=rate.per_second,
        cpu=StoreFigures.cpu_of(rate),
        model_calls=total["calls"] / total["done"],
        prompt_tokens=total["prompt_tokens"] / total["done"],
        reply_tokens=total["reply_tokens"] / total["done"],
        memories=total["memories"] / total["done"],
    )


def _write_turns(prepared: list[Turn], path: Path) -> Path:
    with path.open("w") as file:
        for turn in prepared:
            messages = [{"role": message.role, "content": message.content} for message in turn.messages]
            file.write(json.dumps({"user_id": turn.scope.user_id, "messages": messages}) + "\n")
    return path


async def _sample(running: list[Mem0Process], pids: Mapping[str, int]) -> Sample:
    reports = [await one.ask() for one in running]
    return Sample(done=sum(each["done"] for each in reports), at=time.perf_counter(), cpu=cpu_seconds(pids))


async def _end(running: list[Mem0Process]) -> dict[str, Any]:
    for one in running:
        one.stop()
    reports = [await one.answer() for one in running]
    return {name: sum(each[name] for each in reports) for name in reports[0] if name != "error"}


async def _check_table(database: str, prepared: list[Turn], count: int, *, infer: bool) -> None:
    roles = ("user",) if infer else ("user", "assistant")
    said = {
        (message.content, turn.scope.user_id) for turn in prepared for message in turn.messages if message.role in roles
    }
    async with await AsyncConnection.connect(database) as connection:
        rows = await (await connection.execute(_STORED)).fetchall()
    strange = [row for row in rows if row not in said]
    if strange or len(rows) != count:
        raise RuntimeError(f"mem0 told of {count} memories and has {len(rows)}; not said by any turn: {strange[:3]}")
