"""Entities that a source tells of and that none of its facts is linked to: undone and rebuilt like all others."""

import pytest

from mnemolog.projections.rebuild.rebuild import rebuild
from mnemolog.projections.rebuild.replay import TableLogSource
from tests.support.harnesses.named_people import NamedPeople

pytestmark = pytest.mark.postgres
DOG = "Tom Baker's brother's dog"
"""Its fact is linked to the dog and to the brother."""


async def names(people: NamedPeople) -> list[str]:
    query = "SELECT DISTINCT alias FROM current_entity_names WHERE user_id = 'alice' AND kind = 'name' ORDER BY alias"
    return [alias for (alias,) in await people.rows(query)]


async def is_rebuilt_equal(people: NamedPeople, database: str) -> bool:
    return (await rebuild(database, TableLogSource(people.pipeline.pool), verify_only=True)).equal


async def test_a_name_goes_with_the_undo_of_the_only_source_that_told_it(people: NamedPeople, database: str) -> None:
    await people.say("I met Tom", ("Tom", "person"))
    told = await people.say(f"I fed {DOG}", (DOG, "animal"))
    later = await people.say("I saw Tom", ("Tom", "person"))
    assert await names(people) == ["Alice", "Tom", "Tom Baker"]
    await people.undo(later)
    undo = await people.undo(told)
    assert await names(people) == ["Alice", "Tom"]
    assert await is_rebuilt_equal(people, database)
    await people.undo(undo)
    assert await names(people) == ["Alice", "Tom", "Tom Baker"]
    assert await is_rebuilt_equal(people, database)


async def test_an_entity_goes_with_the_undo_of_the_only_source_that_told_of_it(
    people: NamedPeople, database: str
) -> None:
    told = await people.say(f"I fed {DOG}", (DOG, "animal"))
    undo = await people.undo(told)
    active = "SELECT name FROM entities WHERE status = 'active' ORDER BY recorded_at, ordinal"
    assert await people.rows(active) == [("Alice",)]
    assert await is_rebuilt_equal(people, database)
    await people.undo(undo)
    assert ("Tom Baker",) in await people.rows(active)
    assert await is_rebuilt_equal(people, database)
