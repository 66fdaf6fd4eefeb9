"""What a repetition says of entities besides belongs to the fact that it repeats, and goes with its own undo."""

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.projections.errors import UnknownEntityError
from mnemolog.projections.rebuild.rebuild import rebuild
from mnemolog.projections.rebuild.replay import TableLogSource
from mnemolog.projections.stores.entities import EntityStore, ShownEntitiesRequest
from mnemolog.schemas.command import SplitEntity
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.scope import Scope
from mnemolog.streams.llm.background import TIE_HEADS
from mnemolog.streams.llm.ports import NumberedConflict
from tests.support.builders.commits import ALICE
from tests.support.builders.model_replies import decision_json, fact_json
from tests.support.harnesses.named_people import NamedPeople, named_people

pytestmark = pytest.mark.postgres
BEN = Scope(user_id="ben")
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


async def is_rebuilt_equal(people: NamedPeople, database: str) -> bool:
    return (await rebuild(database, TableLogSource(people.pipeline.pool))).equal


async def test_a_name_of_a_repetition_is_one_while_that_holds(
    people: NamedPeople, memory: AsyncMemoryClient, database: str
) -> None:
    await say_chess(people, "Alice's wife")
    again = await say_chess(people, "Alice's wife Ana", text="Ana, Alice's wife, plays chess")
    assert [event.event for event in again.events] == ["fact_confirmed"]
    assert [event.event for event in again.entity_events] == ["entity_alias_added", "fact_linked"]
    (fact,) = (await memory.entity("Ana", user_id="alice")).facts
    assert fact.fact.text == "Alice's wife plays chess"
    undone = await people.undo(again)
    with pytest.raises(UnknownEntityError):
        await memory.entity("Ana", user_id="alice")
    assert len((await memory.entity("Alice's wife", user_id="alice")).facts) == 1
    assert await is_rebuilt_equal(people, database)
    await people.undo(undone)
    assert len((await memory.entity("Ana", user_id="alice")).facts) == 1
    await say_chess(people, "Ana")
    assert await people.rows("SELECT count(*) FROM facts") == [(1,)]
    assert await is_rebuilt_equal(people, database)


async def test_a_type_of_a_repetition_is_one_while_that_holds(
    people: NamedPeople, memory: AsyncMemoryClient, database: str
) -> None:
    async def type_of_ana() -> str:
        assert await is_rebuilt_equal(people, database)
        return (await memory.entity("Ana", user_id="alice")).entity.type

    await say_chess(people, "Ana", kind="other")
    again = await say_chess(people, "Ana", kind="person")
    assert [event.event for event in again.entity_events] == ["fact_linked"]
    assert await type_of_ana() == "person"
    undone = await people.undo(again)
    assert await type_of_ana() == "other"
    await people.undo(undone)
    assert await type_of_ana() == "person"


async def test_an_entity_and_a_relation_of_a_repetition_hold_while_that_does(
    people: NamedPeople, memory: AsyncMemoryClient, database: str
) -> None:
    first = await say_chess(people, "Ana")
    again = await say_chess(people, "Ana", "Chess Club", relations=[CLUB])
    assert [event.event for event in again.events] == ["fact_skipped"]
    assert [event.event for event in again.entity_events] == ["entity_registered", "fact_linked", "relation_stated"]
    (relation,) = await memory.relations(user_id="alice")
    assert (relation.subject, relation.object, relation.is_active) == ("Ana", "Chess Club", True)
    assert len((await memory.entity("Chess Club", user_id="alice")).facts) == 1
    (new,) = [event.new_fact for event in first.events if event.new_fact]
    told = await memory.explain(new.fact_id)
    assert {(one.name, one.role) for one in told.entities} == {("Ana", "subject"), ("Chess Club", "mention")}
    await people.undo(again)
    assert await memory.relations(user_id="alice") == []
    assert {one.name for one in await memory.entities(user_id="alice")} == {"Ana"}
    assert [one.name for one in (await memory.explain(new.fact_id)).entities] == ["Ana"]
    assert await is_rebuilt_equal(people, database)
    await say_chess(people, "Ana", "Chess Club", relations=[CLUB])
    assert [one.is_active for one in await memory.relations(user_id="alice")] == [True]
    await people.undo(first, cascade=True)
    assert await memory.entities(user_id="alice") == []
    assert await people.rows("SELECT count(*) FROM rejections") == [(0,)]
    assert await is_rebuilt_equal(people, database)


async def test_repetitions_of_one_scope_tell_nothing_of_another(people: NamedPeople) -> None:
    await say_chess(people, "Ana", scope=BEN)
    await say_chess(people, "Ana")
    await say_chess(people, "Ana", "Chess Club", relations=[CLUB])
    assert await people.rows("SELECT name FROM entities WHERE user_id = 'ben'") == [("Ana",)]


async def test_a_relation_that_is_told_and_split_again_is_one_moment(
    people: NamedPeople, memory: AsyncMemoryClient
) -> None:
    await people.say("Chess Club is old", ("Chess Club", "organisation"))
    first = await say_chess(people, "Ana")
    again = await say_chess(people, "Ana", "Chess Club", relations=[CLUB])
    await people.undo(again)
    await say_chess(people, "Ana", "Chess Club", relations=[CLUB])
    (new,) = [event.new_fact for event in first.events if event.new_fact]
    club = (await memory.entity("Chess Club", user_id="alice")).entity
    await people.order(SplitEntity(entity_id=club.entity_id, name="Other Club", fact_ids=(new.fact_id,)))
    timeline = (await memory.entity("Other Club", user_id="alice")).timeline
    assert [one.text for one in timeline if one.change == "related"] == ["Ana member_of Other Club"]


async def test_a_prompt_names_nobody_for_a_relation_of_an_undone_repetition(people: NamedPeople) -> None:
    await people.say("Chess Club is old", ("Chess Club", "organisation"))
    await say_chess(people, "Alice")
    again = await say_chess(people, "Alice", "Chess Club", relations=[{**CLUB, "subject": "Alice"}])
    assert [event.event for event in again.entity_events] == ["fact_linked", "relation_stated"]
    assert await names_in_prompt(people) == ["Chess Club"]
    undone = await people.undo(again)
    assert await names_in_prompt(people) == []
    await people.undo(undone)
    assert await names_in_prompt(people) == ["Chess Club"]


async def names_in_prompt(people: NamedPeople) -> list[str]:
    """The entities that an extraction is shown beside a turn that names nobody."""
    asked = ShownEntitiesRequest(
        scope=ALICE,
        said="hello",
        heads=(),
        ties=(),
        predicates=(),
        at=datetime(2026, 12, 1, tzinfo=UTC),
        entities=10,
        facts=10,
    )
    (shown,) = await EntityStore(people.pipeline.pool, ties=TIE_HEADS).shown_entities([asked])
    return [one.name for one in shown.entities]
