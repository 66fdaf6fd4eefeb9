"""What waits for somebody's word, on a real Postgres."""

import pytest

from mnemolog.projections.context import lasting_facts
from mnemolog.projections.queries import pending as product
from mnemolog.projections.queries.facts import facts, profile
from mnemolog.projections.queries.pending import unresolved
from mnemolog.projections.queries.scope_filter import ANY_VALUE, ScopeFilter
from mnemolog.schemas.events import Overwrite
from tests.support.builders.commits import (
    ALICE,
    BOB,
    added,
    commit,
    contradicted,
    day,
    fact_id_at,
    merged,
    pending,
    pending_confirmed,
    pending_rejected,
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


async def disputed(db: ProjectedDatabase) -> set[str]:
    """The facts of Alice that every reader shows as disputed."""
    at = day(9)
    shown = {one.text for one in await facts(db.conn, MINE, at=at) if one.disputed}
    assert shown == {one["text"] for one in (await profile(db.conn, MINE, at)).sensitive_topics if one["disputed"]}
    assert shown == {one.text for one in await lasting_facts(db.conn, [MINE], at) if one.disputed}
    return shown


@pytest.mark.parametrize("action", ["replace", "contradict", "retract", "expire", "merge"])
async def test_what_a_held_end_is_about_is_disputed_until_that_is_settled(
    db: ProjectedDatabase, action: Overwrite
) -> None:
    known = commit("1", added("Is allergic to nuts.", category="health"), added("Has asthma.", category="health"))
    ended_at = day(1) if action in ("replace", "retract", "expire") else None
    held = pending("It is over.", fact_id_at(known), action=action, guard="high_risk", ended_at=ended_at)
    waiting = commit("2", held, at=day(1))
    await db.apply(known, waiting, commit("b", added("Has asthma.", category="health"), scope=BOB))
    is_end = action != "merge"
    assert await disputed(db) == ({"Is allergic to nuts."} if is_end else set())
    part = commit("3", merged("Is badly allergic to nuts.", fact_id_at(known), category="health"), at=day(2))
    await db.apply(part)
    assert await disputed(db) == ({"Is badly allergic to nuts."} if is_end else set())
    await db.apply(commit("4", pending_rejected(fact_id_at(waiting)), at=day(3)))
    assert await disputed(db) == set()


async def test_what_a_confirmation_ends_is_disputed_no_longer(db: ProjectedDatabase) -> None:
    known = commit("1", added("Is allergic to nuts.", category="health"))
    waiting = commit("2", pending("It is over.", fact_id_at(known), action="retract", ended_at=day(1)), at=day(1))
    await db.apply(known, waiting)
    confirmation = pending_confirmed(fact_id_at(waiting), fact_id_at(known), action="retract", ended_at=day(1))
    await db.apply(commit("3", confirmation, at=day(2)))
    every = await facts(db.conn, MINE, all_versions=True, at=day(9))
    assert [(one.status, one.disputed) for one in every] == [("retracted", False), ("active", False)]
