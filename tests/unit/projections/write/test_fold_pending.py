"""The fold of what is held back until it is confirmed, and of what is taken back."""

from typing import Any, Final
from uuid import UUID

import pytest

from mnemolog.projections.write.rows import TimedFactState, UndoneRow
from tests.support.builders.commits import (
    Draft,
    added,
    commit,
    confirmed,
    contradicted,
    day,
    event_id_at,
    fact_id_at,
    merged,
    pending,
    pending_confirmed,
    pending_rejected,
    replaced,
    retracted,
    skipped,
    undone,
    with_decision,
)
from tests.support.harnesses.fold_harness import (
    BERN,
    FIRST_DECIDED_AT,
    SECOND_DECIDED_AT,
    THIRD_DECIDED_AT,
    FoldHarness,
    expected_state,
    reversal,
)


@pytest.fixture
def harness() -> FoldHarness:
    return FoldHarness()


@pytest.fixture
def pending_fact(harness: FoldHarness) -> UUID:
    """A fact that would contradict that of Bern."""
    return fact_id_at(harness.commit("t2", pending("Alice lives in Rome.", BERN, confidence=0.6)))


def test_pending_waits_and_is_not_believed(harness: FoldHarness, pending_fact: UUID) -> None:
    assert harness.state_of(pending_fact) == TimedFactState(
        status="pending_confirmation",
        confidence=0.6,
        true_from=day(2),
        believed_from=None,
        state_since=SECOND_DECIDED_AT,
    )
    assert harness.state_of(BERN) == expected_state(state_since=FIRST_DECIDED_AT)
    assert [(row.event.fact.fact_id, row.settlement_row) for row in harness.changes.pending] == [(pending_fact, None)]


def test_a_pending_fact_is_mentioned_and_confirmed_like_others(harness: FoldHarness, pending_fact: UUID) -> None:
    harness.commit("t3", skipped(pending_fact), confirmed(pending_fact))
    assert harness.state_of(pending_fact).mention_count == 3
    assert harness.state_of(pending_fact).status == "pending_confirmation"
    assert harness.changes.settlements == []


ENDS = {
    "merge": {"status": "superseded", "believed_to": THIRD_DECIDED_AT},
    "replace": {"status": "superseded", "true_to": day(2), "closed_at": THIRD_DECIDED_AT},
    "contradict": {"status": "archived", "believed_to": THIRD_DECIDED_AT},
    "retract": {"status": "retracted", "true_to": day(2), "closed_at": THIRD_DECIDED_AT},
    "expire": {"status": "expired", "true_to": day(2), "closed_at": THIRD_DECIDED_AT},
}


@pytest.mark.parametrize(("action", "end"), ENDS.items(), ids=ENDS)
def test_a_second_statement_lets_the_pending_do_what_it_was_held_back_from(
    harness: FoldHarness, pending_fact: UUID, action: str, end: dict[str, Any]
) -> None:
    ended_at = day(2) if "true_to" in end else None
    harness.commit(
        "t3", pending_confirmed(pending_fact, BERN, action=action, ended_at=ended_at, text="It is Rome."), at=day(3)
    )
    assert harness.state_of(pending_fact) == expected_state(
        confidence=pytest.approx(0.7),
        true_from=day(2),
        mention_count=2,
        last_confirmed_at=day(3),
        believed_from=THIRD_DECIDED_AT,
        state_since=THIRD_DECIDED_AT,
    )
    assert harness.state_of(BERN) == expected_state(**end, superseded_by=pending_fact, state_since=THIRD_DECIDED_AT)
    assert harness.settlements == [(pending_fact, "confirmed")]


def test_a_human_makes_it_as_sure_as_what_is_said_explicitly(harness: FoldHarness, pending_fact: UUID) -> None:
    harness.commit("c1", with_decision(pending_confirmed(pending_fact, BERN), by="human"), at=day(3))
    assert (harness.state_of(pending_fact).confidence, harness.state_of(pending_fact).mention_count) == (0.95, 1)


PENDING: Final = fact_id_at(commit("t2", added("")))
SETTLED: Final[dict[str, tuple[Draft, str, str]]] = {
    "deleted": (retracted(PENDING), "retracted", "deleted"),
    "rejected": (pending_rejected(PENDING), "archived", "rejected"),
    "closed by a policy": (with_decision(pending_rejected(PENDING), by="policy"), "archived", "overtaken"),
    "merged": (merged("Basel.", PENDING), "superseded", "overtaken"),
    "replaced": (replaced("Basel.", PENDING), "superseded", "overtaken"),
    "contradicted": (contradicted("Basel.", PENDING), "archived", "overtaken"),
    "undone": (undone(PENDING, reversal(PENDING, "pending_confirmation")), "undone", "undone"),
}


@pytest.mark.parametrize(("draft", "status", "settlement"), SETTLED.values(), ids=SETTLED)
def test_a_pending_fact_that_ends_is_settled_and_never_was_believed(
    harness: FoldHarness, pending_fact: UUID, draft: Draft, status: str, settlement: str
) -> None:
    harness.commit("t3", draft, at=day(3))
    assert harness.settlements == [(pending_fact, settlement)]
    state = harness.state_of(pending_fact)
    assert (state.status, state.believed_from, state.believed_to) == (status, None, None)


def test_a_pending_fact_that_is_no_more_ends_nothing(harness: FoldHarness, pending_fact: UUID) -> None:
    harness.commit("c1", retracted(pending_fact))
    harness.commit("t3", pending_confirmed(pending_fact, BERN, text="It is Rome."), at=day(3))
    assert harness.changes.updates == []
    assert [row.reason for row in harness.changes.rejections] == ["stale_target"]


def test_a_statement_of_the_old_fact_rejects_the_pending_and_confirms_the_old(
    harness: FoldHarness, pending_fact: UUID
) -> None:
    harness.commit("t3", pending_rejected(pending_fact, confirmed=BERN, text="Bern it is."), at=day(3))
    assert (harness.state_of(pending_fact).status, harness.state_of(pending_fact).believed_from) == ("archived", None)
    assert harness.state_of(BERN) == expected_state(
        confidence=pytest.approx(0.85), mention_count=2, last_confirmed_at=day(3), state_since=THIRD_DECIDED_AT
    )
    assert harness.settlements == [(pending_fact, "rejected")]
    assert [(row.fact_id, row.targets) for row in harness.changes.events] == [(pending_fact, (BERN,))]


def test_a_command_that_rejects_confirms_nothing(harness: FoldHarness, pending_fact: UUID) -> None:
    harness.commit("c1", pending_rejected(pending_fact, confirmed=BERN), at=day(3))
    assert [known.fact_id for known in harness.changes.updates] == [pending_fact]


def test_what_is_to_end_later_can_be_rejected_before(harness: FoldHarness, pending_fact: UUID) -> None:
    harness.commit("t3", replaced("It will be Basel.", pending_fact, ended_at=day(30)), at=day(3))
    assert harness.settlements == []
    harness.commit("c1", with_decision(pending_rejected(pending_fact), by="human"), at=day(4))
    assert harness.settlements == [(pending_fact, "rejected")]


def test_what_is_settled_at_once_is_one_row(harness: FoldHarness) -> None:
    made = commit("t2", pending("Rome.", BERN))
    harness.apply(commit("t2", pending("Rome.", BERN), pending_confirmed(fact_id_at(made), BERN)))
    assert [row.settlement_row and row.settlement_row.settlement for row in harness.changes.pending] == ["confirmed"]
    assert harness.changes.settlements == []


def test_undo_puts_back_what_was_and_undoing_that_what_had_been_done(harness: FoldHarness) -> None:
    said = harness.commit("t2", replaced("Alice lives in Rome.", BERN, ended_at=day(1.5)))
    rome, event_id = fact_id_at(said), event_id_at(said)
    done = {fact_id: harness.state_of(fact_id) for fact_id in (BERN, rome)}
    taken_back = harness.commit(
        "c1",
        undone(
            event_id,
            reversal(BERN, "superseded", expected_state(state_since=FIRST_DECIDED_AT)),
            reversal(rome, "active"),
        ),
        at=day(3),
    )
    assert harness.state_of(BERN) == expected_state(state_since=THIRD_DECIDED_AT)
    assert (harness.state_of(rome).status, harness.state_of(rome).believed_to) == ("undone", THIRD_DECIDED_AT)
    assert harness.changes.undone == [
        UndoneRow(event_id=event_id, undone_by=event_id_at(taken_back), since=THIRD_DECIDED_AT),
    ]
    assert [(row.fact_id, row.targets) for row in harness.changes.events] == [(None, (BERN, rome))]

    harness.commit(
        "c2",
        undone(
            event_id_at(taken_back),
            reversal(BERN, "active", done[BERN]),
            reversal(rome, "undone", done[rome]),
            undone_event="decision_undone",
            reinstated=event_id,
        ),
        at=day(4),
    )
    assert {fact_id: harness.state_of(fact_id).event_state for fact_id in done} == {
        fact_id: state.event_state for fact_id, state in done.items()
    }
    assert [(row.event_id, row.undone_by is None) for row in harness.changes.undone] == [
        (event_id_at(taken_back), False),
        (event_id, True),
    ]


def test_an_undo_of_what_has_changed_since_changes_nothing(harness: FoldHarness) -> None:
    said = harness.commit("t2", replaced("Alice lives in Rome.", BERN))
    harness.commit("c1", undone(event_id_at(said), reversal(BERN, "active", expected_state())), at=day(3))
    assert harness.state_of(BERN).status == "superseded"
    assert harness.changes.undone == []
    assert [row.reason for row in harness.changes.rejections] == ["stale_target"]


def test_a_confirmation_that_is_taken_back_leaves_the_fact_pending_again(
    harness: FoldHarness, pending_fact: UUID
) -> None:
    before = harness.state_of(pending_fact)
    said = harness.commit("t3", pending_confirmed(pending_fact, text="Rome."), at=day(3))
    harness.commit("c1", undone(event_id_at(said), reversal(pending_fact, "active", before)), at=day(4))
    assert harness.settlements == [(pending_fact, None)]
    assert harness.state_of(pending_fact).event_state == before.event_state


def test_an_undone_pending_fact_stays_settled(harness: FoldHarness, pending_fact: UUID) -> None:
    harness.commit("c1", SETTLED["undone"][0], at=day(3))
    harness.commit(
        "c2",
        undone(event_id_at(commit("c1", added(""))), reversal(pending_fact, "undone", harness.state_of(pending_fact))),
        at=day(4),
    )
    assert harness.settlements == []


@pytest.mark.parametrize("settles", [pending_confirmed, pending_rejected])
def test_what_is_not_pending_is_not_settled(harness: FoldHarness, settles: Any) -> None:
    harness.commit("t2", settles(BERN))
    assert harness.state_of(BERN) == expected_state(state_since=FIRST_DECIDED_AT)
    assert [row.reason for row in harness.changes.rejections] == ["stale_target"]


def test_an_end_comes_with_its_very_moment_and_settles_what_was_unresolved(harness: FoldHarness) -> None:
    doubted = fact_id_at(harness.commit("t2", added("Alice lives in Rome.", unresolved=True)))
    harness.commit("t3", retracted(doubted, ended_at=day(99), text="She will leave."), at=day(3))
    assert (harness.state_of(doubted).status, harness.state_of(doubted).unresolved) == ("active", True)
    harness.commit("t4", retracted(doubted, ended_at=THIRD_DECIDED_AT, text="She left."), at=day(3))
    assert (harness.state_of(doubted).status, harness.state_of(doubted).unresolved) == ("retracted", False)
