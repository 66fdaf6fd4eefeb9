"""Relations of entities that persons merge, split and forget; undone, and rebuilt."""

from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.projections.rebuild.rebuild import rebuild
from mnemolog.projections.rebuild.replay import TableLogSource
from mnemolog.projections.stores.entities import EntityStore
from mnemolog.schemas.command import EntityCommand, MergeEntities, Undo
from mnemolog.schemas.commit import Commit
from tests.support.builders.commits import ALICE
from tests.support.harnesses.named_people import NamedPeople, named_people

pytestmark = pytest.mark.postgres
Triples = list[tuple[str, str, str]]


class Family:
    """Relations as the client shows them."""

    def __init__(self, people: NamedPeople, client: AsyncMemoryClient) -> None:
        self.people = people
        self.client = client

    async def triples(self, of: str | None = None) -> Triples:
        found = await self.client.relations(of, user_id="alice")
        return [(one.subject, one.predicate, one.object) for one in found]

    async def id_of(self, name: str) -> UUID:
        return (await self.client.entity(name, user_id="alice")).entity.entity_id

    async def moments(self, of: str) -> list[tuple[str, str]]:
        return [(one.change, one.text) for one in (await self.client.entity(of, user_id="alice")).timeline]

    async def done(self, payload: EntityCommand | Undo) -> Commit:
        commit = await self.people.order(payload, ALICE)
        assert (commit.outcome, commit.detail) == ("done", "")
        return commit


@pytest.fixture
async def family(database: str) -> AsyncIterator[Family]:
    async with named_people(database) as people, AsyncMemoryClient(postgres=database) as client:
        await people.say("I sail with my wife Ana", ("my wife Ana", "person"))
        await people.say("Annette's brother Tom skis", subject="Annette's brother Tom")
        yield Family(people, client)


STATED = [("Alice", "spouse", "Ana"), ("Annette", "sibling", "Tom")]


async def test_relations_of_merged_entities_are_of_one(family: Family, database: str) -> None:
    merged = await family.done(
        MergeEntities(entity_ids=(await family.id_of("Annette"),), into=await family.id_of("Ana"))
    )
    assert await family.triples() == [("Alice", "spouse", "Ana"), ("Ana", "sibling", "Tom")]
    assert await family.triples("Ana") == [("Ana", "spouse", "Alice"), ("Ana", "sibling", "Tom")]
    assert [one.name for one in await family.client.who("my wife's brother", user_id="alice")] == ["Tom"]
    near = await family.client.neighbours("Alice", hops=2, user_id="alice")
    assert [(one.entity.name, one.hops) for one in near] == [("Ana", 1), ("Tom", 2)]
    report = await rebuild(database, TableLogSource(family.people.pipeline.pool))
    assert report.equal
    assert await family.triples() == [("Alice", "spouse", "Ana"), ("Ana", "sibling", "Tom")]
    await family.done(Undo(source_id=merged.source_id))
    assert await family.triples() == STATED


async def test_a_fact_that_names_both_of_merged_entities_is_one_fact(family: Family) -> None:
    await family.people.say("I met Ana and Annette", ("Ana", "person"), ("Annette", "person"))
    ana = await family.id_of("Ana")
    await family.done(MergeEntities(entity_ids=(await family.id_of("Annette"),), into=ana))
    store = EntityStore(family.people.pipeline.pool)
    total, facts = await store.facts_of_entity(ana, limit=10)
    assert total == len(facts) == 3
    assert (await family.moments("Ana")).count(("learned", "I met Ana and Annette")) == 1


async def test_a_relation_within_one_entity_is_none(family: Family) -> None:
    await family.done(MergeEntities(entity_ids=(await family.id_of("Annette"),), into=await family.id_of("Tom")))
    assert await family.triples() == STATED[:1]
    assert "related" not in [change for change, _ in await family.moments("Tom")]
