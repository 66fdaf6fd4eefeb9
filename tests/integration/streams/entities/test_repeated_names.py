"""What a repetition says of entities besides belongs to the fact that it repeats, and goes with its own undo."""

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.projections.errors import UnknownEntityError
from mnemolog.projections.stores.entities import EntityStore, ShownEntitiesRequest
from mnemolog.schemas.command import Delete
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.scope import Scope
from mnemolog.streams.llm.background import TIE_HEADS
from mnemolog.streams.llm.ports import NumberedConflict
from tests.support.builders.commits import ALICE, fact_id_at
from tests.support.builders.model_replies import decision_json, fact_json
from tests.support.harnesses.named_people import NamedPeople, named_people

pytestmark = pytest.mark.postgres
BEN = Scope(user_id="ben")
IN_CLUB = "Ana plays chess in the Chess Club"
CLUB = {"subject": "Ana", "predicate": "member_of", "object": "Chess Club", "strength": "strong"}


def keep(conflict: NumberedConflict) -> Mapping[str, Any]:
    return decision_json(conflict.number, "KEEP", *(label for label, _ in conflict.candidates))


@pytest.fixture
async def people(database: str) -> AsyncIterator[NamedPeople]:
    async with named_people(database, keep) as harness:
        yield harness


async def say_chess(
    people: NamedPeople,
    who: str,
    *named: str,
    text: str | None = None,
    scope: Scope = ALICE,
    kind: str = "person",
    **fields: Any,
) -> Commit:
    """Say that somebody plays chess; of the clubs that are `named` the fact's text says nothing."""
    text = text or f"{who} plays chess"
    entities = [{"name": who, "type": kind, "role": "subject"}]
    entities += [{"name": name, "type": "organisation", "role": "mention"} for name in named]
    fact = fact_json(text, "chess", subject=who, excerpt=text, entities=entities, **fields)
    return await people.say_facts(" at ".join((text, *named)), [fact], scope=scope)


async def test_a_name_and_a_type_of_a_repetition_are_one_while_that_holds(
    people: NamedPeople, memory: AsyncMemoryClient
) -> None:
    await say_chess(people, "Alice's wife", kind="other")
    again = await say_chess(people, "Alice's wife Ana", text="Ana, Alice's wife, plays chess")
    assert [event.event for event in (*again.events, *again.entity_events)] == [
        "fact_confirmed",
        "entity_alias_added",
        "entity_alias_added",
        "fact_linked",
    ]
    (fact,) = (await memory.entities.get("Ana", user_id="alice")).facts
    assert fact.fact.text == "Alice's wife plays chess"
    undone = await people.undo(again)
    with pytest.raises(UnknownEntityError):
        await memory.entities.get("Ana", user_id="alice")
    assert len((await memory.entities.get("Alice's wife", user_id="alice")).facts) == 1
    assert await people.is_rebuilt_equal(in_place=True)
    await people.undo(undone)
    assert len((await memory.entities.get("Ana", user_id="alice")).facts) == 1
    await say_chess(people, "Ana")
    assert await people.rows("SELECT count(*) FROM facts") == [(1,)]
    await say_chess(people, "Acme", kind="other")
    typed = await say_chess(people, "Acme", kind="organisation")
    assert [event.event for event in typed.entity_events] == ["fact_linked"]
    for kind in ("organisation", "other", "organisation"):
        assert (await memory.entities.get("Acme", user_id="alice")).entity.type == kind
        assert await people.is_rebuilt_equal()
        typed = await people.undo(typed)


async def test_an_entity_and_a_relation_of_a_repetition_hold_while_that_does(
    people: NamedPeople, memory: AsyncMemoryClient
) -> None:
    await say_chess(people, "Ana", text=IN_CLUB, scope=BEN)
    first = await say_chess(people, "Ana", text=IN_CLUB)
    again = await say_chess(people, "Ana", "Chess Club", text=IN_CLUB, relations=[CLUB])
    assert [event.event for event in again.events] == ["fact_skipped"]
    assert [event.event for event in again.entity_events] == ["entity_registered", "fact_linked", "relation_stated"]
    (relation,) = await memory.entities.relations(user_id="alice")
    assert (relation.subject, relation.object, relation.is_active) == ("Ana", "Chess Club", True)
    assert len((await memory.entities.get("Chess Club", user_id="alice")).facts) == 1
    told = await memory.explain(fact_id_at(first))
    assert {(one.name, one.role) for one in told.entities} == {("Ana", "subject"), ("Chess Club", "mention")}
    await people.undo(again)
    assert await memory.entities.relations(user_id="alice") == []
    assert {one.name for one in await memory.entities.list(user_id="alice")} == {"Ana"}
    assert [one.name for one in (await memory.explain(fact_id_at(first))).entities] == ["Ana"]
    assert await people.is_rebuilt_equal(in_place=True)
    await say_chess(people, "Ana", "Chess Club", text=IN_CLUB, relations=[CLUB])
    assert [one.is_active for one in await memory.entities.relations(user_id="alice")] == [True]
    await people.undo(first, cascade=True)
    assert await memory.entities.list(user_id="alice") == []
    assert await people.rows("SELECT name FROM entities WHERE user_id = 'ben'") == [("Ana",)]
    assert await people.rows("SELECT count(*) FROM rejections") == [(0,)]
    assert await people.is_rebuilt_equal()


async def test_a_prompt_names_nobody_for_a_relation_of_an_undone_repetition(people: NamedPeople) -> None:
    async def names_in_prompt() -> list[str]:
        """The entities that an extraction is shown beside a turn that names nobody."""
        at = datetime(2026, 12, 1, tzinfo=UTC)
        asked = ShownEntitiesRequest(
            scope=ALICE, said="hello", heads=(), ties=(), predicates=(), at=at, entities=10, facts=10
        )
        (shown,) = await EntityStore(people.pipeline.pool, ties=TIE_HEADS).shown_entities([asked])
        return [one.name for one in shown.entities]

    await people.say("Chess Club is old", ("Chess Club", "organisation"))
    text = IN_CLUB.replace("Ana", "Alice")
    await say_chess(people, "Alice", text=text)
    again = await say_chess(people, "Alice", "Chess Club", text=text, relations=[{**CLUB, "subject": "Alice"}])
    assert [event.event for event in again.entity_events] == ["fact_linked", "relation_stated"]
    for shown in (["Chess Club"], [], ["Chess Club"]):
        assert await names_in_prompt() == shown
        again = await people.undo(again)


async def test_an_inferred_relation_is_a_weak_fact_that_is_found_and_takes_the_relation_with_it(
    people: NamedPeople, memory: AsyncMemoryClient
) -> None:
    told = [await say_chess(people, "Ana", "Chess Club", relations=[CLUB]) for _ in range(2)]
    assert [event.event for one in told for event in one.events] == ["fact_added"] * 2 + ["fact_skipped"] * 2
    mirror = fact_id_at(told[0], 1)
    facts = await people.rows("SELECT fact_id, confidence, mention_count FROM facts WHERE text LIKE '%% member of %%'")
    assert facts == [(mirror, 0.6, 2)]
    (relation,) = await memory.entities.relations(user_id="alice")
    assert relation.evidence == [mirror]
    await people.order(Delete(fact_ids=(mirror,)))
    assert await memory.entities.relations(user_id="alice") == []


async def test_the_strength_of_a_relation_grows_with_each_statement_of_it(
    people: NamedPeople, memory: AsyncMemoryClient
) -> None:
    friend = {"subject": "Alice", "predicate": "friend", "object": "Ben", "strength": "strong"}
    ben, times = [{"name": "Ben", "type": "person", "role": "object"}], []
    for text in ("Ben is Alice's friend", "Ben is Alice's friend", "Alice and her friend Ben sing", "Ben moved"):
        said = [] if text == "Ben moved" else [friend]
        times.append((await people.say(text, entities=ben, relations=said, subject="Alice")).decided_at)
    found = [await memory.entities.relations(user_id="alice", believed_at=at) for at in times]
    assert [round(one.strength, 4) for (one,) in found] == [0.8, 0.85, 0.8875, 0.8875]
    rows = await people.rows("SELECT DISTINCT round(strength::numeric, 4)::float8 FROM memory.relationships")
    assert rows == [(0.8875,)]
    assert await people.is_rebuilt_equal()
