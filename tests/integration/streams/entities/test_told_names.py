"""What turns tell of known entities: a first proper name, what they are, other names, and that two are one."""

from collections.abc import AsyncIterator

import pytest

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.projections.queries.pending import PendingMerge
from mnemolog.schemas.command import MergeEntities, RenameEntity
from mnemolog.schemas.commit import Commit
from tests.support.harnesses.named_people import NamedPeople, named_people

pytestmark = pytest.mark.postgres


class Family:
    """What readers see of the people of a user."""

    def __init__(self, people: NamedPeople, client: AsyncMemoryClient) -> None:
        self.people = people
        self.client = client

    async def types(self) -> dict[str, str]:
        """The entities by name with their types, the user left out."""
        assert await self.people.is_rebuilt_equal()
        return {one.name: one.type for one in await self.client.entities.list(user_id="alice") if not one.is_user}

    async def names(self) -> dict[str, list[str]]:
        """The entities by name with their other names, the user left out."""
        assert await self.people.is_rebuilt_equal()
        return {one.name: one.aliases for one in await self.client.entities.list(user_id="alice") if not one.is_user}

    async def pending(self) -> list[PendingMerge]:
        return [one for one in await self.client.pending(user_id="alice") if isinstance(one, PendingMerge)]

    async def say_same(
        self, text: str, one: str, other: str, *named: str, predicate: str = "same_as", subject: str | None = None
    ) -> Commit:
        """A turn that names the `named` people, and says that two names are of one."""
        same = {"subject": one, "predicate": predicate, "object": other, "strength": "strong"}
        return await self.people.say(text, *((name, "person") for name in named), relations=[same], subject=subject)


@pytest.fixture
async def family(database: str) -> AsyncIterator[Family]:
    async with named_people(database) as people, AsyncMemoryClient(postgres=database) as client:
        yield Family(people, client)


async def test_the_first_proper_name_takes_the_place_of_the_tie(family: Family) -> None:
    await family.people.say("My mother lives in Bern", ("my mother", "person"))
    named = await family.people.say("My mother Rosa sings", ("my mother Rosa", "person"))
    assert await family.types() == {"Rosa": "person"}
    (rosa,) = await family.client.entities.who("my mother", user_id="alice")
    assert (rosa.name, "my mother" in rosa.aliases) == ("Rosa", True)
    undo = await family.people.undo(named)
    assert await family.types() == {"my mother": "person"}
    await family.people.undo(undo)
    renamed = await family.people.order(RenameEntity(entity_id=rosa.entity_id, name="Rosalinde"))
    assert await family.types() == {"Rosalinde": "person"}
    await family.people.undo(renamed)
    assert await family.types() == {"Rosa": "person"}
    await family.people.say("Ana likes tea", ("Ana", "person"))
    await family.people.say("My wife sings", ("my wife", "person"))
    ids = {one.name: one.entity_id for one in await family.client.entities.list(user_id="alice")}
    merge = await family.people.order(MergeEntities(entity_ids=(ids["Ana"],), into=ids["my wife"]))
    assert set(await family.types()) == {"Rosa", "Ana"}
    await family.people.undo(merge)
    assert set(await family.types()) == {"Rosa", "Ana", "my wife"}


async def test_what_nobody_told_is_the_first_type_that_a_turn_tells(family: Family) -> None:
    await family.people.say("I met Ana", ("Ana", "other"))
    told = await family.people.say("My wife Ana sings", ("my wife Ana", "other"))
    assert await family.types() == {"Ana": "person"}
    undo = await family.people.undo(told)
    assert await family.types() == {"Ana": "other"}
    await family.people.undo(undo)
    await family.people.say("I know Acme", ("Acme", "other"))
    await family.people.say("I work for Acme", ("Acme", "organisation"))  # without another name
    assert await family.types() == {"Ana": "person", "Acme": "organisation"}


ELIZABETH = "Elizabeth, whom everyone calls Bee, sings"


@pytest.mark.parametrize(("one", "predicate"), [("Bee", "same_as"), ("Elizabeth", "also known as")])
async def test_a_turn_tells_another_name(family: Family, one: str, predicate: str) -> None:
    (other,) = {"Bee", "Elizabeth"} - {one}
    named = ("Bee", "Elizabeth")
    said = await family.say_same(ELIZABETH, one, other, *named, predicate=predicate, subject="Elizabeth")
    assert await family.names() == {"Elizabeth": ["Bee"]}
    assert not await family.client.entities.relations(user_id="alice")
    assert not await family.pending()
    await family.people.say("Bee runs", ("Bee", "person"))
    assert len((await family.client.entities.get("Elizabeth", user_id="alice")).facts) == 2
    undo = await family.people.undo(said)
    assert await family.names() == {"Bee": []}
    await family.people.say("Bee swims", ("Bee", "person"))
    assert len((await family.client.entities.get("Bee", user_id="alice")).facts) == 2
    await family.people.undo(undo)
    assert await family.names() == {"Elizabeth": ["Bee"]}
