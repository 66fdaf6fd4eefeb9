"""However the user is named, their statements are about one person; another person's never end them."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from mnemolog.streams.llm.ports import (
    ExtractionTask,
    NumberedConflict,
    NumberedConflicts,
    Prompt,
    Reply,
    TaskPrompt,
)
from mnemolog.streams.settings import StreamsSettings
from tests.quality.model_sources import chosen_models
from tests.support.builders.model_replies import decision_json, decisions_reply, fact_json, facts_reply
from tests.support.harnesses.in_process_pipeline import InProcessPipeline, in_process_pipeline
from tests.support.servers.unlike_embedder import UnlikeEmbedder

pytestmark = pytest.mark.postgres

START = datetime(2026, 3, 2, 9, tzinfo=UTC)
VALUES = {"home_city": ("Rome", "Oslo", "Bern"), "employer": ("Acme", "Bosch")}
NAMINGS = (None, "the user", "der Nutzer", "Alice")


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


def told(steps: Sequence[tuple[str, str, int, int, bool]], *, named: bool) -> list[Said]:
    """The statements of a conversation; `named` ones begin with the user's name, and then Tom may speak himself."""
    said = [Said("Alice", "home_city", "Bern", "Alice", "Alice")] if named else []
    for person, key, value, naming, speaks in steps:
        held = VALUES[key][value % len(VALUES[key])]
        if person == "Alice":
            said.append(Said(person, key, held, NAMINGS[naming], "Alice" if speaks else None))
        elif named and speaks:
            said.append(Said(person, key, held, (None, "the user", "der Nutzer", "Tom")[naming], "Tom"))
        else:
            said.append(Said(person, key, held, "Tom", None))
    return said


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["Alice", "Alice", "Tom"]),
        st.sampled_from(sorted(VALUES)),
        st.integers(0, 2),
        st.integers(0, 3),
        st.booleans(),
    ),
    min_size=1,
    max_size=6,
)


async def active_values(
    pipeline: InProcessPipeline, model: PeopleModel, said: Sequence[Said], number: int
) -> list[tuple[str, str, str]]:
    """Who has which values after the conversation, in a scope of its own."""
    scope = Scope(user_id=f"user-{number}")
    for offset, one in enumerate(said):
        turn_id, at = f"{number}-{offset}", START + timedelta(days=offset)
        model.said[turn_id] = one
        messages = (Message(role="user", content=one.text),)
        turn = Turn(turn_id=turn_id, scope=scope, messages=messages, occurred_at=at, speaker=one.speaker)
        await pipeline.process_turn(turn, partition=number, offset=offset, now=at + timedelta(seconds=3))
    query = "SELECT subject, key, value FROM facts WHERE user_id = %s AND status = 'active'"
    async with pipeline.pool.connection() as connection:
        rows = await (await connection.execute(query, [scope.user_id])).fetchall()
    return sorted(("Tom" if subject == "Tom" else "Alice", key, value) for subject, key, value in rows)


def last_values(said: Sequence[Said]) -> list[tuple[str, str, str]]:
    return sorted((*slot, value) for slot, value in {(one.person, one.key): one.value for one in said}.items())


@asynccontextmanager
async def people(database: str) -> AsyncIterator[tuple[InProcessPipeline, PeopleModel]]:
    model = PeopleModel()
    stream_settings = StreamsSettings(provider="offline", postgres=database)
    async with in_process_pipeline(stream_settings, model, UnlikeEmbedder()) as pipeline:
        yield pipeline, model


def test_a_conversation_comes_to_the_same_values_however_the_user_is_named(database: str) -> None:
    with asyncio.Runner() as runner:
        running = people(database)
        pipeline, model = runner.run(running.__aenter__())
        numbers = itertools.count()

        @settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(steps=STEPS, named=st.booleans())
        @example(steps=[("Alice", "home_city", 0, 3, True), ("Alice", "home_city", 1, 2, False)], named=False)
        @example(steps=[("Alice", "home_city", 0, 2, False), ("Alice", "home_city", 1, 3, True)], named=False)
        @example(steps=[("Tom", "home_city", 0, 1, True), ("Alice", "home_city", 0, 0, False)], named=True)
        def check(steps: list[tuple[str, str, int, int, bool]], *, named: bool) -> None:
            said = told(steps, named=named)
            assert runner.run(active_values(pipeline, model, said, next(numbers))) == last_values(said)

        try:
            check()
        finally:
            runner.run(running.__aexit__(None, None, None))


async def test_a_doubtful_subject_is_a_question_and_a_certain_one_is_none(database: str) -> None:
    async with people(database) as (pipeline, model):
        family = [
            Said("Alice", "home_city", "Bern", "Alice", "Alice"),
            Said("Tom", "home_city", "Rome", "Tom", "Alice"),
        ]
        assert await active_values(pipeline, model, family, 0) == last_values(family)
        assert model.asked == []
        full_name = Said("Alice", "home_city", "Oslo", "Alice Kovac", None)
        await active_values(pipeline, model, [family[0], full_name], 1)
        assert [conflict.fact.subject for conflict in model.asked] == ["Alice Kovac"]


@pytest.mark.parametrize("repeated", [True, False])
async def test_the_first_named_speaker_is_the_user_also_of_a_turn_without_facts(
    database: str, *, repeated: bool
) -> None:
    """Alice only repeats what is known, or says nothing to keep: what Tom then says of himself is his."""
    async with people(database) as (pipeline, model):
        said = [Said("Alice", "home_city", "Rome", "the user", speaker) for speaker in (None, "Alice", "Tom")]
        if not repeated:
            model.silent = {"0-1"}
        await active_values(pipeline, model, said, 0)
        query = "SELECT subject, speaker FROM facts WHERE status = 'active' ORDER BY recorded_at"
        async with pipeline.pool.connection() as connection:
            rows = await (await connection.execute(query)).fetchall()
    assert rows == [("the user", None), ("Tom", "Tom")]


async def test_late_news_of_another_person_is_not_the_history_of_the_user(database: str) -> None:
    """The user lived in Rome, then in Oslo; that Tom lives in Bern, told late, is asked about and stays true."""
    async with people(database) as (pipeline, model):
        scope = Scope(user_id="mira")
        told_late = [(10, "the user", "Rome"), (20, "the user", "Oslo"), (5, "Tom", "Bern")]
        for offset, (day, subject, city) in enumerate(told_late):
            said = Said(subject, "home_city", city, subject, None)
            model.said[f"t{offset}"] = said
            turn = Turn(
                turn_id=f"t{offset}",
                scope=scope,
                messages=(Message(role="user", content=said.text),),
                occurred_at=START + timedelta(days=day),
            )
            now = START + timedelta(days=30, seconds=offset)
            await pipeline.process_turn(turn, partition=0, offset=offset, now=now)
        query = "SELECT text, status FROM facts WHERE user_id = 'mira' ORDER BY text"
        async with pipeline.pool.connection() as connection:
            rows = await (await connection.execute(query)).fetchall()
    assert [row for row in rows if row[1] == "active"] == [
        ("Tom lives in Bern.", "active"),
        ("the user lives in Oslo.", "active"),
    ]


@pytest.mark.parametrize("speakers", [("Alice", None), (None, "Alice"), ("Alice", "alice")])
async def test_the_offline_provider_has_one_home_for_one_user(
    database: str, speakers: tuple[str | None, str | None]
) -> None:
    stream_settings = StreamsSettings(provider="offline", postgres=database)
    async with in_process_pipeline(stream_settings, *chosen_models(stream_settings)) as pipeline:
        said = ("I live in Bern.", "I live in Ulm now.")
        for offset, (speaker, text) in enumerate(zip(speakers, said, strict=True)):
            turn = Turn(
                turn_id=f"t{offset}",
                scope=Scope(user_id="alice"),
                messages=(Message(role="user", content=text),),
                occurred_at=START + timedelta(days=offset),
                speaker=speaker,
            )
            await pipeline.process_turn(turn, partition=0, offset=offset, now=START + timedelta(days=offset, seconds=3))
        async with pipeline.pool.connection() as connection:
            query = "SELECT value FROM facts WHERE status = 'active' AND key = 'home_city'"
            assert await (await connection.execute(query)).fetchall() == [("Ulm",)]
