"""Commands about entities through the real stages and tables: what readers and later turns see, undone and rebuilt."""

from collections.abc import AsyncIterator, Callable
from uuid import UUID, uuid4

import pytest

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.projections.queries.entities import Entity
from mnemolog.projections.rebuild.rebuild import rebuild
from mnemolog.projections.rebuild.replay import TableLogSource
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
from mnemolog.schemas.entity_events import EntityAliasSet
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import ALICE
from tests.support.harnesses.named_people import NamedPeople, named_people

pytestmark = pytest.mark.postgres
BEN = Scope(user_id="ben")


class Talk:
    """People who are talked of, and how readers see them."""

    def __init__(self, people: NamedPeople, client: AsyncMemoryClient, database: str) -> None:
        self.people = people
        self.client = client
        self.database = database

    async def met(self, name: str, scope: Scope = ALICE) -> Commit:
        """A turn that names a person, under a text of its own."""
        speaker = "Alice" if scope == ALICE else "Ben"
        return await self.people.say(f"I met {name}", (name, "person"), scope=scope, speaker=speaker)

    async def saw(self, name: str) -> Commit:
        """A later turn that names a person."""
        return await self.people.say(f"I saw {name}", (name, "person"))

    async def seen(self, scope: Scope = ALICE) -> dict[str, tuple[list[str], list[str]]]:
        """Per name of an entity, the user left out, its other names and the facts that name it."""
        found = {}
        for entity in await self.client.entities(user_id=scope.user_id):
            if not entity.is_user:
                details = await self.client.entity(str(entity.entity_id), user_id=scope.user_id)
                texts = [one.fact.text.removeprefix("I met ") for one in details.facts]
                assert len(texts) == entity.facts
                found[entity.name] = (entity.aliases, texts)
        return found

    async def id_of(self, name: str, scope: Scope = ALICE) -> UUID:
        return (await self.entity(name, scope)).entity_id

    async def entity(self, name: str, scope: Scope = ALICE) -> Entity:
        return (await self.client.entity(name, user_id=scope.user_id)).entity

    async def fact(self, text: str) -> UUID:
        (found,) = [one for one in await self.client.facts(user_id="alice") if one.text == f"I met {text}"]
        return found.fact_id

    async def done(self, payload: EntityCommand, scope: Scope = ALICE) -> Commit:
        commit = await self.people.order(payload, scope)
        assert (commit.outcome, commit.detail) == ("done", "")
        return commit

    async def refused(self, payload: EntityCommand, scope: Scope = ALICE) -> tuple[str | None, str]:
        commit = await self.people.order(payload, scope)
        assert commit.outcome == "rejected"
        assert not commit.events
        assert not commit.entity_events
        return commit.reason, commit.detail

    async def client_undo(self, event_id: UUID) -> Commit:
        return await self.people.order(Undo(event_id=event_id))

    async def is_rebuilt_equal(self) -> bool:
        return (await rebuild(self.database, TableLogSource(self.people.pipeline.pool), verify_only=True)).equal


@pytest.fixture
async def talk(database: str) -> AsyncIterator[Talk]:
    async with named_people(database) as people, AsyncMemoryClient(postgres=database) as client:
        yield Talk(people, client, database)


Ids = dict[str, UUID]
Case = tuple[tuple[str, ...], Callable[[Ids, Ids], EntityCommand], dict[str, tuple[list[str], list[str]]], str, str]
CASES: list[Case] = [
    (
        ("Annie", "Ana Keller"),
        lambda ids, _: MergeEntities(entity_ids=(ids["Annie"],), into=ids["Ana Keller"]),
        {"Ana Keller": (["Annie"], ["Annie", "Ana Keller"])},
        *("annie", "Ana Keller"),
    ),
    (
        ("Anna",),
        lambda ids, _: RenameEntity(entity_id=ids["Anna"], name="Ana Keller"),
        {"Ana Keller": (["Anna"], ["Anna"])},
        *("Anna", "Ana Keller"),
    ),
    (
        ("Ana",),
        lambda ids, _: AliasEntity(entity_id=ids["Ana"], name="the doctor"),
        {"Ana": (["the doctor"], ["Ana"])},
        *("The Doctor", "Ana"),
    ),
    (
        ("Thomas", "Tom", "Bob"),
        lambda ids, _: AliasEntity(entity_id=ids["Bob"], name="Tom", moved_from=ids["Thomas"]),
        {"Thomas": ([], ["Thomas", "Tom"]), "Bob": (["Tom"], ["Bob"])},
        *("TOM", "Bob"),
    ),
    (
        ("Tom", "Tommy"),
        lambda ids, facts: SplitEntity(
            entity_id=ids["Tom"], name="Tommy", names=("Tommy",), fact_ids=(facts["I met Tommy"],)
        ),
        {"Tom": ([], ["Tom"]), "Tommy": ([], ["Tommy"])},
        *("tommy", "Tommy"),
    ),
    (
        ("Ana", "Bea"),
        lambda ids, _: ForgetEntity(entity_id=ids["Ana"]),
        {"Bea": ([], ["Bea"])},
        *("ana", "ana"),
    ),
    (
        ("Ana", "Bea"),
        lambda ids, _: ForgetEntity(entity_id=ids["Ana"], facts=True),
        {"Bea": ([], ["Bea"])},
        *("ana", "ana"),
    ),
]


@pytest.mark.parametrize("case", CASES)
async def test_readers_and_later_turns_see_a_command_its_undo_and_its_redo(talk: Talk, case: Case) -> None:
    met, command, after, said, meant = case
    for name in met:
        await talk.met(name)
    before = await talk.seen()
    ids = {one.name: one.entity_id for one in await talk.client.entities(user_id="alice")}
    facts = {one.text: one.fact_id for one in await talk.client.facts(user_id="alice")}
    commit = await talk.done(command(ids, facts))
    assert await talk.seen() == after
    undo = await talk.people.undo(commit)
    assert undo.outcome == "done"
    assert await talk.seen() == before
    assert await talk.is_rebuilt_equal()
    await talk.people.undo(undo)
    assert await talk.seen() == after
    await talk.saw(said)
    assert (await talk.seen())[meant][1][-1] == f"I saw {said}"
    assert await talk.is_rebuilt_equal()


async def test_a_name_moves_only_where_the_command_says_from_whom(talk: Talk) -> None:
    for name in ("Thomas", "Tom", "Bob"):
        await talk.met(name)
    thomas, bob = await talk.id_of("Thomas"), await talk.id_of("Bob")
    reason, detail = await talk.refused(AliasEntity(entity_id=bob, name="Tom"))
    assert (reason, str(thomas) in detail) == ("name_taken", True)
    (event,) = (await talk.done(AliasEntity(entity_id=bob, name="Tom", moved_from=thomas))).entity_events
    assert isinstance(event, EntityAliasSet)
    assert "called Bob Tom, which Thomas was called" in event.decision.reason
    assert (await talk.done(AliasEntity(entity_id=bob, name="Tom"))).entity_events == ()


async def test_what_is_of_a_merged_entity_is_of_the_other_one(talk: Talk) -> None:
    for name in ("Ben's dog", "Carl Frey"):
        await talk.met(name)
    ben, dog = await talk.id_of("Ben"), await talk.id_of("Ben's dog")
    await talk.done(MergeEntities(entity_ids=(ben,), into=await talk.id_of("Carl Frey")))
    await talk.saw("Ben's dog")
    assert len(await talk.client.entities(user_id="alice", type="animal")) == 1
    assert [one.entity_id for one in await talk.client.who("Carl Frey's dog", user_id="alice")] == [dog]


async def test_a_tie_is_to_whom_a_split_has_moved_what_told_it(talk: Talk) -> None:
    await talk.met("Tom")
    await talk.met("Tom's wife Eva")
    split = await talk.done(
        SplitEntity(entity_id=await talk.id_of("Tom"), name="Tom Brown", fact_ids=(await talk.fact("Tom's wife Eva"),))
    )
    await talk.saw("Tom Brown's wife")
    assert (await talk.seen())["Eva"][1] == ["Tom's wife Eva", "I saw Tom Brown's wife"]
    assert await talk.is_rebuilt_equal()
    await talk.people.undo(split)
    await talk.people.say("I called Tom's wife", ("Tom's wife", "person"))
    assert "I called Tom's wife" in (await talk.seen())["Eva"][1]


async def test_the_user_is_known_whatever_is_undone(talk: Talk) -> None:
    first = await talk.met("Ana")
    await talk.people.undo(first)
    await talk.met("Bea")
    users = [one for one in await talk.client.entities(user_id="alice") if one.is_user]
    assert [(one.name, one.facts) for one in users] == [("Alice", 1)]


async def test_what_cannot_be_done_is_refused_with_its_reason(talk: Talk) -> None:
    for name in ("Ana", "Bea", "Cleo", "Dan"):
        await talk.met(name)
    ana, bea, cleo, dan = [await talk.id_of(name) for name in ("Ana", "Bea", "Cleo", "Dan")]
    alice = await talk.id_of("Alice")
    await talk.met("Eve", BEN)
    eve = await talk.id_of("Eve", BEN)
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
        (SplitEntity(entity_id=ana, name="Anouk", fact_ids=(await talk.fact("Bea"),)), "invalid_command"),
        (SplitEntity(entity_id=ana, name="Anouk", fact_ids=(nobody,)), "invalid_command"),
        (SplitEntity(entity_id=ana, name="Bea", fact_ids=(await talk.fact("Ana"),)), "name_taken"),
        (SplitEntity(entity_id=ana, name="Ana", names=("Ana",)), "invalid_command"),
        (ForgetEntity(entity_id=eve, facts=True), "foreign_entity"),
        (ForgetEntity(entity_id=alice), "invalid_command"),
        (ForgetEntity(entity_id=cleo), "merged_entity"),
    ]
    before = await talk.seen(), await talk.seen(BEN)
    for payload, reason in cases:
        assert (await talk.refused(payload))[0] == reason, payload
    assert (await talk.seen(), await talk.seen(BEN)) == before


async def test_the_history_of_an_entity_says_who_decided_what(talk: Talk) -> None:
    for name in ("Ana", "Bea"):
        await talk.met(name)
    merge = await talk.done(MergeEntities(entity_ids=(await talk.id_of("Bea"),), into=await talk.id_of("Ana")))
    undo = await talk.people.undo(merge)
    found = (await talk.client.entity("Ana", user_id="alice")).history
    assert [(one.event, one.source_id, one.reason, one.undone) for one in found] == [
        ("entities_merged", merge.source_id, "a human merged Bea into Ana", True),
        ("entity_decision_undone", undo.source_id, f"a human took back entities_merged of {merge.source_id}", False),
    ]


async def test_one_event_of_entities_is_undone_by_its_id(talk: Talk) -> None:
    await talk.met("Anna")
    renamed = await talk.done(RenameEntity(entity_id=await talk.id_of("Anna"), name="Ana"))
    undo = await talk.client_undo(renamed.entity_events[0].event_id)
    assert undo.outcome == "done"
    assert await talk.seen() == {"Anna": ([], ["Anna"])}
    again = await talk.client_undo(renamed.entity_events[0].event_id)
    assert (again.outcome, again.reason) == ("rejected", "nothing_to_undo")


async def test_sql_users_see_entities_as_they_are_now(talk: Talk) -> None:
    for name in ("Ana", "Bea", "Cleo"):
        await talk.met(name)
    ana, bea, cleo = [await talk.id_of(name) for name in ("Ana", "Bea", "Cleo")]
    await talk.done(MergeEntities(entity_ids=(bea,), into=ana))
    await talk.done(ForgetEntity(entity_id=cleo))
    entities = "SELECT name FROM memory.entities WHERE user_id = 'alice' AND NOT is_user"
    aliases = "SELECT alias FROM memory.entity_aliases WHERE user_id = 'alice' AND entity_id = %s ORDER BY alias"
    links = """SELECT f.text, n.role FROM memory.fact_entities n JOIN memory.current_facts f USING (fact_id)
        WHERE n.user_id = 'alice' AND f.user_id = 'alice' AND n.entity_id = %s ORDER BY f.text"""
    assert await talk.people.rows(entities) == [("Ana",)]
    assert await talk.people.rows(aliases, ana) == [("Ana",), ("Bea",)]
    assert await talk.people.rows(links, ana) == [("I met Ana", "object"), ("I met Bea", "object")]


async def test_what_later_turns_say_of_a_new_entity_goes_back_with_the_undo_of_the_split(talk: Talk) -> None:
    await talk.met("Tom")
    await talk.met("Tommy")
    split = await talk.done(
        SplitEntity(
            entity_id=await talk.id_of("Tom"), name="Tommy", fact_ids=(await talk.fact("Tommy"),), names=("Tommy",)
        )
    )
    await talk.saw("tommy")
    assert await talk.seen() == {"Tom": ([], ["Tom"]), "Tommy": ([], ["Tommy", "I saw tommy"])}
    await talk.people.undo(split)
    assert await talk.seen() == {"Tom": (["Tommy"], ["Tom", "Tommy", "I saw tommy"])}
    assert await talk.is_rebuilt_equal()


async def test_an_undone_turn_takes_back_what_only_it_told(talk: Talk) -> None:
    await talk.met("Ana")
    both = await talk.people.say("I met Ana Keller and Bea", ("Ana Keller", "person"), ("Bea", "person"))
    after = {"Ana": (["Ana Keller"], ["Ana", "Ana Keller and Bea"]), "Bea": ([], ["Ana Keller and Bea"])}
    assert await talk.seen() == after
    undo = await talk.people.undo(both)
    assert await talk.seen() == {"Ana": ([], ["Ana"])}
    assert await talk.is_rebuilt_equal()
    await talk.people.undo(undo)
    assert await talk.seen() == after
    assert await talk.is_rebuilt_equal()


async def test_what_was_merged_into_a_forgotten_entity_is_forgotten_with_it(talk: Talk) -> None:
    await talk.met("Ana")
    undo = await talk.people.undo(await talk.done(ForgetEntity(entity_id=await talk.id_of("Ana"))))
    await talk.met("Bea")
    await talk.done(MergeEntities(entity_ids=(await talk.id_of("Bea"),), into=await talk.id_of("Ana")))
    await talk.people.undo(undo)
    assert await talk.seen() == {}
    again = await talk.saw("Bea")
    assert [event.event for event in again.entity_events] == ["entity_registered", "fact_linked"]
    assert await talk.seen() == {"Bea": ([], ["I saw Bea"])}
    assert await talk.is_rebuilt_equal()
