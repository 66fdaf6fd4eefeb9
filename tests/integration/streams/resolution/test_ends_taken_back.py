"""What a fact had ended is open again, or ends otherwise, once that fact is disbelieved: whatever disbelieves it."""

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
import pytest_asyncio

from mnemolog.projections.queries.diff import diff
from mnemolog.projections.queries.facts import facts, facts_as_of
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.command import CommandPayload, Correct, Delete, DeleteAll, Edit, Expire, Undo, Update
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.facts import ExtractedFact
from tests.support.builders.commits import day
from tests.support.builders.verdicts import Verdict, judge_by_text, verdict
from tests.support.harnesses.command_harness import CommandHarness
from tests.support.harnesses.projected_database import ProjectedDatabase
from tests.support.harnesses.resolver_harness import ResolverHarness, extracted_fact

pytestmark = pytest.mark.postgres

ALICE = ScopeFilter(user_id="alice")
FEBRUARY, JUNE = datetime(2026, 2, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)
SLOT = {"key": "home_city", "subject": "Mira", "single_valued": True}
BERLIN, PLAN = "Mira lives in Berlin.", "Mira moves to Munich on 1 February."
CALLED_OFF, CALLED_OFF_TWICE = "Mira's move to Munich is called off.", "Mira does not move to Munich."
VERDICTS = {
    PLAN: verdict("REPLACE", BERLIN),
    CALLED_OFF: verdict("CONTRADICT", PLAN),
    CALLED_OFF_TWICE: verdict("KEEP", CALLED_OFF),
}


def home(text: str, **fields: object) -> ExtractedFact:
    return extracted_fact(text, **SLOT | fields)


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


async def check_berlin_holds(story: Story) -> None:
    assert await story.end_of(BERLIN) == OPEN
    after = FEBRUARY + timedelta(days=1)
    assert await story.expire(after) == 0
    assert BERLIN in await story.active(after)
    assert PLAN not in await story.active(after)


@pytest.mark.parametrize("action", ["CONTRADICT", "REPLACE", "RETRACT"])
async def test_a_plan_that_is_called_off_ends_nothing(story: Story, action: str) -> None:
    await tell_plan(story)
    told = home(CALLED_OFF, action_hint="retract", certainty="strong", single_valued=False)
    await story.tell(told, {CALLED_OFF: verdict(action, PLAN)}, at=day(8))
    if action == "CONTRADICT":  # the plan was told explicitly: one denial does not suffice
        again = home(CALLED_OFF_TWICE, action_hint="retract", single_valued=False)
        await story.tell(again, at=day(9))
    await check_berlin_holds(story)


async def test_what_holds_and_is_said_again_goes_on_holding(story: Story) -> None:
    await tell_plan(story)
    told = home(CALLED_OFF, action_hint="retract", single_valued=False)
    await story.tell(told, {CALLED_OFF: verdict("RETRACT", PLAN)}, at=day(8))
    await story.tell(home(BERLIN), at=day(9))
    await check_berlin_holds(story)


async def test_a_plan_that_is_deleted_ends_nothing(story: Story) -> None:
    await tell_plan(story)
    await story.order(Delete(fact_ids=(await story.id_of(PLAN),)), at=day(6))
    await check_berlin_holds(story)


async def test_a_plan_that_is_deleted_after_its_day_had_ended_nothing(story: Story) -> None:
    await tell_plan(story)
    assert await story.expire(FEBRUARY + timedelta(days=1)) == 1
    assert (await story.end_of(BERLIN))[0] == "expired"
    await story.order(Delete(fact_ids=(await story.id_of(PLAN),)), at=FEBRUARY + timedelta(days=2))
    assert await story.end_of(BERLIN) == OPEN


async def test_delete_all_reopens_nothing_that_it_selects(story: Story) -> None:
    await story.tell(home(BERLIN), at=day(0))
    munich = "Mira lives in Munich."
    await story.tell(home(munich, action_hint="update"), {munich: verdict("REPLACE", BERLIN)}, at=day(5))
    await story.order(DeleteAll(key="home_city"), at=day(6))
    assert await story.active(day(7)) == []


@pytest.mark.parametrize("kind", ["correct", "update"])
async def test_a_plan_with_another_text_ends_what_it_ended(story: Story, kind: str) -> None:
    await tell_plan(story)
    edit = Edit(fact_id=await story.id_of(PLAN), text="Mira moves to Bonn on 1 February.")
    await story.order(Correct(edit=edit) if kind == "correct" else Update(edits=(edit,)), at=day(6))
    assert await story.end_of(BERLIN) == ("active", FEBRUARY, await story.id_of(edit.text), False)


@pytest.mark.parametrize("told_by", ["text", "field"])
async def test_a_plan_of_another_day_ends_what_it_ended_on_that_day(story: Story, told_by: str) -> None:
    await tell_plan(story)
    text = "Mira moves to Munich on 1 June." if told_by == "text" else "Mira moves to Munich in summer."
    true_from = JUNE if told_by == "field" else None
    await story.order(Correct(edit=Edit(fact_id=await story.id_of(PLAN), text=text, true_from=true_from)), at=day(6))
    assert await story.end_of(BERLIN) == ("active", JUNE, await story.id_of(text), False)
    assert await story.expire(FEBRUARY + timedelta(days=1)) == 0
    assert await story.active(FEBRUARY + timedelta(days=1)) == [BERLIN, text]


async def test_a_contradicted_replacer_of_the_past_leaves_the_home(story: Story) -> None:
    munich, never = "Mira lives in Munich.", "Mira never lived in Munich."
    await story.tell(home(BERLIN), at=day(0))
    await story.tell(
        home(munich, action_hint="update", certainty="strong"), {munich: verdict("REPLACE", BERLIN)}, at=day(5)
    )
    denial = home(never, action_hint="retract", single_valued=False)
    await story.tell(denial, {never: verdict("CONTRADICT", munich)}, at=day(6))
    assert await story.end_of(BERLIN) == OPEN
    assert await story.active(day(9)) == [BERLIN, never]
    true = await diff(story.stored.conn, ALICE, day(1), day(9), axis="true")
    assert true.replaced == ()
    believed = await diff(story.stored.conn, ALICE, day(1), day(9))
    assert [(one.text, one.old[0].text, one.status) for one in believed.reopened] == [(BERLIN, munich, "active")]


async def test_a_value_in_the_place_of_the_disbelieved_one_ends_what_that_had_ended(story: Story) -> None:
    munich, milan = "Mira lives in Munich.", "Mira lives in Milan, not in Munich."
    await story.tell(home(BERLIN), at=day(0))
    await story.tell(
        home(munich, action_hint="update", certainty="strong"), {munich: verdict("REPLACE", BERLIN)}, at=day(5)
    )
    await story.tell(home(milan, action_hint="update"), {milan: verdict("CONTRADICT", munich)}, at=day(6))
    assert await story.end_of(BERLIN) == ("superseded", day(6), await story.id_of(milan), False)
    assert await story.active(day(9)) == [milan]


async def test_what_was_merged_into_the_disbelieved_fact_is_looked_through(story: Story) -> None:
    await tell_plan(story)
    detail, merged = "Mira moves with her cat.", "Mira moves to Munich on 1 February with her cat."
    verdicts = {detail: verdict("MERGE", PLAN, text=merged, search_text=merged)}
    await story.tell(home(detail, event_time=FEBRUARY), verdicts, at=day(6))
    await story.order(Delete(fact_ids=(await story.id_of(merged),)), at=day(7))
    assert await story.end_of(BERLIN) == OPEN


async def test_an_undo_of_the_calling_off_restores_the_end(story: Story) -> None:
    await tell_plan(story)
    deleted = await story.order(Delete(fact_ids=(await story.id_of(PLAN),)), at=day(6))
    await story.order(Undo(source_id=deleted.source_id), at=day(7))
    assert await story.end_of(BERLIN) == ("active", FEBRUARY, await story.id_of(PLAN), False)


async def test_late_news_is_open_again_where_its_newer_value_is_undone(story: Story) -> None:
    rome, oslo = "Mira lives in Rome.", "Mira lives in Oslo."
    newer = await story.tell(home(rome), at=day(10))
    await story.tell(home(oslo), {oslo: verdict("REPLACE", rome)}, at=day(5))
    assert (await story.end_of(oslo))[0] == "superseded"
    undone = await story.order(Undo(source_id=newer.source_id), at=day(11))
    assert await story.end_of(oslo) == OPEN
    await story.order(Undo(source_id=undone.source_id), at=day(12))
    assert await story.end_of(oslo) == ("superseded", day(10), await story.id_of(rome), False)


async def test_what_was_so_then_is_told_as_it_is_known_at_each_time(story: Story) -> None:
    await tell_plan(story)
    told = home(CALLED_OFF, action_hint="retract", single_valued=False)
    await story.tell(told, {CALLED_OFF: verdict("RETRACT", PLAN)}, at=day(8))
    for believed_at, expected in ((day(7), [PLAN]), (day(9), [BERLIN])):
        known = await facts_as_of(story.stored.conn, ALICE, believed_at=believed_at, true_at=FEBRUARY)
        assert [fact.text for fact in known if fact.action_hint != "retract"] == expected
