"""Relations in real tables: stated, ended and changed by turns, of entities that persons merge, undone and rebuilt."""

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final
from uuid import UUID

import pytest

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.schemas.command import (
    CommandPayload,
    Correct,
    Delete,
    DeleteAll,
    Edit,
)
from mnemolog.schemas.commit import Commit
from mnemolog.streams.llm.ports import NumberedConflict
from tests.support.builders.commits import fact_id_at
from tests.support.builders.model_replies import decision_json
from tests.support.harnesses.named_people import NamedPeople, named_people

pytestmark = pytest.mark.postgres
EMPLOYER: dict[str, Any] = {"key": "employer", "single_valued": True, "category": "professional"}
Triple = tuple[str, str, str]


def judge(conflict: NumberedConflict) -> Mapping[str, Any]:
    """A reader that takes the known facts for what has changed, and keeps what says that something is over."""
    known = [label for label, _ in conflict.candidates]
    is_end = conflict.fact.action_hint == "retract"
    return decision_json(conflict.number, "ADD") if is_end else decision_json(conflict.number, "REPLACE", *known)


@pytest.fixture
async def people(database: str) -> AsyncIterator[NamedPeople]:
    async with named_people(database, judge) as harness:
        yield harness


def relation(subject: str, predicate: str, object_: str, strength: str = "strong") -> dict[str, str]:
    return {"subject": subject, "predicate": predicate, "object": object_, "strength": strength}


async def relations(people: NamedPeople, *, mirrors: bool = False) -> dict[Triple, bool]:
    query = """SELECT s.name, predicate, o.name, is_active, is_mirror
        FROM shown_relations(ARRAY(SELECT relation_id FROM relationships WHERE user_id = 'alice')) AS r
        JOIN entities s ON s.entity_id = r.subject_id JOIN entities o ON o.entity_id = r.object_id"""
    rows = await people.rows(query)
    return {(one, predicate, other): holds for one, predicate, other, holds, mirror in rows if mirror == mirrors}


async def say_employer(people: NamedPeople, name: str) -> Commit:
    related = [relation("Alice", "works at", name)]
    return await people.say(
        f"I work at {name}", (name, "organisation"), subject="Alice", value=name, relations=related, **EMPLOYER
    )


async def test_relations_follow_the_facts_that_state_them_also_in_a_rebuild(people: NamedPeople) -> None:
    await say_employer(people, "Acme")
    assert await relations(people, mirrors=True) == {("Acme", "employee", "Alice"): True}
    globex = await say_employer(people, "Globex")
    await people.say("I sail with my wife Ana", ("my wife Ana", "person"))
    over = relation("Alice", "wife", "Ana")
    ended = await people.say("Ana left me", ("Ana", "person"), action_hint="retract", relations=[over])
    assert [event.event for event in ended.entity_events] == ["fact_linked", "relation_ended"]
    assert await people.rows("SELECT count(*) FROM facts WHERE status = 'active'") == [(3,)]  # its fact stays
    before = {
        ("Alice", "employer", "Acme"): False,
        ("Alice", "employer", "Globex"): True,
        ("Alice", "spouse", "Ana"): False,
    }
    assert await relations(people) == before
    assert await people.is_rebuilt_equal(in_place=True)
    assert await relations(people) == before
    await people.undo(ended)
    await people.undo(globex)
    assert await relations(people) == {("Alice", "employer", "Acme"): True, ("Alice", "spouse", "Ana"): True}


PASSING, SAID = "My wife Ana lives in Bern", "Ana is my wife"
GONE: Final[dict[str, tuple[str, Callable[[UUID], CommandPayload | None]]]] = {
    "deleted": (PASSING, lambda told: Delete(fact_ids=(told,))),
    "its turn undone": (PASSING, lambda _: None),
    "corrected without the tie": (PASSING, lambda told: Correct(edit=Edit(fact_id=told, text="Ana lives in Bern"))),
    "a stated one is another": (SAID, lambda told: Correct(edit=Edit(fact_id=told, text="Ana is my sister"))),
    "all deleted": (PASSING, lambda _: DeleteAll(category="relationship")),
}


@pytest.mark.parametrize(("text", "command"), GONE.values(), ids=GONE)
async def test_a_tie_is_gone_with_the_last_fact_that_told_it(
    people: NamedPeople, memory: AsyncMemoryClient, text: str, command: Callable[[UUID], CommandPayload | None]
) -> None:
    async def spouses() -> list[str]:
        wife = await memory.entities.who("my wife", user_id="alice")
        stated = await memory.entities.relations(user_id="alice")
        assert [one.name for one in wife] == [one.object for one in stated if one.predicate == "spouse"]
        return [one.name for one in wife]

    async def say_wife(text: str) -> Commit:
        stated = [] if text == PASSING else [relation("Alice", "wife", "Ana")]
        name = "my wife Ana" if text == PASSING else "Ana"
        return await people.say(text, (name, "person"), subject="Alice", category="relationship", relations=stated)

    await people.say("I met Ana", ("Ana", "person"))
    for again in (False, True):
        told = await say_wife(text)
        second = await say_wife(f"Yesterday {text}") if again else None
        assert await spouses() == ["Ana"]
        payload = command(fact_id_at(told))
        done = await (people.undo(told) if payload is None else people.order(payload))
        left = ["Ana"] if second and not isinstance(payload, DeleteAll) else []
        assert await spouses() == left
        assert await people.is_rebuilt_equal()
        sings = await people.say("My wife sings", ("my wife", "person"))
        named = await memory.explain(fact_id_at(sings))
        assert ("Ana" in [one.name for one in named.entities]) == bool(left)
        await people.undo(sings)
        await people.undo(done)
        assert await spouses() == ["Ana"]
        await people.undo(told)
