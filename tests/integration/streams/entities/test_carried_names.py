"""Links and relations go over to what a fact becomes; in a text that no model has read, known names are found."""

from collections.abc import AsyncIterator, Mapping
from typing import Any
from uuid import UUID

import pytest

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.projections.errors import UnknownEntityError
from mnemolog.schemas.command import CommandPayload, Correct, Edit, Import, ImportedFact, Promote, Update
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.scope import Scope
from mnemolog.streams.llm.ports import NumberedConflict
from tests.support.builders.commits import ALICE, fact_id_at
from tests.support.builders.model_replies import decision_json
from tests.support.harnesses.named_people import NamedPeople, named_people

pytestmark = pytest.mark.postgres
BEN = Scope(user_id="ben")
RUN = Scope(user_id="alice", run_id="r")
WIFE = {"subject": "Alice", "predicate": "wife", "object": "Ana", "strength": "strong"}
MERGED = "Alice met Ana and Ben at Kafka Summit in Bern"


def judge(conflict: NumberedConflict) -> Mapping[str, Any]:
    """A reader that merges all that is known of a conflict."""
    known = [label for label, _ in conflict.candidates]
    return decision_json(conflict.number, "MERGE", *known, text=MERGED)


@pytest.fixture
async def people(database: str) -> AsyncIterator[NamedPeople]:
    async with named_people(database, judge) as harness:
        yield harness


async def say_wife(people: NamedPeople, text: str = "Alice's wife is Ana, a nurze", scope: Scope = ALICE) -> Commit:
    return await people.say(text, ("Ana", "person"), subject="Alice", relations=[WIFE], scope=scope)


async def named(people: NamedPeople, commit: Commit) -> dict[str, str]:
    """The roles of the entities of the first fact of a commit, by their names."""
    query = """SELECT e.name, link.role FROM fact_entities AS link JOIN entities AS e ON e.entity_id = link.current_id
        WHERE link.fact_id = %s AND e.status = 'active'"""
    return dict(await people.rows(query, fact_id_at(commit)))


async def facts_of_ana(memory: AsyncMemoryClient) -> set[UUID]:
    return {one.fact.fact_id for one in (await memory.entities.get("Ana", user_id="alice")).facts}


async def wives(memory: AsyncMemoryClient, scope: Scope = ALICE) -> list[str]:
    return [one.name for one in await memory.entities.who("my wife", user_id=scope.user_id, run_id=scope.run_id)]


def new_text(kind: str, old: Commit, text: str) -> CommandPayload:
    edit = Edit(fact_id=fact_id_at(old), text=text)
    return Correct(edit=edit) if kind == "correct" else Update(edits=(edit,))


@pytest.mark.parametrize("kind", ["correct", "update"])
async def test_a_new_text_names_whom_the_old_one_named_and_known_names(
    people: NamedPeople, memory: AsyncMemoryClient, kind: str
) -> None:
    await people.say("I met Zoe", ("Zoe", "person"))
    old = await say_wife(people)
    edited = await people.order(new_text(kind, old, "Alice's wife is Ana, a nurse, and ZOÉ likes her"))
    assert await named(people, edited) == {"Alice": "subject", "Ana": "object", "Zoe": "mention"}
    assert await wives(memory) == ["Ana"]
    assert fact_id_at(edited) in await facts_of_ana(memory)
    told = (await memory.explain(fact_id_at(edited))).entities
    assert ("Ana", "Ana", "exact") in [(one.name, one.said, one.step) for one in told]
    await people.undo(edited)
    assert await wives(memory) == ["Ana"]
    assert await facts_of_ana(memory) == {fact_id_at(old)}
    assert await people.is_rebuilt_equal()


async def test_a_merged_fact_names_whom_its_parts_named(people: NamedPeople, memory: AsyncMemoryClient) -> None:
    friend = {"subject": "Alice", "predicate": "friend", "object": "Ana", "strength": "strong"}
    met: dict[str, Any] = {"subject": "Alice", "search_text": "meeting"}
    text = "Alice met Ana at Kafka Summit"
    first = await people.say(text, ("Ana", "person"), ("Kafka Summit", "event"), relations=[friend], **met)
    merged = await people.say("Alice met Ben in Bern", ("Ben", "person"), **met)
    assert [event.event for event in merged.events] == ["facts_merged"]
    assert await named(people, merged) == {
        "Alice": "subject",
        "Ben": "object",
        "Ana": "object",
        "Kafka Summit": "object",
    }
    corrected = await people.order(new_text("correct", merged, "Alice met her friend Ana in Bern"))
    assert await named(people, corrected) == {"Alice": "subject", "Ana": "object"}
    (relation,) = await memory.entities.relations(user_id="alice")
    assert (relation.object, relation.is_active) == ("Ana", True)
    await people.undo(corrected)
    await people.undo(merged)
    assert await facts_of_ana(memory) == {fact_id_at(first)}
    assert await people.is_rebuilt_equal()


async def test_a_promoted_fact_names_its_entities_in_the_scope_that_it_goes_to(
    people: NamedPeople, memory: AsyncMemoryClient
) -> None:
    await say_wife(people, "Alice's wife is Ana", RUN)
    promoted = await people.order(Promote(source=RUN), ALICE)
    known = await memory.entities.list(user_id="alice")
    assert {(one.name, one.is_user, one.run_id) for one in known} == {("Alice", True, None), ("Ana", False, None)}
    assert await wives(memory) == ["Ana"]
    assert await named(people, promoted) == {"Alice": "subject", "Ana": "object"}
    of_run = {one.entity_id for one in await memory.entities.list(user_id="alice", run_id="r")}
    assert of_run.isdisjoint(one.entity_id for one in known)
    await people.undo(promoted)
    with pytest.raises(UnknownEntityError):
        await memory.entities.get("Ana", user_id="alice")
    assert (await wives(memory), await wives(memory, RUN)) == ([], ["Ana"])
    assert await people.rows("SELECT count(*) FROM rejections") == [(0,)]
    assert await people.is_rebuilt_equal()


async def test_a_raw_or_imported_text_names_whom_the_scope_knows_for_certain(people: NamedPeople) -> None:
    await people.say("Tom from work sails", subject="Tom from work")
    await people.say("Alice's brother Tom skis", subject="Alice's brother Tom")
    await people.say("I met Jo and Ana Keller", ("Jo", "person"), ("Ana Keller", "person"))
    await people.say("I met Eve", ("Eve", "person"), scope=BEN, speaker="Ben")
    doubtful = await people.say_raw("Jo, Tom, Diana, Eve and Zoe saw Annabel Keller")
    assert await named(people, doubtful) == {"Alice": "subject"}
    raw = await people.say_raw("Then ÁNA Keller left")
    assert await named(people, raw) == {"Alice": "subject", "Ana Keller": "mention"}
    assert [event.event for event in raw.entity_events] == ["fact_linked"]
    imported = await people.order(Import(fact=ImportedFact(text="Ana Keller sold the boat", subject="Alice")))
    assert await named(people, imported) == {"Alice": "subject", "Ana Keller": "mention"}
    await people.undo(raw)
    assert await people.is_rebuilt_equal()


async def test_a_promoted_fact_is_about_whom_its_original_is_about(people: NamedPeople) -> None:
    """A model replaces whatever it is asked about; only the home of the very person may end."""
    people.model.judge = lambda one: decision_json(one.number, "REPLACE", *(label for label, _ in one.candidates))
    home: dict[str, Any] = {"key": "home_city", "single_valued": True}

    async def say_home(who: str, city: str, scope: Scope, told: str | None = None) -> Commit:
        person = [{"name": told or who, "type": "person", "role": "subject"}]
        text = f"{who} lives in {city}"
        return await people.say(text, subject=told or who, entities=person, value=city, scope=scope, **home)

    await say_home("My brother Tom", "Bern", ALICE, "my brother Tom")
    await say_home("Tom from work", "Basel", RUN)
    moved = await say_home("Tom", "Oslo", RUN)
    promoted = await people.order(Promote(source=RUN, fact_ids=(fact_id_at(moved),)), ALICE)
    assert [event.event for event in promoted.events] == ["fact_added"]
    rows = await people.rows("SELECT text FROM facts WHERE run_id = '' AND status = 'active' ORDER BY recorded_at")
    assert rows == [("My brother Tom lives in Bern",), ("Tom lives in Oslo",)]
