"""The fold of what decisions can do beyond adding and replacing: ends, what is held back, undoing, policies."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from projections.fold import fold
from projections.rows import Changes, FactState, FormerState, LogPosition, RelationRow, UndoneRow
from projections.state import State
from schemas.command import tenant_scope
from schemas.commit import Commit
from schemas.events import Reversal
from schemas.facts import FactStatus
from schemas.policy import Policy
from tests.builders import (
    ALICE,
    BOB,
    Draft,
    added,
    commit,
    confirmed,
    contradicted,
    corrected,
    day,
    decided,
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

SECOND = day(2)
BEGUN, DECIDED, LATER = (day(number) + timedelta(seconds=3) for number in (1, 2, 3))
FIRST = commit("t1", added("Alice lives in Bern.", confidence=0.8), added("Alice likes tea."), at=day(1))
BERN, TEA = fact_of(FIRST), fact_of(FIRST, 1)


class Story:
    """A log of Alice's, folded commit by commit; the first one is known."""

    def __init__(self) -> None:
        self.state = State()
        self.changes = Changes()
        self.happens(FIRST)

    def happens(self, committed: Commit) -> Commit:
        self.changes = fold(self.state, committed, LogPosition(partition=0, offset=0), committed.to_bytes())
        self.state = self.state.after(self.changes)
        return committed

    def says(self, source_id: str, *drafts: Draft, at: datetime = SECOND) -> Commit:
        return self.happens(commit(source_id, *drafts, at=at))

    def stands(self, fact_id: UUID) -> FactState:
        return self.state.facts[fact_id].state

    @property
    def settled(self) -> list[tuple[UUID, str | None]]:
        return [(row.fact_id, row.settlement) for row in self.changes.settlements]


@pytest.fixture
def story() -> Story:
    return Story()


def stood(**fields: Any) -> FactState:
    """The fact of Bern, changed in the second commit."""
    defaults: dict[str, Any] = {"confidence": 0.8, "believed_from": BEGUN, "state_since": DECIDED}
    return FactState(**defaults | fields)


def reversal(fact_id: UUID, now: FactStatus, before: FactState | None = None) -> Reversal:
    return Reversal(fact_id=fact_id, now=now, before=before.standing if before else None)


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


@pytest.fixture
def held(story: Story) -> UUID:
    """A fact that would contradict that of Bern."""
    return fact_of(story.says("t2", pending("Alice lives in Rome.", BERN, confidence=0.6)))


def test_pending_waits_and_is_not_believed(story: Story, held: UUID) -> None:
    assert story.stands(held) == FactState(
        status="pending_confirmation", confidence=0.6, believed_from=None, state_since=DECIDED
    )
    assert story.stands(BERN) == stood(state_since=BEGUN)
    assert [(row.event.fact.fact_id, row.settled) for row in story.changes.pending] == [(held, None)]


def test_a_pending_fact_is_mentioned_and_confirmed_like_others(story: Story, held: UUID) -> None:
    story.says("t3", skipped(held), confirmed(held))
    assert story.stands(held).mention_count == 3
    assert story.stands(held).status == "pending_confirmation"
    assert story.changes.settlements == ()


ENDS = {
    "merge": {"status": "superseded", "believed_to": LATER},
    "replace": {"status": "superseded", "true_to": day(2), "closed_at": LATER},
    "contradict": {"status": "archived", "believed_to": LATER},
    "retract": {"status": "retracted", "true_to": day(2), "closed_at": LATER},
    "expire": {"status": "expired", "true_to": day(2), "closed_at": LATER},
}


@pytest.mark.parametrize(("action", "end"), ENDS.items(), ids=ENDS)
def test_a_second_statement_lets_the_pending_do_what_it_was_held_back_from(
    story: Story, held: UUID, action: str, end: dict[str, Any]
) -> None:
    ended_at = day(2) if "true_to" in end else None
    story.says("t3", pending_confirmed(held, BERN, action=action, ended_at=ended_at, text="It is Rome."), at=day(3))
    assert story.stands(held) == stood(
        confidence=pytest.approx(0.7),
        mention_count=2,
        last_confirmed_at=day(3),
        believed_from=LATER,
        state_since=LATER,
    )
    assert story.stands(BERN) == stood(**end, superseded_by=held, state_since=LATER)
    assert story.settled == [(held, "confirmed")]


def test_a_human_makes_it_as_sure_as_what_is_said_explicitly(story: Story, held: UUID) -> None:
    story.says("c1", decided(pending_confirmed(held, BERN), by="human"), at=day(3))
    assert (story.stands(held).confidence, story.stands(held).mention_count) == (0.95, 1)


def test_a_pending_fact_that_is_no_more_ends_nothing(story: Story, held: UUID) -> None:
    story.says("c1", retracted(held))
    assert story.settled == [(held, "deleted")]
    assert story.stands(held).believed_to is None
    story.says("t3", pending_confirmed(held, BERN, text="It is Rome."), at=day(3))
    assert story.changes.updates == ()
    assert [row.reason for row in story.changes.rejections] == ["stale_target"]


def test_a_statement_of_the_old_fact_rejects_the_pending_and_confirms_the_old(story: Story, held: UUID) -> None:
    story.says("t3", pending_rejected(held, confirmed=BERN, text="Bern it is."), at=day(3))
    assert (story.stands(held).status, story.stands(held).believed_from) == ("archived", None)
    assert story.stands(BERN) == stood(
        confidence=pytest.approx(0.85), mention_count=2, last_confirmed_at=day(3), state_since=LATER
    )
    assert story.settled == [(held, "rejected")]
    assert [(row.fact_id, row.targets) for row in story.changes.events] == [(held, (BERN,))]


def test_a_command_that_rejects_confirms_nothing(story: Story, held: UUID) -> None:
    story.says("c1", pending_rejected(held, confirmed=BERN), at=day(3))
    assert [known.fact_id for known in story.changes.updates] == [held]


@pytest.mark.parametrize("draft", [merged, replaced, contradicted])
def test_a_pending_fact_can_be_overtaken(story: Story, held: UUID, draft: Any) -> None:
    story.says("t3", draft("Alice lives in Basel.", held), at=day(3))
    assert story.settled == [(held, "overtaken")]
    assert story.stands(held).believed_from is None


def test_what_is_settled_at_once_is_one_row(story: Story) -> None:
    made = commit("t2", pending("Rome.", BERN))
    story.happens(commit("t2", pending("Rome.", BERN), pending_confirmed(fact_of(made), BERN)))
    assert [row.settled and row.settled.settlement for row in story.changes.pending] == ["confirmed"]
    assert story.changes.settlements == ()


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
        FormerState(fact_id=BERN, event_id=event_of(said), state=stood(state_since=BEGUN), until=DECIDED),
        FormerState(
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


def test_undo_puts_back_what_was_and_undoing_that_what_had_been_done(story: Story) -> None:
    said = story.says("t2", replaced("Alice lives in Rome.", BERN, ended_at=day(1.5)))
    rome, event_id = fact_of(said), event_of(said)
    done = {fact_id: story.stands(fact_id) for fact_id in (BERN, rome)}
    taken_back = story.says(
        "c1",
        undone(event_id, reversal(BERN, "superseded", stood(state_since=BEGUN)), reversal(rome, "active")),
        at=day(3),
    )
    assert story.stands(BERN) == stood(state_since=LATER)
    assert (story.stands(rome).status, story.stands(rome).believed_to) == ("undone", LATER)
    assert story.changes.undone == (UndoneRow(event_id=event_id, undone_by=event_of(taken_back), since=LATER),)
    assert [(row.fact_id, row.targets) for row in story.changes.events] == [(None, (BERN, rome))]

    story.says(
        "c2",
        undone(
            event_of(taken_back),
            reversal(BERN, "active", done[BERN]),
            reversal(rome, "undone", done[rome]),
            undone_event="decision_undone",
            reinstated=event_id,
        ),
        at=day(4),
    )
    assert {fact_id: story.stands(fact_id).standing for fact_id in done} == {
        fact_id: state.standing for fact_id, state in done.items()
    }
    assert [(row.event_id, row.undone_by is None) for row in story.changes.undone] == [
        (event_of(taken_back), False),
        (event_id, True),
    ]


def test_an_undo_of_what_has_changed_since_changes_nothing(story: Story) -> None:
    said = story.says("t2", replaced("Alice lives in Rome.", BERN))
    story.says("c1", undone(event_of(said), reversal(BERN, "active", stood())), at=day(3))
    assert story.stands(BERN).status == "superseded"
    assert story.changes.undone == ()
    assert [row.reason for row in story.changes.rejections] == ["stale_target"]


def test_a_confirmation_that_is_taken_back_leaves_the_fact_pending_again(story: Story, held: UUID) -> None:
    before = story.stands(held)
    said = story.says("t3", pending_confirmed(held, text="Rome."), at=day(3))
    story.says("c1", undone(event_of(said), reversal(held, "active", before)), at=day(4))
    assert story.settled == [(held, None)]
    assert story.stands(held).standing == before.standing


def test_a_pending_fact_that_is_undone_is_settled(story: Story, held: UUID) -> None:
    story.says("c1", undone(event_of(commit("t2", added(""))), reversal(held, "pending_confirmation")), at=day(3))
    assert story.settled == [(held, "undone")]
    story.says("c2", undone(event_of(commit("c1", added(""))), reversal(held, "undone", story.stands(held))), at=day(4))
    assert story.settled == []


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
