"""The fold of what is held back until it is confirmed, and of what is taken back."""

from typing import Any
from uuid import UUID

import pytest

from mnemolog.projections.rows import FactState, UndoneRow
from tests.builders import (
    added,
    commit,
    confirmed,
    contradicted,
    day,
    decided,
    event_of,
    fact_of,
    merged,
    pending,
    pending_confirmed,
    pending_rejected,
    replaced,
    retracted,
    skipped,
    undone,
)
from tests.telling import BEGUN, BERN, DECIDED, LATER, Story, reversal, stood


@pytest.fixture
def story() -> Story:
    return Story()


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


@pytest.mark.parametrize("settles", [pending_confirmed, pending_rejected])
def test_what_is_not_pending_is_not_settled(story: Story, settles: Any) -> None:
    story.says("t2", settles(BERN))
    assert story.stands(BERN) == stood(state_since=BEGUN)
    assert [row.reason for row in story.changes.rejections] == ["stale_target"]


def test_what_is_rejected_was_never_believed(story: Story, held: UUID) -> None:
    story.says("t3", pending_rejected(held), at=day(3))
    assert (story.stands(held).status, story.stands(held).believed_to) == ("archived", None)


def test_an_end_comes_with_its_very_moment_and_settles_what_was_unresolved(story: Story) -> None:
    doubted = fact_of(story.says("t2", added("Alice lives in Rome.", unresolved=True)))
    story.says("t3", retracted(doubted, ended_at=day(99), text="She will leave."), at=day(3))
    assert (story.stands(doubted).status, story.stands(doubted).unresolved) == ("active", True)
    story.says("t4", retracted(doubted, ended_at=LATER, text="She left."), at=day(3))
    assert (story.stands(doubted).status, story.stands(doubted).unresolved) == ("retracted", False)
