"""What turns tell of known entities: a first proper name, what they are, other names, and that two are one."""

from collections.abc import AsyncIterator

import pytest

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.projections.rebuild.log_source import TableLogSource
from mnemolog.projections.rebuild.rebuild import rebuild
from mnemolog.schemas.entities.commands import MergeEntities, RenameEntity
from tests.support.harnesses.named_people import NamedPeople, named_people

pytestmark = pytest.mark.postgres


class Family:
    """What readers see of the people of a user."""

    def __init__(self, people: NamedPeople, client: AsyncMemoryClient, database: str) -> None:
        self.people = people
        self.client = client
        self.database = database

    async def seen(self) -> dict[str, str]:
        """The entities by name with their types, the user left out."""
        assert (await rebuild(self.database, TableLogSource(self.people.pipeline.pool), verify_only=True)).equal
        return {one.name: one.type for one in await self.client.entities(user_id="alice") if not one.is_user}

    async def who(self, tie: str) -> list[str]:
        return [one.name for one in await self.client.who(tie, user_id="alice")]


@pytest.fixture
async def family(database: str) -> AsyncIterator[Family]:
    async with named_people(database) as people, AsyncMemoryClient(postgres=database) as client:
        yield Family(people, client, database)


async def test_the_first_proper_name_takes_the_place_of_the_tie(family: Family) -> None:
    await family.people.say("My mother lives in Bern", ("my mother", "person"))
    named = await family.people.say("My mother Rosa sings", ("my mother Rosa", "person"))
    assert (await family.seen(), await family.who("my mother")) == ({"Rosa": "person"}, ["Rosa"])
    (rosa,) = await family.client.who("my mother", user_id="alice")
    assert "my mother" in rosa.aliases
    undo = await family.people.undo(named)
    assert await family.seen() == {"my mother": "person"}
    await family.people.undo(undo)
    renamed = await family.people.order(RenameEntity(entity_id=rosa.entity_id, name="Rosalinde"))
    assert await family.seen() == {"Rosalinde": "person"}
    await family.people.undo(renamed)
    assert await family.seen() == {"Rosa": "person"}


async def test_what_is_merged_into_a_tie_names_it(family: Family) -> None:
    await family.people.say("Ana likes tea", ("Ana", "person"))
    await family.people.say("My wife sings", ("my wife", "person"))
    ids = {one.name: one.entity_id for one in await family.client.entities(user_id="alice")}
    merge = await family.people.order(MergeEntities(entity_ids=(ids["Ana"],), into=ids["my wife"]))
    assert await family.seen() == {"Ana": "person"}
    await family.people.undo(merge)
    assert await family.seen() == {"Ana": "person", "my wife": "person"}


async def test_what_nobody_told_is_the_first_type_that_a_turn_tells(family: Family) -> None:
    await family.people.say("I met Ana", ("Ana", "other"))
    told = await family.people.say("My wife Ana sings", ("my wife Ana", "other"))
    assert await family.seen() == {"Ana": "person"}
    undo = await family.people.undo(told)
    assert await family.seen() == {"Ana": "other"}
    await family.people.undo(undo)
    assert await family.seen() == {"Ana": "person"}


async def test_an_extraction_tells_a_type_without_another_name(family: Family) -> None:
    await family.people.say("I know Acme", ("Acme", "other"))
    await family.people.say("I work for Acme", ("Acme", "organisation"))
    assert await family.seen() == {"Acme": "organisation"}
