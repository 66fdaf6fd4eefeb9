"""Whom facts name, through the real stages and tables: one entity under all its names, two of one name apart."""

import pytest

from mnemolog.projections.rebuild.rebuild import rebuild
from mnemolog.projections.rebuild.replay import TableLogSource
from mnemolog.projections.stores import entities
from mnemolog.schemas.scope import Scope
from tests.support.harnesses.named_people import NamedPeople

pytestmark = pytest.mark.postgres
BEN = Scope(user_id="ben")


async def names(people: NamedPeople, user_id: str = "alice") -> list[tuple[str, str]]:
    """The names and types of the entities, the user among them, in the order of the log."""
    query = "SELECT name, type FROM entities WHERE user_id = %s ORDER BY recorded_at, ordinal"
    return [(name, kind) for name, kind in await people.rows(query, user_id)]


async def test_a_fact_names_its_subject_and_others(people: NamedPeople) -> None:
    await people.say("I live in Bern with Ana", ("Bern", "place"), ("Ana", "person"))
    assert await people.named("I live in Bern with Ana") == {
        ("Alice", "subject"),
        ("Bern", "object"),
        ("Ana", "object"),
    }


@pytest.mark.parametrize("name", ["ana", "ÁNA", "my wife", "Ana Keller"])
async def test_one_entity_has_all_its_names(people: NamedPeople, name: str) -> None:
    await people.say("I met my wife Ana in Rome", ("my wife Ana", "person"))
    await people.say(f"I called {name}", (name, "person"))
    assert await people.named(f"I called {name}") == {("Alice", "subject"), ("Ana", "object")}
    assert await names(people) == [("Alice", "person"), ("Ana", "person")]


async def test_the_user_is_one_entity_however_they_are_named(people: NamedPeople) -> None:
    await people.say("It rains here", speaker=None, subject="the user")
    await people.say("I sail", subject="Alice")
    await people.say("I ski", subject=None)
    await people.say("I dance", subject="ALICE", speaker=None)
    assert len(await names(people)) == 1
    aliases = "SELECT kind, alias FROM entity_aliases ORDER BY recorded_at, place"
    assert await people.rows(aliases) == [("user", "the user"), ("name", "Alice")]


async def test_another_speaker_is_an_entity_of_their_own(people: NamedPeople) -> None:
    await people.say("I sail")
    await people.say("I ski with my wife", ("my wife", "person"), speaker="Bob")
    await people.say("I sing with my wife", ("my wife", "person"))
    assert await people.named("I ski with my wife") == {("Bob", "subject"), ("my wife", "object")}
    assert [name for name, _ in await names(people)] == ["Alice", "Bob", "my wife", "my wife"]
    assert {kind for _, kind in await names(people)} == {"person"}


async def test_what_is_said_again_is_named_once(people: NamedPeople) -> None:
    await people.say("I met Ana", ("Ana", "person"))
    again = await people.say("I met Ana", ("Ana", "person"))
    assert [event.event for event in again.events] == ["fact_skipped"]
    assert again.entity_events == ()


async def test_a_rebuild_gives_equal_entities(people: NamedPeople, database: str) -> None:
    await people.say("I met my wife Ana", ("my wife Ana", "person"))
    await people.say("I called ANA KELLER", ("ANA KELLER", "person"))
    await people.say("I met Ana", ("Ana", "person"), scope=BEN, speaker="Ben")
    report = await rebuild(database, TableLogSource(people.pipeline.pool))
    assert report.equal
    rows = {table.table: table.rebuilt_rows for table in report.tables}
    assert (rows["entities"], rows["entity_aliases"], rows["fact_entities"]) == (4, 8, 6)


async def test_the_user_is_known_among_more_entities_than_are_looked_up(
    people: NamedPeople, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Newer entities have the name that is looked up; the user has none."""
    monkeypatch.setattr(entities, "MAX_FOUND", 2)
    await people.say("I sail", speaker=None)
    for place in ("work", "school", "golf"):
        await people.say(f"Tom from {place} sings", subject=f"Tom from {place}", speaker=None)
    await people.say("I saw Tom", ("Tom", "person"), speaker=None)
    users = await people.rows("SELECT count(DISTINCT entity_id) FROM entity_aliases WHERE kind = 'user'")
    assert users == [(1,)]


async def test_a_misspelled_name_is_found_by_its_ends(people: NamedPeople, database: str) -> None:
    await people.say("I met Jonathan Miller", ("Jonathan Miller", "person"))
    await people.say("Jnoathan Miller called", ("Jnoathan Miller", "person"))
    assert await names(people) == [("Alice", "person"), ("Jonathan Miller", "person")]
    assert ("Jonathan Miller", "object") in await people.named("Jnoathan Miller called")
    assert (await rebuild(database, TableLogSource(people.pipeline.pool), verify_only=True)).equal
