"""A name in another alphabet finds a possible twin in the tables, and never the entity itself."""

from collections.abc import AsyncIterator

import pytest

from tests.support.harnesses.named_people import NamedPeople, named_people

pytestmark = pytest.mark.postgres


@pytest.fixture
async def people(database: str) -> AsyncIterator[NamedPeople]:
    async with named_people(database) as harness:
        yield harness


@pytest.mark.parametrize(
    ("known", "name", "are_twins"),
    [
        ("Юлия", "Julia", True),
        ("Julia Petrova", "Юлия Петрова", True),
        ("Νίκος", "Nikos", True),
        ("Иван", "Anna", False),
    ],
)
async def test_a_name_in_another_alphabet_is_a_possible_twin(
    people: NamedPeople, known: str, name: str, are_twins: bool
) -> None:
    for who in (known, name):
        await people.say(f"I met {who}", (who, "person"))
    found = await people.rows(
        "SELECT name, cardinality(possible_twins) > 0 FROM entities WHERE name <> 'Alice' ORDER BY recorded_at"
    )
    assert found == [(known, False), (name, are_twins)]
