"""Links and relations go over to what a fact becomes; in a text that no model has read, known names are found."""

from collections.abc import AsyncIterator, Mapping
from typing import Any
from uuid import UUID

import pytest

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.projections.errors import UnknownEntityError
from mnemolog.projections.rebuild.rebuild import rebuild
from mnemolog.projections.rebuild.replay import TableLogSource
from mnemolog.schemas.command import (
    CommandPayload,
    Correct,
    Edit,
    Import,
    ImportedFact,
    Promote,
    Update,
)
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.scope import Scope
from mnemolog.streams.llm.ports import NumberedConflict
from tests.support.builders.commits import ALICE
from tests.support.builders.model_replies import decision_json
from tests.support.harnesses.named_people import NamedPeople, named_people

pytestmark = pytest.mark.postgres
BEN = Scope(user_id="ben")
RUN = Scope(user_id="alice", run_id="r")
WIFE = {"subject": "Alice", "predicate": "wife", "object": "Ana", "strength": "strong"}
MERGED = "Alice met Ana and Ben at Kafka Summit in Bern"
Names = dict[str, str]


def judge(conflict: NumberedConflict) -> Mapping[str, Any]:
    """A reader that merges what is said of one meeting, and leaves open what Zoe says."""
    known = [label for label, _ in conflict.candidates]
    if "Zoe" in conflict.fact.text:
        return decision_json(conflict.number, "REPLACE")  # without a target it is no valid decision
    return decision_json(conflict.number, "MERGE", *known, text=MERGED, search_text="meeting")


@pytest.fixture
async def people(database: str) -> AsyncIterator[NamedPeople]:
    async with named_people(database, judge) as harness:
        yield harness


async def say_wife(people: NamedPeople, text: str = "Alice's wife is Ana, a nurze", scope: Scope = ALICE) -> UUID:
    """Say who Alice's wife is; gives the fact."""
    commit = await people.say(text, ("Ana", "person"), subject="Alice", relations=[WIFE], scope=scope)
    return new_fact(commit)


def new_fact(commit: Commit) -> UUID:
    (fact,) = [event.new_fact for event in commit.events if event.new_fact]
    return fact.fact_id


async def named(people: NamedPeople, fact_id: UUID) -> Names:
    """The roles of the entities of a fact, by their names."""
    query = """SELECT e.name, link.role FROM current_entity_links AS link JOIN entities AS e USING (entity_id)
        WHERE link.fact_id = %s AND e.status = 'active'"""
    return dict(await people.rows(query, fact_id))


async def wives(memory: AsyncMemoryClient, scope: Scope = ALICE) -> list[str]:
    return [one.name for one in await memory.who("my wife", user_id=scope.user_id, run_id=scope.run_id)]


async def is_rebuilt_equal(people: NamedPeople, database: str) -> bool:
    return (await rebuild(database, TableLogSource(people.pipeline.pool))).equal


def new_text(kind: str, fact_id: UUID, text: str) -> CommandPayload:
    edit = Edit(fact_id=fact_id, text=text)
    return Correct(edit=edit) if kind == "correct" else Update(edits=(edit,))


@pytest.mark.parametrize("kind", ["correct", "update"])
async def test_a_new_text_names_whom_the_old_one_named(
    people: NamedPeople, memory: AsyncMemoryClient, database: str, kind: str
) -> None:
    old = await say_wife(people)
    edited = await people.order(new_text(kind, old, "Alice's wife is Ana, a nurse"))
    new = new_fact(edited)
    assert await named(people, new) == {"Alice": "subject", "Ana": "object"}
    assert await wives(memory) == ["Ana"]
    assert new in {one.fact.fact_id for one in (await memory.entity("Ana", user_id="alice")).facts}
    told = await memory.explain(new)
    assert [(one.name, one.said, one.step) for one in told.entities][-1] == ("Ana", "Ana", "exact")
    await people.undo(edited)
    assert await wives(memory) == ["Ana"]
    assert {one.fact.fact_id for one in (await memory.entity("Ana", user_id="alice")).facts} == {old}
    assert await is_rebuilt_equal(people, database)


@pytest.mark.parametrize("name", ["Zoe", "ZOÉ", "Zoe's sister"])
async def test_a_new_text_has_known_names_anew(people: NamedPeople, name: str) -> None:
    await people.say("I met Zoe", ("Zoe", "person"))
    old = await say_wife(people)
    edited = await people.order(new_text("correct", old, f"Alice's wife is Ana, and {name} likes her"))
    assert await named(people, new_fact(edited)) == {"Alice": "subject", "Ana": "object", "Zoe": "mention"}


async def test_the_subject_of_two_of_one_name_stays_who_it_was(people: NamedPeople) -> None:
    await people.say("Tom from work sails", subject="Tom from work")
    ids: dict[str, UUID] = dict(await people.rows("SELECT name, entity_id FROM entities"))
    said = await people.say("Tom skies", subject="Tom")
    await people.say("Alice's brother Tom ski", subject="Alice's brother Tom")
    edited = await people.order(new_text("correct", new_fact(said), "Tom skis"))
    subject = "SELECT entity_id FROM fact_entities WHERE fact_id = %s AND role = 'subject'"
    assert await people.rows(subject, new_fact(edited)) == [(ids["Tom"],)]


async def test_a_merged_fact_names_whom_its_parts_named(
    people: NamedPeople, memory: AsyncMemoryClient, database: str
) -> None:
    friend = {"subject": "Alice", "predicate": "friend", "object": "Ana", "strength": "strong"}
    entities = [
        {"name": "Ana", "type": "person", "role": "object"},
        {"name": "Kafka Summit", "type": "event", "role": "mention"},
    ]
    text = "Alice met Ana at Kafka Summit"
    first = await people.say(text, subject="Alice", search_text="meeting", entities=entities, relations=[friend])
    merged = await people.say("Alice met Ben in Bern", ("Ben", "person"), subject="Alice", search_text="meeting")
    assert [event.event for event in merged.events] == ["facts_merged"]
    new = new_fact(merged)
    assert await named(people, new) == {"Alice": "subject", "Ben": "object", "Ana": "object", "Kafka Summit": "mention"}
    corrected = await people.order(new_text("correct", new, "Alice met her friend Ana in Bern"))
    assert await named(people, new_fact(corrected)) == {"Alice": "subject", "Ana": "object"}
    (relation,) = await memory.relations(user_id="alice")
    assert (relation.object, relation.is_active) == ("Ana", True)
    await people.undo(corrected)
    await people.undo(merged)
    assert {one.fact.fact_id for one in (await memory.entity("Ana", user_id="alice")).facts} == {new_fact(first)}
    assert await is_rebuilt_equal(people, database)


async def test_a_promoted_fact_names_its_entities_in_the_scope_that_it_goes_to(
    people: NamedPeople, memory: AsyncMemoryClient, database: str
) -> None:
    await say_wife(people, "Alice's wife is Ana", RUN)
    promoted = await people.order(Promote(source=RUN), ALICE)
    known = await memory.entities(user_id="alice")
    assert {(one.name, one.is_user, one.run_id) for one in known} == {("Alice", True, None), ("Ana", False, None)}
    assert await wives(memory) == ["Ana"]
    assert await named(people, new_fact(promoted)) == {"Alice": "subject", "Ana": "object"}
    of_run = {one.entity_id for one in await memory.entities(user_id="alice", run_id="r")}
    assert of_run.isdisjoint(one.entity_id for one in known)
    await people.undo(promoted)
    with pytest.raises(UnknownEntityError):
        await memory.entity("Ana", user_id="alice")
    assert await wives(memory) == []
    assert await wives(memory, RUN) == ["Ana"]
    assert await people.rows("SELECT count(*) FROM rejections") == [(0,)]
    assert await is_rebuilt_equal(people, database)


async def test_a_promoted_name_is_found_by_what_it_is_known_by_there(people: NamedPeople) -> None:
    await people.say("I met my wife", ("my wife", "person"))
    await people.say("My wife Ana sings", subject="my wife Ana", scope=RUN)
    await people.say("Tom from work sails", subject="Tom from work")
    await people.say("Alice's brother Tom skis", subject="Alice's brother Tom", scope=RUN)
    await people.order(Promote(source=RUN), ALICE)
    rows = await people.rows("SELECT name FROM entities WHERE run_id = '' ORDER BY recorded_at, ordinal")
    assert [name for (name,) in rows] == ["Alice", "Ana", "Tom", "Tom"]
    ana = "SELECT entities.name FROM entity_aliases JOIN entities USING (entity_id) WHERE key = 'ana' AND run_id = ''"
    assert await people.rows(ana.replace("run_id", "entities.run_id")) == [("Ana",)]


async def test_the_speaker_of_a_promoted_fact_is_found_again_by_name(people: NamedPeople) -> None:
    await people.say("I sail", scope=RUN)
    await people.say("I ski with my wife Eve", ("my wife Eve", "person"), speaker="Bob", scope=RUN)
    await people.order(Promote(source=RUN), ALICE)
    query = """SELECT text, name FROM facts JOIN fact_entities USING (fact_id) JOIN entities USING (entity_id)
        WHERE facts.run_id = '' AND role = 'subject'"""
    assert set(await people.rows(query)) == {
        ("I sail", "Alice"),
        ("I ski with my wife Eve", "Bob"),
    }


@pytest.mark.parametrize("text", ["Ana called", "I saw ANA's dog", "Did (Ána) call?"])
async def test_a_raw_text_names_whom_the_scope_knows(people: NamedPeople, database: str, text: str) -> None:
    await people.say("I met Ana", ("Ana", "person"))
    raw = await people.say_raw(text)
    assert await named(people, new_fact(raw)) == {"Alice": "subject", "Ana": "mention"}
    assert [event.event for event in raw.entity_events] == ["fact_linked"]
    await people.undo(raw)
    assert await is_rebuilt_equal(people, database)


async def test_a_raw_text_registers_nobody_and_names_nobody_in_doubt(people: NamedPeople) -> None:
    await people.say("Tom from work sails", subject="Tom from work")
    await people.say("Alice's brother Tom skis", subject="Alice's brother Tom")
    await people.say("I met Jo and Ana Keller", ("Jo", "person"), ("Ana Keller", "person"))
    await people.say("I met Eve", ("Eve", "person"), scope=BEN, speaker="Ben")
    raw = await people.say_raw("Jo, Tom, Diana, Eve and Zoe saw Annabel Keller")
    assert await named(people, new_fact(raw)) == {"Alice": "subject"}
    longer = await people.say_raw("Then Ana Keller left")
    assert await named(people, new_fact(longer)) == {"Alice": "subject", "Ana Keller": "mention"}


async def test_an_imported_fact_names_whom_the_scope_knows(people: NamedPeople) -> None:
    await people.say("I met Ana", ("Ana", "person"))
    commit = await people.order(Import(fact=ImportedFact(text="Ana sold the boat", subject="Alice")))
    assert await named(people, new_fact(commit)) == {"Alice": "subject", "Ana": "mention"}


async def test_a_long_raw_text_has_a_bounded_number_of_links(people: NamedPeople) -> None:
    names = [f"Person{chr(97 + number // 20)}{chr(97 + number % 20)}" for number in range(60)]
    for start in range(0, 60, 20):
        some = names[start : start + 20]
        await people.say(f"I met {', '.join(some)}", *((name, "person") for name in some))
    raw = await people.say_raw(" ".join(names) + " and nobody else" * 5000)
    assert len(await named(people, new_fact(raw))) == 42
