"""The trace and `why_not` of a turn tell its names: how each was resolved, and what was left out and why."""

from collections.abc import AsyncIterator, Sequence

import pytest

from mnemolog import TracedName
from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.schemas.command import SetPolicy
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entities import MAX_ENTITIES
from mnemolog.schemas.instructions import ForbiddenTopic, Instructions
from mnemolog.schemas.policy import Policy
from mnemolog.texts import name_sentence
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
    known = (await talk.client.entity("Tom from work", user_id="alice")).entity
    work, tom = await talk.names(await talk.met("Tom from work", "Tom"))
    assert (work.entity_id, work.entity, work.step, work.left_out) == (known.entity_id, "Tom", "exact", None)
    assert (tom.step, tom.compared, tom.entity) == ("new", ("Tom", "Tom"), "Tom")
    assert name_sentence(tom) == "was not known before, and not Tom, Tom"
    (fact,) = [one for one in await talk.client.facts(user_id="alice") if one.text == "I met Tom from work and Tom"]
    assert {work.fact_id, tom.fact_id} == {fact.fact_id}


async def test_names_that_were_left_out_tell_why(talk: Talk) -> None:
    names = await talk.names(await talk.met("Ana", "Bob", "she", "x" * 300, said="She met Ana and " + "x" * 300))
    assert [(one.name, one.left_out) for one in names] == [
        ("Ana", None),
        ("Bob", "not_said"),
        (f"{'x' * 199}…", "too_long"),
        ("she", "no_name"),
    ]
    assert name_sentence(names[1]) == "left out: nobody said this name in the turn"


async def test_names_over_the_bound_of_a_fact_are_told_up_to_a_bound(talk: Talk) -> None:
    names = await talk.names(await talk.met(*(f"Name{number}" for number in range(100))))
    assert [one.left_out for one in names] == [None] * MAX_ENTITIES + ["too_many"] * 50


async def test_a_turn_without_a_new_fact_tells_its_names(talk: Talk) -> None:
    await talk.met("Ana")
    ana = (await talk.client.entity("Ana", user_id="alice")).entity
    again = await talk.met("Ana")
    assert not any(event.new_fact for event in again.events)
    (one,) = await talk.names(again)
    assert (one.name, one.left_out, one.step, one.entity_id) == ("Ana", "no_new_fact", "exact", ana.entity_id)
    assert name_sentence(one) == "left out: no new fact has it; is the name that it was known by"


async def test_a_name_that_is_never_stored_is_told_by_its_topic(talk: Talk) -> None:
    topic = ForbiddenTopic(name="health", words=("oncolog*",))
    await talk.people.order(SetPolicy(level="scope", policy=Policy(instructions=Instructions(never_store=(topic,)))))
    names = ("Tom", "Ann the oncologist", "Bo the oncologist")  # the last one is said by nobody
    commit = await talk.people.say_facts(
        "I met Tom and Ann the oncologist",
        [fact_json("I met Tom", entities=[{"name": name, "type": "person", "role": "object"} for name in names])],
    )
    told = await talk.names(commit)
    assert [(one.name, one.left_out) for one in told] == [("Tom", None), ("(withheld: health)", "never_stored")]
    assert b"oncologist" not in commit.to_bytes()


async def test_a_turn_that_says_nothing_has_no_names(talk: Talk) -> None:
    commit = await talk.people.say_facts("Hello", [])
    assert await talk.names(commit) == []
