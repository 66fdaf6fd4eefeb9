"""The step `model` through the real stages and tables: asked in the call about conflicts, linked, undone, rebuilt."""

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from mnemolog.projections.queries.explain import explain
from mnemolog.projections.queries.write_result import turn_status, write_result
from mnemolog.schemas.command import Delete, Undo
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entities import EntityLink
from mnemolog.schemas.entity_events import EntityAliasAdded, EntityRegistered, FactLinked
from mnemolog.schemas.scope import Scope
from mnemolog.streams.llm.ports import NumberedConflict
from mnemolog.streams.llm.resolve_prompt import NAMES_PROMPT_VERSION
from tests.support.builders.commits import fact_id_at
from tests.support.builders.model_replies import decision_json
from tests.support.builders.name_choices import choose_called
from tests.support.harnesses.named_people import NamedPeople, named_people

pytestmark = pytest.mark.postgres
HOME: dict[str, Any] = {"key": "home_city", "single_valued": True, "category": "identity"}
HILL, STONE = "Tom Hill", "Tom Stone"
BEN = Scope(user_id="ben")
ASKING: dict[str, Any] = {"provider": "openai", "known_facts": 0, "call_turns": 1}


def replace_those_of(subject: str) -> Any:
    """A reader that takes what is known of one person for what has changed."""

    def judge(conflict: NumberedConflict) -> Mapping[str, Any]:
        labels = [label for label, known in conflict.candidates if known.subject == subject]
        return decision_json(conflict.number, "REPLACE" if labels else "ADD", *labels)

    return judge


@pytest.fixture
async def people(database: str) -> AsyncIterator[NamedPeople]:
    async with named_people(database, **ASKING) as harness:
        yield harness


async def say_home(people: NamedPeople, who: str, city: str) -> Commit:
    person = [{"name": who, "type": "person", "role": "subject"}]
    return await people.say(f"{who} lives in {city}", subject=who, value=city, entities=person, **HOME)


async def homes(people: NamedPeople) -> list[str]:
    rows = await people.rows("SELECT text FROM facts WHERE status = 'active' ORDER BY recorded_at, ordinal")
    return [text for (text,) in rows]


async def said_of_tom(people: NamedPeople, text: str = "Tom won", **of: Any) -> Commit:
    return await people.say(text, ("Tom", "person"), **of)


def last_link(commit: Commit) -> EntityLink:
    return [link for event in commit.entity_events if isinstance(event, FactLinked) for link in event.links][-1]


def registered(commit: Commit) -> list[EntityRegistered]:
    """The entities that a turn brings, but for the user."""
    return [one for one in commit.entity_events if isinstance(one, EntityRegistered) and one.name != "Alice"]


async def two_toms(people: NamedPeople) -> None:
    for who, text in ((HILL, f"{HILL} plays chess"), (STONE, f"{STONE} sails")):
        person = [{"name": who, "type": "person", "role": "subject"}]
        await people.say(text, subject=who, entities=person)


async def test_one_call_about_the_name_alone_links_the_fact(people: NamedPeople) -> None:
    await two_toms(people)
    await said_of_tom(people, scope=BEN, speaker="Ben")  # another scope is not asked about
    assert people.model.calls["resolve"] == 0
    people.model.choose = choose_called(HILL)
    commit = await said_of_tom(people)
    assert (people.model.calls["resolve"], people.model.asked) == (1, [])
    assert await people.named("Tom won") == {("Alice", "subject"), (HILL, "object")}
    link = last_link(commit)
    assert (link.step, link.reason, len(link.compared)) == ("model", "answered", 1)
    assert registered(commit) == []
    await said_of_tom(people)  # a fact that is known already asks nobody
    assert people.model.calls["resolve"] == 1


async def test_the_step_counts_the_call_and_says_what_was_asked(people: NamedPeople) -> None:
    await two_toms(people)
    commit = await said_of_tom(people)
    (step,) = (step for step in commit.provenance.steps if step.stage == "resolve")
    assert (step.llm_calls, step.input_tokens, step.output_tokens) == (1, 10, 5)
    assert step.prompt_version == NAMES_PROMPT_VERSION
    (asked,) = step.answered_names
    assert (asked.name, len(asked.twins), asked.entity_id, asked.reason) == ("Tom", 2, None, "answered")
    (tom,) = registered(commit)
    assert set(tom.possible_twins) == set(asked.twins)
    (note,) = write_result(commit).notes
    assert note == (
        '"Tom" may mean one of 2 known entities; the model was asked, and it is another one, or nobody can tell: '
        "answered"
    )


async def test_conflicts_and_names_are_one_call(people: NamedPeople) -> None:
    await say_home(people, HILL, "Rome")
    await say_home(people, STONE, "Oslo")
    people.model.choose, people.model.judge = choose_called(STONE), replace_those_of(STONE)
    commit = await say_home(people, "Tom", "Bern")
    assert (people.model.calls["resolve"], len(people.model.asked)) == (1, 1)
    assert await homes(people) == [f"{HILL} lives in Rome", "Tom lives in Bern"]
    assert last_link(commit).step == "model"
    assert await people.named("Tom lives in Bern") == {(STONE, "subject")}


@pytest.mark.parametrize(("meant", "ended"), [(HILL, True), (STONE, False), (None, False)])
async def test_an_end_said_later_is_of_whom_the_answer_means(
    people: NamedPeople, meant: str | None, ended: bool
) -> None:
    await two_toms(people)
    person = [{"name": HILL, "type": "person", "role": "subject"}]
    left = {**HOME, "subject": HILL, "value": "Bern", "entities": person, "action_hint": "retract"}
    await people.say(f"{HILL} left Bern", **left)

    def retract(conflict: NumberedConflict) -> Mapping[str, Any]:
        labels = [label for label, _ in conflict.candidates] if meant == HILL else []
        return decision_json(conflict.number, "RETRACT" if labels else "ADD", *labels)

    people.model.judge = retract
    if meant:
        people.model.choose = choose_called(meant)
    text = "Tom lives in Bern"
    person = [{"name": "Tom", "type": "person", "role": "subject"}]
    commit = await people.say(text, on_day=1, subject="Tom", value="Bern", entities=person, **HOME)
    assert [one.known_as for one in people.model.asked] == ["said later"]
    ((true_to,),) = await people.rows("SELECT true_to FROM facts WHERE text = %s", text)
    assert (true_to is not None) == ended, commit.events
    assert await people.is_rebuilt_equal()


@pytest.mark.parametrize("meant", [HILL, None])
async def test_nothing_of_another_one_is_ended_whatever_the_model_says(people: NamedPeople, meant: str | None) -> None:
    await say_home(people, HILL, "Rome")
    await say_home(people, STONE, "Oslo")
    people.model.judge = replace_those_of(STONE)
    if meant:
        people.model.choose = choose_called(meant)
    commit = await say_home(people, "Tom", "Bern")
    assert people.model.calls["resolve"] == 1
    assert "about another one than the known fact" in " ".join(event.decision.reason for event in commit.events)
    assert {f"{STONE} lives in Oslo", "Tom lives in Bern"} <= set(await homes(people))


async def test_what_the_model_said_is_explained_until_a_name_of_them_is_hidden(people: NamedPeople) -> None:
    await two_toms(people)
    people.model.choose = choose_called(STONE)
    commit = await said_of_tom(people)
    ((sails,),) = await people.rows("SELECT fact_id FROM facts WHERE text = %s", f"{STONE} sails")
    deleted = await people.order(Delete(fact_ids=(sails,)))
    for reason in ("(hidden)", "answered"):
        async with people.pipeline.pool.connection() as connection:
            explanation, _ = await explain(connection, "default", fact_id_at(commit))
            result = await turn_status(connection, "default", commit.source_id, verbose=True)
        assert result.trace is not None
        (tom,) = [one for one in explanation.entities if one.step == "model"]
        assert [tom.reason, *(one.reason for one in result.trace.answers)] == [reason] * 2
        assert [note.rpartition(": ")[2] for note in result.notes] == [reason]
        await people.undo(deleted)
    assert (tom.name, tom.compared) == (STONE, [HILL])


async def test_an_undo_takes_link_and_alias_of_the_model_back_and_a_rebuild_agrees(people: NamedPeople) -> None:
    async def names() -> set[str]:
        rows = await people.rows("SELECT shown FROM entity_aliases WHERE kind = 'name' AND shown IS NOT NULL")
        return {alias for (alias,) in rows}

    await people.say("Carl sings", ("Carl", "person"))
    people.model.choose = choose_called("Carl")
    commit = await people.say("Carla sings too", ("Carla", "person"))
    assert [event.step for event in commit.entity_events if isinstance(event, EntityAliasAdded)] == ["model"]
    assert await names() == {"Alice", "Carl", "Carla"}
    assert await people.is_rebuilt_equal(in_place=True)
    undone = await people.undo(commit)
    assert await names() == {"Alice", "Carl"}
    await people.undo(undone)
    assert await names() == {"Alice", "Carl", "Carla"}
    assert await people.is_rebuilt_equal()
    since, until = datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC)
    await people.order(Undo(prompt_version=NAMES_PROMPT_VERSION, since=since, until=until))
    assert await homes(people) == ["Carl sings"]
