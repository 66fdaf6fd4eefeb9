"""`python -m tests.bench.gateway`: the same adds and searches by the client, and over HTTP, one after another.

Prints the table of "Over HTTP" in docs/performance.md.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import httpx

from mnemolog.client.async_client import AsyncMemoryClient
from tests.bench.environment import Environment, cpu_seconds, environment, gateway, model_server, servers
from tests.bench.figures import Percentiles
from tests.bench.markdown import table
from tests.bench.query_speed import LIMIT, asked_users, project_log, question_of
from tests.bench.samples import fill_log

WARMING: Final = 20
"""Requests of each kind before those that are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Milliseconds of each request, and CPU milliseconds of one: of this process, and of the server."""

    waits: Percentiles
    cpu: Mapping[str, float]


Gateway = Mapping[tuple[str, str], Requests]
"""By what is done, and by what does it."""


async def measure_gateway(arena: Environment, facts: int, *, questions: int) -> Gateway:
    """Adds and searches over tables that hold `facts` facts; nothing reads what is added."""
    users = asked_users(facts, questions + WARMING)
    async with (
        gateway(arena.settings, arena.servers.folder) as (url, pid),
        AsyncMemoryClient(settings=arena.settings) as client,
        httpx.AsyncClient(base_url=url, timeout=60) as http,
    ):

        async def post(path: str, **body: Any) -> None:
            answer = await http.post(path, json=body)
            answer.raise_for_status()

        async def searched(user: int) -> None:
            assert (await client.search(question_of(user), user_id=f"user{user}", limit=LIMIT)).mode == "hybrid"

        def searched_over_http(user: int) -> Awaitable[None]:
            return post("/v1/search", query=question_of(user), user_id=f"user{user}", limit=LIMIT)

        def added(user: int) -> Awaitable[Any]:
            return client.add(question_of(user), user_id=f"added{user}")

        def added_over_http(user: int) -> Awaitable[None]:
            return post("/v1/turns", messages=question_of(user), user_id=f"added{user}")

        ways: Mapping[tuple[str, str], Callable[[int], Awaitable[Any]]] = {
            ("add", "client"): added,
            ("add", "HTTP"): added_over_http,
            ("search", "client"): searched,
            ("search", "HTTP"): searched_over_http,
        }
        pids = {"caller": os.getpid(), "server": pid}
        return {name: await _requests(do, users, pids) for name, do in ways.items()}


async def _requests(do: Callable[[int], Awaitable[Any]], users: Sequence[int], pids: Mapping[str, int]) -> Requests:
    for user in users[:WARMING]:
        await do(user)
    waits, before = [], cpu_seconds(pids)
    for user in users[WARMING:]:
        started = time.perf_counter()
        await do(user)
        waits.append((time.perf_counter() - started) * 1000)
    spent = {name: (after - before[name]) * 1000 / len(waits) for name, after in cpu_seconds(pids).items()}
    return Requests(waits=Percentiles.of(waits), cpu=spent)


def gateway_table(measured: Gateway) -> str:
    rows = [
        (what, by, *one.waits.cells(1), f"{one.cpu['caller']:.1f}", f"{one.cpu['server']:.1f}")
        for (what, by), one in measured.items()
    ]
    return table(("request", "by", "p50", "p95", "CPU ms: caller", "server"), rows)


async def measure(facts: int, questions: int) -> Gateway:
    async with (
        servers() as running,
        model_server(running.folder) as (base_url, _),
        environment(running, "gateway") as one,
    ):
        arena = one.with_model(base_url)
        await project_log(arena, await fill_log(arena, facts))
        return await measure_gateway(arena, facts, questions=questions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", type=int, default=1_000)
    parser.add_argument("--questions", type=int, default=300)
    given = parser.parse_args()
    sys.stdout.write(gateway_table(asyncio.run(measure(given.facts, given.questions))))


if __name__ == "__main__":
    main()
