"""What a fact had ended is open again, or ends otherwise, once that fact is disbelieved: whatever disbelieves it."""

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from uuid import UUID

import pytest
import pytest_asyncio

from mnemolog.projections.queries.facts import facts
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.command import CommandPayload, Correct, DeleteAll, Edit, Expire, Update
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.schemas.filters import parse_filter
from tests.support.builders.commits import day
from tests.support.builders.verdicts import Verdict, judge_by_text, verdict
from tests.support.harnesses.command_harness import CommandHarness
from tests.support.harnesses.projected_database import ProjectedDatabase
from tests.support.harnesses.resolver_harness import ResolverHarness, home

pytestmark = pytest.mark.postgres

ALICE = ScopeFilter(user_id="alice")
FEBRUARY, JUNE = datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)
BERLIN, PLAN = "Mira lives in Berlin.", "Mira moves to Munich on 1 February."
VERDICTS = {PLAN: verdict("REPLACE", BERLIN)}


class Story:
    """Turns and commands of Alice's, over real tables."""

    def __init__(self, stored: ProjectedDatabase) -> None:
        self.stored = stored
        self.resolver = ResolverHarness(stored)
        self.commands = CommandHarness(stored)
        self._commands = 0

    async def tell(self, fact: ExtractedFact, verdicts: Mapping[str, Verdict] = VERDICTS, *, at: datetime) -> Commit:
        self.resolver.chat_model.set_replies(judge_by_text(verdicts))
        return await self.resolver.resolve_turn(fact, at=at)

    async def order(self, payload: CommandPayload, *, at: datetime) -> Commit:
        self._commands += 1
        commit = await self.commands.execute(f"c{self._commands}", payload, at=at)
        assert commit.outcome == "done", commit.detail
        return commit

    async def expire(self, at: datetime) -> int:
        """Let the timer run; gives how many facts were due."""
        due = await self.commands.known.due_expiries(at, after=None, limit=10)
        if due:
            await self.order(Expire(fact_ids=tuple(expiry.fact_id for expiry in due)), at=at)
        return len(due)

    async def active(self, at: datetime) -> list[str]:
        return [fact.text for fact in await facts(self.stored.conn, ALICE, at=at)]

    async def id_of(self, text: str) -> UUID:
        found = await facts(self.stored.conn, ALICE, all_versions=True, at=day(0))
        return next(fact.fact_id for fact in reversed(found) if fact.text == text)

    async def end_of(self, text: str) -> tuple[str, datetime | None, UUID | None, bool]:
        """Status, end, what it ended in favour of, and whether it is unresolved."""
        found = await facts(self.stored.conn, ALICE, all_versions=True, at=day(0))
        fact = next(fact for fact in reversed(found) if fact.text == text)
        return fact.status, fact.true_to, fact.superseded_by, fact.unresolved


OPEN = ("active", None, None, False)


@pytest_asyncio.fixture
async def story(database: str) -> AsyncIterator[Story]:
    async with ProjectedDatabase.open(database) as stored:
        story = Story(stored)
        yield story
        await story.resolver.close()


async def tell_plan(story: Story) -> None:
    await story.tell(home(BERLIN), at=day(0))
    await story.tell(home(PLAN, action_hint="update", event_time=FEBRUARY), at=day(5))
    assert await story.end_of(BERLIN) == ("active", FEBRUARY, await story.id_of(PLAN), False)


@pytest.mark.parametrize(
    ("kind", "text", "true_from", "ends_at"),
    [
        pytest.param("update", "Mira moves to Bonn on 1 February.", None, FEBRUARY, id="another value"),
        pytest.param("correct", "Mira moves to Bonn on 1 February.", None, FEBRUARY, id="another value, by a human"),
        pytest.param("correct", "Mira moves to Munich on 1 June.", None, JUNE, id="another day in words"),
        pytest.param("correct", "Mira moves to Munich in summer.", JUNE, JUNE, id="another day in a field"),
    ],
)
async def test_a_plan_with_another_text_ends_what_it_ended_on_its_day(
    story: Story, kind: str, text: str, true_from: datetime | None, ends_at: datetime
) -> None:
    await tell_plan(story)
    edit = Edit(fact_id=await story.id_of(PLAN), text=text, true_from=true_from)
    await story.order(Correct(edit=edit) if kind == "correct" else Update(edits=(edit,)), at=day(6))
    assert await story.end_of(BERLIN) == ("active", ends_at, await story.id_of(text), False)


@pytest.mark.parametrize(
    ("filters", "left"),
    [(None, []), ({"key": "home_city", "state": "active"}, []), ({"memory": {"contains": "Munich"}}, [BERLIN])],
)
async def test_delete_all_reopens_nothing_it_selects(
    story: Story, filters: dict[str, object] | None, left: list[str]
) -> None:
    """By key or by a filter; of what is known already it selects what it would select if that were active."""
    await story.tell(home(BERLIN), at=day(0))
    munich = "Mira lives in Munich."
    await story.tell(home(munich, action_hint="update"), {munich: verdict("REPLACE", BERLIN)}, at=day(5))
    payload = DeleteAll(key="home_city") if filters is None else DeleteAll(filters=parse_filter(filters))
    await story.order(payload, at=day(6))
    assert [fact.text for fact in await facts(story.stored.conn, ALICE, at=day(7))] == left


async def test_a_fact_that_waits_expires_with_its_term(story: Story) -> None:
    munich = "Mira may live in Munich until spring."
    await story.tell(home(BERLIN, valid_until=day(60)), at=day(0))  # a stay ends no lasting value
    waiting = home(munich, certainty="speculation", valid_until=day(20))
    await story.tell(waiting, {munich: verdict("REPLACE", BERLIN)}, at=day(1))
    assert (await story.end_of(munich))[0] == "pending_confirmation"
    assert await story.expire(day(21)) == 1
    assert (await story.end_of(munich))[:2] == ("expired", day(20))
    assert await story.expire(day(22)) == 0
    settlement = await story.stored.rows("SELECT settlement FROM pending_confirmations")
    assert settlement == [("overtaken",)]
