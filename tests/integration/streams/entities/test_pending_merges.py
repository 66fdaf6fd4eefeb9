"""Merges that a rule proposes: pending until a person confirms or rejects them, undone, explained and rebuilt."""

from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.projections.errors import UnknownFactError
from mnemolog.projections.queries.ids import find_facts
from mnemolog.projections.queries.pending import PendingMerge
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.rebuild.rebuild import rebuild
from mnemolog.projections.rebuild.replay import TableLogSource
from mnemolog.schemas.command import Confirm, ForgetEntity, MergeEntities, Reject, SplitEntity
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.scope import Scope
from tests.support.harnesses.named_people import NamedPeople, named_people

pytestmark = pytest.mark.postgres


class Wife:
    """What readers see of Ana and of the wife, who was known without a name."""

    def __init__(self, people: NamedPeople, client: AsyncMemoryClient, database: str) -> None:
        self.people = people
        self.client = client
        self.database = database

    async def introduce(self) -> Commit:
        """Both are known, then it is said that they are one."""
        await self.people.say("Ana likes tea", ("Ana", "person"))
        await self.people.say("My wife sings", ("my wife", "person"))
        return await self.people.say("I met my wife Ana", ("my wife Ana", "person"))

    async def pending(self) -> list[PendingMerge]:
        found = [one for one in await self.client.pending(user_id="alice") if isinstance(one, PendingMerge)]
        assert (await rebuild(self.database, TableLogSource(self.people.pipeline.pool), verify_only=True)).equal
        return found

    async def seen(self) -> dict[str, int]:
        """How many facts name each entity, the user left out."""
        return {one.name: one.facts for one in await self.client.entities(user_id="alice") if not one.is_user}


@pytest.fixture
async def wife(database: str) -> AsyncIterator[Wife]:
    async with named_people(database) as people, AsyncMemoryClient(postgres=database) as client:
        yield Wife(people, client, database)


TWO = {"Ana": 2, "my wife": 1}
ONE = {"Ana": 3}


async def test_what_a_turn_says_to_be_one_waits_for_a_person(wife: Wife) -> None:
    await wife.introduce()
    (waiting,) = await wife.pending()
    assert (waiting.merged_name, waiting.into_name, waiting.decided_by) == ("my wife", "Ana", "policy")
    assert waiting.reason == '"my wife Ana" was said of Ana, and my wife was known without a name'
    assert await wife.seen() == TWO
    marked = [one.name for one in await wife.client.entities(user_id="alice") if one.pending_merges]
    assert marked == ["Ana", "my wife"]


async def test_a_proposed_merge_of_what_is_forgotten_or_merged_waits_no_more(wife: Wife) -> None:
    await wife.introduce()
    (waiting,) = await wife.pending()
    merge = await wife.people.order(MergeEntities(entity_ids=(waiting.merged,), into=waiting.into))
    assert await wife.pending() == []
    await wife.people.undo(merge)
    assert len(await wife.pending()) == 1
    await wife.people.order(ForgetEntity(entity_id=waiting.merged))
    assert await wife.pending() == []
    late = await wife.people.order(Confirm(fact_ids=(waiting.event_id,)))
    assert (late.outcome, late.reason) == ("rejected", "not_pending")


async def test_a_proposed_merge_is_settled_in_its_own_scope_alone(wife: Wife) -> None:
    await wife.introduce()
    (waiting,) = await wife.pending()
    for payload in (Confirm(fact_ids=(waiting.event_id,)), Reject(fact_ids=(waiting.event_id,))):
        commit = await wife.people.order(payload, Scope(user_id="ben"))
        assert (commit.outcome, commit.reason) == ("rejected", "foreign_entity")
    assert len(await wife.pending()) == 1
    assert await wife.seen() == TWO


async def test_the_user_is_merged_into_nobody_by_a_proposed_merge_either(wife: Wife) -> None:
    await wife.introduce()
    (waiting,) = await wife.pending()
    (user,) = [one for one in await wife.client.entities(user_id="alice") if one.is_user]
    await wife.people.order(MergeEntities(entity_ids=(waiting.merged,), into=user.entity_id))
    by_command = await wife.people.order(MergeEntities(entity_ids=(user.entity_id,), into=waiting.into))
    confirmed = await wife.people.order(Confirm(fact_ids=(waiting.event_id,)))
    assert (confirmed.outcome, confirmed.reason) == ("rejected", "invalid_command")
    assert confirmed.detail == by_command.detail
    assert "the user is merged into nobody" in confirmed.detail
    assert [one.name for one in await wife.client.entities(user_id="alice") if one.is_user] == ["Alice"]
    rejected = await wife.people.order(Reject(fact_ids=(waiting.event_id,)))
    assert (rejected.outcome, await wife.pending()) == ("done", [])


async def test_a_command_settles_facts_and_merges_together_or_neither(wife: Wife) -> None:
    await wife.introduce()
    (waiting,) = await wife.pending()
    (fact_id,) = [one.fact_id for one in await wife.client.facts(user_id="alice") if one.text == "Ana likes tea"]
    unknown = await wife.people.order(Confirm(fact_ids=(waiting.event_id, UUID(int=7))))
    assert (unknown.outcome, unknown.entity_events) == ("rejected", ())
    both = await wife.people.order(Confirm(fact_ids=(fact_id, waiting.event_id)))
    assert [event.event for event in both.events] == ["fact_confirmed"]
    assert [event.event for event in both.entity_events] == ["entities_merged"]
    assert await wife.seen() == ONE


async def test_a_command_does_not_merge_one_into_two(wife: Wife) -> None:
    await wife.people.say("Eva likes tea", ("Eva", "person"))
    await wife.introduce()
    await wife.people.say("I met my wife Eva", ("my wife Eva", "person"))
    waiting = tuple(one.event_id for one in await wife.pending())
    known = await wife.seen()
    assert len(waiting) == 2
    both = await wife.people.order(Confirm(fact_ids=waiting))
    assert (both.outcome, both.reason, both.entity_events) == ("rejected", "invalid_command", ())
    assert await wife.seen() == known
    neither = await wife.people.order(Reject(fact_ids=waiting))
    assert (neither.outcome, await wife.pending()) == ("done", [])


@pytest.mark.parametrize("first", [("my wife Ana", "my wife"), ("Ana", "my wife Ana"), ("my wife", "Ana")])
async def test_nothing_is_proposed_where_nobody_was_known_twice(wife: Wife, first: tuple[str, str]) -> None:
    for name in first:
        await wife.people.say(f"I met {name}", (name, "person"))
    assert await wife.pending() == []


async def test_a_command_finds_a_proposed_merge_by_the_beginning_of_its_id(wife: Wife) -> None:
    await wife.introduce()
    (waiting,) = await wife.pending()
    within, given = ScopeFilter(user_id="alice"), str(waiting.event_id)[:13]
    async with wife.people.pipeline.pool.connection() as connection:
        (found,) = await find_facts(connection, within, [given], merges=True)
        assert (found.id, found.scope) == (str(waiting.event_id), Scope(user_id="alice"))
        with pytest.raises(UnknownFactError):
            await find_facts(connection, within, [given])


async def test_the_history_of_both_says_that_they_may_be_one(wife: Wife) -> None:
    await wife.introduce()
    details = await wife.client.entity("Ana", user_id="alice")
    assert [(one.event, one.decided_by) for one in details.history] == [("merge_proposed", "policy")]


async def test_what_a_person_rejected_is_not_proposed_again_where_the_turn_of_it_is_undone(wife: Wife) -> None:
    said = await wife.introduce()
    (waiting,) = await wife.pending()
    await wife.people.order(Reject(fact_ids=(waiting.event_id,)))
    await wife.people.undo(said)
    again = await wife.people.say("I called my wife Ana", ("my wife Ana", "person"))
    assert not [event for event in again.entity_events if event.event == "merge_proposed"]
    assert await wife.pending() == []


async def test_two_whom_a_person_has_split_are_not_proposed_as_one(wife: Wife) -> None:
    await wife.people.say("My wife sings", ("my wife", "person"))
    await wife.people.say("I met my wife Ana", ("my wife Ana", "person"))
    (one,) = [one for one in await wife.client.entities(user_id="alice") if not one.is_user]
    await wife.people.order(SplitEntity(entity_id=one.entity_id, name="Ana", names=("Ana",), fact_ids=()))
    await wife.people.say("I called my wife Ana", ("my wife Ana", "person"))
    assert await wife.pending() == []
