"""The fold: what each event does to facts, and what never changes anything."""

from dataclasses import replace
from typing import Any

import pytest

from mnemolog.projections.write.fold import FoldState, fold
from mnemolog.projections.write.rows import Changes, KnownFact, LogPosition, TimedFactState
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.policy import LimitHit
from mnemolog.schemas.scope import scope_columns
from tests.support.builders.commits import (
    ALICE,
    BOB,
    added,
    commit,
    confirmed,
    contradicted,
    day,
    fact_id_at,
    merged,
    replaced,
    skipped,
)

FIRST = commit("t1", added("Alice lives in Bern.", confidence=0.8), at=day(1))
BERN = fact_id_at(FIRST)
BEGUN = FIRST.decided_at
DECIDED = day(2).replace(second=3)


def folded(state: FoldState, committed: Commit, offset: int = 0) -> tuple[Changes, FoldState]:
    changes = fold(state, committed, LogPosition(partition=0, offset=offset), committed.to_bytes())
    return changes, state.apply(changes)


@pytest.fixture
def state() -> FoldState:
    """One active fact of Alice's."""
    return folded(FoldState(), FIRST)[1]


def state_of(state: FoldState) -> TimedFactState:
    return state.facts[BERN].state


def expected_state(**fields: Any) -> TimedFactState:
    """The fact of Bern, changed in the second commit."""
    defaults: dict[str, Any] = {
        "confidence": 0.8,
        "believed_from": BEGUN,
        "state_since": DECIDED,
        "true_from": FIRST.occurred_at,
    }
    return TimedFactState(**defaults | fields)


def test_added_is_active(state: FoldState) -> None:
    assert state_of(state) == expected_state(state_since=BEGUN)


def test_added_keeps_that_it_is_unresolved() -> None:
    changes, _ = folded(FoldState(), commit("t2", added("Perhaps Rome.", unresolved=True)))
    assert [row.state.unresolved for row in changes.facts] == [True]


def test_skipped_is_a_mention(state: FoldState) -> None:
    changes, state = folded(state, commit("t2", skipped(BERN), at=day(2)))
    assert state_of(state) == expected_state(mention_count=2, last_confirmed_at=day(2))
    assert changes.facts == []
    assert [(row.fact_id, row.targets, row.stale) for row in changes.events] == [(BERN, (), False)]


def test_an_earlier_mention_does_not_turn_time_back(state: FoldState) -> None:
    for number in (5, 2):
        _, state = folded(state, commit(f"at {number}", skipped(BERN), at=day(number)))
    assert state_of(state).last_confirmed_at == day(5)


def test_confirmed_takes_a_quarter_of_the_doubt(state: FoldState) -> None:
    _, state = folded(state, commit("t2", confirmed(BERN), at=day(2)))
    assert state_of(state).confidence == pytest.approx(0.85)
    assert state_of(state).mention_count == 2


def test_a_commit_confirms_a_fact_once(state: FoldState) -> None:
    _, state = folded(state, commit("t2", confirmed(BERN), confirmed(BERN), at=day(2)))
    assert state_of(state).confidence == pytest.approx(0.85)
    assert state_of(state).mention_count == 3


def test_merged_leaves_one_richer_fact(state: FoldState) -> None:
    second = commit("t2", merged("Alice lives in the old town of Bern.", BERN), at=day(2))
    changes, state = folded(state, second)
    assert state_of(state) == expected_state(status="superseded", believed_to=DECIDED, superseded_by=fact_id_at(second))
    assert [row.supersedes for row in changes.facts] == [(BERN,)]


def test_replaced_was_true_until_then(state: FoldState) -> None:
    second = commit("t2", replaced("Alice lives in Rome.", BERN, ended_at=day(1.5)), at=day(2))
    _, state = folded(state, second)
    assert state_of(state) == expected_state(
        status="superseded", true_to=day(1.5), closed_at=DECIDED, superseded_by=fact_id_at(second)
    )
    assert state.facts[fact_id_at(second)].state.status == "active"


def test_contradicted_was_never_true(state: FoldState) -> None:
    second = commit("t2", contradicted("Alice never lived in Bern.", BERN), at=day(2))
    _, state = folded(state, second)
    assert state_of(state) == expected_state(status="archived", believed_to=DECIDED, superseded_by=fact_id_at(second))


def test_a_stale_target_stays_and_the_new_fact_stands_beside_it(state: FoldState) -> None:
    _, state = folded(state, commit("t2", replaced("Alice lives in Rome.", BERN), at=day(2)))
    before = state_of(state)
    third = commit("t3", replaced("Alice lives in Oslo.", BERN), at=day(3))
    changes, state = folded(state, third, offset=2)
    assert state_of(state) == before
    assert state.facts[fact_id_at(third)].state.status == "active"
    assert [(row.stale, row.supersedes) for row in changes.facts] == [(True, ())]
    assert [row.stale for row in changes.events] == [True]
    assert [(row.item, row.reason, row.record) for row in changes.rejections] == [(1, "stale_target", None)]
    assert "is superseded" in changes.rejections[0].detail


def test_an_unknown_target_is_stale() -> None:
    changes, _ = folded(FoldState(), commit("t2", confirmed(BERN)))
    assert [(row.reason, row.item) for row in changes.rejections] == [("stale_target", 1)]
    assert changes.updates == []


def test_no_event_touches_another_scope(state: FoldState) -> None:
    changes, after = folded(state, commit("b1", contradicted("Bob lives in Bern.", BERN), scope=BOB))
    assert after.facts[BERN] == state.facts[BERN]
    assert [row.reason for row in changes.rejections] == ["foreign_target"]
    assert [row.stale for row in changes.facts] == [True]


def test_sound_targets_of_a_partly_stale_event_take_effect(state: FoldState) -> None:
    other = commit("t2", added("Alice likes Bern."), at=day(1))
    _, state = folded(state, other)
    gone = KnownFact(fact_id=fact_id_at(other), scope=scope_columns(ALICE), state=expected_state(status="expired"))
    state = replace(state, facts={**state.facts, gone.fact_id: gone})
    changes, state = folded(state, commit("t3", merged("Alice likes living in Bern.", BERN, gone.fact_id), at=day(2)))
    assert state_of(state).status == "superseded"
    assert state.facts[gone.fact_id] == gone
    assert [(row.supersedes, row.stale) for row in changes.facts] == [((BERN,), True)]


def test_events_of_one_commit_follow_one_another() -> None:
    added_then = commit("t1", added("Alice lives in Bern."), replaced("Alice lives in Rome.", BERN), confirmed(BERN))
    changes, state = folded(FoldState(), added_then)
    assert state_of(state).status == "superseded"
    assert [row.state.status for row in changes.facts] == ["superseded", "active"]
    assert changes.updates == []
    assert [row.item for row in changes.rejections] == [3]


def test_the_first_commit_of_a_source_wins(state: FoldState) -> None:
    changes, after = folded(state, commit("t1", added("Alice lives in Oslo."), at=day(9)), offset=7)
    assert after == state
    (rejection,) = changes.rejections
    assert (rejection.item, rejection.reason, rejection.source_id) == (0, "duplicate_source", "t1")
    assert rejection.record is not None
    assert changes == Changes(rejections=[rejection])


def refused_for_a_limit(attempt: int) -> Commit:
    limit = LimitHit(name="active_facts", level="scope", count=7, limit=7)
    return commit("t2", outcome="rejected", reason="active_facts", limit=limit, attempt=attempt)


def test_a_source_that_was_refused_for_a_limit_may_come_again(state: FoldState) -> None:
    _, state = folded(state, refused_for_a_limit(1))
    _, state = folded(state, refused_for_a_limit(2))
    changes, state = folded(state, commit("t2", added("Alice likes Bern."), attempt=3))
    assert [row.commit.attempt for row in changes.commits] == [3]
    again, _ = folded(state, commit("t2", added("Alice likes Bern."), attempt=4))
    assert [rejection.reason for rejection in again.rejections] == ["duplicate_source"]


def test_a_turn_that_failed_may_come_again_and_a_command_may_not(state: FoldState) -> None:
    failed = commit("t2", outcome="failed", reason="invalid_reply")
    _, state = folded(state, failed)
    changes, _ = folded(state, commit("t2", added("Alice likes Bern."), attempt=2))
    assert [row.commit.attempt for row in changes.commits] == [2]
    _, state = folded(state, commit("c2", outcome="failed", source_kind="command"))
    again, _ = folded(state, commit("c2", source_kind="command", attempt=2))
    assert [rejection.reason for rejection in again.rejections] == ["duplicate_source"]


@pytest.mark.parametrize("attempt", [1, 3])
def test_only_the_next_attempt_follows_a_refusal(state: FoldState, attempt: int) -> None:
    _, state = folded(state, refused_for_a_limit(1))
    changes, _ = folded(state, commit("t2", added("Alice likes Bern."), attempt=attempt))
    assert [rejection.reason for rejection in changes.rejections] == ["duplicate_source"]


def test_equal_source_ids_of_two_owners_are_two_sources(state: FoldState) -> None:
    changes, _ = folded(state, commit("t1", added("Bob lives in Oslo."), scope=BOB))
    assert len(changes.facts) == 1


def test_only_commits_with_events_or_a_speaker_move_a_scope() -> None:
    changes, _ = folded(FoldState(), commit("t1"))
    assert changes.scope_increments == []
    changes, _ = folded(FoldState(), commit("t1", speaker="Alice", scope=None))
    assert changes.scope_increments == []
    changes, _ = folded(FoldState(), commit("t1", speaker="Alice"))
    assert [(step.commits, step.speakers) for step in changes.scope_increments] == [(1, ("Alice",))]
    changes, _ = folded(FoldState(), FIRST)
    assert [(step.owner, step.commits) for step in changes.scope_increments] == [("default/alice", 1)]


def test_a_commit_without_a_scope_is_its_own_owner() -> None:
    changes, _ = folded(FoldState(), commit("conversation_turns/0/1", scope=None, outcome="failed"))
    assert [row.commit.owner for row in changes.commits] == ["conversation_turns/0/1"]
