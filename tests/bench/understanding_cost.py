"""What understanding costs a turn: CPU, tokens, rows and bytes, with each of its parts and without.

    python -m tests.bench.understanding_cost

prints the figures alone; `make bench` measures them too. The same turns go through the stages in one process, without
Kafka, with each setting by turns, each over a database of its own. The model is a test server that replies with what
the offline rules read.
"""

import asyncio
import multiprocessing
import os
import re
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection
from statistics import median
from typing import Any, Final
from unittest.mock import patch

from psycopg.sql import SQL, Identifier

from mnemolog.schemas.commit import Commit
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.entities.linker import EntityLinker
from mnemolog.streams.llm import extract_prompt
from mnemolog.streams.offline import extract
from mnemolog.streams.settings import StreamsSettings
from mnemolog.streams.stages import embed
from tests.bench.environment import Servers, cpu_seconds, environment, servers
from tests.bench.markdown import table
from tests.quality.model_sources import chosen_models
from tests.support.builders.model_replies import fact_json, facts_reply
from tests.support.filled_scopes import name_of_entity
from tests.support.harnesses.in_process_pipeline import InProcessPipeline, in_process_pipeline
from tests.support.servers.canned_replies import ChatRequest, word_overlap_decisions
from tests.support.servers.openai_server import OpenAiServer

ROUNDS: Final = 6
USERS: Final = 8
"""New users in each round, at once."""
COUSINS: Final = 600
NEW_COUSINS: Final = 20
"""Turns in each round of each user whose cousins are known."""
BEGIN: Final = datetime(2026, 3, 2, 9, tzinfo=UTC)
SAID: Final = (
    "My wife is called Ana Keller. I live in Bern.",
    "I work at Siemens.",
    "My brother Tom plays chess with our neighbour Ida.",
    "Ana started a course in Zurich yesterday.",
    "I had lunch with Tom from work, he is from Oslo.",
    "I love hiking in the Alps.",
    "We have a dog called Rex.",
    "Rex was at the vet with Ana this morning.",
    "My brother Tom moved to Hamburg with his friend Paul.",
    "I read for an hour every evening.",
    "I work at Bosch now.",
    "Tom from work told me that Siemens is closing the canteen.",
    "My sister Clara visits us in May.",
    "I moved from Bern to Basel.",
    "Clara and Ana painted the kitchen green.",
    "I no longer work at Bosch.",
)
"""What each user says, a turn each: four name nobody, and three end a relation."""
STAGES: Final = "stages"
POSTGRES: Final = "postgres"
TURN_ALONE: Final = "the turn alone"
NO_CONVERSATION: Final[dict[str, Any]] = {"conversation_messages": 0}
NO_FACTS: Final[dict[str, Any]] = {"known_facts": 0}
NO_NAMES: Final[dict[str, Any]] = {"known_entities": 0}
VARIANTS: Final[Mapping[str, dict[str, Any]]] = {
    "everything": {},
    "no conversation": NO_CONVERSATION,
    "no known facts": NO_FACTS,
    "no known entities": NO_NAMES,
    "no question about names": {"ask_about_names": False},
    "no vectors of names": {"name_twin_threshold": 0.0},
    "no entities and relations": NO_NAMES,
    TURN_ALONE: NO_CONVERSATION | NO_FACTS | NO_NAMES,
}
"""The settings of each; those of `WITHOUT_ENTITIES` run in a process without the functions for entities, too."""
WITHOUT_ENTITIES: Final = frozenset({"no entities and relations", TURN_ALONE})
ENTITY_READERS: Final = {"sentence_entities": (), "names_of_value": ((), ())}
"""Functions of the rules that find entities, with what they give where there are none."""
NAMES_ASKED: Final = "\nnames: "
"""What a prompt has that asks for names."""
_TABLES: Final = "SELECT tablename FROM pg_tables WHERE schemaname = 'mnemolog'"


@dataclass(slots=True, kw_only=True)
class Spent:
    """What turns took: CPU in seconds of each round, and sums over all of them; `rows` are of all tables."""

    turns: int = 0
    cpu: dict[str, list[float]] = field(default_factory=lambda: {STAGES: [], POSTGRES: []})
    prompt_tokens: int = 0
    reply_tokens: int = 0
    calls: int = 0
    commit_bytes: int = 0
    rows: int = 0

    def add(self, commit: Commit) -> None:
        self.turns += 1
        self.commit_bytes += len(commit.to_bytes())
        for step in commit.provenance.steps:
            self.calls += step.llm_calls
            self.prompt_tokens += step.input_tokens if step.llm_calls else 0
            self.reply_tokens += step.output_tokens if step.llm_calls else 0


def cost_table(measured: Mapping[str, Spent]) -> str:
    """What one turn takes in each variant; ratios of CPU to the turn alone are medians of those of the rounds."""
    head = ("a turn with", "CPU ms: stages", "ratio", "Postgres", "ratio", "calls", "prompt tokens", "reply tokens")
    rows = []
    for name, spent in measured.items():
        cells = [name]
        for process in (STAGES, POSTGRES):
            rounds, alone = spent.cpu[process], measured[TURN_ALONE].cpu[process]
            milliseconds = 1000 * median(rounds) / (spent.turns / len(rounds))
            ratio = median(one / other for one, other in zip(rounds, alone, strict=True))
            cells += [f"{milliseconds:.2f}", f"{ratio:.2f}"]
        sums = (spent.prompt_tokens, spent.reply_tokens, spent.commit_bytes)
        cells += [f"{spent.calls / spent.turns:.2f}", *(f"{one / spent.turns:.0f}" for one in sums)]
        rows.append((*cells, f"{spent.rows / spent.turns:.1f}"))
    return table((*head, "commit bytes", "rows"), rows)


async def measure_understanding(running: Servers, *, rounds: int = ROUNDS) -> dict[str, Spent]:
    """Each variant over a new database; one round more is run than measured: the first warms up."""
    pids = {STAGES: os.getpid(), POSTGRES: running.pids["postgres"]}
    found = {name: Spent() for name in VARIANTS}
    async with named_model_server() as base_url, AsyncExitStack() as stack:
        pipelines: dict[str, InProcessPipeline] = {}
        for name, variant in VARIANTS.items():
            one = await stack.enter_async_context(environment(running, f"understood {name}"))
            models = {"provider": "openai", "embedding_provider": "offline", "base_url": base_url}
            settings = StreamsSettings.model_validate({"postgres": one.settings.postgres} | models | variant)
            pipeline = in_process_pipeline(settings, *chosen_models(settings))
            pipelines[name] = await stack.enter_async_context(pipeline)
        names = tuple(VARIANTS)
        for number in range(rounds + 1):
            # Another one first in each round, and by turns from behind, so that none always follows the same one.
            start = number % len(names)
            turned = (*names[start:], *names[:start])
            for name in turned if number % 2 else turned[::-1]:
                users = range(number * USERS, (number + 1) * USERS)
                with without_entities() if name in WITHOUT_ENTITIES else nullcontext():
                    before = cpu_seconds(pids)
                    commits = await asyncio.gather(*(_talk(pipelines[name], user) for user in users))
                    after = cpu_seconds(pids)
                if number:
                    for process in pids:
                        found[name].cpu[process].append(after[process] - before[process])
                    for commit in (commit for some in commits for commit in some):
                        found[name].add(commit)
        for name, spent in found.items():
            async with pipelines[name].pool.connection() as connection:
                for (table_name,) in await (await connection.execute(_TABLES)).fetchall():
                    query = SQL("SELECT count(*) FROM {}").format(Identifier("mnemolog", table_name))
                    ((count,),) = await (await connection.execute(query)).fetchall()
                    spent.rows += round(count * rounds / (rounds + 1))
    return found


async def measure_cousins(running: Servers, *, rounds: int = ROUNDS) -> dict[int, float]:
    """CPU of Postgres in ms for a turn that names a new cousin, by how many cousins the user has; medians of rounds."""
    pids = {POSTGRES: running.pids["postgres"]}
    found: dict[int, list[float]] = {0: [], COUSINS: []}
    async with environment(running, "cousins") as one:
        settings = StreamsSettings(provider="offline", postgres=one.settings.postgres)
        async with in_process_pipeline(settings, *chosen_models(settings)) as pipeline:

            async def name_cousins(user: int, numbers: range) -> float:
                before = cpu_seconds(pids)
                for number in numbers:
                    turn = _turn(f"user{user}", number, f"My cousin {name_of_entity(number)} plays chess.")
                    await pipeline.process_turn(turn, partition=user, offset=number, now=turn.occurred_at)
                return 1000 * (cpu_seconds(pids)[POSTGRES] - before[POSTGRES]) / len(numbers)

            await name_cousins(0, range(COUSINS))
            for number in range(rounds):
                await name_cousins(number + 1, range(1))  # the user themselves is known
                found[0].append(await name_cousins(number + 1, range(1, 1 + NEW_COUSINS)))
                first = COUSINS + number * NEW_COUSINS
                found[COUSINS].append(await name_cousins(0, range(first, first + NEW_COUSINS)))
    return {known: median(spent) for known, spent in found.items()}


def cousins_line(measured: Mapping[int, float]) -> str:
    return (
        f"A turn that names a new cousin costs a user with {COUSINS} cousins {measured[COUSINS]:.0f} ms\n"
        f"of Postgres' CPU, a turn of a user without any {measured[0]:.0f}."
    )


async def _talk(pipeline: InProcessPipeline, user: int) -> list[Commit]:
    return [
        await pipeline.process_turn(turn, partition=user, offset=offset, now=turn.occurred_at)
        for offset, turn in enumerate(named_turns(f"user{user}"))
    ]


def named_turns(user: str) -> Iterator[Turn]:
    """The turns of a user, an hour apart."""
    return (_turn(user, place, said) for place, said in enumerate(SAID))


def _turn(user: str, place: int, said: str) -> Turn:
    return Turn(
        turn_id=f"{user}-{place}",
        scope=Scope(user_id=user),
        messages=(Message(role="user", content=said),),
        occurred_at=BEGIN + timedelta(hours=place),
        speaker="Alice",
    )


def named_reply(request: ChatRequest) -> str:
    """What the offline rules read, as a model would say it; entities and relations where the prompt asks for them."""
    if request.turn_id is None:
        return word_overlap_decisions(request.question)
    messages = tuple(Message(role="user", content=line) for role, _, line in request.messages if role == "user")
    turn = Turn(turn_id="asked", scope=Scope(user_id="u"), messages=messages, occurred_at=BEGIN, speaker="Alice")
    said_too = {"excerpt", "key", "value", "single_valued", "subject", "action_hint"}
    facts = []
    for fact in extract.read_turn(turn)[0]:
        said = fact_json(fact.text, fact.search_text, **fact.model_dump(include=said_too))
        for named in ("entities", "relations"):
            if NAMES_ASKED in request.body["messages"][0]["content"]:
                said[named] = [one.model_dump() for one in getattr(fact, named)]
            else:
                said.pop(named, None)
        facts.append(said)
    return facts_reply(*facts)


@asynccontextmanager
async def named_model_server() -> AsyncIterator[str]:
    """The base URL of a model server that replies so at once, in a process of its own."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(there,))
    process.start()
    try:
        yield await asyncio.to_thread(here.recv)
    finally:
        here.send("stop")
        await asyncio.to_thread(process.join)


def _serve(pipe: Connection) -> None:
    with OpenAiServer(named_reply) as server:
        pipe.send(server.base_url)
        pipe.recv()


@contextmanager
def without_entities() -> Iterator[None]:
    """The stages without entities and relations: nothing is asked of them, looked up, decided or stored.

    No setting switches them off: this takes their functions out of this process, for a comparison.
    """

    async def find_none(*_: object) -> None:
        return None

    rules, asked = re.subn(r"\nnames: .*?(?=\n\n)", "", extract_prompt._SYSTEM, flags=re.DOTALL)
    assert asked == 1
    with ExitStack() as patches:
        patches.enter_context(patch.object(extract_prompt, "_SYSTEM", rules))
        patches.enter_context(patch.object(EntityLinker, "find", find_none))
        patches.enter_context(patch.object(embed, "names_to_embed", lambda *_: {}))
        for name, nothing in ENTITY_READERS.items():
            patches.enter_context(patch.object(extract, name, lambda *_, found=nothing: found))
        yield


async def main() -> None:
    async with servers() as running:
        table_of_parts = cost_table(await measure_understanding(running))
        sys.stdout.write(f"{table_of_parts}\n{cousins_line(await measure_cousins(running))}\n")


if __name__ == "__main__":
    asyncio.run(main())
