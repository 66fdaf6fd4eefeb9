"""Entities as the client and the command line show them."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from mnemolog import AmbiguousIdError, AsyncMemoryClient, QueryError, UnknownEntityError
from mnemolog.schemas.scope import Scope
from tests.support.harnesses.named_people import NamedPeople, named_people

pytestmark = pytest.mark.postgres
BEN = Scope(user_id="ben")


@pytest.fixture
async def client(database: str) -> AsyncIterator[AsyncMemoryClient]:
    async with named_people(database) as people:
        await fill(people)
    async with AsyncMemoryClient(postgres=database) as memory:
        yield memory


async def fill(people: NamedPeople) -> None:
    await people.say("I met my wife Ana in Rome", ("my wife Ana", "person"), ("Rome", "place"))
    await people.say("Ana Keller sails", subject="Ana Keller")
    await people.say("Tom from work sings", subject="Tom from work")
    await people.say("My brother Tom skis", subject="Alice's brother Tom")
    await people.say("I met Ana", ("Ana", "person"), scope=BEN, speaker="Ben")


async def test_entities_are_listed_with_their_names(client: AsyncMemoryClient) -> None:
    found = await client.entities(user_id="alice")
    assert [(one.name, one.type, one.aliases, one.facts, one.is_user) for one in found] == [
        ("Alice", "person", [], 1, True),
        ("Ana", "person", ["my wife Ana", "Ana Keller"], 2, False),
        ("Rome", "place", [], 1, False),
        ("Tom", "other", ["Tom from work"], 1, False),
        ("Tom", "person", ["Alice's brother Tom"], 1, False),
    ]
    assert found[4].possible_twins == [found[3].entity_id]


async def test_lists_are_of_one_type_one_page_and_one_scope(client: AsyncMemoryClient) -> None:
    assert [one.name for one in await client.entities(user_id="alice", type="place")] == ["Rome"]
    first = await client.entities(user_id="alice", limit=2)
    rest = await client.entities(user_id="alice", after=first[-1].entity_id)
    assert [one.name for one in (*first, *rest)] == ["Alice", "Ana", "Rome", "Tom", "Tom"]
    assert [one.name for one in await client.entities(user_id="ben")] == ["Ben", "Ana"]
    assert len(await client.entities(user_id="*")) == 7
    rest = await client.entities(user_id="alice", after=str(first[-1].entity_id))
    assert [one.name for one in rest] == ["Rome", "Tom", "Tom"]


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ({"limit": 0}, "limit is 0: give 1 or more"),
        ({"limit": 10**30}, "limit is 1000000000000000000000000000000: give 1 or more, at most 9223372036854775807"),
        ({"after": 5}, "after must be an id, not int"),
        ({"after": "Ana"}, "after 'Ana' is not an id"),
        ({"after": "e87c5d02"}, "after 'e87c5d02' is a part of an id"),
    ],
)
async def test_what_is_no_page_is_refused(client: AsyncMemoryClient, page: dict[str, Any], said: str) -> None:
    with pytest.raises(QueryError, match=said):
        await client.entities(user_id="alice", **page)


@pytest.mark.parametrize("name", ["Ana", "ÁNA", "ana keller", "my wife Ana"])
async def test_an_entity_is_found_by_each_of_its_names(client: AsyncMemoryClient, name: str) -> None:
    found = await client.entity(name, user_id="alice")
    assert (found.entity.name, [one.name for one in found.names]) == ("Ana", ["Ana", "my wife Ana", "Ana Keller"])
    assert [(one.role, one.fact.text) for one in found.facts] == [
        ("object", "I met my wife Ana in Rome"),
        ("subject", "Ana Keller sails"),
    ]
    assert (await client.entity(str(found.entity.entity_id)[:8], user_id="alice")).entity == found.entity


async def test_a_person_is_found_by_a_first_name_that_nobody_has_alone(database: str) -> None:
    async with named_people(database) as people:
        await people.say("I met Inka Keller", ("Inka Keller", "person"))
        await people.say("I read Inka Magazine", ("Inka Magazine", "product"))
        await people.say("I met Tom Novak and Tom Meyer", ("Tom Novak", "person"), ("Tom Meyer", "person"))
        async with AsyncMemoryClient(postgres=database) as memory:
            assert (await memory.entity("inka", user_id="alice")).name == "Inka Keller"
            assert [one.name for one in await memory.who("Inka", user_id="alice")] == ["Inka Keller"]
            with pytest.raises(AmbiguousIdError, match=r"Tom Novak.*Tom Meyer"):
                await memory.entity("Tom", user_id="alice")
            for unknown in ("Ink", "Keller", "Inka Kell"):
                with pytest.raises(UnknownEntityError):
                    await memory.entity(unknown, user_id="alice")
            await people.say("I met Tom", ("Tom", "person"))
            assert (await memory.entity("Tom", user_id="alice")).name == "Tom"


async def test_one_of_several_of_a_name_is_found_by_its_id_with_its_twin(client: AsyncMemoryClient) -> None:
    with pytest.raises(AmbiguousIdError, match="more than one entity has the name 'Tom'") as failure:
        await client.entity("Tom", user_id="alice")
    assert "(Tom, also Tom from work)" in str(failure.value)
    assert "(Tom, also Alice's brother Tom)" in str(failure.value)
    colleague, brother = [one for one in await client.entities(user_id="alice") if one.name == "Tom"]
    assert (await client.entity("Tom from work", user_id="alice")).twins == [brother]
    assert (await client.entity(str(brother.entity_id), user_id="alice")).twins == [colleague]


@pytest.mark.parametrize("name", ["Nobody", "deadbeef", "my husband"])
async def test_who_is_not_known_is_an_error(client: AsyncMemoryClient, name: str) -> None:
    with pytest.raises(UnknownEntityError, match="no entity"):
        await client.entity(name, user_id="alice")


async def test_an_explanation_says_whom_a_fact_names_and_how_they_were_found(client: AsyncMemoryClient) -> None:
    (fact,) = [one for one in await client.facts(user_id="alice") if one.text == "My brother Tom skis"]
    explained = await client.explain(fact.fact_id, user_id="alice")
    assert [(one.name, one.role, one.said, one.step, one.compared) for one in explained.entities] == [
        ("Tom", "subject", "Alice's brother Tom", "new", ["Tom"])
    ]
    assert 'its subject is Tom: "Alice\'s brother Tom" was not known before, and not Tom' in explained.words
