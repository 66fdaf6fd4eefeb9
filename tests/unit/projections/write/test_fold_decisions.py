"""The fold of what decisions can do beyond adding and replacing: ends, relations, conflicts, policies."""

from dataclasses import replace
from typing import Any

import pytest

from mnemolog.projections.write.rows import FormerStateRow, RelationRow, TimedFactState
from mnemolog.schemas.command import tenant_scope
from mnemolog.schemas.policy import Policy
from tests.support.builders.commits import (
    ALICE,
    BOB,
    Draft,
    added,
    commit,
    confirmed,
    corrected,
    day,
    event_id_at,
    expired,
    extended,
    fact_id_at,
    merged,
    pending,
    pending_confirmed,
    pending_rejected,
    policy_set,
    related,
    replaced,
    resolved,
    retracted,
    skipped,
    undone,
)
from tests.support.harnesses.fold_harness import (
    BERN,
    FIRST_COMMIT,
    FIRST_DECIDED_AT,
    SECOND_DECIDED_AT,
    TEA,
    THIRD_DECIDED_AT,
    FoldHarness,
    expected_state,
    reversal,
)


@pytest.fixture
def harness() -> FoldHarness:
    return FoldHarness()


def test_late_news_is_history_from_the_beginning(harness: FoldHarness) -> None:
    late = harness.commit("t2", added("Alice lived in Rome.", ended_at=day(0), ended_by=BERN))
    assert harness.state_of(fact_id_at(late)) == TimedFactState(
        status="superseded",
        confidence=0.95,
        true_from=day(2),
        true_to=day(0),
        closed_at=SECOND_DECIDED_AT,
        believed_from=SECOND_DECIDED_AT,
        superseded_by=BERN,
        state_since=SECOND_DECIDED_AT,
    )
    assert harness.state_of(BERN) == expected_state(state_since=FIRST_DECIDED_AT)


@pytest.mark.parametrize(("draft", "relation"), [(extended, "extends"), (related, "similar")])
def test_what_adds_to_a_fact_leaves_it_as_it_is(harness: FoldHarness, draft: Any, relation: Any) -> None:
    said = harness.commit("t2", draft("Alice lives in the old town.", BERN))
    assert harness.changes.relations == [
        RelationRow(
            fact_id=fact_id_at(said),
            related_id=BERN,
            relation=relation,
            event_id=event_id_at(said),
            since=SECOND_DECIDED_AT,
        ),
    ]
    assert harness.changes.updates == []
    assert [row.supersedes for row in harness.changes.facts] == [()]


def test_retracted_ended_with_nothing_in_its_place(harness: FoldHarness) -> None:
    said = harness.commit("t2", retracted(BERN, ended_at=day(1.5), text="Alice no longer lives in Bern."))
    assert harness.state_of(BERN) == expected_state(
        status="retracted", true_to=day(1.5), closed_at=SECOND_DECIDED_AT, superseded_by=fact_id_at(said)
    )
    assert harness.state_of(fact_id_at(said)).status == "active"
    assert [row.supersedes for row in harness.changes.facts] == [()]
    assert [(row.fact_id, row.targets) for row in harness.changes.events] == [(fact_id_at(said), (BERN,))]


def test_deleted_leaves_what_is_believed(harness: FoldHarness) -> None:
    harness.commit("c1", retracted(BERN, TEA))
    assert harness.state_of(BERN) == expected_state(status="retracted", believed_to=SECOND_DECIDED_AT)
    assert harness.changes.facts == []
    assert [(row.fact_id, row.targets) for row in harness.changes.events] == [(BERN, (BERN, TEA))]


def test_expired_was_true_until_then(harness: FoldHarness) -> None:
    harness.commit("c1", expired(BERN, ended_at=day(1.5)))
    assert harness.state_of(BERN) == expected_state(status="expired", true_to=day(1.5), closed_at=SECOND_DECIDED_AT)


@pytest.mark.parametrize("draft", [replaced, expired, retracted])
def test_an_end_that_is_still_to_come_is_noted_and_closed_when_it_has(harness: FoldHarness, draft: Any) -> None:
    draft_of_end = draft("From Thursday on.", BERN, ended_at=day(2.5)) if draft is replaced else None
    draft_of_end = draft_of_end or draft(BERN, ended_at=day(2.5), text="Until Thursday.")
    said = harness.commit("t2", draft_of_end)
    announced = expected_state(true_to=day(2.5), closed_at=SECOND_DECIDED_AT, superseded_by=fact_id_at(said))
    assert harness.state_of(BERN) == announced
    harness.commit("timer", expired(BERN, ended_at=day(2.5)), at=day(3))
    assert harness.state_of(BERN) == replace(
        announced, status="expired", closed_at=THIRD_DECIDED_AT, state_since=THIRD_DECIDED_AT
    )


def test_corrected_never_was_so_or_was_so_until_then(harness: FoldHarness) -> None:
    said = harness.commit(
        "c1", corrected("Alice lives in Basel.", BERN), corrected("Alice liked tea.", TEA, ended_at=day(0))
    )
    assert harness.state_of(BERN) == expected_state(
        status="superseded", believed_to=SECOND_DECIDED_AT, superseded_by=fact_id_at(said)
    )
    assert harness.state_of(TEA) == expected_state(
        status="superseded",
        confidence=0.95,
        true_to=day(0),
        closed_at=SECOND_DECIDED_AT,
        superseded_by=fact_id_at(said, 1),
    )
    assert [(row.fact.authority, row.state.confidence, row.supersedes) for row in harness.changes.facts] == [
        ("human", 1.0, (BERN,)),
        ("human", 1.0, (TEA,)),
    ]


@pytest.mark.parametrize(
    ("action", "new", "old"),
    [
        (
            "keep_both",
            expected_state(
                confidence=0.95, true_from=day(2), believed_from=SECOND_DECIDED_AT, state_since=THIRD_DECIDED_AT
            ),
            expected_state(state_since=FIRST_DECIDED_AT),
        ),
        (
            "keep_old",
            expected_state(
                status="archived",
                confidence=0.95,
                true_from=day(2),
                believed_from=SECOND_DECIDED_AT,
                believed_to=THIRD_DECIDED_AT,
                superseded_by=BERN,
                state_since=THIRD_DECIDED_AT,
            ),
            expected_state(state_since=FIRST_DECIDED_AT),
        ),
        (
            "replace",
            expected_state(
                confidence=0.95, true_from=day(2), believed_from=SECOND_DECIDED_AT, state_since=THIRD_DECIDED_AT
            ),
            expected_state(
                status="superseded", true_to=day(2), closed_at=THIRD_DECIDED_AT, state_since=THIRD_DECIDED_AT
            ),
        ),
        (
            "contradict",
            expected_state(
                confidence=0.95, true_from=day(2), believed_from=SECOND_DECIDED_AT, state_since=THIRD_DECIDED_AT
            ),
            expected_state(status="archived", believed_to=THIRD_DECIDED_AT, state_since=THIRD_DECIDED_AT),
        ),
    ],
)
def test_an_unresolved_fact_is_settled(
    harness: FoldHarness, action: str, new: TimedFactState, old: TimedFactState
) -> None:
    fact_id = fact_id_at(harness.commit("t2", added("Alice lives in Rome.", unresolved=True)))
    harness.commit("c1", resolved(fact_id, BERN, action=action, ended_at=day(2)), at=day(3))
    assert harness.state_of(fact_id) == new
    ends = action in ("replace", "contradict")
    assert harness.state_of(BERN) == (replace(old, superseded_by=fact_id) if ends else old)


def test_a_mere_mention_leaves_a_conflict_unresolved(harness: FoldHarness) -> None:
    fact_id = fact_id_at(harness.commit("t2", added("Alice lives in Rome.", unresolved=True)))
    harness.commit("t3", skipped(fact_id), confirmed(fact_id))
    assert harness.state_of(fact_id).unresolved
    harness.commit("t4", merged("Alice lives in Rome and Bern.", fact_id, BERN))
    assert not harness.state_of(fact_id).unresolved


def test_every_change_leaves_how_it_stood_before(harness: FoldHarness) -> None:
    said = harness.commit("t2", skipped(BERN), replaced("Alice lives in Rome.", BERN, ended_at=day(1.5)))
    assert harness.changes.former_states == [
        FormerStateRow(
            fact_id=BERN,
            event_id=event_id_at(said),
            state=expected_state(state_since=FIRST_DECIDED_AT),
            until=SECOND_DECIDED_AT,
        ),
        FormerStateRow(
            fact_id=BERN,
            event_id=event_id_at(said, 1),
            state=expected_state(mention_count=2, last_confirmed_at=day(2)),
            until=SECOND_DECIDED_AT,
        ),
    ]


def test_a_clock_that_went_back_leaves_no_overlap(harness: FoldHarness) -> None:
    harness.commit("t2", skipped(BERN), at=day(5))
    harness.commit("t3", skipped(BERN), at=day(4))
    (former,) = harness.changes.former_states
    assert former.until == former.state.state_since == harness.state_of(BERN).state_since


def test_a_policy_holds_for_its_scope_or_its_tenant(harness: FoldHarness) -> None:
    policy = Policy(add_only=True)
    harness.commit("c1", policy_set(policy))
    assert [(row.scope, row.event.policy) for row in harness.changes.policies] == [
        (("default", "alice", "", "", ""), policy)
    ]
    assert [(row.fact_id, row.targets) for row in harness.changes.events] == [(None, ())]
    harness.apply(commit("c1", policy_set(policy, level="tenant"), scope=tenant_scope("acme")))
    assert [row.scope for row in harness.changes.policies] == [("acme", "", "", "", "")]


def test_a_tenants_policy_is_set_nowhere_but_in_its_own_scope(harness: FoldHarness) -> None:
    harness.commit("c1", policy_set(Policy(add_only=True), level="tenant"))
    assert harness.changes.policies == []
    assert [row.reason for row in harness.changes.rejections] == ["foreign_target"]
    assert [row.stale for row in harness.changes.events] == [True]


FOREIGN: dict[str, Draft] = {
    "extended": extended("x", BERN),
    "retracted": retracted(BERN),
    "expired": expired(BERN),
    "pending": pending("x", BERN),
    "pending_confirmed": pending_confirmed(BERN),
    "pending_rejected": pending_rejected(BERN),
    "corrected": corrected("x", BERN),
    "resolved": resolved(BERN, TEA),
    "undone": undone(event_id_at(FIRST_COMMIT), reversal(BERN, "active")),
}


@pytest.mark.parametrize("draft", FOREIGN.values(), ids=FOREIGN.keys())
def test_no_event_reaches_into_another_scope(harness: FoldHarness, draft: Draft) -> None:
    before = {fact_id: harness.state_of(fact_id) for fact_id in (BERN, TEA)}
    harness.apply(commit("b1", draft, scope=BOB, at=day(2)))
    assert {fact_id: harness.state_of(fact_id) for fact_id in (BERN, TEA)} == before
    assert [row.reason for row in harness.changes.rejections] == ["foreign_target"]
    assert harness.changes.relations == []
    assert harness.changes.undone == []
    assert ALICE.owner not in {step.owner for step in harness.changes.scope_increments}


def test_an_undo_that_finds_nothing_as_it_was_takes_nothing_out_of_effect(harness: FoldHarness) -> None:
    moved = harness.commit("t2", replaced("Alice lives in Rome.", BERN))
    stale = reversal(fact_id_at(moved), "archived", expected_state())
    harness.commit("u1", undone(event_id_at(moved), stale, undone_event="fact_replaced"), at=day(3))
    assert not harness.changes.undone
    sound = reversal(BERN, "superseded", expected_state())
    harness.commit("u2", undone(event_id_at(moved), sound, undone_event="fact_replaced"), at=day(4))
    assert [row.event_id for row in harness.changes.undone] == [event_id_at(moved)]
