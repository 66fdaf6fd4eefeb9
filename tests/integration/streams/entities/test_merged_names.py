"""What is said under the name of an entity that was merged into another one is of the entity that has the name."""

from collections.abc import Awaitable, Callable
from typing import Final

import pytest

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.schemas.command import Correct, Edit, MergeEntities, Update
from mnemolog.schemas.commit import Commit
from tests.support.builders.commits import fact_id_at
from tests.support.harnesses.named_people import NamedPeople

pytestmark = pytest.mark.postgres
MERGED, INTO = "Robert", "Nora"
Say = Callable[[NamedPeople], Awaitable[Commit]]


def about(name: str) -> Say:
    async def say(people: NamedPeople) -> Commit:
        person = [{"name": name, "type": "person", "role": "subject"}]
        return await people.say(f"{name} plays chess", subject=name, entities=person)

    return say


def edited(kind: str, text: str) -> Say:
    """A correction or an update of what was said of the merged entity before the merge."""

    async def say(people: NamedPeople) -> Commit:
        ((fact_id,),) = await people.rows("SELECT fact_id FROM facts WHERE text = 'Robert sings'")
        edit = Edit(fact_id=fact_id, text=text)
        return await people.order(Correct(edit=edit) if kind == "correct" else Update(edits=(edit,)))

    return say


async def raw(people: NamedPeople) -> Commit:
    return await people.say_raw("Then Robert left")


SAID: Final[dict[str, tuple[Say, str]]] = {
    "a slip": (about("Roebrt"), "Robert"),
    "what it is to somebody": (about("my brother"), "Robert"),
    "what the other one is to somebody": (about("my boss"), "Nora"),
    "a text that nobody reads": (raw, "Robert"),
    "an update without a name": (edited("update", "She dances"), "Robert"),
    "a correction with the other name": (edited("correct", "Nora dances"), "Nora"),
}


async def texts_of(memory: AsyncMemoryClient, name: str) -> set[str]:
    return {one.fact.text for one in (await memory.entities.get(name, user_id="alice")).facts}


@pytest.mark.parametrize(("say", "whose"), SAID.values(), ids=SAID)
async def test_a_fact_belongs_to_whom_it_named_when_the_merge_is_undone(
    people: NamedPeople, memory: AsyncMemoryClient, say: Say, whose: str
) -> None:
    for name, tie in ((MERGED, "my brother Robert"), (INTO, "my boss Nora")):
        await people.say(f"{name} sings", subject=name)
        await people.say(f"I met {tie}", (tie, "person"))
    ids = {one.name: one.entity_id for one in await memory.entities.list(user_id="alice")}
    merge = await people.order(MergeEntities(entity_ids=(ids[MERGED],), into=ids[INTO]))
    told = await say(people)
    ((text,),) = await people.rows("SELECT text FROM facts WHERE fact_id = %s", fact_id_at(told))
    assert text in await texts_of(memory, INTO)
    await people.undo(merge)
    (other,) = {MERGED, INTO} - {whose}
    assert text in await texts_of(memory, whose)
    assert text not in await texts_of(memory, other)
    assert await people.is_rebuilt_equal()


async def test_ties_and_relations_go_with_the_name_that_they_were_told_of(
    people: NamedPeople, memory: AsyncMemoryClient
) -> None:
    for name in (MERGED, INTO):
        await people.say(f"{name} sings", subject=name)
    ids = {one.name: one.entity_id for one in await memory.entities.list(user_id="alice")}
    merge = await people.order(MergeEntities(entity_ids=(ids[MERGED],), into=ids[INTO]))
    await people.say("Robert's boss Tom skis", subject="Robert's boss Tom")
    works = {"subject": "Robert", "predicate": "employer", "object": "Acme", "strength": "strong"}
    await people.say("Robert works at Acme", ("Acme", "organisation"), subject="Robert", relations=[works])
    for who in (INTO, MERGED):
        stated = {(one.predicate, one.object) for one in await memory.entities.relations(who, user_id="alice")}
        assert stated == {("manager", "Tom"), ("employer", "Acme")}
        assert [one.name for one in await memory.entities.who(f"{who}'s boss", user_id="alice")] == ["Tom"]
        if who == INTO:
            await people.undo(merge)
    assert await memory.entities.relations(INTO, user_id="alice") == []
    assert await memory.entities.who("Nora's boss", user_id="alice") == []
    await people.say("Robert's boss sails", subject="Robert's boss")
    assert await texts_of(memory, "Tom") == {"Robert's boss Tom skis", "Robert's boss sails"}
    assert await people.is_rebuilt_equal()
