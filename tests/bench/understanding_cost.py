"""What entities and relations cost a turn: CPU, tokens, rows and bytes, with them and without.

    python -m tests.bench.understanding_cost

prints the tables alone; `make bench` measures it too. The same turns go through the stages in one process, without
Kafka, by turns with entities and without them, each over a database of its own.
"""

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from dataclasses import dataclass, field
from statistics import median
from typing import Final, LiteralString

from mnemolog.schemas.commit import Commit
from mnemolog.streams.settings import StreamsSettings
from tests.bench.environment import Environment, Servers, environment, servers
from tests.bench.markdown import table
from tests.bench.named_turns import named_model_server, named_turns
from tests.bench.processes import cpu_seconds
from tests.bench.without_entities import without_entities
from tests.quality.model_sources import chosen_models
from tests.support.harnesses.in_process_pipeline import InProcessPipeline, in_process_pipeline

PROVIDERS: Final = ("offline", "test server")
ROUNDS: Final = 8
USERS: Final = 12
"""New users in each round, at once."""
STAGES: Final = "stages"
POSTGRES: Final = "postgres"

_TABLES: Final[LiteralString] = "SELECT tablename::text FROM pg_tables WHERE schemaname = 'mnemolog' ORDER BY 1"


@dataclass(slots=True, kw_only=True)
class Spent:
    """What turns took: CPU in seconds of each round, and sums over all of them."""

    turns: int = 0
    cpu: dict[str, list[float]] = field(default_factory=lambda: {STAGES: [], POSTGRES: []})
    prompt_tokens: int = 0
    reply_tokens: int = 0
    calls: int = 0
    commit_bytes: int = 0
    rows: Mapping[str, int] = field(default_factory=dict)

    def add(self, commits: Iterable[Commit], cpu: Mapping[str, float]) -> None:
        """One round more."""
        for name, seconds in cpu.items():
            self.cpu[name].append(seconds)
        for commit in commits:
            self.turns += 1
            self.commit_bytes += len(commit.to_bytes())
            for step in commit.provenance.steps:
                self.calls += step.llm_calls
                self.prompt_tokens += step.input_tokens if step.llm_calls else 0
                self.reply_tokens += step.output_tokens if step.llm_calls else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderstandingCost:
    """The same turns of one provider, with entities and without."""

    provider: str
    with_them: Spent
    without: Spent


async def measure_understanding(
    plain: Environment, named: Environment, provider: str, base_url: str, *, rounds: int
) -> UnderstandingCost:
    """One round more is run than measured: the first warms up. Each database is of one of the two."""
    found = {True: Spent(), False: Spent()}
    async with AsyncExitStack() as running:
        pipelines = {
            has_entities: await running.enter_async_context(_pipeline(one, provider, base_url))
            for has_entities, one in ((True, named), (False, plain))
        }
        pids = {STAGES: os.getpid(), POSTGRES: named.servers.pids["postgres"]}
        for number in range(rounds + 1):
            for has_entities in (True, False) if number % 2 else (False, True):
                commits, cpu = await _round(pipelines[has_entities], number, pids, has_entities=has_entities)
                if number:
                    found[has_entities].add(commits, cpu)
        for has_entities, spent in found.items():
            every = await _rows(pipelines[has_entities])
            spent.rows = {name: round(count * rounds / (rounds + 1)) for name, count in every.items()}
    return UnderstandingCost(provider=provider, with_them=found[True], without=found[False])


def _pipeline(one: Environment, provider: str, base_url: str) -> AbstractAsyncContextManager[InProcessPipeline]:
    settings = StreamsSettings.model_validate({"provider": "offline", "postgres": one.settings.postgres})
    if provider != "offline":
        settings = settings.model_copy(
            update={"provider": "openai", "embedding_provider": "offline", "base_url": base_url}
        )
    return in_process_pipeline(settings, *chosen_models(settings))


async def _round(
    pipeline: InProcessPipeline, number: int, pids: Mapping[str, int], *, has_entities: bool
) -> tuple[list[Commit], dict[str, float]]:
    with nullcontext() if has_entities else without_entities():
        before = cpu_seconds(pids)
        told = await asyncio.gather(*(_talk(pipeline, number * USERS + place) for place in range(USERS)))
        after = cpu_seconds(pids)
    return [commit for commits in told for commit in commits], {name: after[name] - before[name] for name in pids}


async def _talk(pipeline: InProcessPipeline, user: int) -> list[Commit]:
    return [
        await pipeline.process_turn(turn, partition=user, offset=offset, now=turn.occurred_at)
        for offset, turn in enumerate(named_turns(f"user{user}"))
    ]


async def _rows(pipeline: InProcessPipeline) -> dict[str, int]:
    async with pipeline.pool.connection() as connection:
        names = [name for (name,) in await (await connection.execute(_TABLES)).fetchall()]
        counts = Counter[str]()
        for name in names:
            query = f"SELECT count(*) FROM mnemolog.{name}".encode()  # noqa: S608 -- a name of the catalogue
            ((counts[name],),) = await (await connection.execute(query)).fetchall()
    return counts


def cost_table(costs: Sequence[UnderstandingCost]) -> str:
    """For one turn; ratios of CPU are medians of those of the rounds."""
    rows: list[tuple[str, ...]] = []
    for name, told in ((STAGES, "CPU of the stages and of the projector, ms"), (POSTGRES, "CPU of Postgres, ms")):
        rows.append((told, *(cell for one in costs for cell in _cpu(one, name))))
    for attribute, told in _SUMS.items():
        cells = (
            cell for one in costs for cell in _pair(*(getattr(s, attribute) / s.turns for s in _both(one)), digits=2)
        )
        rows.append((told, *cells))
    head = [f"{one.provider}: {what}" for one in costs for what in ("with", "without", "ratio")]
    return table(("a turn", *head), rows)


def rows_table(costs: Sequence[UnderstandingCost]) -> str:
    """Rows for one turn in the tables whose number of rows differs, and in all of them."""
    names = sorted({name for one in costs for spent in _both(one) for name in spent.rows})
    differing = [name for name in names if any(one.with_them.rows[name] != one.without.rows[name] for one in costs)]
    shown = {f"`{name}`": (name,) for name in differing} | {"all tables": tuple(names)}
    head = [f"{one.provider}: {what}" for one in costs for what in ("with", "without", "ratio")]
    lines = []
    for told, of in shown.items():
        counts = ([sum(spent.rows[name] for name in of) / spent.turns for spent in _both(one)] for one in costs)
        lines.append((told, *(cell for pair in counts for cell in _pair(*pair, digits=2))))
    return table(("rows a turn", *head), lines)


_SUMS: Final = {
    "calls": "calls of the model",
    "prompt_tokens": "prompt tokens",
    "reply_tokens": "reply tokens",
    "commit_bytes": "bytes of its commit",
}


def _both(cost: UnderstandingCost) -> tuple[Spent, Spent]:
    return cost.with_them, cost.without


def _cpu(cost: UnderstandingCost, name: str) -> list[str]:
    rounds = len(cost.without.cpu[name])
    turns = cost.without.turns / rounds
    spent = [1000 * median(one.cpu[name]) / turns for one in _both(cost)]
    pairs = zip(cost.with_them.cpu[name], cost.without.cpu[name], strict=True)
    return [*(f"{one:.2f}" for one in spent), f"{median(one / other for one, other in pairs):.2f}"]


def _pair(one: float, other: float, *, digits: int) -> list[str]:
    return [f"{one:.{digits}f}", f"{other:.{digits}f}", f"{one / other:.2f}" if other else "-"]


async def measure_provider(
    running: Servers, provider: str, base_url: str, *, rounds: int = ROUNDS
) -> UnderstandingCost:
    """Over two new databases."""
    name = provider.replace(" ", "_")
    async with environment(running, f"plain_{name}") as plain, environment(running, f"named_{name}") as named:
        return await measure_understanding(plain, named, provider, base_url, rounds=rounds)


async def main() -> None:
    async with servers() as running, named_model_server() as base_url:
        costs = [await measure_provider(running, provider, base_url) for provider in PROVIDERS]
    sys.stdout.write(f"{cost_table(costs)}\n\n{rows_table(costs)}\n")


if __name__ == "__main__":
    asyncio.run(main())
