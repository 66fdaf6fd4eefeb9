"""The counts that limits read are those of the rows, whatever happened; on a real Postgres."""

from datetime import timedelta
from typing import Any

import pytest

from mnemolog.projections.stores.turns import LimitReservations
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.policy import EffectivePolicy, Level, LimitHit, Limits, Policy, TurnUsage
from mnemolog.schemas.provenance import Step
from tests.support.builders.commits import ALICE, BOB, START_TIME, added, commit, day
from tests.support.builders.sample_logs import every_decision_log
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

OPEN = """
SELECT tenant, user_id, agent_id, count(*) FILTER (WHERE status IN ('active', 'pending_confirmation'))
FROM facts GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""
COUNTED = "SELECT tenant, user_id, agent_id, facts FROM scopes ORDER BY 1, 2, 3"
TENANTS = "SELECT tenant, sum(facts)::bigint FROM tenant_facts GROUP BY 1 ORDER BY 1"
OPEN_OF_TENANTS = """
SELECT tenant, count(*) FILTER (WHERE status IN ('active', 'pending_confirmation')) FROM facts GROUP BY 1 ORDER BY 1
"""
USED = Step(stage="extract", milliseconds=1, input_tokens=5, output_tokens=2)


async def test_counted_facts_are_the_open_ones(db: ProjectedDatabase) -> None:
    await db.apply(*every_decision_log())
    for one in every_decision_log(BOB):  # one after another: each in a transaction of its own
        await db.apply(one, partition=1)
    rows = await db.rows(OPEN)
    assert len(rows) == 2
    assert all(count > 0 for *_, count in rows)
    assert await db.rows(COUNTED) == rows
    assert await db.rows(TENANTS) == await db.rows(OPEN_OF_TENANTS)
    assert [row[0] for row in await db.rows("SELECT partition FROM tenant_facts ORDER BY 1")] == [0, 1]


def refused(source_id: str, attempt: int = 1, **fields: Any) -> Commit:
    hit = LimitHit(name="active_facts", level="tenant", count=2, limit=1)
    given: dict[str, Any] = {"steps": [USED], "attempt": attempt} | fields
    return commit(source_id, outcome="rejected", reason="limit", limit=hit, **given)


@pytest.mark.parametrize("level", ["scope", "tenant"])
@pytest.mark.parametrize("together", [True, False])
async def test_tokens_of_a_day_are_those_that_each_attempt_paid_for(
    db: ProjectedDatabase, level: Level, together: bool
) -> None:
    """A turn of yesterday counts there. The second attempt of t2 was asked anew, later ones got stored replies."""
    log = [
        commit("t1", added("one"), steps=[USED]),
        commit("yesterday", at=START_TIME - timedelta(days=1), steps=[USED]),
        commit("free"),
        refused("t2"),
        refused("t2", attempt=2),
        commit("t2", attempt=3),
        refused("t3"),
        refused("t3", attempt=2, steps=[]),
    ]
    for part in [log] if together else [[one] for one in log]:
        await db.apply(*part)
    assert [await used_tokens(db, level, source_id) for source_id in ("new", "t2", "t3")] == [28, 28, 28]
    assert await used_tokens(db, level, "new", days=1) == 0


async def used_tokens(db: ProjectedDatabase, level: Level, source_id: str, days: int = 0) -> int:
    """What a turn of this id finds used, as the limit that it would just exceed says."""
    rules = EffectivePolicy().overlaid_by(Policy(limits=Limits(tokens_per_day=1)), level)
    usage = TurnUsage(owner=ALICE.owner, source_id=source_id, scope=ALICE, published_at=day(days), facts=0, tokens=1000)
    hit = await LimitReservations(db.pool).check(usage, rules)
    assert hit is not None
    return int(hit.count) - 1000
