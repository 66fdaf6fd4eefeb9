"""The fold of what decisions can do beyond adding and replacing: ends, relations, conflicts, policies."""

from dataclasses import replace
from typing import Any

import pytest

from mnemolog.projections.rows import FactState, FormerRow, RelationRow
from mnemolog.schemas.command import tenant_scope
from mnemolog.schemas.policy import Policy
from tests.builders import (
    ALICE,
    BOB,
    Draft,
    added,
    commit,
    confirmed,
    corrected,
    day,
    event_of,
    expired,
    extended,
    fact_of,
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
from tests.telling import BEGUN, BERN, DECIDED, FIRST, LATER, TEA, Story, reversal, stood


@pytest.fixture
def story() -> Story:
    return Story()


def test_late_news_is_history_from_the_beginning(story: Story) -> None:
    late = story.says("t2", added("Alice lived in Rome.", ended_at=day(0), ended_by=BERN))
    assert story.stands(fact_of(late)) == FactState(
        status="superseded",
        confidence=0.95,
        true_to=day(0),
        closed_at=DECIDED,
        believed_from=DECIDED,
        superseded_by=BERN,
        state_since=DECIDED,
    )
    assert story.stands(BERN) == stood(state_since=BEGUN)


@pytest.mark.parametrize(("draft", "relation"), [(extended, "extends"), (related, "similar")])
def test_what_adds_to_a_fact_leaves_it_as_it_is(story: Story, draft: Any, relation: Any) -> None:
    said = story.says("t2", draft("Alice lives in the old town.", BERN))
    assert story.changes.relations == (
        RelationRow(fact_id=fact_of(said), related_id=BERN, relation=relation, event_id=event_of(said), since=DECIDED),
    )
    assert story.changes.updates == ()
    assert [row.supersedes for row in story.changes.facts] == [()]


def test_retracted_ended_with_nothing_in_its_place(story: Story) -> None:
    said = story.says("t2", retracted(BERN, ended_at=day(1.5), text="Alice no longer lives in Bern."))
    assert story.stands(BERN) == stood(
        status="retracted", true_to=day(1.5), closed_at=DECIDED, superseded_by=fact_of(said)
    )
    assert story.stands(fact_of(said)).status == "active"
    assert [row.supersedes for row in story.changes.facts] == [()]
    assert [(row.fact_id, row.targets) for row in story.changes.events] == [(fact_of(said), (BERN,))]


def test_deleted_leaves_what_is_believed(story: Story) -> None:
    story.says("c1", retracted(BERN, TEA))
    assert story.stands(BERN) == stood(status="retracted", believed_to=DECIDED)
    assert story.changes.facts == ()
    assert [(row.fact_id, row.targets) for row in story.changes.events] == [(BERN, (BERN, TEA))]


def test_expired_was_true_until_then(story: Story) -> None:
    story.says("c1", expired(BERN, ended_at=day(1.5)))
    assert story.stands(BERN) == stood(status="expired", true_to=day(1.5), closed_at=DECIDED)


@pytest.mark.parametrize("draft", [replaced, expired, retracted])
def test_an_end_that_is_still_to_come_is_noted_and_closed_when_it_has(story: Story, draft: Any) -> None:
    told = draft("From Thursday on.", BERN, ended_at=day(2.5)) if draft is replaced else None
    told = told or draft(BERN, ended_at=day(2.5), text="Until Thursday.")
    said = story.says("t2", told)
    announced = stood(true_to=day(2.5), closed_at=DECIDED, superseded_by=fact_of(said))
    assert story.stands(BERN) == announced
    story.says("timer", expired(BERN, ended_at=day(2.5)), at=day(3))
    assert story.stands(BERN) == replace(announced, status="expired", closed_at=LATER, state_since=LATER)


def test_corrected_never_was_so_or_was_so_until_then(story: Story) -> None:
    said = story.says(
        "c1", corrected("Alice lives in Basel.", BERN), corrected("Alice liked tea.", TEA, ended_at=day(0))
    )
    assert story.stands(BERN) == stood(status="superseded", believed_to=DECIDED, superseded_by=fact_of(said))
    assert story.stands(TEA) == stood(
        status="superseded", confidence=0.95, true_to=day(0), closed_at=DECIDED, superseded_by=fact_of(said, 1)
    )
    assert [(row.fact.authority, row.state.confidence, row.supersedes) for row in story.changes.facts] == [
        ("human", 1.0, (BERN,)),
        ("human", 1.0, (TEA,)),
    ]


@pytest.mark.parametrize(
    ("action", "new", "old"),
    [
        ("keep_both", stood(confidence=0.95, believed_from=DECIDED, state_since=LATER), stood(state_since=BEGUN)),
        (
            "keep_old",
            stood(
                status="archived",
                confidence=0.95,
                believed_from=DECIDED,
                believed_to=LATER,
                superseded_by=BERN,
                state_since=LATER,
            ),
            stood(state_since=BEGUN),
        ),
        (
            "replace",
            stood(confidence=0.95, believed_from=DECIDED, state_since=LATER),
            stood(status="superseded", true_to=day(2), closed_at=LATER, state_since=LATER),
        ),
        (
            "contradict",
            stood(confidence=0.95, believed_from=DECIDED, state_since=LATER),
            stood(status="archived", believed_to=LATER, state_since=LATER),
        ),
    ],
)
def test_an_unresolved_fact_is_settled(story: Story, action: str, new: FactState, old: FactState) -> None:
    fact_id = fact_of(story.says("t2", added("Alice lives in Rome.", unresolved=True)))
    story.says("c1", resolved(fact_id, BERN, action=action, ended_at=day(2)), at=day(3))
    assert story.stands(fact_id) == new
    ends = action in ("replace", "contradict")
    assert story.stands(BERN) == (replace(old, superseded_by=fact_id) if ends else old)


def test_a_mere_mention_leaves_a_conflict_unresolved(story: Story) -> None:
    fact_id = fact_of(story.says("t2", added("Alice lives in Rome.", unresolved=True)))
    story.says("t3", skipped(fact_id), confirmed(fact_id))
    assert story.stands(fact_id).unresolved
    story.says("t4", merged("Alice lives in Rome and Bern.", fact_id, BERN))
    assert not story.stands(fact_id).unresolved


def test_every_change_leaves_how_it_stood_before(story: Story) -> None:
    said = story.says("t2", skipped(BERN), replaced("Alice lives in Rome.", BERN, ended_at=day(1.5)))
    assert story.changes.former == (
        FormerRow(fact_id=BERN, event_id=event_of(said), state=stood(state_since=BEGUN), until=DECIDED),
        FormerRow(
            fact_id=BERN,
            event_id=event_of(said, 1),
            state=stood(mention_count=2, last_confirmed_at=day(2)),
            until=DECIDED,
        ),
    )


def test_a_clock_that_went_back_leaves_no_overlap(story: Story) -> None:
    story.says("t2", skipped(BERN), at=day(5))
    story.says("t3", skipped(BERN), at=day(4))
    (former,) = story.changes.former
    assert former.until == former.state.state_since == story.stands(BERN).state_since


def test_a_policy_holds_for_its_scope_or_its_tenant(story: Story) -> None:
    policy = Policy(add_only=True)
    story.says("c1", policy_set(policy))
    assert [(row.scope, row.event.policy) for row in story.changes.policies] == [
        (("default", "alice", "", "", ""), policy)
    ]
    assert [(row.fact_id, row.targets) for row in story.changes.events] == [(None, ())]
    story.happens(commit("c1", policy_set(policy, level="tenant"), scope=tenant_scope("acme")))
    assert [row.scope for row in story.changes.policies] == [("acme", "", "", "", "")]


def test_a_tenants_policy_is_set_nowhere_but_in_its_own_scope(story: Story) -> None:
    story.says("c1", policy_set(Policy(add_only=True), level="tenant"))
    assert story.changes.policies == ()
    assert [row.reason for row in story.changes.rejections] == ["foreign_target"]
    assert [row.stale for row in story.changes.events] == [True]


FOREIGN: dict[str, Draft] = {
    "extended": extended("x", BERN),
    "retracted": retracted(BERN),
    "expired": expired(BERN),
    "pending": pending("x", BERN),
    "pending_confirmed": pending_confirmed(BERN),
    "pending_rejected": pending_rejected(BERN),
    "corrected": corrected("x", BERN),
    "resolved": resolved(BERN, TEA),
    "undone": undone(event_of(FIRST), reversal(BERN, "active")),
}


@pytest.mark.parametrize("draft", FOREIGN.values(), ids=FOREIGN.keys())
def test_no_event_reaches_into_another_scope(story: Story, draft: Draft) -> None:
    before = {fact_id: story.stands(fact_id) for fact_id in (BERN, TEA)}
    story.happens(commit("b1", draft, scope=BOB, at=day(2)))
    assert {fact_id: story.stands(fact_id) for fact_id in (BERN, TEA)} == before
    assert [row.reason for row in story.changes.rejections] == ["foreign_target"]
    assert story.changes.relations == ()
    assert story.changes.undone == ()
    assert ALICE.owner not in {step.owner for step in story.changes.steps}
