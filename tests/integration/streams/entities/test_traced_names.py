"""The trace and `why_not` of a turn tell its names: how each was resolved, and what was left out and why."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.schemas.command import SetPolicy
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entities import MAX_ENTITIES
from mnemolog.schemas.instructions import ForbiddenTopic, Instructions
from mnemolog.schemas.policy import Policy
from mnemolog.texts import name_sentence
from mnemolog.types import TracedName
from tests.support.builders.model_replies import fact_json
from tests.support.harnesses.named_people import NamedPeople, named_people

pytestmark = pytest.mark.postgres


class Talk:
    def __init__(self, people: NamedPeople, client: AsyncMemoryClient) -> None:
        self.people = people
        self.client = client

    async def met(self, *names: str, said: str = "") -> Commit:
        return await self.people.say(said or f"I met {' and '.join(names)}", *((name, "person") for name in names))

    async def names(self, commit: Commit) -> Sequence[TracedName]:
        """The names that both tell alike, the user left out."""
        missing = await self.client.why_not(commit.source_id, user_id="alice")
        traced = (await self.client.status(commit.source_id, user_id="alice", verbose=True)).trace
        assert traced is not None
        assert traced.names == missing.names
        return [one for one in missing.names if one.name is not None]


@pytest.fixture
async def talk(database: str) -> AsyncIterator[Talk]:
    async with named_people(database) as people, AsyncMemoryClient(postgres=database) as client:
        yield Talk(people, client)


async def test_each_name_tells_its_entity_and_how_it_was_found(talk: Talk) -> None:
    await talk.met("Tom from work")
    await talk.met("my brother Tom")
    known = (await talk.client.entities.get("Tom from work", user_id="alice")).entity
    work, tom = await talk.names(await talk.met("Tom from work", "Tom"))
    assert (work.entity_id, work.entity, work.step, work.left_out) == (known.entity_id, "Tom", "exact", None)
    assert (tom.step, tom.compared, tom.entity) == ("new", ("Tom", "Tom"), "Tom")
    assert name_sentence(tom) == "was not known before, and not Tom, Tom"
    (fact,) = [one for one in await talk.client.facts(user_id="alice") if one.text == "I met Tom from work and Tom"]
    assert {work.fact_id, tom.fact_id} == {fact.fact_id}
    again = await talk.met("Tom from work", "Tom")
    assert not any(event.new_fact for event in again.events)
    first, _ = await talk.names(again)
    assert (first.left_out, first.step, first.entity_id) == ("no_new_fact", "exact", known.entity_id)
    assert name_sentence(first) == "left out: no new fact has it; is the name that it was known by, and not Tom, Tom"


async def test_names_that_were_left_out_tell_why(talk: Talk) -> None:
    names = await talk.names(await talk.met("Ana", "Bob", "she", "x" * 300, said="She met Ana and " + "x" * 300))
    assert [(one.name, one.left_out) for one in names] == [
        ("Ana", None),
        ("Bob", "not_said"),
        (f"{'x' * 199}…", "too_long"),
        ("she", "no_name"),
    ]
    assert name_sentence(names[1]) == "left out: nobody said this name in the turn"
    many = await talk.names(await talk.met(*(f"Name{number}" for number in range(100))))
    assert [one.left_out for one in many] == [None] * MAX_ENTITIES + ["too_many"] * 50
    assert await talk.names(await talk.people.say_facts("Hello", [])) == []


async def test_what_a_policy_never_stores_is_no_name_and_no_relation(talk: Talk) -> None:
    async def met(said: str, fact: str, *names: str, **fields: Any) -> Commit:
        entities = [{"name": name, "type": "person", "role": "object"} for name in names]
        return await talk.people.say_facts(said, [fact_json(fact, excerpt=fact, entities=entities, **fields)])

    async def stored() -> set[str]:
        rows = await talk.people.rows("SELECT alias FROM entity_aliases UNION SELECT name FROM entities")
        return {name for (name,) in rows}

    topic = ForbiddenTopic(name="health", words=("oncolog*", "clinic", "therapist"))
    await talk.people.order(SetPolicy(level="scope", policy=Policy(instructions=Instructions(never_store=(topic,)))))
    left_out = await met("Eva is at the clinic", "Eva is at the clinic", "Eva", subject="Eva")
    assert (left_out.events, await stored()) == ((), set())  # what is left out registers nobody
    commit = await met(
        "I met Tom and Ann the oncologist", "I met Tom", "Tom", "Ann the oncologist", "Bo the oncologist"
    )  # the last one is said by nobody
    told = [(one.name, one.left_out) for one in await talk.names(commit)]
    assert told == [("Tom", None), ("(withheld: health)", "never_stored")]
    assert {one.text for step in commit.provenance.steps for one in step.dropped} == {"(withheld: health)"}
    assert b"oncologist" not in commit.to_bytes()
    relation = {"subject": "Alice", "predicate": "therapist", "object": "Eva", "strength": "strong"}
    await met("I met Eva, my therapist Eva", "I met Eva", "Eva", "my therapist Eva", relations=[relation])
    assert await stored() == {"Alice", "Tom", "Eva"}
    assert await talk.people.rows("SELECT predicate FROM relationships") == []
