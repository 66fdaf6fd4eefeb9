"""Names that only deleted facts tell are not shown; an undo of the deletion shows them again."""

from collections.abc import AsyncIterator, Sequence
from uuid import UUID

import pytest

from mnemolog import AsyncMemoryClient, UnknownEntityError
from mnemolog.schemas.command import Correct, Delete, DeleteAll, Edit
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entities.commands import MergeEntities
from tests.support.builders.model_replies import decision_json
from tests.support.harnesses.named_people import NamedPeople, named_people

pytestmark = pytest.mark.postgres


@pytest.fixture
async def people(database: str) -> AsyncIterator[NamedPeople]:
    async with named_people(database) as people:
        yield people


@pytest.fixture
async def memory(database: str) -> AsyncIterator[AsyncMemoryClient]:
    async with AsyncMemoryClient(postgres=database) as memory:
        yield memory


def facts_of(*commits: Commit) -> tuple[UUID, ...]:
    return tuple(event.new_fact.fact_id for one in commits for event in one.events if event.new_fact is not None)


async def names(people: NamedPeople, memory: AsyncMemoryClient) -> dict[str, list[str]]:
    """The entities with their other names, as the client shows them; SQL users see the same."""
    found = {one.name: one.aliases for one in await memory.entities(user_id="alice")}
    rows = await people.rows("SELECT entity_id, name FROM memory.entities WHERE user_id = 'alice'")
    assert sorted(name for _, name in rows) == sorted(found)
    aliases = await people.rows("SELECT DISTINCT entity_id, alias FROM memory.entity_aliases WHERE user_id = 'alice'")
    own: dict[UUID, str] = dict(rows)
    assert {entity_id for entity_id, _ in aliases} <= own.keys()
    for name, others in found.items():
        assert set(others) == {one for entity_id, one in aliases if own[entity_id] == name} - {name}
    return found


async def test_an_entity_goes_with_the_only_fact_that_names_it(people: NamedPeople, memory: AsyncMemoryClient) -> None:
    told = await people.say("I met Dr. Grey", ("Dr. Grey", "person"))
    await people.say("I like tea")
    before = await names(people, memory)
    assert list(before) == ["Alice", "Dr. Grey"]
    deletion = await people.order(Delete(fact_ids=facts_of(told)))
    assert list(await names(people, memory)) == ["Alice"]
    with pytest.raises(UnknownEntityError):
        await memory.entity("Dr. Grey", user_id="alice")
    assert await memory.who("Dr. Grey", user_id="alice") == []
    await people.undo(deletion)
    assert await names(people, memory) == before


async def test_a_name_goes_with_the_only_fact_that_tells_it(people: NamedPeople, memory: AsyncMemoryClient) -> None:
    await people.say("Ana paints", subject="Ana")
    told = await people.say("Annie, my wife Ana, sings", ("my wife Ana", "person"))
    before = await names(people, memory)
    assert before["Ana"] == ["my wife Ana"]
    deletion = await people.order(Delete(fact_ids=facts_of(told)))
    assert (await names(people, memory))["Ana"] == []
    details = await memory.entity("Ana", user_id="alice")
    assert [one.name for one in details.names] == ["Ana"]
    assert "my wife Ana" not in [one.text for one in details.timeline if one.change == "named"]
    await people.undo(deletion)
    assert await names(people, memory) == before


async def test_its_own_name_gives_way_to_one_that_a_fact_tells(people: NamedPeople, memory: AsyncMemoryClient) -> None:
    told = await people.say("My wife Ana Keller paints", ("my wife Ana Keller", "person"))
    later = await people.say("Ana sings", subject="Ana")
    assert await names(people, memory) == {"Alice": [], "Ana Keller": ["my wife Ana Keller", "Ana"]}
    await people.order(Delete(fact_ids=facts_of(told)))
    assert await names(people, memory) == {"Alice": [], "Ana": []}
    assert [hit.fact.text for hit in (await memory.entity("Ana", user_id="alice")).facts] == ["Ana sings"]
    await people.order(Delete(fact_ids=facts_of(later)))
    assert await names(people, memory) == {"Alice": []}


async def test_a_deletion_of_all_takes_every_name_and_an_undo_brings_them_back(
    database: str, memory: AsyncMemoryClient
) -> None:
    async with named_people(database, lambda one: decision_json(one.number, "REPLACE", *range(1, 2))) as people:
        for name in ("Acme", "Globex"):
            await people.say(
                f"I work at {name}", (name, "organisation"), key="employer", single_valued=True, value=name
            )
        await people.say("I feed my dog Rex", ("my dog Rex", "animal"))
        before = await names(people, memory)
        assert sorted(before) == ["Acme", "Alice", "Globex", "Rex"]
        deletion = await people.order(DeleteAll())
        assert list(await names(people, memory)) == ["Alice"]
        await people.undo(deletion)
        assert await names(people, memory) == before


async def test_a_name_that_was_corrected_is_shown_no_more(people: NamedPeople, memory: AsyncMemoryClient) -> None:
    told = await people.say("I met Mark", ("Mark", "person"))
    await people.order(Correct(edit=Edit(fact_id=facts_of(told)[0], text="I met Marc")))
    assert "Mark" not in await names(people, memory)


async def test_a_retraction_in_a_conversation_leaves_names_as_they_are(
    database: str, memory: AsyncMemoryClient
) -> None:
    async with named_people(database, lambda one: decision_json(one.number, "RETRACT", *range(1, 2))) as people:
        await people.say("I work at Acme", ("Acme", "organisation"), key="employer", single_valued=True, value="Acme")
        await people.say("I work at Acme no more", key="employer", single_valued=True, action_hint="retract")
        statuses: Sequence[tuple[str]] = await people.rows("SELECT status FROM facts WHERE text = 'I work at Acme'")
        assert statuses == [("retracted",)]
        assert sorted(await names(people, memory)) == ["Acme", "Alice"]


async def test_a_fact_of_two_that_are_one_counts_once_in_the_profile(
    people: NamedPeople, memory: AsyncMemoryClient
) -> None:
    for number in range(30):
        await people.say(f"Rex and Bello run {number} miles", ("Bello", "animal"), subject="Rex")
    (rex, bello) = [(await memory.entity(name, user_id="alice")).entity for name in ("Rex", "Bello")]
    await people.order(MergeEntities(entity_ids=(bello.entity_id,), into=rex.entity_id))
    assert len((await memory.entity("Rex", user_id="alice")).profile.texts) == 30
