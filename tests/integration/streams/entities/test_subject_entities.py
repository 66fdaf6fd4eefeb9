"""What is said of one entity is held against what is known of it, and never ends what is known of another."""

from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from mnemolog.streams.llm.ports import NumberedConflict
from tests.support.builders.model_replies import decision_json
from tests.support.harnesses.named_people import NamedPeople, named_people

pytestmark = pytest.mark.postgres
HOME: dict[str, Any] = {"key": "home_city", "single_valued": True, "category": "identity"}
PLACE_NOW = HOME | {"category": "other"}
"""No high-risk category, whose guard would hold an overwrite back."""
COLLEAGUE, BROTHER = "Tom from work", "Alice's brother Tom"


def replace_all(conflict: NumberedConflict) -> Mapping[str, Any]:
    """A reader that takes every known fact for what has changed."""
    return decision_json(conflict.number, "REPLACE", *(label for label, _ in conflict.candidates))


@pytest.fixture
async def people(database: str) -> AsyncIterator[NamedPeople]:
    async with named_people(database, replace_all) as harness:
        yield harness


async def say_home(people: NamedPeople, who: str, city: str) -> None:
    person = [{"name": who, "type": "person", "role": "subject"}]
    await people.say(f"{who} lives in {city}", subject=who, value=city, entities=person, **HOME)


async def homes(people: NamedPeople) -> list[str]:
    rows = await people.rows("SELECT text FROM facts WHERE status = 'active' ORDER BY recorded_at")
    return [text for (text,) in rows]


@pytest.mark.parametrize(
    ("known", "name"),
    [("Ana Keller", "Ana"), ("Alice's wife Ana", "Ana Keller"), ("Robert", "Bob"), ("Alice's wife Ana", "my wife")],
)
async def test_one_entity_has_one_value_of_a_key_whatever_it_is_called(
    people: NamedPeople, known: str, name: str
) -> None:
    await say_home(people, known, "Bern")
    await say_home(people, name, "Rome")
    assert await homes(people) == [f"{name} lives in Rome"]


@pytest.mark.parametrize(
    ("known", "name"), [(COLLEAGUE, "Alice's wife Ana"), ("Alice", BROTHER), ("Ana Keller", "Ana Schmidt")]
)
async def test_another_entity_overwrites_nothing(people: NamedPeople, known: str, name: str) -> None:
    await say_home(people, known, "Bern")
    await say_home(people, name, "Rome")
    assert await homes(people) == [f"{known} lives in Bern", f"{name} lives in Rome"]


async def test_not_even_when_a_model_says_so_of_equal_words(people: NamedPeople) -> None:
    """Similarity 1: the same words, said of two people."""
    for who in ("Ana", "Ben"):
        person = [{"name": who, "type": "person", "role": "subject"}]
        text = f"Ana and Ben: the home of {who}"
        await people.say(text, subject=who, search_text="the same", value=who, entities=person, **HOME)
    assert len(await homes(people)) == 2


async def test_possible_twins_are_left_to_the_model(people: NamedPeople) -> None:
    """Names of which one has all words of the other: a Tom who may be either."""
    await say_home(people, COLLEAGUE, "Bern")
    await say_home(people, BROTHER, "Rome")
    assert people.model.asked == []
    await say_home(people, "Tom", "Oslo")
    assert len(people.model.asked) == 1


@pytest.mark.parametrize(
    "kinds", [("place", "place"), ("organisation", "organisation"), ("person", "other"), ("person", "place")]
)
async def test_entities_of_any_type_are_two(people: NamedPeople, kinds: tuple[str, str]) -> None:
    """Similarity 1, one key, and words that tell nothing apart but the name."""
    for who, kind in zip(("Ana", "Ben"), kinds, strict=True):
        named = [{"name": who, "type": kind, "role": "subject"}]
        await people.say(
            f"{who} stays in Ulm", subject=who, search_text="the same", value=who, entities=named, **PLACE_NOW
        )
    assert await homes(people) == ["Ana stays in Ulm", "Ben stays in Ulm"]


async def test_subjects_that_nothing_tells_the_type_of_are_two(people: NamedPeople) -> None:
    for who in ("Ana", "Ben"):
        await people.say(f"{who} stays in Ulm", subject=who, search_text="the same", value=who, **PLACE_NOW)
    assert await homes(people) == ["Ana stays in Ulm", "Ben stays in Ulm"]


async def test_one_who_may_be_either_ends_what_is_known_of_neither(people: NamedPeople) -> None:
    for who, city in ((BROTHER, "Bern"), (COLLEAGUE, "Ulm"), ("Tom", "Rome")):
        named = [{"name": who, "type": "person", "role": "subject"}]
        await people.say(f"{who} lives in {city}", subject=who, value=city, entities=named, **PLACE_NOW)
    assert await homes(people) == [f"{BROTHER} lives in Bern", f"{COLLEAGUE} lives in Ulm", "Tom lives in Rome"]
    ((decided_by, guard),) = await people.rows(
        "SELECT decided_by, guard FROM memory.events WHERE text = 'Tom lives in Rome'"
    )
    assert (decided_by, guard) == ("policy", "other_subject")


@pytest.mark.parametrize("action", ["KEEP", "MERGE"])
async def test_equal_words_about_two_of_one_name_are_two_facts(people: NamedPeople, action: str) -> None:
    people.model.judge = lambda conflict: decision_json(
        conflict.number, action, *(label for label, _ in conflict.candidates), text="Tom plays chess", search_text="x"
    )
    for who in (BROTHER, COLLEAGUE):
        await people.say("Tom plays chess", subject=who, entities=[{"name": who, "type": "person", "role": "subject"}])
    assert await homes(people) == ["Tom plays chess", "Tom plays chess"]
