"""What a policy never stores is no name of an entity, and no relation."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from mnemolog.schemas.command import SetPolicy
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.instructions import ForbiddenTopic, Instructions
from mnemolog.schemas.policy import Policy
from tests.support.builders.model_replies import fact_json
from tests.support.harnesses.named_people import NamedPeople, named_people

pytestmark = pytest.mark.postgres
HEALTH = ForbiddenTopic(name="health", words=("oncolog*", "clinic", "therapist"))


@pytest.fixture
async def people(database: str) -> AsyncIterator[NamedPeople]:
    async with named_people(database) as people:
        policy = Policy(instructions=Instructions(never_store=(HEALTH,)))
        await people.order(SetPolicy(level="scope", policy=policy))
        yield people


async def names(people: NamedPeople) -> set[str]:
    rows = await people.rows("SELECT alias FROM entity_aliases UNION SELECT name FROM entities")
    return {name for (name,) in rows}


async def told(people: NamedPeople, said: str, fact: str, *named: str, **fields: Any) -> Commit:
    """The commit of a turn that says more than the fact that is made of it."""
    entities = [{"name": name, "type": "person", "role": "object"} for name in named]
    return await people.say_facts(said, [fact_json(fact, **{"excerpt": fact, "entities": entities} | fields)])


async def test_a_name_with_a_word_of_a_topic_is_not_kept(people: NamedPeople) -> None:
    commit = await told(
        people, "I met Tom and Dr. Smith the oncologist", "I met Tom", "Tom", "Dr. Smith the oncologist"
    )
    assert await names(people) == {"Alice", "Tom"}
    assert [one.text for step in commit.provenance.steps for one in step.dropped] == ["(withheld: health)"]
    assert b"oncologist" not in commit.to_bytes()


async def test_a_fact_that_is_left_out_registers_nobody(people: NamedPeople) -> None:
    commit = await told(people, "Eva is at the clinic", "Eva is at the clinic", "Eva", subject="Eva")
    assert commit.events == ()
    assert await names(people) == set()


async def test_a_tie_and_a_relation_of_a_topic_are_not_kept(people: NamedPeople) -> None:
    relation = {"subject": "Alice", "predicate": "therapist", "object": "Eva", "strength": "strong"}
    await told(people, "I met Eva, my therapist Eva", "I met Eva", "Eva", "my therapist Eva", relations=[relation])
    assert await names(people) == {"Alice", "Eva"}
    assert await people.rows("SELECT predicate FROM relationships") == []
