"""Merges that a rule proposes: pending until a person confirms or rejects them, undone, explained and rebuilt."""

from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.projections.errors import UnknownFactError
from mnemolog.projections.queries.ids import find_facts
from mnemolog.projections.queries.pending import PendingMerge
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.command import Confirm, Reject
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.scope import Scope
from tests.support.harnesses.named_people import NamedPeople, named_people

pytestmark = pytest.mark.postgres


class Wife:
    """What readers see of Ana and of the wife, who was known without a name."""

    def __init__(self, people: NamedPeople, client: AsyncMemoryClient) -> None:
        self.people = people
        self.client = client

    async def introduce(self) -> tuple[Commit, PendingMerge]:
        """Both are known, then a turn says that they are one: its commit, and the merge that waits."""
        await self.people.say("Ana likes tea", ("Ana", "person"))
        await self.people.say("My wife sings", ("my wife", "person"))
        said = await self.people.say("I met my wife Ana", ("my wife Ana", "person"))
        (waiting,) = await self.pending()
        return said, waiting

    async def pending(self) -> list[PendingMerge]:
        assert await self.people.is_rebuilt_equal()
        return [one for one in await self.client.pending(user_id="alice") if isinstance(one, PendingMerge)]

    async def seen(self) -> dict[str, int]:
        """How many facts name each entity, the user left out."""
        return {one.name: one.facts for one in await self.client.entities.list(user_id="alice") if not one.is_user}


@pytest.fixture
async def wife(database: str) -> AsyncIterator[Wife]:
    async with named_people(database) as people, AsyncMemoryClient(postgres=database) as client:
        yield Wife(people, client)


TWO = {"Ana": 2, "my wife": 1}


async def test_what_a_turn_says_to_be_one_waits_for_a_person(wife: Wife) -> None:
    _, waiting = await wife.introduce()
    assert (waiting.merged_name, waiting.into_name, waiting.decided_by) == ("my wife", "Ana", "rule")
    assert waiting.reason == '"my wife Ana" was said of Ana, and my wife was known without a name'
    assert await wife.seen() == TWO
    marked = [one.name for one in await wife.client.entities.list(user_id="alice") if one.pending_merges]
    assert marked == ["Ana", "my wife"]
    history = (await wife.client.entities.get("Ana", user_id="alice")).history
    assert [(one.event, one.decided_by) for one in history] == [("merge_proposed", "rule")]
    within, given = ScopeFilter(user_id="alice"), str(waiting.event_id)[:13]
    async with wife.people.pipeline.pool.connection() as connection:
        (found,) = await find_facts(connection, within, [given], merges=True)
        assert (found.id, found.scope) == (str(waiting.event_id), Scope(user_id="alice"))
        with pytest.raises(UnknownFactError):
            await find_facts(connection, within, [given])
    for payload in (Confirm(fact_ids=(waiting.event_id,)), Reject(fact_ids=(waiting.event_id,))):
        commit = await wife.people.order(payload, Scope(user_id="ben"))
        assert (commit.outcome, commit.reason) == ("rejected", "foreign_entity")
    assert [one.event_id for one in await wife.pending()] == [waiting.event_id]


async def test_a_command_settles_facts_and_merges_together_or_neither(wife: Wife) -> None:
    await wife.people.say("Eva likes tea", ("Eva", "person"))
    _, first = await wife.introduce()
    await wife.people.say("I met my wife Eva", ("my wife Eva", "person"))
    known, waiting = await wife.seen(), tuple(one.event_id for one in await wife.pending())
    (fact_id,) = [one.fact_id for one in await wife.client.facts(user_id="alice") if one.text == "Ana likes tea"]
    unknown = await wife.people.order(Confirm(fact_ids=(first.event_id, UUID(int=7))))
    assert (unknown.outcome, unknown.entity_events) == ("rejected", ())
    both = await wife.people.order(Confirm(fact_ids=waiting))  # one would be merged into two
    assert (both.outcome, both.reason, both.entity_events) == ("rejected", "invalid_command", ())
    assert (await wife.seen(), len(waiting)) == (known, 2)
    (other,) = set(waiting) - {first.event_id}
    assert (await wife.people.order(Reject(fact_ids=(other,)))).outcome == "done"
    done = await wife.people.order(Confirm(fact_ids=(fact_id, first.event_id)))
    assert [event.event for event in (*done.events, *done.entity_events)] == ["fact_confirmed", "entities_merged"]
    assert (await wife.seen(), await wife.pending()) == ({"Ana": 3, "Eva": 2}, [])
