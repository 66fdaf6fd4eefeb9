"""What a backlog costs whose turns share calls, and turns that wait for each other; `make bench` measures it too.

    python -m tests.bench.shared_calls

prints the tables alone. Each user of the backlog has turns that wait when the worker starts. Each of the other users
sends a turn a second, and turns wait so many seconds for each other (`MNEMOLOG_CALL_LINGER`).
"""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, LiteralString

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.client.async_client import AsyncMemoryClient
from tests.bench.environment import LAYOUTS, Environment, environment, model_server, servers, workers
from tests.bench.figures import Percentiles
from tests.bench.markdown import table
from tests.bench.samples import turns
from tests.bench.stores import MEASURED, commit_waits, progress, publish_at_rate, running

BACKLOG: Final = 20
"""Turns of each user."""
USERS: Final = 40
CALL_TURNS: Final = (1, 5, 20)
LINGERS: Final = (0, 2, 5)
"""Seconds that a turn waits for others of its user."""
LINGER_USERS: Final = 20
LINGER_SECONDS: Final = 20
"""So long each user sends a turn a second."""

_TAKEN: Final[LiteralString] = """
SELECT
    (SELECT count(*) FROM mnemolog.commits) AS turns,
    (SELECT count(*) FROM mnemolog.facts) AS facts,
    coalesce(sum((one ->> 'llm_calls')::bigint) FILTER (WHERE one ->> 'stage' = 'extract'), 0) AS extractions,
    coalesce(sum((one ->> 'input_tokens')::bigint) FILTER (WHERE one ->> 'stage' = 'extract'), 0) AS asked,
    coalesce(sum((one ->> 'output_tokens')::bigint) FILTER (WHERE one ->> 'stage' = 'extract'), 0) AS said
FROM mnemolog.commits
CROSS JOIN LATERAL jsonb_array_elements(provenance -> 'steps') AS one
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCosts:
    """What the extractions of turns took of the language model: calls, and tokens that it was asked and replied."""

    turns: int
    facts: int
    extractions: int
    asked: int
    said: int

    def per_thousand(self, *counts: int) -> list[str]:
        return [f"{1000 * count / self.turns:.0f}" for count in counts]


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogCost(CallCosts):
    """Costs of a backlog of which at most `call_turns` turns shared a call."""

    call_turns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LingerCost(CallCosts):
    """Costs of turns that came one by one and waited `linger` seconds for each other; `to_commit` is in ms."""

    linger: int
    to_commit: Percentiles


async def measure_backlog(arena: Environment, *, call_turns: int) -> BacklogCost:
    """Publish the backlog, then start a worker, and wait until all of it is in the tables."""
    arena = arena.with_settings(call_turns=call_turns)
    async with AsyncMemoryClient(settings=arena.settings) as client:
        await client.add_many(islice(turns(users=USERS), USERS * BACKLOG))
    async with (
        workers(arena.settings, LAYOUTS["one process"], arena.servers.folder),
        progress(arena) as watch,
    ):
        await watch.until_done(USERS * BACKLOG)
        return BacklogCost(call_turns=call_turns, **await _taken(watch.connection))


async def measure_linger(arena: Environment, *, linger: int) -> LingerCost:
    """Publish at a fixed rate to a worker that runs, and wait until all is in the tables."""
    arena = arena.with_settings(call_linger=float(linger))
    async with running(arena, LAYOUTS["one process"]) as (client, watch):
        said = turns(users=LINGER_USERS, prefix=MEASURED)
        sent = await publish_at_rate(client, said, LINGER_USERS, LINGER_SECONDS)
        await watch.until_done(len(sent))
        waited = [milliseconds for _, milliseconds, _ in await commit_waits(watch.connection, f"{MEASURED}%")]
        return LingerCost(linger=linger, to_commit=Percentiles.of(waited), **await _taken(watch.connection))


async def _taken(connection: AsyncConnection[TupleRow]) -> dict[str, Any]:
    (row,) = await (await connection.execute(_TAKEN)).fetchall()
    return dict(zip(("turns", "facts", "extractions", "asked", "said"), map(int, row), strict=True))


def backlog_table(costs: Sequence[BacklogCost]) -> str:
    """For 1 000 turns each; facts are shown as well, because all rows should have as many."""
    head = ("turns in a call at most", "calls for extractions", "prompt tokens", "reply tokens", "facts")
    return table(
        head,
        [(str(one.call_turns), *one.per_thousand(one.extractions, one.asked, one.said, one.facts)) for one in costs],
    )


def linger_table(costs: Sequence[LingerCost]) -> str:
    """For 1 000 turns each."""
    head = ("seconds of waiting", "calls for extractions", "facts", "seconds from turn to fact: p50", "p95")
    rows = [
        (
            str(one.linger),
            *one.per_thousand(one.extractions, one.facts),
            *(f"{waited / 1000:.1f}" for waited in (one.to_commit.p50, one.to_commit.p95)),
        )
        for one in costs
    ]
    return table(head, rows)


async def main() -> None:
    async with servers() as started, model_server(started.folder) as (base_url, _):
        backlogs, lingers = [], []
        for count in CALL_TURNS:
            async with environment(started, f"backlog{count}") as one:
                backlogs.append(await measure_backlog(one.with_model(base_url), call_turns=count))
        for linger in LINGERS:
            async with environment(started, f"linger{linger}") as one:
                lingers.append(await measure_linger(one.with_model(base_url), linger=linger))
    sys.stdout.write(f"{backlog_table(backlogs)}\n\n{linger_table(lingers)}\n")


if __name__ == "__main__":
    asyncio.run(main())
