"""Facts of one entity meet, whatever it is called; facts of two never end each other."""

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from mnemolog import AsyncMemoryClient
from mnemolog.projections.stores.facts import CandidateFinder
from mnemolog.schemas.command import Delete
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.scope import Scope
from mnemolog.streams.llm.ports import NumberedConflict
from tests.support.builders.commits import ALICE, fact_id_at
from tests.support.builders.model_replies import decision_json
from tests.support.harnesses.named_people import NamedPeople, named_people

pytestmark = pytest.mark.postgres
HOME: Final[dict[str, Any]] = {"key": "home_city", "single_valued": True, "category": "other"}
"""No high-risk category, whose guard would hold an overwrite back."""
COLLEAGUE, BROTHER = "Tom from work", "Alice's brother Tom"
HILL, STONE = "Tom Hill", "Tom Stone"
OTHERS: Final = ("Ben", "Carl", "Dora", "Emil", "Fritz", "Gina")
RUN: Final = Scope(user_id="alice", run_id="r")


def replace_all(conflict: NumberedConflict) -> Mapping[str, Any]:
    """A reader that takes every known fact for what has changed."""
    return decision_json(conflict.number, "REPLACE", *(label for label, _ in conflict.candidates))


def replace_those_it_may(conflict: NumberedConflict) -> Mapping[str, Any]:
    labels = [label for label, known in conflict.candidates if not known.is_of_other_entity]
    return decision_json(conflict.number, "REPLACE" if labels else "ADD", *labels)


@pytest.fixture
async def people(database: str) -> AsyncIterator[NamedPeople]:
    async with named_people(database, replace_all) as harness:
        yield harness


@pytest.fixture
async def asked_people(database: str) -> AsyncIterator[NamedPeople]:
    """A model is asked whom a name means."""
    async with named_people(database, replace_those_it_may, provider="openai", known_facts=0, call_turns=1) as harness:
        yield harness


async def say_home(
    people: NamedPeople,
    who: str,
    city: str,
    *,
    kind: str = "person",
    scope: Scope = ALICE,
    on_day: int | None = None,
    text: str = "",
    **fields: Any,
) -> Commit:
    entities = [{"name": who, "type": kind, "role": "subject"}] if kind else []
    said: dict[str, Any] = {**HOME, "subject": who, "value": city, "entities": entities, **fields}
    return await people.say(text or f"{who} lives in {city}", scope=scope, on_day=on_day, **said)


async def homes(people: NamedPeople, scope: Scope = ALICE) -> list[str]:
    query = "SELECT text FROM facts WHERE status = 'active' AND run_id = %s ORDER BY recorded_at, ordinal"
    return [text for (text,) in await people.rows(query, scope.run_id or "")]


async def test_one_who_may_be_either_ends_what_is_known_of_neither(people: NamedPeople) -> None:
    for who, city in ((BROTHER, "Bern"), (COLLEAGUE, "Ulm")):
        await say_home(people, who, city)
    assert people.model.asked == []
    await say_home(people, "Tom", "Rome")
    assert len(people.model.asked) == 1  # possible twins are left to the model
    assert await homes(people) == [f"{BROTHER} lives in Bern", f"{COLLEAGUE} lives in Ulm", "Tom lives in Rome"]
    ((decided_by, guard),) = await people.rows(
        "SELECT decided_by, guard FROM memory.events WHERE text = 'Tom lives in Rome'"
    )
    assert (decided_by, guard) == ("rule", "other_subject")


@pytest.mark.parametrize(
    ("first", "of_first", "then", "of_then", "ends"),
    [
        ("My sister Ana lives in Turin.", "Ana", "My colleague Ana moved to Rome.", "Ana", False),
        ("My sister Ana lives in Turin.", "Alice's sister Ana", "Ana from work moved to Rome.", "Ana", False),
        ("My sister Ana lives in Turin.", "Alice's sister Ana", "Tom's sister Ana moved to Rome.", "Ana", False),
        ("My sister Ana lives in Turin.", "Alice's sister Ana", "A girl called Ana moved to Rome.", "Ana", False),
        ("My sister Ana lives in Turin.", "Alice's sister Ana", "Ana's sister moved to Rome.", "Ana", False),
        ("My cat Tom lives in Turin.", "Tom", "My uncle Tom moved to Rome.", "Tom", False),
        ("Alice lives in Turin.", "Alice", "Eva's husband Alice moved to Rome.", "Eva's husband Alice", False),
        ("Alice lives in Turin.", "Alice", "Alice from accounting moved to Rome.", "Alice", False),
        ("Alice lives in Turin.", "Alice", "Alice's company moved to Rome.", "Alice", False),
        ("The user lives in Turin.", "the user", "The user's sister moved to Rome.", "the user", False),
        ("The user lives in Turin.", "the user", "The user's company moved to Rome.", "the user", False),
        ("My sister Ana lives in Turin.", "Alice's sister Ana", "Ana moved to Rome.", "Ana", True),
        ("My sister Ana lives in Turin.", "Ana", "My sister Ana moved to Rome.", "Ana", True),
        ("Alice lives in Turin.", "Alice", "Alice moved to Rome.", "Alice", True),
        ("The user lives in Turin.", "the user", "The user moved to Rome.", "the user", True),
    ],
)
async def test_another_of_the_name_ends_nothing(
    people: NamedPeople, first: str, of_first: str, then: str, of_then: str, *, ends: bool
) -> None:
    speaker = None if of_first == "the user" else "Alice"
    for text, subject, city in ((first, of_first, "Turin"), (then, of_then, "Rome")):
        await people.say(text, speaker=speaker, subject=subject, value=city, **HOME)
    assert await homes(people) == ([then] if ends else [first, then])


@pytest.mark.parametrize("action", ["KEEP", "MERGE"])
async def test_equal_words_about_two_of_one_name_are_two_facts(people: NamedPeople, action: str) -> None:
    people.model.judge = lambda conflict: decision_json(
        conflict.number, action, *(label for label, _ in conflict.candidates), text="Tom plays chess", search_text="x"
    )
    for who in (BROTHER, COLLEAGUE):
        await say_home(people, who, "", text="Tom plays chess", key=None, single_valued=False, value=None)
    assert await homes(people) == ["Tom plays chess", "Tom plays chess"]


async def test_a_fact_of_the_entity_by_another_name_is_ended_among_many_of_its_key_in_its_scope(
    people: NamedPeople,
) -> None:
    for scope in (ALICE, RUN):
        await say_home(people, "Alice's wife", "Bern", scope=scope)
        named = [{"name": "Alice's wife Ana", "type": "person", "role": "subject"}]
        await people.say("Alice's wife Ana sings", subject="Alice's wife Ana", entities=named, scope=scope)
    for name in OTHERS:
        await say_home(people, name, "Ulm")
    await say_home(people, "Ana", "Rome")
    expected = ["Alice's wife Ana sings", *(f"{name} lives in Ulm" for name in OTHERS), "Ana lives in Rome"]
    assert await homes(people) == expected
    assert "Alice's wife lives in Bern" in await homes(people, RUN)


@pytest.mark.parametrize(("others", "asked"), [(OTHERS, 1), (OTHERS[:3], 0)])
async def test_nothing_is_looked_up_where_all_facts_of_the_key_are_candidates(
    people: NamedPeople, monkeypatch: pytest.MonkeyPatch, others: tuple[str, ...], asked: int
) -> None:
    looked_up: list[int] = []
    found = CandidateFinder.facts_of_entities

    async def facts_of_entities(finder: CandidateFinder, scope: Scope, requests: Any, **times: Any) -> Any:
        looked_up.append(len(requests))
        return await found(finder, scope, requests, **times)

    monkeypatch.setattr(CandidateFinder, "facts_of_entities", facts_of_entities)
    await people.say("Alice's wife Ana sings", subject="Alice's wife Ana")
    for name in others:
        await say_home(people, name, "Ulm")
    await say_home(people, "Ana", "Rome")
    await say_home(people, "Hanna", "Rome")  # nobody is known by this name
    await say_home(people, "Ben", "Rome")  # has one name
    assert looked_up == [1] * asked


async def home_of(people: NamedPeople, commit: Commit) -> tuple[str, object, bool]:
    ((status, true_to, unresolved),) = await people.rows(
        "SELECT status, true_to, unresolved FROM facts WHERE fact_id = %s", fact_id_at(commit)
    )
    return status, true_to, unresolved


async def two_toms(people: NamedPeople) -> None:
    for who, text in ((HILL, f"{HILL} plays chess"), (STONE, f"{STONE} sails")):
        await people.say(text, subject=who, entities=[{"name": who, "type": "person", "role": "subject"}])


@pytest.mark.parametrize(("called", "is_unresolved"), [("Bob", True), ("Rob Miller", False)])
async def test_what_an_undo_brings_back_stands_beside_a_newer_value_of_the_same_one_alone(
    asked_people: NamedPeople, called: str, is_unresolved: bool
) -> None:
    bern = await say_home(asked_people, "Robert Hill", "Bern")
    gone = await asked_people.order(Delete(fact_ids=(fact_id_at(bern),)))
    await say_home(asked_people, called, "Rome")
    await asked_people.undo(gone)
    assert await home_of(asked_people, bern) == ("active", None, is_unresolved)


@pytest.mark.parametrize("key", ["home_city", "pet"])
async def test_what_has_ended_is_no_value_of_an_entity(
    people: NamedPeople, memory: AsyncMemoryClient, key: str
) -> None:
    of_ana: dict[str, Any] = {"subject": "Ana", "key": key, "value": "Bern", "search_text": "the same"}
    people.model.judge = lambda conflict: decision_json(conflict.number, "RETRACT", conflict.candidates[0][0])
    await people.say("Ana has Bern", single_valued=key == "home_city", **of_ana)
    before = (await memory.entities.get("Ana", user_id="alice")).profile
    await people.say("Ana no longer has Bern", action_hint="retract", **of_ana)
    ended = await memory.entities.get("Ana", user_id="alice")
    as_of = await memory.entities.get("Ana", user_id="alice", believed_at=datetime.now(UTC))
    assert (before.values, ended.profile.values, as_of.profile.values) == ({key: "Bern"}, {}, {})
    assert ended.profile.texts == ["Ana no longer has Bern"]
