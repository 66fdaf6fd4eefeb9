"""What models took and what it costs, by model and day, counted from real tables."""

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest

from mnemolog.projections.queries.quality import CostFigures, decision_quality
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.rebuild.rebuild import rebuild
from mnemolog.projections.rebuild.replay import TableLogSource
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.costs import Cost, ModelPrice, PriceTable
from mnemolog.schemas.policy import LimitHit
from mnemolog.schemas.provenance import Step
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import BOB, START_TIME, added, commit, day
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
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
UNCOUNTED = Step(stage="resolve", milliseconds=1, model="m2", llm_calls=1)
PRICES = PriceTable(
    (
        ModelPrice(model="m1", input=Decimal(2), cached_input=Decimal(1), output=Decimal(10)),
        ModelPrice(model="e1", input=Decimal("0.5")),
    )
)
USAGE = "SELECT * FROM daily_usage ORDER BY 1, 2, 3, 4, 5, 6, 7, 8"


async def costs(
    db: ProjectedDatabase, scope: ScopeFilter | None, first: int = 0, last: int = 1, prices: PriceTable = PRICES
) -> CostFigures:
    return (await decision_quality(db.conn, scope, day(first), day(last), prices=prices)).costs


def whole_tenant() -> ScopeFilter:
    return ScopeFilter(user_id="**", agent_id="**", app_id="**", run_id="**")


async def test_costs_are_those_of_the_days_and_of_the_scopes_that_are_asked_for(db: ProjectedDatabase) -> None:
    await db.apply(
        commit("1", added("A."), steps=[ASKED, EMBEDDED]), commit("2", added("B."), scope=BOB, steps=[ASKED])
    )
    await db.apply(commit("3", at=day(1), steps=[EMBEDDED]), commit("4", at=day(3), steps=[ASKED]))
    found = await costs(db, whole_tenant())
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


async def test_an_unknown_price_is_told(db: ProjectedDatabase) -> None:
    await db.apply(commit("1", added("A."), steps=[EMBEDDED, UNCOUNTED]))
    found = await costs(db, whole_tenant())
    assert (found.total, found.per_thousand_turns) == (Cost(amount=None, known="0.1", unknown=("m2",)), None)
    assert (await costs(db, whole_tenant(), prices=PriceTable())).total.unknown == ("e1", "m2")


async def test_a_new_price_changes_what_is_told_and_nothing_that_is_stored(db: ProjectedDatabase) -> None:
    await db.apply(commit("1", added("A."), steps=[EMBEDDED]), commit("2", at=day(1), steps=[EMBEDDED]))
    before = await db.rows(USAGE)
    doubled = ModelPrice(model="e1", input=Decimal(1), since=day(1).date())
    assert (await costs(db, None, prices=PriceTable((doubled, *PRICES.prices)))).total.amount == "0.3"
    assert (await costs(db, None)).total.amount == "0.2"
    assert await db.rows(USAGE) == before
    assert (await rebuild(db.url, TableLogSource(db.pool))).equal


def refused(attempt: int, at_day: int = 0, **fields: Any) -> Commit:
    hit = LimitHit(name="active_facts", level="tenant", count=2, limit=1)
    given: dict[str, Any] = {"steps": [EMBEDDED], "attempt": attempt, "at": day(at_day)} | fields
    return commit("1", outcome="rejected", reason="limit", limit=hit, **given)


USED_AGAIN = Step(stage="embed", milliseconds=1, model="e1", stored_replies=1)


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize(
    ("again", "first_day", "both_days"),
    [([USED_AGAIN], "0.1", "0.1"), ([EMBEDDED], "0.1", "0.2"), ([USED_AGAIN, ASKED], "0.1", "2.6"), ([], "0.1", "0.1")],
    ids=["used_again", "asked_anew", "one_of_two", "refused_before_it_asks"],
)
async def test_each_attempt_of_a_turn_counts_what_it_paid_for(
    db: ProjectedDatabase, again: list[Step], first_day: str, both_days: str, together: bool
) -> None:
    log = [refused(1), refused(2, 1, steps=again), commit("1", added("A."), steps=[USED_AGAIN], attempt=3, at=day(1))]
    for part in [log] if together else [[one] for one in log]:
        await db.apply(*part)
    assert (await costs(db, whole_tenant(), last=0)).total.amount == first_day
    assert (await costs(db, whole_tenant())).total.amount == both_days
    assert await db.rows("SELECT sum(uncounted)::int FROM daily_usage") == [(0,)]
    assert (await rebuild(db.url, TableLogSource(db.pool))).equal


async def test_a_day_is_one_of_utc(db: ProjectedDatabase) -> None:
    late = START_TIME.replace(hour=23, minute=59, second=58) + timedelta(seconds=1)  # published a second later
    await db.apply(commit("1", added("A."), at=late, steps=[EMBEDDED]))
    ((found,),) = await db.rows("SELECT DISTINCT day FROM daily_usage")
    assert found == date(START_TIME.year, START_TIME.month, START_TIME.day + 1)
