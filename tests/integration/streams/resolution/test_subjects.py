"""However the user is named, their statements are about one person; another person's never end them."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, LiteralString

import pytest

from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.llm.ports import ExtractionTask, NumberedConflict, NumberedConflicts, Prompt, Reply, TaskPrompt
from mnemolog.streams.settings import StreamsSettings
from tests.quality.model_sources import chosen_models
from tests.support.builders.model_replies import decision_json, decisions_reply, fact_json, facts_reply
from tests.support.harnesses.in_process_pipeline import InProcessPipeline, in_process_pipeline
from tests.support.servers.unlike_embedder import UnlikeEmbedder

pytestmark = pytest.mark.postgres

START = datetime(2026, 3, 2, 9, tzinfo=UTC)


@dataclass(frozen=True)
class Said:
    """One statement: about whom, as whom the model names them, and who speaks."""

    person: str
    key: str
    value: str
    subject: str | None
    speaker: str | None

    @property
    def text(self) -> str:
        verb = "lives in" if self.key == "home_city" else "works at"
        return f"{self.subject} {verb} {self.value}." if self.subject else f"{verb.capitalize()} {self.value}."


@dataclass
class PeopleModel:
    """Extracts what it was told that a message says, and knows by the subject whose the known facts are."""

    said: dict[str, Said] = field(default_factory=dict)
    silent: set[str] = field(default_factory=set)
    asked: list[NumberedConflict] = field(default_factory=list)
    model: str = "reader-1"

    async def complete(self, prompt: Prompt) -> Reply:
        assert isinstance(prompt, TaskPrompt)
        match prompt.task:
            case ExtractionTask(turn=turn):
                said = self.said[turn.turn_id]
                if turn.turn_id in self.silent:
                    return Reply(text=facts_reply(), model=self.model)
                fact = fact_json(said.text, key=said.key, value=said.value, subject=said.subject)
                return Reply(text=facts_reply(fact), model=self.model)
            case NumberedConflicts(conflicts=conflicts):
                self.asked += conflicts
                return Reply(text=decisions_reply(*map(_decision, conflicts)), model=self.model)
        raise AssertionError(prompt.purpose)

    async def close(self) -> None:
        return None


def _decision(conflict: NumberedConflict) -> Mapping[str, Any]:
    fact = conflict.fact
    mine = [
        (label, known)
        for label, known in conflict.candidates
        if (known.subject == "Tom") == (fact.subject == "Tom") and known.key == fact.key
    ]
    equal = [label for label, known in mine if known.value == fact.value]
    if equal:
        return decision_json(conflict.number, "KEEP", equal[0])
    if mine:
        return decision_json(conflict.number, "REPLACE", *(label for label, _ in mine))
    return decision_json(conflict.number, "ADD")


alice = partial(Said, "Alice", "home_city")
tom = partial(Said, "Tom", "home_city")
NAMED = alice("Bern", "Alice", "Alice")
CONVERSATIONS = (
    [alice("Rome", "Alice", "Alice"), alice("Oslo", "der Nutzer", None)],
    [alice("Rome", "der Nutzer", None), alice("Oslo", "Alice", "Alice"), alice("Bern", None, None)],
    [
        alice("Rome", None, "Alice"),
        alice("Oslo", "the user", "Alice"),
        tom("Oslo", "Tom", None),
        alice("Rome", "Alice", None),
    ],
    [NAMED, tom("Rome", "the user", "Tom"), alice("Rome", None, None)],
    [NAMED, tom("Rome", "Tom", None), tom("Oslo", None, "Tom"), alice("Oslo", "der Nutzer", "Alice")],
    [
        NAMED,
        Said("Tom", "employer", "Acme", "der Nutzer", "Tom"),
        Said("Alice", "employer", "Acme", "the user", None),
        Said("Tom", "employer", "Bosch", "Tom", "Tom"),
        alice("Bern", None, "Alice"),
    ],
)


async def process(
    pipeline: InProcessPipeline, number: int, offset: int, text: str, *, days: int | None = None, **fields: Any
) -> None:
    """A turn of the user of this number, said so many days after the start: as many as its offset by default."""
    at = START + timedelta(days=offset if days is None else days)
    turn = Turn(
        turn_id=f"{number}-{offset}",
        scope=Scope(user_id=f"user-{number}"),
        messages=(Message(role="user", content=text),),
        occurred_at=at,
        **fields,
    )
    now = START + timedelta(days=30, seconds=offset)
    await pipeline.process_turn(turn, partition=number, offset=offset, now=now)


async def rows_of(pipeline: InProcessPipeline, query: LiteralString, *parameters: object) -> list[tuple[Any, ...]]:
    async with pipeline.pool.connection() as connection:
        return await (await connection.execute(query, parameters)).fetchall()


async def active_values(
    pipeline: InProcessPipeline, model: PeopleModel, said: Sequence[Said], number: int
) -> list[tuple[str, str, str]]:
    """Who has which values after the conversation, in a scope of its own."""
    for offset, one in enumerate(said):
        model.said[f"{number}-{offset}"] = one
        await process(pipeline, number, offset, one.text, speaker=one.speaker)
    query = "SELECT subject, key, value FROM facts WHERE user_id = %s AND status = 'active'"
    rows = await rows_of(pipeline, query, f"user-{number}")
    return sorted(("Tom" if subject == "Tom" else "Alice", key, value) for subject, key, value in rows)


def last_values(said: Sequence[Said]) -> list[tuple[str, str, str]]:
    return sorted((*slot, value) for slot, value in {(one.person, one.key): one.value for one in said}.items())


@asynccontextmanager
async def people(database: str) -> AsyncIterator[tuple[InProcessPipeline, PeopleModel]]:
    model = PeopleModel()
    stream_settings = StreamsSettings(provider="offline", postgres=database)
    async with in_process_pipeline(stream_settings, model, UnlikeEmbedder()) as pipeline:
        yield pipeline, model


async def test_a_conversation_comes_to_the_same_values_however_the_user_is_named(database: str) -> None:
    async with people(database) as (pipeline, model):
        for number, said in enumerate(CONVERSATIONS):
            assert await active_values(pipeline, model, said, number) == last_values(said)


async def test_a_doubtful_subject_is_a_question_and_a_certain_one_is_none(database: str) -> None:
    async with people(database) as (pipeline, model):
        family = [NAMED, tom("Rome", "Tom", "Alice")]
        assert await active_values(pipeline, model, family, 0) == last_values(family)
        assert model.asked == []
        await active_values(pipeline, model, [NAMED, alice("Oslo", "Alice Kovac", None)], 1)
        assert [conflict.fact.subject for conflict in model.asked] == ["Alice Kovac"]


@pytest.mark.parametrize("repeated", [True, False])
async def test_the_first_named_speaker_is_the_user_also_without_facts(database: str, *, repeated: bool) -> None:
    """Alice only repeats what is known, or says nothing to keep: what Tom then says of himself is his."""
    async with people(database) as (pipeline, model):
        said = [alice("Rome", "the user", speaker) for speaker in (None, "Alice", "Tom")]
        if not repeated:
            model.silent = {"0-1"}
        await active_values(pipeline, model, said, 0)
        rows = await rows_of(
            pipeline, "SELECT subject, speaker FROM facts WHERE status = 'active' ORDER BY recorded_at"
        )
    assert rows == [("the user", None), ("Tom", "Tom")]


async def test_late_news_of_another_person_is_not_the_history_of_the_user(database: str) -> None:
    """The user lived in Rome, then in Oslo; that Tom lives in Bern, told late, is asked about and stays true."""
    async with people(database) as (pipeline, model):
        told = ((10, "the user", "Rome"), (20, "the user", "Oslo"), (5, "Tom", "Bern"))
        for offset, (days, subject, city) in enumerate(told):
            model.said[f"0-{offset}"] = said = Said(subject, "home_city", city, subject, None)
            await process(pipeline, 0, offset, said.text, days=days)
        rows = await rows_of(pipeline, "SELECT text FROM facts WHERE status = 'active' ORDER BY text")
    assert rows == [("Tom lives in Bern.",), ("the user lives in Oslo.",)]


@pytest.mark.parametrize("speakers", [("Alice", None), (None, "Alice")])
async def test_offline_one_user_has_one_home(database: str, speakers: tuple[str | None, str | None]) -> None:
    settings = StreamsSettings(provider="offline", postgres=database)
    async with in_process_pipeline(settings, *chosen_models(settings)) as pipeline:
        said = ("I live in Bern.", "I live in Ulm now.")
        for offset, (speaker, text) in enumerate(zip(speakers, said, strict=True)):
            await process(pipeline, 0, offset, text, speaker=speaker)
        query = "SELECT value FROM facts WHERE status = 'active' AND key = 'home_city'"
        assert await rows_of(pipeline, query) == [("Ulm",)]
