"""A conversation through the real stages and tables, with a model that names whom a test says."""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from psycopg.rows import TupleRow

from mnemolog.projections.rebuild.rebuild import rebuild
from mnemolog.projections.rebuild.replay import TableLogSource
from mnemolog.schemas.command import Command, CommandPayload, Undo
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.entities.questions import DoubtfulName
from mnemolog.streams.llm.ports import (
    Embedder,
    ExtractionTask,
    NumberedConflict,
    NumberedConflicts,
    Prompt,
    Reply,
    SummaryTask,
    TaskPrompt,
    Usage,
)
from mnemolog.streams.llm.resolve_prompt import entity_labels
from mnemolog.streams.settings import StreamsSettings
from tests.support.builders.commits import ALICE
from tests.support.builders.model_replies import decision_json, decisions_reply, fact_json, facts_reply, summary_reply
from tests.support.builders.name_choices import Choose, choose_nobody
from tests.support.harnesses.in_process_pipeline import InProcessPipeline, in_process_pipeline
from tests.support.servers.unlike_embedder import UnlikeEmbedder

USAGE: Final = Usage(input_tokens=10, output_tokens=5)
"""Of each question about conflicts and names."""
UNKNOWN: Final = 99
"""The number of an entity that no prompt shows."""
START = datetime(2026, 3, 2, 9, tzinfo=UTC)
Judge = Callable[[NumberedConflict], Mapping[str, Any]]


def always_add(conflict: NumberedConflict) -> Mapping[str, Any]:
    return decision_json(conflict.number, "ADD")


@dataclass
class NamingModel:
    """Extracts the facts that it was given for a turn, decides conflicts as `judge` does, and sums up word by word.

    Doubtful names mean whom `choose` says.
    """

    facts: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    judge: Judge = always_add
    asked: list[NumberedConflict] = field(default_factory=list)
    choose: Choose = choose_nobody
    asked_names: list[DoubtfulName] = field(default_factory=list)
    calls: Counter[str] = field(default_factory=Counter)
    model: str = "reader-1"

    async def complete(self, prompt: Prompt) -> Reply:
        assert isinstance(prompt, TaskPrompt)
        self.calls[prompt.purpose] += 1
        match prompt.task:
            case ExtractionTask(turn=turn):
                return Reply(text=facts_reply(*self.facts[turn.turn_id]), model=self.model)
            case NumberedConflicts(conflicts=conflicts, doubtful_names=names):
                self.asked += conflicts
                self.asked_names += names
                decisions = [self.judge(conflict) for conflict in conflicts]
                reply = decisions_reply(*decisions, names=self._answers(names))
                return Reply(text=reply, model=self.model, usage=USAGE)
            case SummaryTask(facts=facts):
                sentences = ((fact.text, [number]) for number, fact in enumerate(facts, 1))
                return Reply(text=summary_reply(*sentences), model=self.model)
        raise AssertionError(prompt.purpose)

    def _answers(self, names: Sequence[DoubtfulName]) -> dict[int, int]:
        labels = entity_labels(names)
        chosen = [self.choose(name) for name in names]
        return {number: labels.get(one.entity_id, UNKNOWN) if one else 0 for number, one in enumerate(chosen, 1)}

    async def close(self) -> None:
        return None


@dataclass
class NamedPeople:
    """Says one statement a turn; each owner has a partition."""

    pipeline: InProcessPipeline
    model: NamingModel
    database: str
    offsets: dict[str, int] = field(default_factory=dict)

    async def say(
        self,
        text: str,
        *named: tuple[str, str],
        scope: Scope = ALICE,
        speaker: str | None = "Alice",
        on_day: int | None = None,
        **fields: Any,
    ) -> Commit:
        """The commit of a turn that says `text`, one fact with these `fields` that names others, with their types."""
        entities = [{"name": name, "type": kind, "role": "object"} for name, kind in named]
        fact = fact_json(text, **{"entities": entities} | fields)
        return await self.say_facts(text, [fact], scope=scope, speaker=speaker, on_day=on_day)

    async def say_facts(
        self,
        text: str,
        facts: list[dict[str, Any]],
        *,
        scope: Scope = ALICE,
        speaker: str | None = "Alice",
        on_day: int | None = None,
    ) -> Commit:
        """The commit of a turn that says `text`, of which the model makes these facts.

        It comes a day after what came before it, and was said then, or `on_day` since the start.
        """
        place, arrived = self._next_place(scope)
        at = arrived if on_day is None else START + timedelta(days=on_day)
        turn_id = f"turn-{place['offset']}"
        self.model.facts[turn_id] = facts
        messages = (Message(role="user", content=text),)
        turn = Turn(turn_id=turn_id, scope=scope, messages=messages, occurred_at=at, speaker=speaker)
        return await self.pipeline.process_turn(turn, **place, now=arrived + timedelta(seconds=3))

    async def say_raw(self, text: str, scope: Scope = ALICE, *, speaker: str = "Alice") -> Commit:
        """The commit of a turn that is stored as it is."""
        place, at = self._next_place(scope)
        messages = (Message(role="user", content=text),)
        turn_id = f"turn-{place['offset']}"
        turn = Turn(turn_id=turn_id, scope=scope, messages=messages, occurred_at=at, speaker=speaker, infer=False)
        return await self.pipeline.process_turn(turn, **place, now=at + timedelta(seconds=3))

    async def order(self, payload: CommandPayload, scope: Scope = ALICE) -> Commit:
        """The commit of a command."""
        place, at = self._next_place(scope)
        command = Command(command_id=f"command-{place['offset']}", scope=scope, issued_at=at, order=payload)
        return await self.pipeline.process_turn(command, **place, now=at + timedelta(seconds=3))

    async def undo(self, commit: Commit, *, cascade: bool = False) -> Commit:
        """The commit of an undo of all that a source did."""
        assert commit.scope is not None
        return await self.order(Undo(source_id=commit.source_id, cascade=cascade), commit.scope)

    def _next_place(self, scope: Scope) -> tuple[dict[str, int], datetime]:
        """The next place of an owner, and when what is there is said: a day after what was before it."""
        owners = list(dict.fromkeys((*self.offsets, scope.owner)))
        offset = self.offsets.get(scope.owner, 0)
        self.offsets[scope.owner] = offset + 1
        return {"partition": owners.index(scope.owner), "offset": offset}, START + timedelta(days=offset)

    async def rows(self, query: str, *values: object) -> list[TupleRow]:
        async with self.pipeline.pool.connection() as connection:
            return await (await connection.execute(query, values)).fetchall()

    async def is_rebuilt_equal(self, *, in_place: bool = False) -> bool:
        """Whether the log gives the tables as they are; `in_place` puts the rebuilt ones in their place."""
        return (await rebuild(self.database, TableLogSource(self.pipeline.pool), verify_only=not in_place)).equal

    async def named(self, text: str, scope: Scope = ALICE) -> set[tuple[str, str]]:
        """The names and roles of the entities of a fact."""
        query = """SELECT entities.name, role FROM facts JOIN fact_entities USING (fact_id) JOIN entities
            USING (entity_id) WHERE facts.text = %s AND facts.user_id = %s"""
        return {(name, role) for name, role in await self.rows(query, text, scope.user_id)}


@asynccontextmanager
async def named_people(
    database: str, judge: Judge = always_add, embedder: Embedder | None = None, **settings_of: Any
) -> AsyncIterator[NamedPeople]:
    """Over a migrated database."""
    model = NamingModel(judge=judge)
    settings = StreamsSettings(postgres=database, **settings_of)
    async with in_process_pipeline(settings, model, embedder or UnlikeEmbedder()) as pipeline:
        yield NamedPeople(pipeline, model, database)
