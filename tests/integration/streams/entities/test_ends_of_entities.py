"""Ends move among the facts of one entity, whatever it is called, and never between those of two."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from mnemolog.schemas.command import Delete
from mnemolog.schemas.commit import Commit
from mnemolog.streams.llm.ports import NumberedConflict
from tests.support.builders.commits import fact_id_at
from tests.support.builders.model_replies import decision_json
from tests.support.builders.name_choices import choose_called
from tests.support.harnesses.named_people import NamedPeople, named_people

pytestmark = pytest.mark.postgres
HOME: dict[str, Any] = {"key": "home_city", "single_valued": True, "category": "other"}
HILL, STONE = "Tom Hill", "Tom Stone"


def replace_those_it_may(conflict: NumberedConflict) -> Mapping[str, Any]:
    labels = [label for label, known in conflict.candidates if not known.is_of_other_entity]
    return decision_json(conflict.number, "REPLACE" if labels else "ADD", *labels)


@pytest.fixture
async def people(database: str) -> AsyncIterator[NamedPeople]:
    async with named_people(database, replace_those_it_may, provider="openai", known_facts=0, call_turns=1) as harness:
        yield harness


async def say_home(people: NamedPeople, who: str, city: str, on_day: int | None = None) -> Commit:
    person = [{"name": who, "type": "person", "role": "subject"}]
    text = f"{who} lives in {city}"
    return await people.say(text, subject=who, value=city, entities=person, on_day=on_day, **HOME)


async def delete(people: NamedPeople, commit: Commit) -> Commit:
    return await people.order(Delete(fact_ids=(fact_id_at(commit),)))


async def home_of(people: NamedPeople, commit: Commit) -> tuple[str, object, bool]:
    ((status, true_to, unresolved),) = await people.rows(
        "SELECT status, true_to, unresolved FROM facts WHERE fact_id = %s", fact_id_at(commit)
    )
    return status, true_to, unresolved


async def two_toms(people: NamedPeople) -> None:
    for who, text in ((HILL, f"{HILL} plays chess"), (STONE, f"{STONE} sails")):
        await people.say(text, subject=who, entities=[{"name": who, "type": "person", "role": "subject"}])


async def test_what_is_open_again_does_not_end_with_a_fact_of_a_namesake(people: NamedPeople) -> None:
    """Both are called Tom in all of it; a model tells them apart."""
    await two_toms(people)
    people.model.choose = choose_called(HILL)
    bern, ulm = await say_home(people, "Tom", "Bern"), await say_home(people, "Tom", "Ulm")
    people.model.choose = choose_called(STONE)
    await say_home(people, "Tom", "Rome")
    await say_home(people, "Tom", "Paris")
    assert (await home_of(people, bern))[0] == "superseded"
    await delete(people, ulm)
    assert await home_of(people, bern) == ("active", None, False)


@pytest.mark.parametrize(("called", "is_unresolved"), [("Bob", True), ("Rob Miller", False)])
async def test_what_an_undo_brings_back_stands_beside_a_newer_value_of_the_same_one_alone(
    people: NamedPeople, called: str, is_unresolved: bool
) -> None:
    bern = await say_home(people, "Robert Hill", "Bern")
    gone = await delete(people, bern)
    await say_home(people, called, "Rome")
    await people.undo(gone)
    assert await home_of(people, bern) == ("active", None, is_unresolved)


@pytest.mark.parametrize("meant", [HILL, STONE])
async def test_a_late_statement_ended_with_what_came_after_it_of_the_same_one(people: NamedPeople, meant: str) -> None:
    await two_toms(people)
    people.model.choose = choose_called(HILL)
    bern = await say_home(people, "Tom", "Bern")
    await say_home(people, "Tom", "Ulm")
    people.model.choose = choose_called(meant)
    rome = await say_home(people, "Tom", "Rome", on_day=1)
    ((began,),) = await people.rows("SELECT true_from FROM facts WHERE fact_id = %s", fact_id_at(bern))
    ended = ("superseded", began, False)
    assert await home_of(people, rome) == (ended if meant == HILL else ("active", None, False))


async def test_a_late_statement_by_another_name_ended_with_what_came_after_it_of_the_same_one(
    people: NamedPeople,
) -> None:
    await people.say("Bob sings", ("Bob", "person"))
    await people.say("Robert plays chess", ("Robert", "person"))
    bern = await say_home(people, "Robert", "Bern")
    await say_home(people, "Robert", "Ulm")
    rome = await say_home(people, "Bob", "Rome", on_day=1)
    ((began,),) = await people.rows("SELECT true_from FROM facts WHERE fact_id = %s", fact_id_at(bern))
    assert await home_of(people, rome) == ("superseded", began, False)
