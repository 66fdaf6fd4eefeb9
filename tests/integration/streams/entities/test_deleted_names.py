"""Names that only deleted facts tell are not shown; an undo of the deletion shows them again."""

from collections.abc import Sequence
from uuid import UUID

import pytest

from mnemolog import AsyncMemoryClient
from mnemolog.schemas.command import (
    AliasEntity,
    Correct,
    Delete,
    Edit,
    ForgetEntity,
    MergeEntities,
    RenameEntity,
)
from mnemolog.schemas.commit import Commit
from tests.support.builders.model_replies import decision_json
from tests.support.harnesses.named_people import NamedPeople, named_people

pytestmark = pytest.mark.postgres


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


async def test_who_is_found_again_is_called_as_the_new_fact_says(
    people: NamedPeople, memory: AsyncMemoryClient
) -> None:
    told = await people.say("My wife Ana Keller paints", ("my wife Ana Keller", "person"))
    before = {one.name: one.entity_id for one in await memory.entities(user_id="alice")}
    await people.order(Delete(fact_ids=facts_of(told)))
    again = await people.say("My wife sings", ("my wife", "person"))
    assert await names(people, memory) == {"Alice": [], "my wife": []}
    assert (await memory.entity("my wife", user_id="alice")).entity.entity_id == before["Ana Keller"]
    await people.say("Ana Keller swims", subject="Ana Keller")
    assert await names(people, memory) == {"Alice": [], "Ana Keller": ["my wife"]}
    await people.undo(again)
    assert await names(people, memory) == {"Alice": [], "Ana Keller": []}


async def test_a_name_of_the_user_goes_with_the_fact_that_told_it(
    people: NamedPeople, memory: AsyncMemoryClient
) -> None:
    told = await people.say("Call me Ally", key="nickname", value="Ally", single_valued=True)
    await people.say("I like tea")
    before = await names(people, memory)
    assert before == {"Alice": ["Ally"]}
    deletion = await people.order(Delete(fact_ids=facts_of(told)))
    assert await names(people, memory) == {"Alice": []}
    await people.undo(deletion)
    assert await names(people, memory) == before


async def test_a_user_without_a_told_name_is_the_user(people: NamedPeople, memory: AsyncMemoryClient) -> None:
    told = await people.say("Call me Ally", speaker=None, key="nickname", value="Ally", single_valued=True)
    await people.say("I like tea", speaker=None)
    assert "Ally" in str(await names(people, memory))
    await people.order(Delete(fact_ids=facts_of(told)))
    assert await names(people, memory) == {"the user": []}


async def test_what_a_person_decided_stays_until_it_is_forgotten(
    people: NamedPeople, memory: AsyncMemoryClient
) -> None:
    await people.say("Rex bites", subject="Rex")
    told = await people.say("Bello barks", subject="Bello")
    rex, bello = [(await memory.entity(name, user_id="alice")).entity.entity_id for name in ("Rex", "Bello")]
    await people.order(MergeEntities(entity_ids=(bello,), into=rex))
    await people.order(AliasEntity(entity_id=rex, name="Rexi"))
    await people.order(Delete(fact_ids=facts_of(told)))
    assert (await names(people, memory))["Rex"] == ["Bello", "Rexi"]
    await people.order(ForgetEntity(entity_id=rex))
    assert await names(people, memory) == {}


async def test_a_hidden_name_may_be_given_to_another_entity(people: NamedPeople, memory: AsyncMemoryClient) -> None:
    told = await people.say("Ana sings", subject="Ana")
    await people.say("Rex bites", subject="Rex")
    rex = (await memory.entity("Rex", user_id="alice")).entity.entity_id
    assert (await people.order(RenameEntity(entity_id=rex, name="Ana"))).reason == "name_taken"
    await people.order(Delete(fact_ids=facts_of(told)))
    assert (await people.order(RenameEntity(entity_id=rex, name="Ana"))).outcome == "done"
    assert await names(people, memory) == {"Ana": ["Rex"]}


async def test_a_person_may_give_a_name_that_is_hidden(people: NamedPeople, memory: AsyncMemoryClient) -> None:
    await people.say("Robert sings", ("Robert", "person"))
    told = await people.say("Rob paints", ("Rob", "person"))
    robert = (await memory.entity("Robert", user_id="alice")).entity.entity_id
    await people.order(Delete(fact_ids=facts_of(told)))
    await people.order(AliasEntity(entity_id=robert, name="Rob"))
    assert (await names(people, memory))["Robert"] == ["Rob"]


@pytest.mark.parametrize(
    ("text", "name", "has_it"),
    [
        ("Diana sings", "Ana", False),
        ("Ana sings", "ana", True),
        ("I like (Ana)", "Ana", True),
        ("Ana's dog barks", "Ana", True),
        ("Annas Hund ist im Garten und nicht da", "Anna", True),
        ("Ana Keller-Bell sings", "Keller-Bell", True),
        ("\u5f20\u4f1f\u559c\u6b22\u8336", "\u5f20\u4f1f", True),
        ("Tom sings", "Tom Keller", False),
    ],
)
async def test_a_text_has_a_name_as_whole_words(people: NamedPeople, text: str, name: str, *, has_it: bool) -> None:
    assert await people.rows("SELECT has_name(%s, %s)", text, name) == [(has_it,)]


async def test_a_name_between_spaces_is_a_name_as_whole_words(people: NamedPeople) -> None:
    words = ["ana", "Ana", "diana", "a.b", "a", "b", "Ana's", "St. Gallen", "Gallen", "", "\u5f20\u4f1f"]
    pairs = [(f"{one}{sign}{two}", name) for one in words for two in words for sign in " .,(" for name in words if name]
    pairs += [(text, "a b") for text, _ in pairs]
    wrong = await people.rows(
        "SELECT said, name FROM unnest(%s::text [], %s::text []) AS pair (said, name)"
        " WHERE has_plain_name(said, name) AND NOT has_name(said, name)",
        *map(list, zip(*pairs, strict=True)),
    )
    found = await people.rows("SELECT has_plain_name('I like (Ana)', 'ana'), has_plain_name('Ana''s', 'Ana')")
    assert (wrong, found) == ([], [(True, False)])
