"""What understanding costs a turn: CPU, tokens, rows and bytes, with each of its parts and without.

    python -m tests.bench.understanding_cost

prints the tables alone; `make bench` measures it too. The same turns go through the stages in one process, without
Kafka, with each setting by turns, each over a database of its own.
"""

import asyncio
import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final, LiteralString

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
ROUNDS: Final = 6
USERS: Final = 8
"""New users in each round, at once."""
STAGES: Final = "stages"
POSTGRES: Final = "postgres"
EVERYTHING: Final = "everything"
NO_ENTITIES: Final = "no entities and relations"
TURN_ALONE: Final = "the turn alone"
_NO_CONVERSATION: Final[dict[str, Any]] = {"conversation_messages": 0}
_NO_FACTS: Final[dict[str, Any]] = {"known_facts": 0}
_NO_NAMES: Final[dict[str, Any]] = {"known_entities": 0}
VARIANTS: Final[Mapping[str, dict[str, Any]]] = {
    EVERYTHING: {},
    "no conversation": _NO_CONVERSATION,
    "no known facts": _NO_FACTS,
    "no known entities": _NO_NAMES,
    "no question about names": {"ask_about_names": False},
    "no vectors of names": {"name_twin_threshold": 0.0},
    NO_ENTITIES: _NO_NAMES,
    TURN_ALONE: _NO_CONVERSATION | _NO_FACTS | _NO_NAMES,
}
"""The settings of each; those without entities run in a process without their functions, too."""
_WITHOUT_ENTITIES: Final = frozenset({NO_ENTITIES, TURN_ALONE})
_FOR_MODELS: Final = frozenset({"no known facts", "no known entities", "no question about names"})
"""What the offline rules do not have."""

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
    """The same turns of one provider, with each of its variants."""

    provider: str
    spent: Mapping[str, Spent]

    @property
    def both(self) -> tuple[Spent, Spent]:
        """With entities, and without them."""
        return self.spent[EVERYTHING], self.spent[NO_ENTITIES]


def variants_of(provider: str) -> tuple[str, ...]:
    return tuple(name for name in VARIANTS if provider != "offline" or name not in _FOR_MODELS)


async def measure_provider(
    running: Servers, provider: str, base_url: str, *, rounds: int = ROUNDS
) -> UnderstandingCost:
    """Each variant over a new database; one round more is run than measured: the first warms up."""
    found = {name: Spent() for name in variants_of(provider)}
    pids = {STAGES: os.getpid(), POSTGRES: running.pids["postgres"]}
    async with AsyncExitStack() as stack:
        pipelines = {
            name: await stack.enter_async_context(await _pipeline(stack, running, provider, name, base_url))
            for name in found
        }
        for number in range(rounds + 1):
            for name in _in_turn(tuple(found), number):
                commits, cpu = await _round(pipelines[name], number, pids, has_entities=name not in _WITHOUT_ENTITIES)
                if number:
                    found[name].add(commits, cpu)
        for name, spent in found.items():
            every = await _rows(pipelines[name])
            spent.rows = {table_name: round(count * rounds / (rounds + 1)) for table_name, count in every.items()}
    return UnderstandingCost(provider=provider, spent=found)


def _in_turn(names: Sequence[str], number: int) -> Sequence[str]:
    """Another one first in each round, and by turns from behind, so that none always follows the same one."""
    start = number % len(names)
    turned = (*names[start:], *names[:start])
    return turned if number % 2 else turned[::-1]


async def _pipeline(
    stack: AsyncExitStack, running: Servers, provider: str, variant: str, base_url: str
) -> AbstractAsyncContextManager[InProcessPipeline]:
    name = f"{provider}_{variant}".replace(" ", "_")
    one: Environment = await stack.enter_async_context(environment(running, name))
    chosen: dict[str, Any] = {"provider": "offline", "postgres": one.settings.postgres} | VARIANTS[variant]
    if provider != "offline":
        chosen |= {"provider": "openai", "embedding_provider": "offline", "base_url": base_url}
    settings = StreamsSettings.model_validate(chosen)
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


def cost_table(cost: UnderstandingCost) -> str:
    """What one turn of a provider takes in each variant; ratios of CPU are medians of those of the rounds."""
    head = (
        *("a turn with", "CPU ms: stages", "ratio", "Postgres", "ratio"),
        *_SUMS.values(),
        "rows",
    )
    rows = [
        (
            name,
            *_cpu(cost, spent, STAGES),
            *_cpu(cost, spent, POSTGRES),
            *(f"{getattr(spent, attribute) / spent.turns:.{_DIGITS.get(attribute, 0)}f}" for attribute in _SUMS),
            f"{sum(spent.rows.values()) / spent.turns:.1f}",
        )
        for name, spent in cost.spent.items()
    ]
    return table(head, rows)


def rows_table(costs: Sequence[UnderstandingCost]) -> str:
    """Rows for one turn in the tables whose number of rows differs with entities and without, and in all of them."""
    names = sorted({name for one in costs for spent in one.both for name in spent.rows})
    differing = [name for name in names if any(len({spent.rows[name] for spent in one.both}) > 1 for one in costs)]
    shown = {f"`{name}`": (name,) for name in differing} | {"all tables": tuple(names)}
    head = [f"{one.provider}: {what}" for one in costs for what in ("with", "without", "ratio")]
    lines = []
    for told, of in shown.items():
        counts = ([sum(spent.rows[name] for name in of) / spent.turns for spent in one.both] for one in costs)
        lines.append((told, *(cell for pair in counts for cell in _pair(*pair))))
    return table(("rows a turn", *head), lines)


_SUMS: Final = {
    "calls": "calls",
    "prompt_tokens": "prompt tokens",
    "reply_tokens": "reply tokens",
    "commit_bytes": "commit bytes",
}
_DIGITS: Final = {"calls": 2}


def _cpu(cost: UnderstandingCost, spent: Spent, name: str) -> tuple[str, str]:
    alone = cost.spent[TURN_ALONE].cpu[name]
    milliseconds = 1000 * median(spent.cpu[name]) / (spent.turns / len(spent.cpu[name]))
    ratio = median(one / other for one, other in zip(spent.cpu[name], alone, strict=True))
    return f"{milliseconds:.2f}", f"{ratio:.2f}"


def _pair(one: float, other: float) -> tuple[str, str, str]:
    return f"{one:.2f}", f"{other:.2f}", f"{one / other:.2f}" if other else "-"


async def main() -> None:
    async with servers() as running, named_model_server() as base_url:
        costs = [await measure_provider(running, provider, base_url) for provider in PROVIDERS]
    for cost in costs:
        sys.stdout.write(f"{cost.provider}\n\n{cost_table(cost)}\n\n")
    sys.stdout.write(f"{rows_table(costs)}\n")


if __name__ == "__main__":
    asyncio.run(main())
