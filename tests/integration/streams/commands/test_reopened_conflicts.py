"""A fact that is open again beside another value of its key waits for a word like any other unresolved one."""

import pytest

from mnemolog.projections.queries.pending import unresolved
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.command import CommandPayload, Correct, Delete, DeleteAll, Edit, Resolve, Undo
from mnemolog.schemas.facts import MovedEnd
from tests.support.builders.commits import ALICE, added, commit, contradicted, day, fact_id_at, replaced, with_decision
from tests.support.harnesses.command_harness import CommandHarness
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

MINE = ScopeFilter.of_scope(ALICE)
KNOWN_ROME = added("Lives in Rome.", key="home_city", value="Rome", single_valued=True)
KNOWN = commit(
    "t1",
    KNOWN_ROME,
    added("Tom lives in Lima.", key="home_city", value="Lima", subject="Tom", single_valued=True),
)
ROME = fact_id_at(KNOWN)


async def test_it_is_listed_with_the_values_beside_it_and_settled_against_these(db: ProjectedDatabase) -> None:
    """Rome gives way to Oslo, which turns out never to have been true; who corrects it says Nice, since the start."""
    harness = CommandHarness(db)
    await db.apply(KNOWN)
    moved = Correct(edit=Edit(fact_id=ROME, text="Lives in Oslo.", value="Oslo"), ended_at=day(1))
    oslo = await harness.execute("c1", moved, at=day(2))
    back = Correct(edit=Edit(fact_id=fact_id_at(oslo), text="Lives in Nice.", value="Nice", true_from=day(0)))
    correction = await harness.execute("c2", back, at=day(3))
    (conflict,) = await unresolved(db.conn, MINE, day(4))
    assert (conflict.fact.fact_id, conflict.event_id) == (ROME, correction.events[0].event_id)
    assert [(known.fact_id, known.text) for known in conflict.beside] == [(fact_id_at(correction), "Lives in Nice.")]
    done = await harness.execute("c3", Resolve(fact_id=ROME, action="contradict"), at=day(4))
    assert done.outcome == "done", done.detail
    assert await harness.statuses(fact_id_at(correction), ROME) == ["archived", "active"]
    assert await unresolved(db.conn, MINE, day(5)) == []
    assert "Tom lives in Lima." in await harness.texts_with_status()


async def test_one_whose_event_does_not_tell_what_it_stands_beside_is_listed(
    db: ProjectedDatabase,
) -> None:
    known = commit("t1", added("Lives in Rome.", key="home_city"))
    rome = fact_id_at(known)
    oslo = commit("t2", replaced("Lives in Oslo.", rome, ended_at=day(1), key="home_city"), at=day(1))
    moved = MovedEnd(fact_id=rome, ender=fact_id_at(oslo), unresolved=True)
    denied = commit("t3", contradicted("Lives in Nice.", fact_id_at(oslo)), at=day(2))
    events = tuple(event.model_copy(update={"moved_ends": (moved,)}) for event in denied.events)
    await db.apply(known, oslo, denied.model_copy(update={"events": events}))
    (conflict,) = await unresolved(db.conn, MINE, day(4))
    assert (conflict.fact.fact_id, conflict.beside) == (rome, ())


async def test_one_that_was_unresolved_before_its_end_is_so_beside_the_same_facts(db: ProjectedDatabase) -> None:
    known = commit("t1", added("Drinks tea."))
    coffee = with_decision(added("Drinks coffee.", unresolved=True), shown=(fact_id_at(known),))
    doubtful = commit("t2", coffee, at=day(1))
    milk = commit("t3", replaced("Drinks milk.", fact_id_at(doubtful), ended_at=day(2)), at=day(2))
    await db.apply(known, doubtful, milk)
    harness = CommandHarness(db)
    deleted = await harness.execute("c1", Delete(fact_ids=(fact_id_at(milk),)), at=day(3))
    assert [moved.unresolved for moved in deleted.events[0].moved_ends] == [True]
    (conflict,) = await unresolved(db.conn, MINE, day(4))
    assert [known.text for known in conflict.beside] == ["Drinks tea."]
    assert await harness.known.conflicting_fact_ids(fact_id_at(doubtful)) == (fact_id_at(known),)


@pytest.mark.parametrize("again", ["Lives in Rome.", "Rome is where Alice lives."])
@pytest.mark.parametrize("order", [DeleteAll(), DeleteAll(key="home_city"), Delete(fact_ids=(ROME,))])
async def test_one_that_was_told_again_in_between_is_no_question(
    db: ProjectedDatabase, order: CommandPayload, again: str
) -> None:
    harness = CommandHarness(db)
    await db.apply(commit("t1", KNOWN_ROME))
    await harness.execute("c1", order, at=day(1))
    told = commit("t2", added(again, key="home_city", value="Rome", single_valued=True), at=day(2))
    await db.apply(told)
    undone = await harness.execute("c2", Undo(source_id="c1"), at=day(3))
    assert undone.outcome == "done", undone.detail
    assert await harness.statuses(ROME, fact_id_at(told)) == ["active", "active"]
    assert await unresolved(db.conn, MINE, day(4)) == []
    await harness.execute("c3", Undo(source_id="c2"), at=day(4))
    other = commit("t3", added("Lives in Oslo.", key="home_city", value="Oslo", single_valued=True), at=day(5))
    await db.apply(other)
    await harness.execute("c4", Undo(source_id="c3"), at=day(6))
    (conflict,) = await unresolved(db.conn, MINE, day(7))
    assert (conflict.fact.fact_id, [known.text for known in conflict.beside]) == (ROME, ["Lives in Oslo."])
