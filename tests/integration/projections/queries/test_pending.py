"""What waits for somebody's word, on a real Postgres."""

import pytest

from mnemolog.projections.queries import pending as product
from mnemolog.projections.queries.pending import unresolved
from mnemolog.projections.queries.scope_filter import ANY_VALUE, ScopeFilter
from tests.support.builders.commits import (
    ALICE,
    BOB,
    added,
    commit,
    contradicted,
    day,
    fact_id_at,
    pending,
    resolved,
    weighed_candidate,
    with_decision,
)
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
MINE = ScopeFilter.of_scope(ALICE)


async def test_a_held_fact_has_old_and_new_the_excerpt_why_and_for_how_long(db: ProjectedDatabase) -> None:
    known = commit("1", added("Is allergic to nuts.", category="health"))
    text = "Is not allergic to nuts."
    held = pending(text, fact_id_at(known), action="contradict", guard="high_risk", needs_human=True)
    made = commit("2", with_decision(held, by="rule", verdict="CONTRADICT", model="m1"), at=day(1))
    await db.apply(known, made, commit("3", added("B."), pending("C.", fact_id_at(known)), scope=BOB, at=day(2)))
    (one,) = await product.pending(db.conn, MINE, day(5))
    assert (one.fact.text, one.fact.status, one.fact.excerpt) == (text, "pending_confirmation", text)
    assert [(old.fact_id, old.text, old.status) for old in one.challenged] == [
        (fact_id_at(known), "Is allergic to nuts.", "active")
    ]
    assert (one.action, one.guard, one.verdict, one.model) == ("contradict", "high_risk", "CONTRADICT", "m1")
    assert (one.reason, one.needs_human) == ("it is to be confirmed", True)
    assert (one.since, one.age) == (made.decided_at, day(5) - made.decided_at)
    assert len(await product.pending(db.conn, ScopeFilter(user_id=ANY_VALUE), day(5))) == 2


async def test_an_unresolved_fact_names_what_it_stands_beside_as_far_as_that_stands(db: ProjectedDatabase) -> None:
    known = commit("1", added("Drinks tea."), added("Drinks coffee."), added("Drinks milk."))
    tea, coffee, milk = (fact_id_at(known, place) for place in range(3))
    beside = with_decision(
        added("Drinks nothing.", unresolved=True),
        by="rule",
        candidates=tuple(weighed_candidate(*one) for one in ((milk, 0.7), (tea, 0.8), (coffee, 0.75))),
        shown=(tea, coffee),
        reason="no verdict",
    )
    made = commit("2", beside, at=day(1))
    await db.apply(known, made, commit("3", contradicted("Hates coffee.", coffee), at=day(2)))
    (one,) = await unresolved(db.conn, MINE, day(3))
    assert (one.fact.fact_id, one.reason, one.age) == (fact_id_at(made), "no verdict", day(3) - made.decided_at)
    assert [old.text for old in one.beside] == ["Drinks tea."]
    await db.apply(commit("4", resolved(fact_id_at(made), tea, action="keep_both"), at=day(3)))
    assert await unresolved(db.conn, MINE, day(4)) == []
