"""What is held, unresolved and stale, what feedback says of searches, and what models cost, counted from real tables.

`test_overwrite_figures.py` has the overwrites.
"""

from datetime import date, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest
from prometheus_client import REGISTRY

from mnemolog.projections.queries.quality import CostFigures, FeedbackFigures, decision_quality
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.rebuild.rebuild import rebuild
from mnemolog.projections.rebuild.replay import TableLogSource
from mnemolog.schemas.command import Feedback
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.costs import Cost, ModelPrice, PriceTable
from mnemolog.schemas.policy import LimitHit
from mnemolog.schemas.provenance import Step
from mnemolog.schemas.scope import Scope
from mnemolog.streams.runtime.loops import update_quality_metrics
from tests.support.builders.commits import (
    ALICE,
    BOB,
    START_TIME,
    added,
    command_commit,
    commit,
    day,
    fact_id_at,
    pending,
    pending_confirmed,
    pending_rejected,
    replaced,
    retracted,
)
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
TENANT = ScopeFilter(user_id="**", agent_id="**", app_id="**", run_id="**")
IDS = [uuid4() for _ in range(12)]
ASKED = Step(
    stage="extract",
    milliseconds=1,
    model="m1",
    llm_calls=1,
    input_tokens=1_000_000,
    cached_tokens=500_000,
    output_tokens=100_000,
)
EMBEDDED = Step(stage="embed", milliseconds=1, model="e1", embedding_calls=0.5, input_tokens=200_000)
USED_AGAIN = Step(stage="embed", milliseconds=1, model="e1", stored_replies=1)
UNCOUNTED = Step(stage="resolve", milliseconds=1, model="m2", llm_calls=1)
PRICES = PriceTable(
    (
        ModelPrice(model="m1", input=Decimal(2), cached_input=Decimal(1), output=Decimal(10)),
        ModelPrice(model="e1", input=Decimal("0.5")),
    )
)
USAGE = "SELECT * FROM daily_usage ORDER BY 1, 2, 3, 4, 5, 6, 7, 8"


async def test_pending_facts_are_counted_until_they_are_settled(db: ProjectedDatabase) -> None:
    known = commit("0", *(added(f"Old {number}.") for number in range(4)))
    old = [fact_id_at(known, number) for number in range(4)]
    held = commit("1", *(pending(f"New {number}.", old[number]) for number in range(4)), at=day(1))
    await db.apply(
        *(known, held),
        commit("2", pending_confirmed(fact_id_at(held, 0), old[0]), at=day(2)),
        commit("3", pending_rejected(fact_id_at(held, 1)), at=day(4)),
        commit("4", retracted(fact_id_at(held, 2)), at=day(4)),
    )
    quality = (await decision_quality(db.conn, None, day(0), day(20))).held
    assert (quality.held, quality.confirmed, quality.rejected, quality.overtaken, quality.open) == (4, 1, 1, 1, 1)
    assert quality.resolution_rate == pytest.approx(0.5)
    assert timedelta(seconds=quality.oldest_seconds) == day(20) - held.decided_at
    assert timedelta(seconds=quality.median_seconds) == timedelta(days=3)
    await update_quality_metrics(db.pool, day(3))
    assert REGISTRY.get_sample_value("mnemolog_pending") == 1
    waited = (day(3) - held.decided_at).total_seconds()
    assert REGISTRY.get_sample_value("mnemolog_pending_oldest_seconds") == waited


async def test_unresolved_and_stale_are_counted_and_scopes_are_kept_apart(db: ProjectedDatabase) -> None:
    known = commit("0", added("Old."))
    doubtful = commit("1", added("Doubtful.", unresolved=True), replaced("New.", fact_id_at(known)), at=day(1))
    await db.apply(known, doubtful, commit("2", replaced("Too late.", fact_id_at(known)), at=day(2)))
    for scope, counted, rates in ((ALICE, (1, 1, [1]), (0.25, 0.0)), (BOB, (0, 0, []), (None, None))):
        found = await decision_quality(db.conn, ScopeFilter.of_scope(scope), day(0), day(20))
        assert (found.unresolved, found.stale, [row.overwrites for row in found.overwrites]) == counted
        assert (found.overwrite_rate, found.wrong_overwrite_rate) == rates  # a rule decided, and nobody took it back


def feedback(number: int, shown: list[UUID], used: list[UUID], scope: Scope = ALICE, *, at: float = 1) -> Commit:
    payload = Feedback(shown=tuple(shown), used=tuple(used), query="Where?")
    return command_commit(f"c{number}", payload, scope=scope, at=day(at))


async def feedback_figures(db: ProjectedDatabase, scope: Scope | None = ALICE) -> FeedbackFigures:
    within = ScopeFilter.of_scope(scope) if scope else None
    return (await decision_quality(db.conn, within, day(0), day(20))).feedback


async def test_recall_counts_what_was_used_by_the_rank_at_which_it_was_shown(db: ProjectedDatabase) -> None:
    used = [feedback(1, IDS[:12], [IDS[0], IDS[11]]), feedback(2, IDS[:2], [IDS[1], IDS[5]]), feedback(3, [], [IDS[7]])]
    await db.apply(*used)
    found = await feedback_figures(db)
    assert found.used_at_rank == {1: 1, 2: 1, 12: 1}
    assert (found.used, found.missed) == (5, 2)
    assert found.recall_at == {1: 0.2, 5: 0.4, 10: 0.4, 20: 0.6}
    await update_quality_metrics(db.pool, day(2))
    shown = {
        rank: REGISTRY.get_sample_value("mnemolog_recent_feedback_facts", {"rank": rank})
        for rank in ("1", "2-5", "6-10", "11-20", "21+", "missed")
    }
    assert shown == {"1": 1, "2-5": 1, "6-10": 0, "11-20": 1, "21+": 0, "missed": 2}


async def test_other_scopes_other_times_and_commands_that_were_refused_do_not_count(db: ProjectedDatabase) -> None:
    refused = feedback(3, IDS[:1], IDS[:1]).model_copy(update={"outcome": "rejected", "reason": "invalid_command"})
    await db.apply(feedback(1, IDS[:1], IDS[:1], BOB), feedback(2, IDS[:1], IDS[:1], at=30), refused)
    assert await feedback_figures(db) == FeedbackFigures()
    assert (await feedback_figures(db)).recall_at == dict.fromkeys((1, 5, 10, 20))
    assert (await feedback_figures(db, None)).used == 1


async def costs(
    db: ProjectedDatabase, scope: ScopeFilter | None = TENANT, last: int = 1, prices: PriceTable = PRICES
) -> CostFigures:
    return (await decision_quality(db.conn, scope, day(0), day(last), prices=prices)).costs


async def test_costs_are_those_of_the_days_and_of_the_scopes_that_are_asked_for(db: ProjectedDatabase) -> None:
    await db.apply(
        commit("1", added("A."), steps=[ASKED, EMBEDDED]), commit("2", added("B."), scope=BOB, steps=[ASKED])
    )
    await db.apply(commit("3", at=day(1), steps=[EMBEDDED]), commit("4", at=day(3), steps=[ASKED]))
    found = await costs(db)
    assert (found.first, found.last, found.turns) == (START_TIME.date(), day(1).date(), 3)
    assert {one.model: (one.input_tokens, one.cached_tokens, one.output_tokens) for one in found.models} == {
        "e1": (400_000, 0, 0),
        "m1": (2_000_000, 1_000_000, 200_000),
    }
    assert {one.model: one.cost.amount for one in found.models} == {"e1": "0.2", "m1": "5"}
    assert (found.total, found.per_thousand_turns) == (
        Cost(amount="5.2", known="5.2"),
        Cost(amount="1733.333333333", known="1733.333333333"),
    )
    assert (await costs(db, ScopeFilter.of_scope(BOB))).total.amount == "2.5"
    assert (await costs(db, None)).total.amount == "5.2"
    assert (await costs(db, ScopeFilter.of_scope(Scope(user_id="nobody")))).per_thousand_turns is None


async def test_an_unknown_or_a_new_price_changes_what_is_told_and_nothing_that_is_stored(db: ProjectedDatabase) -> None:
    await db.apply(commit("1", added("A."), steps=[EMBEDDED]), commit("2", at=day(1), steps=[EMBEDDED]))
    before = await db.rows(USAGE)
    doubled = ModelPrice(model="e1", input=Decimal(1), since=day(1).date())
    assert (await costs(db, None, prices=PriceTable((doubled, *PRICES.prices)))).total.amount == "0.3"
    assert (await costs(db, None)).total.amount == "0.2"
    assert await db.rows(USAGE) == before
    await db.apply(commit("3", at=day(1), steps=[UNCOUNTED]))
    found = await costs(db)
    assert (found.total, found.per_thousand_turns) == (Cost(amount=None, known="0.2", unknown=("m2",)), None)
    assert (await costs(db, prices=PriceTable())).total.unknown == ("e1", "m2")


def refused_turn(attempt: int, at_day: int = 0, steps: tuple[Step, ...] = (EMBEDDED,)) -> Commit:
    hit = LimitHit(name="active_facts", level="tenant", count=2, limit=1)
    rejected: dict[str, Any] = {"outcome": "rejected", "reason": "limit", "limit": hit}
    return commit("1", steps=steps, attempt=attempt, at=day(at_day), **rejected)


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize(
    ("again", "both_days"),
    [
        pytest.param((USED_AGAIN,), "0.1", id="uses stored replies"),
        pytest.param((EMBEDDED,), "0.2", id="asks anew"),
        pytest.param((USED_AGAIN, ASKED), "2.6", id="asks one of two anew"),
        pytest.param((), "0.1", id="is refused before it asks"),
    ],
)
async def test_each_attempt_of_a_turn_counts_what_it_paid_for(
    db: ProjectedDatabase, again: tuple[Step, ...], both_days: str, *, together: bool
) -> None:
    last = commit("1", added("A."), steps=[USED_AGAIN], attempt=3, at=day(1))
    log = [refused_turn(1), refused_turn(2, 1, again), last]
    for part in [log] if together else [[one] for one in log]:
        await db.apply(*part)
    assert (await costs(db, last=0)).total.amount == "0.1"
    assert (await costs(db)).total.amount == both_days
    assert await db.rows("SELECT sum(uncounted)::int FROM daily_usage") == [(0,)]
    if not together:  # a rebuild folds the log together
        assert (await rebuild(db.url, TableLogSource(db.pool))).equal


async def test_a_day_is_one_of_utc(db: ProjectedDatabase) -> None:
    late = START_TIME.replace(hour=23, minute=59, second=58) + timedelta(seconds=1)  # published a second later
    await db.apply(commit("1", added("A."), at=late, steps=[EMBEDDED]))
    assert await db.rows("SELECT DISTINCT day FROM daily_usage") == [(date(2026, 1, 2),)]
