"""What decisions leave in the tables beside facts, on a real Postgres."""

from datetime import timedelta

import pytest

from mnemolog.schemas.policy import LimitHit
from tests.support.builders.commits import added, commit, confirmed, day, event_id_at, fact_id_at, retracted
from tests.support.builders.sample_logs import every_decision_log
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
FIRST = commit("t1", added("Alice lives in Bern."), at=day(1))
BERN = fact_id_at(FIRST)


async def test_what_was_decided_is_written(db: ProjectedDatabase) -> None:
    await db.apply(*every_decision_log())
    rel = "SELECT new.text, relation, old.text FROM fact_relations AS r JOIN facts AS new USING (fact_id)"
    assert await db.rows(f"{rel} JOIN facts AS old ON old.fact_id = r.related_id ORDER BY 2") == [
        ("More.", "extends", "Fact 0."),
        ("Like.", "similar", "Fact 0."),
    ]
    held = "SELECT text, action, guard, settlement, settled_at, settled_by FROM pending_confirmations AS p"
    settled = every_decision_log()[4]
    assert await db.rows(f"{held} JOIN facts USING (fact_id) ORDER BY 1") == [
        ("B.", "contradict", "high_confidence", "confirmed", settled.decided_at, event_id_at(settled)),
        ("C.", "contradict", "high_confidence", "rejected", settled.decided_at, event_id_at(settled, 1)),
    ]
    replacing, undo, redone = every_decision_log()[7:10]
    assert await db.rows("SELECT event_id, undone_by FROM undone") == [(event_id_at(undo), event_id_at(redone))]
    assert await db.rows("SELECT source_id, undoes FROM memory_events WHERE undoes IS NOT NULL ORDER BY 1") == [
        ("c1", event_id_at(replacing)),
        ("c2", event_id_at(undo)),
    ]
    by_model = "SELECT event_id, prompt_version FROM memory_events WHERE model = 'm'"
    assert await db.rows(by_model) == [(event_id_at(replacing), "p")]
    assert await db.rows("SELECT user_id, policy ->> 'note' FROM policies") == [("alice", "for now")]
    ordered_by = "SELECT source_id, order_kind, actor, outcome FROM commits WHERE source_kind = 'command' ORDER BY 1"
    assert await db.rows(ordered_by) == [
        ("c1", "undo", None, "done"),
        ("c2", "undo", None, "done"),
        ("c3", "set_policy", "ops", "done"),
    ]


async def test_how_a_fact_stood_is_kept(db: ProjectedDatabase) -> None:
    await db.apply(FIRST, commit("t2", confirmed(BERN), at=day(2)), commit("t3", retracted(BERN)))
    former = (
        "SELECT since, until, status, mention_count, confidence, believed_to FROM former_states ORDER BY until, since"
    )
    begun, second, third = (day(number) + timedelta(seconds=3) for number in (1, 2, 2))
    assert await db.rows(former) == [
        (begun, second, "active", 1, 0.95, None),
        (second, third, "active", 2, pytest.approx(0.9625), None),
    ]


async def test_a_source_that_was_refused_for_a_limit_comes_again(db: ProjectedDatabase) -> None:
    limit = LimitHit(name="turns_per_minute", level="scope", count=2, limit=1)
    refused = commit("t1", outcome="rejected", reason="limit", limit=limit)
    await db.apply(refused)
    await db.apply(commit("t1", added("A."), attempt=2), refused)
    found = "SELECT attempt, outcome, limit_hit ->> 'name' FROM commits ORDER BY 1"
    assert await db.rows(found) == [(1, "rejected", "turns_per_minute"), (2, "facts", None)]
    assert await db.rows("SELECT reason FROM rejections") == [("duplicate_source",)]
    assert await db.rows("SELECT source_id FROM turns") == []
