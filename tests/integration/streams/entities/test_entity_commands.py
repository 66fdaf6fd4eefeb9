"""Commands about entities through the real stages and tables: what readers and later turns see, undone and rebuilt."""

from collections.abc import AsyncIterator
from uuid import UUID, uuid4

import pytest
from prometheus_client import REGISTRY

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.schemas.command import (
    AliasEntity,
    EntityCommand,
    ForgetEntity,
    MergeEntities,
    RenameEntity,
    SplitEntity,
    Undo,
)
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import ALICE, fact_id_at
from tests.support.harnesses.named_people import NamedPeople, named_people

pytestmark = pytest.mark.postgres
BEN = Scope(user_id="ben")
Seen = dict[str, tuple[list[str], list[str]]]


class Talk:
    """People who are talked of, and how readers see them."""

    def __init__(self, people: NamedPeople, client: AsyncMemoryClient) -> None:
        self.people = people
        self.client = client

    async def met(self, *names: str, scope: Scope = ALICE) -> list[Commit]:
        """Turns that name a person each, under a text of their own."""
        speaker = "Alice" if scope == ALICE else "Ben"
        return [
            await self.people.say(f"I met {name}", (name, "person"), scope=scope, speaker=speaker) for name in names
        ]

    async def seen(self, scope: Scope = ALICE) -> Seen:
        """Per name of an entity, the user left out, its other names and the facts that name it."""
        found = {}
        for entity in await self.client.entities.list(user_id=scope.user_id):
            if not entity.is_user:
                details = await self.client.entities.get(str(entity.entity_id), user_id=scope.user_id)
                texts = [one.fact.text.removeprefix("I met ") for one in details.facts]
                assert len(texts) == entity.facts
                found[entity.name] = (entity.aliases, texts)
        return found

    async def ids(self, *names: str, scope: Scope = ALICE) -> list[UUID]:
        return [(await self.client.entities.get(name, user_id=scope.user_id)).entity.entity_id for name in names]

    async def done(self, payload: EntityCommand | Undo, scope: Scope = ALICE) -> Commit:
        commit = await self.people.order(payload, scope)
        assert (commit.outcome, commit.detail) == ("done", "")
        return commit


@pytest.fixture
async def talk(database: str) -> AsyncIterator[Talk]:
    async with named_people(database) as people, AsyncMemoryClient(postgres=database) as client:
        yield Talk(people, client)


async def test_what_cannot_be_done_is_refused_with_its_reason(talk: Talk) -> None:
    met = dict(zip(("Ana", "Bea", "Cleo", "Dan"), await talk.met("Ana", "Bea", "Cleo", "Dan"), strict=True))
    ana, bea, cleo, dan, alice = await talk.ids("Ana", "Bea", "Cleo", "Dan", "Alice")
    await talk.met("Eve", scope=BEN)
    (eve,) = await talk.ids("Eve", scope=BEN)
    await talk.done(MergeEntities(entity_ids=(cleo,), into=bea))
    await talk.done(ForgetEntity(entity_id=dan))
    nobody = uuid4()
    cases: list[tuple[EntityCommand, str]] = [
        (MergeEntities(entity_ids=(ana,), into=ana), "invalid_command"),
        (MergeEntities(entity_ids=(cleo,), into=ana), "merged_entity"),
        (MergeEntities(entity_ids=(ana,), into=cleo), "merged_entity"),
        (MergeEntities(entity_ids=(ana,), into=nobody), "unknown_entity"),
        (MergeEntities(entity_ids=(ana,), into=eve), "foreign_entity"),
        (MergeEntities(entity_ids=(eve,), into=ana), "foreign_entity"),
        (MergeEntities(entity_ids=(alice,), into=ana), "invalid_command"),
        (RenameEntity(entity_id=eve, name="Mallory"), "foreign_entity"),
        (RenameEntity(entity_id=ana, name="Bea"), "name_taken"),
        (RenameEntity(entity_id=ana, name="she"), "invalid_command"),
        (RenameEntity(entity_id=ana, name="my wife"), "invalid_command"),
        (AliasEntity(entity_id=eve, name="Mallory"), "foreign_entity"),
        (AliasEntity(entity_id=ana, name="Mallory", moved_from=eve), "foreign_entity"),
        (AliasEntity(entity_id=ana, name="Bea", moved_from=bea), "invalid_command"),
        (AliasEntity(entity_id=ana, name="Flo", moved_from=bea), "invalid_command"),
        (AliasEntity(entity_id=ana, name="Ana", moved_from=ana), "invalid_command"),
        (AliasEntity(entity_id=dan, name="Danny"), "unknown_entity"),
        (SplitEntity(entity_id=eve, name="Mallory", names=("Eve",)), "foreign_entity"),
        (SplitEntity(entity_id=ana, name="Anouk", fact_ids=(fact_id_at(met["Bea"]),)), "invalid_command"),
        (SplitEntity(entity_id=ana, name="Anouk", fact_ids=(nobody,)), "invalid_command"),
        (SplitEntity(entity_id=ana, name="Bea", fact_ids=(fact_id_at(met["Ana"]),)), "name_taken"),
        (SplitEntity(entity_id=ana, name="Ana", names=("Ana",)), "invalid_command"),
        (ForgetEntity(entity_id=eve, facts=True), "foreign_entity"),
        (ForgetEntity(entity_id=alice), "invalid_command"),
        (ForgetEntity(entity_id=cleo), "merged_entity"),
    ]
    before = await talk.seen(), await talk.seen(BEN)
    for payload, reason in cases:
        commit = await talk.people.order(payload)
        assert (commit.outcome, commit.reason, commit.events, commit.entity_events) == ("rejected", reason, (), ()), (
            payload
        )
    assert (await talk.seen(), await talk.seen(BEN)) == before


async def test_who_decided_what_is_counted_and_told_of_the_entity_and_of_its_facts(talk: Talk) -> None:
    def counted() -> list[float]:
        events = ("entities_merged", "entity_renamed", "entity_decision_undone")
        labels = [{"event": event, "by": "person"} for event in events]
        return [REGISTRY.get_sample_value("mnemolog_entity_changes_total", one) or 0 for one in labels]

    before = counted()
    _, rex, _ = await talk.met("Tom", "Rex", "Bello")
    ids = await talk.ids("Tom", "Rex", "Bello")
    await talk.done(RenameEntity(entity_id=ids[0], name="Thomas"))
    renamed = await talk.done(RenameEntity(entity_id=ids[1], name="Rexi"))
    merge = await talk.done(MergeEntities(entity_ids=(ids[1],), into=ids[2]))
    undo = await talk.people.undo(merge)
    assert [now - then for now, then in zip(counted(), before, strict=True)] == [1, 2, 1]
    found = (await talk.client.entities.get("Bello", user_id="alice")).history
    assert [(one.event, one.source_id, one.reason, one.undone) for one in found] == [
        ("entities_merged", merge.source_id, "a person merged Rexi into Bello", True),
        ("entity_decision_undone", undo.source_id, f"a person took back entities_merged of {merge.source_id}", False),
    ]
    explained = await talk.client.explain(fact_id_at(rex), user_id="alice")
    changes = [(one.event, one.undone) for entity in explained.entities for one in entity.changes]
    assert changes == [("entity_renamed", False), ("entities_merged", True)]
    first, second = [one for one in explained.words if one.startswith("since then")]
    assert first.startswith("since then a rename is about Rexi")
    assert second.endswith(", which was undone")
    (event,) = renamed.entity_events
    assert (await talk.done(Undo(event_id=event.event_id))).entity_events
    assert set(await talk.seen()) == {"Thomas", "Rex", "Bello"}
    again = await talk.people.order(Undo(event_id=event.event_id))
    assert (again.outcome, again.reason) == ("rejected", "nothing_to_undo")


async def test_what_was_merged_into_a_forgotten_entity_is_forgotten_with_it(talk: Talk) -> None:
    await talk.met("Ana", "Bea")
    ana, bea = await talk.ids("Ana", "Bea")
    undo = await talk.people.undo(await talk.done(ForgetEntity(entity_id=ana)))
    await talk.done(MergeEntities(entity_ids=(bea,), into=ana))
    await talk.people.undo(undo)
    assert await talk.seen() == {}
    again = await talk.people.say("I saw Bea", ("Bea", "person"))
    assert [event.event for event in again.entity_events] == ["entity_registered", "fact_linked"]
    assert await talk.seen() == {"Bea": ([], ["I saw Bea"])}
    assert await talk.people.is_rebuilt_equal()
