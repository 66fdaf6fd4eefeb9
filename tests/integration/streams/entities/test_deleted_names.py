"""Names that only deleted facts tell are not shown; an undo of the deletion shows them again."""

from uuid import UUID

import pytest

from mnemolog import AsyncMemoryClient
from mnemolog.schemas.command import AliasEntity, Delete, ForgetEntity, MergeEntities, RenameEntity
from mnemolog.schemas.commit import Commit
from tests.support.builders.commits import fact_id_at
from tests.support.builders.model_replies import decision_json
from tests.support.harnesses.named_people import NamedPeople, named_people

pytestmark = pytest.mark.postgres


async def names(people: NamedPeople, memory: AsyncMemoryClient) -> dict[str, list[str]]:
    """The entities with their other names, as the client shows them; SQL users see the same."""
    found = {one.name: one.aliases for one in await memory.entities.list(user_id="alice")}
    rows = await people.rows("SELECT entity_id, name FROM memory.entities WHERE user_id = 'alice'")
    assert sorted(name for _, name in rows) == sorted(found)
    aliases = await people.rows("SELECT DISTINCT entity_id, alias FROM memory.entity_aliases WHERE user_id = 'alice'")
    own: dict[UUID, str] = dict(rows)
    assert {entity_id for entity_id, _ in aliases} <= own.keys()
    for name, others in found.items():
        assert set(others) == {one for entity_id, one in aliases if own[entity_id] == name} - {name}
    return found


async def delete(people: NamedPeople, *told: Commit) -> Commit:
    """Delete the first fact of each of these commits."""
    return await people.order(Delete(fact_ids=tuple(map(fact_id_at, told))))


async def test_a_name_goes_with_the_only_fact_that_tells_it(people: NamedPeople, memory: AsyncMemoryClient) -> None:
    await people.say("Ana paints", subject="Ana")
    told = await people.say("Annie, my wife Ana, sings", ("my wife Ana", "person"))
    before = await names(people, memory)
    assert before["Ana"] == ["my wife Ana"]
    deletion = await delete(people, told)
    assert (await names(people, memory))["Ana"] == []
    details = await memory.entities.get("Ana", user_id="alice")
    assert [one.name for one in details.names] == ["Ana"]
    assert "my wife Ana" not in [one.text for one in details.timeline if one.change == "named"]
    await people.undo(deletion)
    assert await names(people, memory) == before


async def test_a_retraction_in_a_conversation_leaves_names_as_they_are(
    database: str, memory: AsyncMemoryClient
) -> None:
    async with named_people(database, lambda one: decision_json(one.number, "RETRACT", *range(1, 2))) as people:
        await people.say("I work at Acme", ("Acme", "organisation"), key="employer", single_valued=True, value="Acme")
        await people.say("I work at Acme no more", key="employer", single_valued=True, action_hint="retract")
        statuses = await people.rows("SELECT status FROM facts WHERE text = 'I work at Acme'")
        assert statuses == [("retracted",)]
        assert sorted(await names(people, memory)) == ["Acme", "Alice"]


@pytest.mark.parametrize(("speaker", "left"), [("Alice", "Alice"), (None, "the user")])
async def test_a_name_of_the_user_goes_with_the_fact_that_told_it(
    people: NamedPeople, memory: AsyncMemoryClient, speaker: str | None, left: str
) -> None:
    told = await people.say("Call me Ally", speaker=speaker, key="nickname", value="Ally", single_valued=True)
    await people.say("I like tea", speaker=speaker)
    before = await names(people, memory)
    assert "Ally" in {name for own, others in before.items() for name in (own, *others)}
    deletion = await delete(people, told)
    assert await names(people, memory) == {left: []}
    await people.undo(deletion)
    assert await names(people, memory) == before


async def test_what_a_person_decided_stays_and_a_hidden_name_is_free(
    people: NamedPeople, memory: AsyncMemoryClient
) -> None:
    await people.say("Rex bites", subject="Rex")
    told = [await people.say(f"{name} barks", subject=name) for name in ("Bello", "Hasso")]
    ids = {one.name: one.entity_id for one in await memory.entities.list(user_id="alice")}
    await people.order(MergeEntities(entity_ids=(ids["Bello"],), into=ids["Rex"]))
    await people.order(AliasEntity(entity_id=ids["Rex"], name="Rexi"))
    assert (await people.order(AliasEntity(entity_id=ids["Rex"], name="Hasso"))).reason == "name_taken"
    await delete(people, *told)
    assert (await names(people, memory))["Rex"] == ["Bello", "Rexi"]
    assert (await people.order(RenameEntity(entity_id=ids["Rex"], name="Hasso"))).outcome == "done"
    (hasso,) = (await names(people, memory)).items()
    assert (hasso[0], set(hasso[1])) == ("Hasso", {"Rex", "Bello", "Rexi"})
    await people.order(ForgetEntity(entity_id=ids["Rex"]))
    assert await names(people, memory) == {}


async def test_a_text_has_a_name_as_whole_words(people: NamedPeople) -> None:
    said = {
        ("Diana sings", "Ana"): False,
        ("Ana sings", "ana"): True,
        ("I like (Ana)", "Ana"): True,
        ("Ana's dog barks", "Ana"): True,
        ("Annas Hund ist im Garten und nicht da", "Anna"): True,
        ("Ana Keller-Bell sings", "Keller-Bell"): True,
        ("\u5f20\u4f1f\u559c\u6b22\u8336", "\u5f20\u4f1f"): True,
        ("Tom sings", "Tom Keller"): False,
    }
    has_name = "SELECT has_name(said, name) FROM unnest(%s::text [], %s::text []) AS pair (said, name)"
    assert [has for (has,) in await people.rows(has_name, *map(list, zip(*said, strict=True)))] == [*said.values()]
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


@pytest.mark.parametrize(("name", "given"), [("Bob", "Robert Miller"), ("Robert", "Robert Miller"), ("Anna", "Ruth")])
@pytest.mark.parametrize("command", [RenameEntity, AliasEntity])
async def test_a_name_that_a_turn_said_outlives_the_command_that_gave_it(
    people: NamedPeople, memory: AsyncMemoryClient, command: type[RenameEntity | AliasEntity], name: str, given: str
) -> None:
    await people.say(f"{name} sings", (name, "person"), subject=name)
    entity_id = (await memory.entities.get(name, user_id="alice")).entity.entity_id
    renamed = await people.order(command(entity_id=entity_id, name=given))
    unsaid = await people.undo(renamed)
    assert given not in {one for own, others in (await names(people, memory)).items() for one in (own, *others)}
    await people.undo(unsaid)
    told = await people.say(f"{given} moved to Lima", (given, "person"), subject=given)
    await people.undo(renamed)
    known = await memory.entities.get(given, user_id="alice")
    assert (known.entity.entity_id, known.name, known.entity.aliases) == (entity_id, name, [given])
    await people.undo(told)
    assert (await names(people, memory))[name] == []
    assert await people.is_rebuilt_equal()
