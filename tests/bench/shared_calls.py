"""What a backlog costs whose turns share calls, and one whose turns do not; `make bench` measures it too.

    python -m tests.bench.shared_calls

prints the tables alone. Of the backlog every user has turns that wait when the worker starts. Of the others every user
sends one a second, which wait so many seconds for each other (`MNEMOLOG_CALL_LINGER`).
"""

import asyncio
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from itertools import islice
from typing import Any, Final, LiteralString

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.schemas.costs.prices import ModelPrice, ModelUsage, PriceTable
from tests.bench.environment import Environment, environment, servers
from tests.bench.markdown import table
from tests.bench.processes import model_server, workers
from tests.bench.sample_turns import turns
from tests.bench.statistics import Percentiles
from tests.bench.turn_throughput import MEASURED, ProgressReader, connected, milliseconds_to_commit, publish_at_rate
from tests.bench.worker_layouts import ALL_STAGES

BACKLOG: Final = 20
"""Turns of each user."""
USERS: Final = 40
CALL_TURNS: Final = (1, 5, 20)
LINGERS: Final = (0, 2, 5)
"""Seconds that a turn waits for others of its user."""
LINGER_USERS: Final = 20
LINGER_SECONDS: Final = 20
"""So long each user sends a turn a second."""
PRICE: Final = ModelPrice(model="*", input=Decimal("0.40"), cached_input=Decimal("0.10"), output=Decimal("1.60"))
"""An example: the list price of a small model, in dollars for a million tokens."""
MODEL_SECONDS: Final = 0.3

_TAKEN: Final[LiteralString] = """
SELECT
    (SELECT count(*) FROM mnemolog.commits) AS turns,
    (SELECT count(*) FROM mnemolog.facts) AS facts,
    coalesce(sum((one ->> 'llm_calls')::bigint) FILTER (WHERE one ->> 'stage' = 'extract'), 0) AS extractions,
    coalesce(sum((one ->> 'llm_calls')::bigint) FILTER (WHERE one ->> 'stage' = 'resolve'), 0) AS conflicts,
    coalesce(sum((one ->> 'input_tokens')::bigint) FILTER (WHERE one ->> 'stage' = 'extract'), 0) AS asked,
    coalesce(sum((one ->> 'output_tokens')::bigint) FILTER (WHERE one ->> 'stage' = 'extract'), 0) AS said,
    coalesce(sum((one ->> 'input_tokens')::bigint) FILTER (WHERE one ->> 'stage' = 'resolve'), 0) AS asked_conflicts,
    coalesce(sum((one ->> 'output_tokens')::bigint) FILTER (WHERE one ->> 'stage' = 'resolve'), 0) AS said_conflicts,
    count(*) FILTER (WHERE one ->> 'stage' = 'resolve' AND (one ->> 'notes') LIKE '%in vain%') AS in_vain
FROM mnemolog.commits
CROSS JOIN LATERAL jsonb_array_elements(provenance -> 'steps') AS one
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallCosts:
    """What turns took of the language model."""

    turns: int
    facts: int
    extractions: int
    conflicts: int
    asked: int
    said: int
    asked_conflicts: int
    said_conflicts: int
    in_vain: int

    def per_thousand(self, count: float) -> float:
        return 1000 * count / self.turns

    @property
    def calls(self) -> str:
        """Of one turn."""
        return f"{(self.extractions + self.conflicts) / self.turns:.2f}"

    @property
    def money(self) -> Decimal:
        """For 1 000 turns, by the example price."""
        usage = ModelUsage(
            model="any",
            day=datetime.now(UTC).date(),
            input_tokens=self.asked + self.asked_conflicts,
            output_tokens=self.said + self.said_conflicts,
        )
        return (PriceTable((PRICE,)).amount(usage) or Decimal(0)) * 1000 / self.turns


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogCost(CallCosts):
    """Those of a backlog, of which at most `call_turns` shared a call."""

    call_turns: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LingerCost(CallCosts):
    """Those of turns that came one by one and waited `linger` seconds for each other; `to_commit` is in ms."""

    linger: int
    to_commit: Percentiles


async def measure_backlog(arena: Environment, *, call_turns: int) -> BacklogCost:
    """Publish the backlog, then start a worker, and wait until all of it is in the tables."""
    asked = arena.settings.model_copy(update={"call_turns": call_turns})
    async with AsyncMemoryClient.from_settings(asked) as client:
        await client.add_many(islice(turns(users=USERS), USERS * BACKLOG))
    loop = asyncio.get_running_loop()
    async with workers(asked, (ALL_STAGES,), arena.servers.folder) as started, connected(arena) as connection:
        begun = loop.time()
        await ProgressReader(connection, started).until_done(USERS * BACKLOG)
        seconds = loop.time() - begun
        return BacklogCost(call_turns=call_turns, seconds=seconds, **await _taken(connection))


async def measure_linger(arena: Environment, *, linger: int) -> LingerCost:
    """Publish at a fixed rate to a worker that runs, and wait until all is in the tables."""
    asked = arena.settings.model_copy(update={"call_linger": float(linger)})
    async with (
        workers(asked, (ALL_STAGES,), arena.servers.folder) as started,
        connected(arena) as connection,
        AsyncMemoryClient.from_settings(asked) as client,
    ):
        said = turns(users=LINGER_USERS, prefix=MEASURED)
        sent = await publish_at_rate(client, said, LINGER_USERS, LINGER_SECONDS)
        await ProgressReader(connection, started).until_done(len(sent))
        waited = [milliseconds for milliseconds, _ in await milliseconds_to_commit(connection)]
        return LingerCost(linger=linger, to_commit=Percentiles.of(waited), **await _taken(connection))


async def _taken(connection: AsyncConnection[TupleRow]) -> dict[str, Any]:
    row = await (await connection.execute(_TAKEN)).fetchone()
    assert row is not None
    names = ("turns", "facts", "extractions", "conflicts", "asked", "said", "asked_conflicts", "said_conflicts")
    return dict(zip((*names, "in_vain"), map(int, row), strict=True))


def backlog_table(costs: Iterable[BacklogCost]) -> str:
    """For 1 000 turns each; the facts are told as well, because those of all rows should be as many."""
    head = (
        *("turns in a call at most", "calls for extractions", "for conflicts", "prompt tokens of extractions"),
        *("reply tokens", "prompt tokens of conflicts", "reply tokens", "calls a turn", "answers thrown away"),
        *("dollars", "facts", "seconds for all turns"),
    )
    rows = [
        (
            str(one.call_turns),
            *(f"{one.per_thousand(count):.0f}" for count in (one.extractions, one.conflicts, one.asked, one.said)),
            *(f"{one.per_thousand(count):.0f}" for count in (one.asked_conflicts, one.said_conflicts)),
            one.calls,
            f"{one.per_thousand(one.in_vain):.0f}",
            f"{one.money:.3f}",
            f"{one.per_thousand(one.facts):.0f}",
            f"{one.seconds:.0f}",
        )
        for one in costs
    ]
    return table(head, rows)


def linger_table(costs: Sequence[LingerCost]) -> str:
    """For 1 000 turns each."""
    head = (
        *("seconds that a turn waits", "calls for extractions", "for conflicts", "calls a turn", "prompt tokens"),
        *("dollars", "facts", "seconds from turn to fact: p50", "p95"),
    )
    rows = [
        (
            str(one.linger),
            *(f"{one.per_thousand(count):.0f}" for count in (one.extractions, one.conflicts)),
            one.calls,
            f"{one.per_thousand(one.asked + one.asked_conflicts):.0f}",
            f"{one.money:.3f}",
            f"{one.per_thousand(one.facts):.0f}",
            *(f"{waited / 1000:.1f}" for waited in (one.to_commit.p50, one.to_commit.p95)),
        )
        for one in costs
    ]
    return table(head, rows)


async def main() -> None:
    async with servers() as running, model_server(MODEL_SECONDS, running.folder) as (base_url, _):
        backlogs, lingers = [], []
        for count in CALL_TURNS:
            async with environment(running, f"backlog{count}") as one:
                backlogs.append(await measure_backlog(one.with_model(base_url), call_turns=count))
        for linger in LINGERS:
            async with environment(running, f"linger{linger}") as one:
                lingers.append(await measure_linger(one.with_model(base_url), linger=linger))
    sys.stdout.write(f"{backlog_table(backlogs)}\n\n{linger_table(lingers)}\n")


if __name__ == "__main__":
    asyncio.run(main())
