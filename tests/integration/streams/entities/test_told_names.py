"""What turns tell of known entities: what they are, and other names."""

import pytest

from mnemolog.client.async_client import AsyncMemoryClient
from tests.support.harnesses.named_people import NamedPeople

pytestmark = pytest.mark.postgres


async def types(people: NamedPeople, memory: AsyncMemoryClient) -> dict[str, str]:
    """The entities by name with their types, the user left out."""
    assert await people.is_rebuilt_equal()
    return {one.name: one.type for one in await memory.entities.list(user_id="alice") if not one.is_user}


async def names(people: NamedPeople, memory: AsyncMemoryClient) -> dict[str, list[str]]:
    """The entities by name with their other names, the user left out."""
    assert await people.is_rebuilt_equal()
    return {one.name: one.aliases for one in await memory.entities.list(user_id="alice") if not one.is_user}


async def test_what_nobody_told_is_the_first_type_that_a_turn_tells(
    people: NamedPeople, memory: AsyncMemoryClient
) -> None:
    await people.say("I met Ana", ("Ana", "other"))
    told = await people.say("My wife Ana sings", ("my wife Ana", "other"))
    assert await types(people, memory) == {"Ana": "person"}
    undo = await people.undo(told)
    assert await types(people, memory) == {"Ana": "other"}
    await people.undo(undo)
    await people.say("I know Acme", ("Acme", "other"))
    await people.say("I work for Acme", ("Acme", "organisation"))  # without another name
    assert await types(people, memory) == {"Ana": "person", "Acme": "organisation"}


@pytest.mark.parametrize(("one", "predicate"), [("Bee", "same_as"), ("Elizabeth", "also known as")])
async def test_a_turn_tells_another_name(
    people: NamedPeople, memory: AsyncMemoryClient, one: str, predicate: str
) -> None:
    (other,) = {"Bee", "Elizabeth"} - {one}
    said = await people.say(
        "Elizabeth, whom everyone calls Bee, sings",
        *(("Bee", "person"), ("Elizabeth", "person")),
        relations=[{"subject": one, "predicate": predicate, "object": other, "strength": "strong"}],
        subject="Elizabeth",
    )
    assert await names(people, memory) == {"Elizabeth": ["Bee"]}
    assert not await memory.entities.relations(user_id="alice")
    assert not await memory.pending(user_id="alice")
    await people.say("Bee runs", ("Bee", "person"))
    assert len((await memory.entities.get("Elizabeth", user_id="alice")).facts) == 2
    undo = await people.undo(said)
    assert await names(people, memory) == {"Bee": []}
    await people.say("Bee swims", ("Bee", "person"))
    assert len((await memory.entities.get("Bee", user_id="alice")).facts) == 2
    await people.undo(undo)
    assert await names(people, memory) == {"Elizabeth": ["Bee"]}
