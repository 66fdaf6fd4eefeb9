"""The facts that a context holds whatever the question is, asked of a real Postgres."""

from typing import Any

import pytest

from mnemolog.projections.context import lasting_facts
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import ALICE, BOB, added, commit, day, fact_id_at, pending, replaced
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
MINE = ScopeFilter.of_scope(ALICE)


async def texts(db: ProjectedDatabase, at: float = 0.5, *, scopes: tuple[ScopeFilter, ...] = (MINE,)) -> list[str]:
    return sorted(fact.text for fact in await lasting_facts(db.conn, scopes, day(at)))


async def test_they_are_those_of_any_of_the_four_categories_in_exactly_one_scope(db: ProjectedDatabase) -> None:
    categories = ["hard_preference", "health", "finance", "task_context", "soft_preference", "identity", "other"]
    ended = [added(f"No longer a {name}.", category=name, action_hint="retract") for name in categories]
    several = [added(f"B {name}.", category="finance", more_categories=(name,)) for name in ("task_context", "hobby")]
    await db.apply(commit("1", *(added(f"A {name}.", category=name) for name in categories), *ended, *several))
    health = added("B health.", category="health")
    await db.apply(commit("2", health, scope=BOB), commit("3", health, scope=Scope(user_id="alice", run_id="r1")))
    assert await texts(db) == [
        "A hard_preference.",
        "A health.",
        "A soft_preference.",
        "A task_context.",
        "B task_context.",
    ]
    run = ScopeFilter(user_id="alice", run_id="r1")
    assert await texts(db, scopes=(run, ScopeFilter.of_scope(BOB))) == ["B health.", "B health."]


async def test_what_has_ended_was_replaced_or_waits_is_no_lasting_fact(db: ProjectedDatabase) -> None:
    task: dict[str, Any] = {"category": "task_context"}
    first = commit("1", added("Paints.", **task), added("Packs.", **task, valid_until=day(2)))
    await db.apply(first, commit("2", replaced("Sands.", fact_id_at(first), ended_at=day(1), **task), at=day(1)))
    assert await texts(db, 1.5) == ["Packs.", "Sands."]
    assert await texts(db, 2.5) == ["Sands."]
    await db.apply(commit("3", pending("Saws.", fact_id_at(first, 1), **task), at=day(1.1)))
    assert await texts(db, 1.5) == ["Packs.", "Sands."]


async def test_of_health_what_happened_at_a_time_is_none_of_them(db: ProjectedDatabase) -> None:
    lasting: list[tuple[str, dict[str, Any]]] = [
        ("Is allergic to nuts.", {"importance_category": "stable_preference"}),
        ("Fainted after penicillin in 2019.", {"event_time": day(-3), "importance_category": "biographical_milestone"}),
        ("Is in bed.", {"importance_category": "specific_event"}),
        ("Takes aspirin since May.", {"event_time": day(-3)}),
    ]
    passed: list[tuple[str, dict[str, Any]]] = [
        (f"Was at the dentist ({kind}).", {"event_time": day(-1), "importance_category": kind})
        for kind in ("specific_event", "routine_activity", "conversational")
    ]
    drafts = [added(text, category="health", **fields) for text, fields in (*lasting, *passed)]
    dated: dict[str, Any] = {"event_time": day(-1), "importance_category": "specific_event"}
    await db.apply(commit("1", *drafts, added("Sold the boat.", category="task_context", **dated)))
    assert await texts(db) == sorted([*(text for text, _ in lasting), "Sold the boat."])
