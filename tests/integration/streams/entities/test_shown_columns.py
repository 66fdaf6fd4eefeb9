"""What the projector keeps of what readers see is what a rebuild derives of the whole log."""

from collections.abc import Awaitable, Callable
from typing import Final

import pytest

from mnemolog import AsyncMemoryClient
from mnemolog.schemas.command import Delete, MergeEntities
from tests.support.builders.commits import fact_id_at
from tests.support.harnesses.named_people import NamedPeople

pytestmark = pytest.mark.postgres
Story = Callable[[NamedPeople, AsyncMemoryClient], Awaitable[None]]


async def shown(people: NamedPeople) -> set[tuple[str, str]]:
    query = """SELECT e.shown_name, n.shown FROM entities AS e JOIN entity_aliases AS n ON n.current_id = e.entity_id
        WHERE e.shown_name IS NOT NULL AND n.shown IS NOT NULL"""
    return set(await people.rows(query))


async def a_later_speaker_names_the_user(people: NamedPeople, _: AsyncMemoryClient) -> None:
    told = await people.say("Call me Ally", speaker=None, key="nickname", value="Ally", single_valued=True)
    await people.say("I sail", speaker=None)
    await people.order(Delete(fact_ids=(fact_id_at(told),)))
    assert "Ally" not in {name for _, name in await shown(people)}
    await people.say("It rains in Bern", speaker="Ally", subject="Bern")


async def a_hidden_name_is_said_again(people: NamedPeople, _: AsyncMemoryClient) -> None:
    await people.say("Ana paints", subject="Ana")
    told = await people.say("My wife Ana sings", ("my wife Ana", "person"))
    await people.order(Delete(fact_ids=(fact_id_at(told),)))
    assert ("Ana", "my wife Ana") not in await shown(people)
    await people.say("Ana, my wife Ana, runs", ("Ana", "person"))
    assert ("Ana", "my wife Ana") in await shown(people)


async def a_holder_of_a_tie_is_merged(people: NamedPeople, memory: AsyncMemoryClient) -> None:
    await people.say("Tom sails", subject="Tom")
    await people.say("Tom's wife sings", ("Tom's wife", "person"))
    await people.say("Rob sails", subject="Rob")
    ids = {one.name: one.entity_id for one in await memory.entities.list(user_id="alice")}
    merge = await people.order(MergeEntities(entity_ids=(ids["Tom"],), into=ids["Rob"]))
    (tie,) = await people.rows("SELECT current_key FROM entity_aliases WHERE kind = 'tie'")
    assert tie == (f"wife of {ids['Rob']}",)
    await people.say("Tom's wife runs", ("Tom's wife", "person"))
    assert await people.is_rebuilt_equal()
    await people.undo(merge)
    (tie,) = await people.rows("SELECT DISTINCT current_key FROM entity_aliases WHERE kind = 'tie'")
    assert tie == (f"wife of {ids['Tom']}",)


STORIES: Final[list[Story]] = [
    a_later_speaker_names_the_user,
    a_hidden_name_is_said_again,
    a_holder_of_a_tie_is_merged,
]


@pytest.mark.parametrize("story", STORIES)
async def test_columns_are_kept_as_a_rebuild_makes_them(
    people: NamedPeople, memory: AsyncMemoryClient, story: Story
) -> None:
    await story(people, memory)
    wrong = "SELECT fact_id FROM facts WHERE is_hidden <> fact_is_hidden(fact_id)"
    assert await people.rows(wrong) == []
    assert await people.is_rebuilt_equal()
