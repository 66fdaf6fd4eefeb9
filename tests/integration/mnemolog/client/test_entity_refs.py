"""What somebody is names an entity, in commands as in `entity` and `who`: in each scope its own "my wife"."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from mnemolog import AmbiguousIdError, UnknownEntityError
from mnemolog.projections.queries.entities import Entity
from mnemolog.schemas.command import AliasEntity, ForgetEntity, RenameEntity, SplitEntity, SummariseEntity
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.scope import Scope
from tests.support.harnesses.named_people import NamedPeople, named_people
from tests.support.harnesses.offline_client import OfflineClient

pytestmark = pytest.mark.postgres
BEN = Scope(user_id="ben")


@dataclass
class Family:
    """People who are talked of, and a client whose commands are carried out."""

    people: NamedPeople
    client: OfflineClient

    async def met(self, name: str, *, scope: Scope | None = None, speaker: str = "Alice", kind: str = "person") -> None:
        within = scope or Scope(user_id="alice")
        await self.people.say(f"{speaker} met {name}", (name, kind), scope=within, speaker=speaker)

    async def carried_out(self) -> Commit:
        """The end of the command that the client published last."""
        command = self.client.commands[-1]
        return await self.people.order(command.order, command.scope)

    async def meant(self, name: str, user_id: str = "alice") -> Entity:
        return (await self.client.entity(name, user_id=user_id)).entity

    async def seen(self) -> dict[str, list[str]]:
        """The names of each entity of Alice's, the user left out."""
        found = await self.client.entities(user_id="alice")
        return {one.name: one.aliases for one in found if not one.is_user}

    def named(self) -> UUID:
        """Whom the command that the client published last names."""
        payload = self.client.commands[-1].order
        assert isinstance(payload, RenameEntity | AliasEntity | SplitEntity | ForgetEntity | SummariseEntity)
        return payload.entity_id


@pytest.fixture
async def family(database: str) -> AsyncIterator[Family]:
    async with named_people(database) as people, OfflineClient(postgres=database) as client:
        yield Family(people, client)


@pytest.mark.parametrize("boss", ["my boss", "my boss Eva", "Alice's boss", "Alice's boss Eva"])
@pytest.mark.parametrize("into_boss", [True, False])
async def test_my_boss_is_found_before_and_after_a_merge_and_its_undo(
    family: Family, boss: str, *, into_boss: bool
) -> None:
    await family.met(boss)
    await family.met("Tom")
    before, tom = await family.meant("my boss"), await family.meant("Tom")
    one, other = ("Tom", "my boss") if into_boss else ("my boss", "Tom")
    await family.client.merge_entities(one, into=other, user_id="alice")
    merge = await family.carried_out()
    assert (await family.meant("my boss")).entity_id == (before if into_boss else tom).entity_id
    await family.people.undo(merge)
    assert await family.meant("my boss") == before
    await family.client.rename_entity("my boss", "Robin")
    assert (await family.carried_out()).outcome == "done"
    assert (await family.meant("Robin")).entity_id == before.entity_id


async def test_each_command_takes_what_somebody_is(family: Family) -> None:
    await family.met("Alice's wife Ana")
    await family.met("Ana's dog Rex")
    wife, dog = await family.meant("Ana"), await family.meant("Rex")
    client = family.client
    await client.rename_entity("my wife", "Ana Keller")
    assert (family.named(), client.commands[-1].scope.user_id) == (wife.entity_id, "alice")
    await client.alias_entity("my wife's dog", "Rexi")
    assert family.named() == dog.entity_id
    await client.alias_entity("Rex", "Annie", moved_from="my wife")
    assert client.commands[-1].order.model_dump()["moved_from"] == wife.entity_id
    await client.split_entity("my wife", "Bea", names="Annie")
    assert family.named() == wife.entity_id
    await client.forget_entity("my wife's dog")
    assert family.named() == dog.entity_id
    await client.summarise_entity("my wife")
    assert family.named() == wife.entity_id
    await client.merge_entities(["my wife's dog"], into="my wife")
    merge = client.commands[-1].order.model_dump(include={"entity_ids", "into"})
    assert merge == {"entity_ids": (dog.entity_id,), "into": wife.entity_id}
    with pytest.raises(UnknownEntityError, match="my husband"):
        await client.forget_entity("my husband")


async def test_somebody_elses_wife_is_not_mine(family: Family) -> None:
    """Ben says "my wife" in Alice's memory: the name is that of his wife, as he said it."""
    await family.met("Tom")
    await family.met("my wife", speaker="Ben")
    assert (await family.meant("my wife")).name == "my wife"
    await family.met("Alice's wife Ana")
    assert (await family.meant("my wife")).name == "Ana"
    assert [one.name for one in await family.client.who("my wife", user_id="alice")] == ["Ana"]
    await family.client.forget_entity("my wife", user_id="alice")
    assert family.named() == (await family.meant("Ana")).entity_id


@pytest.mark.parametrize("bens", ["my wife Bea", "Ben's wife Bea", "Ben's spouse Bea"])
async def test_my_wife_of_several_users_is_an_error_that_lists_them(family: Family, bens: str) -> None:
    await family.met("my wife")
    relation = {"subject": "Ben", "predicate": "spouse", "object": "Bea", "strength": "strong"}
    related: dict[str, Any] = {"relations": [relation]} if "spouse" in bens else {}
    name = "Bea" if related else bens
    await family.people.say(f"I met {name}", (name, "person"), scope=BEN, speaker="Ben", **related)
    mine, bea = await family.meant("my wife"), await family.meant("my wife", "ben")
    with pytest.raises(AmbiguousIdError) as failure:
        await family.client.forget_entity("my wife")
    assert {one for one, _ in failure.value.candidates} == {str(mine.entity_id), str(bea.entity_id)}
    assert f"{bea.entity_id} (user_id 'ben': Bea)" in str(failure.value)
    assert family.client.commands == []
    await family.client.forget_entity("my wife", user_id="ben")
    assert family.named() == bea.entity_id


async def test_a_tie_that_a_person_gave_is_found_moved_and_undone(family: Family) -> None:
    for name in ("Ana", "Bea"):
        await family.met(name)
    await family.client.alias_entity("Ana", "my wife", user_id="alice")
    given = await family.carried_out()
    assert [one.name for one in await family.client.who("my wife", user_id="alice")] == ["Ana"]
    await family.client.alias_entity("Bea", "my wife", moved_from="my wife", user_id="alice")
    moved = await family.carried_out()
    assert isinstance(family.client.commands[-1].order, AliasEntity)
    assert [one.name for one in await family.client.who("my wife", user_id="alice")] == ["Bea"]
    assert (await family.meant("my wife")).name == "Bea"
    await family.people.undo(moved)
    assert (await family.meant("my wife")).name == "Ana"
    await family.people.undo(given)
    assert await family.client.who("my wife", user_id="alice") == []


async def test_my_may_be_of_too_many_users(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mnemolog.projections.queries.entity_graph.MAX_USERS", 1)
    await family.met("my wife")
    await family.met("my wife Bea", scope=BEN, speaker="Ben")
    assert await family.client.who("my wife", user_id="alice")
    with pytest.raises(Exception, match="more than 1 scopes with a user: give the ids of the one meant"):
        await family.client.who("my wife", user_id="*")
