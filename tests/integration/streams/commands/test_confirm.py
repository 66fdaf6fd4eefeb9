"""What is confirmed together, and what has become of the challenged meanwhile."""

from datetime import timedelta
from typing import Any

import pytest

from mnemolog.schemas.command import Confirm, Correct, Edit, Resolve, Undo
from tests.support.builders.commits import Draft, added, commit, day, fact_id_at, merged, pending
from tests.support.harnesses.command_harness import CommandHarness
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

KNOWN = commit("t1", added("Alice lives in Rome."))
MILAN = commit("t2", pending("Alice lives in Milan.", fact_id_at(KNOWN)), at=day(1))
PARIS = commit("t3", pending("Alice lives in Paris.", fact_id_at(KNOWN)), at=day(1))
OLD, ONE, OTHER = fact_id_at(KNOWN), fact_id_at(MILAN), fact_id_at(PARIS)


@pytest.fixture
async def harness(db: ProjectedDatabase) -> CommandHarness:
    await db.apply(KNOWN, MILAN, PARIS)
    return CommandHarness(db)


async def stale(harness: CommandHarness) -> int:
    return len(await harness.stored.rows("SELECT 1 FROM rejections UNION ALL SELECT 1 FROM memory_events WHERE stale"))


async def test_two_that_challenge_the_same_end_it_once_and_one_of_them_closes_the_other(
    harness: CommandHarness,
) -> None:
    for refused in ((ONE, OLD), (OLD, ONE)):  # a fact is not confirmed and ended at once
        made = await harness.execute(f"r-{refused[0]}", Confirm(fact_ids=refused), at=day(2))
        assert (made.outcome, made.reason, str(OLD) in made.detail) == ("rejected", "invalid_command", True)
    before = ["active", "pending_confirmation", "pending_confirmation"]
    assert await harness.statuses(OLD, ONE, OTHER) == before
    both = await harness.execute("c1", Confirm(fact_ids=(ONE, OTHER)), at=day(2))
    assert (both.outcome, len(both.events)) == ("done", 2)
    assert await harness.statuses(OLD, ONE, OTHER) == ["archived", "active", "active"]
    await harness.execute("c2", Undo(source_id="c1"), at=day(3))
    assert await harness.statuses(OLD, ONE, OTHER) == before
    one = await harness.execute("c3", Confirm(fact_ids=(ONE,)), at=day(4))
    assert [event.event for event in one.events] == ["pending_confirmed", "pending_rejected"]
    assert await harness.statuses(OLD, ONE, OTHER) == ["archived", "active", "archived"]
    await harness.execute("c4", Undo(source_id="c3"), at=day(5))
    assert await harness.statuses(OLD, ONE, OTHER) == before
    assert await stale(harness) == 0


async def test_what_was_merged_since_stays_and_the_confirmed_fact_stands_beside_it(harness: CommandHarness) -> None:
    richer = commit("t4", merged("Alice lives in Rome, in Trastevere.", OLD), at=day(2))
    again = commit("t5", merged("Alice lives in Rome, in Trastevere, on a hill.", fact_id_at(richer)), at=day(3))
    await harness.stored.apply(richer, again)
    case = (await harness.known.pending_cases([ONE]))[ONE]
    assert (case.targets, case.successors, case.needs_human) == ((), (fact_id_at(again),), False)
    await harness.execute("c1", Confirm(fact_ids=(ONE,)), at=day(4))
    assert await harness.texts_with_status() == [
        "Alice lives in Milan.",
        "Alice lives in Rome, in Trastevere, on a hill.",
    ]
    (state,) = await harness.states(ONE)
    assert state.unresolved
    assert await stale(harness) == 0
    await harness.execute("c2", Resolve(fact_id=ONE, action="contradict"), at=day(5))
    assert await harness.texts_with_status() == ["Alice lives in Milan."]


async def test_what_a_human_has_corrected_since_is_for_a_human_to_give_up(harness: CommandHarness) -> None:
    corrected = await harness.execute("c1", Correct(edit=Edit(fact_id=OLD, text="Alice lives in Ostia.")), at=day(2))
    case = (await harness.known.pending_cases([ONE]))[ONE]
    assert (case.targets, case.successors, case.needs_human) == ((), (fact_id_at(corrected),), True)
    await harness.execute("c2", Confirm(fact_ids=(ONE,)), at=day(3))
    assert await harness.texts_with_status() == ["Alice lives in Milan.", "Alice lives in Ostia."]


NUTS = commit("t1", added("Alice is allergic to nuts.", key="allergy", value="nuts"))
OF_NUTS: dict[str, Any] = {"key": "allergy", "value": "nuts"}
NO_NUTS = pending(
    "Alice is no longer allergic to nuts.", fact_id_at(NUTS), action="retract", action_hint="retract", **OF_NUTS
)
MORE_NUTS = pending("Alice is allergic to nuts since 1992.", fact_id_at(NUTS), action="merge", **OF_NUTS)


@pytest.mark.parametrize("held", [NO_NUTS, MORE_NUTS], ids=["an end", "a detail"])
@pytest.mark.parametrize(
    ("text", "value", "status"),
    [
        ("Alice is allergic to milk.", "milk", "archived"),
        ("Alice avoids eggs.", "eggs", "archived"),
        ("Alice is badly allergic to nuts.", "nuts", "pending_confirmation"),
    ],
)
async def test_what_is_held_of_a_value_waits_no_more_where_a_person_has_corrected_the_value(
    db: ProjectedDatabase, held: Draft, text: str, value: str, status: str
) -> None:
    said = commit("t2", held)
    await db.apply(NUTS, said)
    commands, waiting = CommandHarness(db), fact_id_at(said)
    edit = Edit(fact_id=fact_id_at(NUTS), text=text, value=value)
    await commands.execute("c1", Correct(edit=edit), at=day(2))
    assert await commands.statuses(waiting) == [status]
    await commands.execute("c2", Undo(source_id="c1"), at=day(3))
    assert await commands.statuses(waiting, fact_id_at(NUTS)) == ["pending_confirmation", "active"]
    assert await stale(commands) == 0


async def test_what_is_confirmed_by_a_fast_clock_was_not_said_in_the_future(harness: CommandHarness) -> None:
    await harness.execute("c1", Confirm(fact_ids=(OLD,)), at=day(4000), clock=day(2))
    (state,) = await harness.states(OLD)
    assert state.last_confirmed_at is not None
    assert abs(state.last_confirmed_at - day(2)) < timedelta(minutes=1)
