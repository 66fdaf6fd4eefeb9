"""The fold: what each event does to facts, held back, confirmed and taken back, and what never changes anything."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

import pytest

from mnemolog.projections.write import projector
from mnemolog.projections.write.fold import FoldState, fold
from mnemolog.projections.write.projector import LogRecord, fold_batch, parse_records
from mnemolog.projections.write.rows import (
    Changes,
    KnownFact,
    LogPosition,
    TimedFactState,
)
from mnemolog.schemas.command import tenant_scope
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.policy import LimitHit, Policy
from mnemolog.schemas.scope import scope_columns
from tests.support.builders.commits import (
    ALICE,
    BOB,
    Draft,
    added,
    commit,
    confirmed,
    contradicted,
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
    with_decision,
)
from tests.support.builders.sample_logs import every_decision_log
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

NEW: Final = fact_id_at(commit("t2", added("")))
"""The fact that the first event of the second commit adds."""
UNCHANGED: Final[dict[str, Any]] = {"state_since": FIRST_DECIDED_AT}


@pytest.fixture
def harness() -> FoldHarness:
    return FoldHarness()


def reasons(harness: FoldHarness) -> list[str]:
    return [row.reason for row in harness.changes.rejections]


MOVED: Final = {"closed_at": SECOND_DECIDED_AT, "superseded_by": NEW}
STATES: Final[dict[str, tuple[Draft, dict[str, Any]]]] = {
    "nothing": (added("Alice has a cat."), UNCHANGED),
    "mention": (skipped(BERN), {"mention_count": 2, "last_confirmed_at": day(2)}),
    "a quarter of the doubt": (
        confirmed(BERN),
        {"confidence": pytest.approx(0.85), "mention_count": 2, "last_confirmed_at": day(2)},
    ),
    "merged": (
        merged("The old town of Bern.", BERN),
        {"status": "superseded", "believed_to": SECOND_DECIDED_AT, "superseded_by": NEW},
    ),
    "replaced": (
        replaced("Rome.", BERN, ended_at=day(1.5)),
        {"status": "superseded", "true_to": day(1.5), **MOVED},
    ),
    "contradicted": (
        contradicted("Never Bern.", BERN),
        {"status": "archived", "believed_to": SECOND_DECIDED_AT, "superseded_by": NEW},
    ),
    "extended": (extended("The old town.", BERN), UNCHANGED),
    "related": (related("The old town.", BERN), UNCHANGED),
    "retracted": (
        retracted(BERN, ended_at=day(1.5), text="No longer."),
        {"status": "retracted", "true_to": day(1.5), **MOVED},
    ),
    "deleted": (retracted(BERN, TEA), {"status": "retracted", "believed_to": SECOND_DECIDED_AT}),
    "expired": (
        expired(BERN, ended_at=day(1.5)),
        {"status": "expired", "true_to": day(1.5), "closed_at": SECOND_DECIDED_AT},
    ),
    "corrected": (
        corrected("Basel.", BERN),
        {"status": "superseded", "believed_to": SECOND_DECIDED_AT, "superseded_by": NEW},
    ),
    "corrected since": (
        corrected("Basel.", BERN, ended_at=day(0)),
        {"status": "superseded", "true_to": day(0), **MOVED},
    ),
    "to be replaced": (replaced("From Thursday on.", BERN, ended_at=day(2.5)), {"true_to": day(2.5), **MOVED}),
    "to expire": (expired(BERN, ended_at=day(2.5), text="Until Thursday."), {"true_to": day(2.5), **MOVED}),
    "to be retracted": (retracted(BERN, ended_at=day(2.5), text="Until Thursday."), {"true_to": day(2.5), **MOVED}),
}


@pytest.mark.parametrize("name", STATES)
def test_an_event_leaves_a_fact_in_a_state_and_its_new_fact_active(harness: FoldHarness, name: str) -> None:
    draft, fields = STATES[name]
    said = harness.commit("t2", draft)
    assert harness.state_of(BERN) == expected_state(**fields)
    ends = name in ("merged", "replaced", "contradicted", "corrected", "corrected since", "to be replaced")
    new = [(row.fact.fact_id, row.state.status, row.supersedes, row.stale) for row in harness.changes.facts]
    assert new == ([(NEW, "active", (BERN,) if ends else (), False)] if said.events[0].new_fact else [])
    assert not any(row.stale for row in harness.changes.events)


@pytest.mark.parametrize("name", [name for name in STATES if name.startswith("to ")])
def test_an_end_that_is_still_to_come_is_closed_when_it_has(harness: FoldHarness, name: str) -> None:
    harness.commit("t2", STATES[name][0])
    announced = harness.state_of(BERN)
    harness.commit("timer", expired(BERN, ended_at=day(2.5)), at=day(3))
    assert harness.state_of(BERN) == replace(
        announced, status="expired", closed_at=THIRD_DECIDED_AT, state_since=THIRD_DECIDED_AT
    )


@pytest.mark.parametrize(
    ("draft", "subject", "targets"),
    [
        (skipped(BERN), BERN, ()),
        (retracted(BERN, ended_at=day(1.5), text="No longer."), NEW, (BERN,)),
        (retracted(BERN, TEA), BERN, (BERN, TEA)),
        (policy_set(Policy()), None, ()),
    ],
)
def test_an_event_has_a_subject_and_targets(harness: FoldHarness, draft: Draft, subject: Any, targets: Any) -> None:
    harness.commit("t2", draft)
    assert [(row.fact_id, row.targets) for row in harness.changes.events] == [(subject, targets)]


def test_late_news_is_history_from_the_beginning(harness: FoldHarness) -> None:
    harness.commit("t2", added("Alice lived in Rome.", ended_at=day(0), ended_by=BERN))
    assert harness.state_of(NEW) == TimedFactState(
        status="superseded",
        confidence=0.95,
        true_from=day(2),
        true_to=day(0),
        closed_at=SECOND_DECIDED_AT,
        believed_from=SECOND_DECIDED_AT,
        superseded_by=BERN,
        state_since=SECOND_DECIDED_AT,
    )
    assert harness.state_of(BERN) == expected_state(**UNCHANGED)


def test_what_a_human_corrects_is_certain(harness: FoldHarness) -> None:
    harness.commit("c1", corrected("Alice lives in Basel.", BERN))
    assert [(row.fact.authority, row.state.confidence) for row in harness.changes.facts] == [("human", 1.0)]


def test_a_commit_confirms_a_fact_once_and_an_earlier_mention_does_not_turn_time_back(harness: FoldHarness) -> None:
    harness.commit("t2", confirmed(BERN), confirmed(BERN), at=day(5))
    harness.commit("t3", skipped(BERN), at=day(2))
    state = harness.state_of(BERN)
    assert state.confidence == pytest.approx(0.85)
    assert (state.mention_count, state.last_confirmed_at) == (4, day(5))


WITHDRAWN: Final = {"status": "archived", "believed_to": THIRD_DECIDED_AT, "state_since": THIRD_DECIDED_AT}


@pytest.mark.parametrize(
    ("action", "new", "old"),
    [
        ("keep_both", {}, UNCHANGED),
        ("keep_old", {**WITHDRAWN, "superseded_by": BERN}, UNCHANGED),
        (
            "replace",
            {},
            {
                "status": "superseded",
                "true_to": day(2),
                "closed_at": THIRD_DECIDED_AT,
                "state_since": THIRD_DECIDED_AT,
                "superseded_by": NEW,
            },
        ),
        ("contradict", {}, {**WITHDRAWN, "superseded_by": NEW}),
    ],
)
def test_an_unresolved_fact_is_settled(
    harness: FoldHarness, action: str, new: dict[str, Any], old: dict[str, Any]
) -> None:
    harness.commit("t2", added("Alice lives in Rome.", unresolved=True))
    assert [row.state.unresolved for row in harness.changes.facts] == [True]
    harness.commit("c1", resolved(NEW, BERN, action=action, ended_at=day(2)), at=day(3))
    begun = {"confidence": 0.95, "true_from": day(2), "believed_from": SECOND_DECIDED_AT}
    assert harness.state_of(NEW) == expected_state(**{**begun, "state_since": THIRD_DECIDED_AT, **new})
    assert harness.state_of(BERN) == expected_state(**old)


def test_a_mere_mention_leaves_a_conflict_unresolved(harness: FoldHarness) -> None:
    harness.commit("t2", added("Alice lives in Rome.", unresolved=True))
    harness.commit("t3", skipped(NEW), confirmed(NEW))
    assert harness.state_of(NEW).unresolved
    harness.commit("t4", merged("Alice lives in Rome and Bern.", NEW, BERN))
    assert not harness.state_of(NEW).unresolved


def test_events_of_one_commit_follow_one_another() -> None:
    said = commit("t1", added("Alice lives in Bern."), replaced("Alice lives in Rome.", BERN), confirmed(BERN))
    changes = fold(FoldState(), said, LogPosition(partition=0, offset=0), b"")
    assert [row.state.status for row in changes.facts] == ["superseded", "active"]
    assert changes.updates == []
    assert [row.item for row in changes.rejections] == [3]


def test_a_stale_target_stays_and_the_new_fact_stands_beside_it(harness: FoldHarness) -> None:
    harness.commit("t2", replaced("Alice lives in Rome.", BERN))
    before = harness.state_of(BERN)
    third = harness.commit("t3", replaced("Alice lives in Oslo.", BERN), at=day(3))
    assert harness.state_of(BERN) == before
    assert harness.state_of(fact_id_at(third)).status == "active"
    assert [(row.stale, row.supersedes) for row in harness.changes.facts] == [(True, ())]
    assert [row.stale for row in harness.changes.events] == [True]
    (rejection,) = harness.changes.rejections
    assert (rejection.item, rejection.reason, rejection.record) == (1, "stale_target", None)
    assert "is superseded" in rejection.detail


def test_sound_targets_of_a_partly_stale_event_take_effect(harness: FoldHarness) -> None:
    gone = KnownFact(fact_id=TEA, scope=scope_columns(ALICE), state=expected_state(status="expired"))
    harness.state = replace(harness.state, facts={**harness.state.facts, TEA: gone})
    harness.commit("t3", merged("Alice likes living in Bern.", BERN, TEA))
    assert harness.state_of(BERN).status == "superseded"
    assert harness.state.facts[TEA] == gone
    assert [(row.supersedes, row.stale) for row in harness.changes.facts] == [((BERN,), True)]


FOREIGN: Final[tuple[Draft, ...]] = (
    contradicted("x", BERN),
    extended("x", BERN),
    retracted(BERN),
    expired(BERN),
    pending("x", BERN),
    pending_confirmed(BERN),
    pending_rejected(BERN),
    corrected("x", BERN),
    resolved(BERN, TEA),
    undone(event_id_at(FIRST_COMMIT), reversal(BERN, "active")),
)


@pytest.mark.parametrize("draft", FOREIGN)
def test_no_event_reaches_into_another_scope(harness: FoldHarness, draft: Draft) -> None:
    before = {fact_id: harness.state_of(fact_id) for fact_id in (BERN, TEA)}
    harness.apply(commit("b1", draft, scope=BOB, at=day(2)))
    assert {fact_id: harness.state_of(fact_id) for fact_id in (BERN, TEA)} == before
    assert reasons(harness) == ["foreign_target"]
    assert all(row.stale for row in harness.changes.facts)
    assert harness.changes.relations == []
    assert harness.changes.undone == []
    assert ALICE.owner not in {step.owner for step in harness.changes.scope_increments}


def test_an_undo_that_finds_nothing_as_it_was_takes_nothing_out_of_effect(harness: FoldHarness) -> None:
    moved = harness.commit("t2", replaced("Alice lives in Rome.", BERN))
    for stale in (reversal(NEW, "archived", expected_state()), reversal(BERN, "active", expected_state())):
        harness.commit(f"of {stale.now}", undone(event_id_at(moved), stale, undone_event="fact_replaced"), at=day(3))
        assert not harness.changes.undone
        assert reasons(harness) == ["stale_target"]
        assert harness.state_of(BERN).status == "superseded"
    sound = reversal(BERN, "superseded", expected_state())
    harness.commit("u2", undone(event_id_at(moved), sound, undone_event="fact_replaced"), at=day(4))
    assert [row.event_id for row in harness.changes.undone] == [event_id_at(moved)]


def test_a_policy_holds_for_its_scope_or_for_its_tenant_in_whose_own_scope_it_is_set(harness: FoldHarness) -> None:
    policy = Policy(add_only=True)
    harness.commit("c1", policy_set(policy))
    assert [(row.scope, row.event.policy) for row in harness.changes.policies] == [
        (("default", "alice", "", "", ""), policy)
    ]
    harness.apply(commit("c1", policy_set(policy, level="tenant"), scope=tenant_scope("acme")))
    assert [row.scope for row in harness.changes.policies] == [("acme", "", "", "", "")]
    harness.commit("c2", policy_set(policy, level="tenant"))
    assert harness.changes.policies == []
    assert reasons(harness) == ["foreign_target"]
    assert [row.stale for row in harness.changes.events] == [True]


LIKES: Final = added("Alice likes Bern.")
LIMIT: Final = LimitHit(name="active_facts", level="scope", count=7, limit=7)


def refused(attempt: int) -> Commit:
    return commit("t2", outcome="rejected", reason="active_facts", limit=LIMIT, attempt=attempt)


@pytest.mark.parametrize(
    ("earlier", "again", "is_applied"),
    [
        ([refused(1), refused(2)], commit("t2", LIKES, attempt=3), True),
        ([refused(1), commit("t2", LIKES, attempt=2)], commit("t2", LIKES, attempt=3), False),
        ([refused(1)], commit("t2", LIKES, attempt=1), False),
        ([refused(1)], commit("t2", LIKES, attempt=3), False),
        ([commit("t2", outcome="failed", reason="invalid_reply")], commit("t2", LIKES, attempt=2), True),
        (
            [commit("t2", outcome="failed", source_kind="command")],
            commit("t2", source_kind="command", attempt=2),
            False,
        ),
        ([], commit("t1", added("Bob lives in Oslo."), scope=BOB), True),
    ],
)
def test_a_source_has_another_commit_only_after_a_failure_or_a_limit(
    harness: FoldHarness, earlier: list[Commit], again: Commit, is_applied: bool
) -> None:
    for one in earlier:
        harness.apply(one)
    harness.apply(again)
    assert [row.commit for row in harness.changes.commits] == ([again] if is_applied else [])
    assert reasons(harness) == ([] if is_applied else ["duplicate_source"])


@pytest.mark.parametrize(
    ("committed", "steps"),
    [
        (commit("t1"), []),
        (commit("t1", speaker="Alice", scope=None), []),
        (commit("t1", speaker="Alice"), [("default/alice", 1, ("Alice",))]),
        (FIRST_COMMIT, [("default/alice", 1, ())]),
    ],
)
def test_only_commits_with_events_or_a_speaker_move_a_scope(committed: Commit, steps: list[Any]) -> None:
    changes = fold(FoldState(), committed, LogPosition(partition=0, offset=0), b"")
    assert [(step.owner, step.commits, step.speakers) for step in changes.scope_increments] == steps


def test_no_commit_of_a_batch_copies_the_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy for each commit would make long batches slower for each commit than short ones."""
    seen: set[int] = set()
    original: Callable[..., Changes] = fold

    def spy(state: FoldState, *more: Any) -> Changes:
        seen.update((id(state), id(state.facts), id(state.applied)))
        return original(state, *more)

    monkeypatch.setattr(projector, "fold", spy)
    state = FoldState()
    log = [LogRecord(offset=offset, value=one.to_bytes()) for offset, one in enumerate(every_decision_log())]
    fold_batch(state, parse_records(0, log))
    assert seen == {id(state), id(state.facts), id(state.applied)}


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
    assert harness.state_of(BERN) == expected_state(**UNCHANGED)
    assert [row.event.fact.fact_id for row in harness.changes.pending] == [pending_fact]
    assert harness.changes.settlements == []


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
    harness.commit("c1", with_decision(pending_confirmed(pending_fact, BERN), by="person"), at=day(3))
    assert (harness.state_of(pending_fact).confidence, harness.state_of(pending_fact).mention_count) == (0.95, 1)


SETTLED: Final[dict[str, tuple[Draft, str, str]]] = {
    "deleted": (retracted(NEW), "retracted", "deleted"),
    "rejected": (pending_rejected(NEW), "archived", "rejected"),
    "closed by a rule": (with_decision(pending_rejected(NEW, overtaken=True), by="rule"), "archived", "overtaken"),
    "merged": (merged("Basel.", NEW), "superseded", "overtaken"),
    "replaced": (replaced("Basel.", NEW), "superseded", "overtaken"),
    "contradicted": (contradicted("Basel.", NEW), "archived", "overtaken"),
    "undone": (undone(NEW, reversal(NEW, "pending_confirmation")), "undone", "undone"),
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
    assert reasons(harness) == ["stale_target"]


@pytest.mark.parametrize(
    ("by", "verdict", "confidence"), [("model", "KEEP", 0.85), ("rule", "KEEP", 0.85), ("rule", None, 0.8)]
)
def test_a_statement_of_the_old_fact_rejects_the_pending_and_confirms_the_old_in_other_words(
    harness: FoldHarness, pending_fact: UUID, by: str, verdict: str | None, confidence: float
) -> None:
    rejected = pending_rejected(pending_fact, confirmed=BERN, text="Bern it is.")
    harness.commit("t3", with_decision(rejected, by=by, verdict=verdict), at=day(3))
    assert (harness.state_of(pending_fact).status, harness.state_of(pending_fact).believed_from) == ("archived", None)
    assert harness.state_of(BERN) == expected_state(
        confidence=pytest.approx(confidence), mention_count=2, last_confirmed_at=day(3), state_since=THIRD_DECIDED_AT
    )
    assert harness.settlements == [(pending_fact, "rejected")]
    assert [(row.fact_id, row.targets) for row in harness.changes.events] == [(pending_fact, (BERN,))]


def test_a_command_that_rejects_confirms_nothing(harness: FoldHarness, pending_fact: UUID) -> None:
    harness.commit("c1", pending_rejected(pending_fact, confirmed=BERN), at=day(3))
    assert [known.fact_id for known in harness.changes.updates] == [pending_fact]


def test_what_is_to_end_later_can_be_rejected_before(harness: FoldHarness, pending_fact: UUID) -> None:
    harness.commit("t3", replaced("It will be Basel.", pending_fact, ended_at=day(30)), at=day(3))
    assert harness.settlements == []
    harness.commit("c1", with_decision(pending_rejected(pending_fact), by="person"), at=day(4))
    assert harness.settlements == [(pending_fact, "rejected")]


def test_an_undone_pending_fact_stays_settled(harness: FoldHarness, pending_fact: UUID) -> None:
    taken_back = harness.commit("c1", SETTLED["undone"][0], at=day(3))
    before = reversal(pending_fact, "undone", harness.state_of(pending_fact))
    harness.commit("c2", undone(event_id_at(taken_back), before), at=day(4))
    assert harness.settlements == []


def test_an_end_comes_with_its_very_moment_and_settles_what_was_unresolved(harness: FoldHarness) -> None:
    doubted = fact_id_at(harness.commit("t2", added("Alice lives in Rome.", unresolved=True)))
    harness.commit("t3", retracted(doubted, ended_at=day(99), text="She will leave."), at=day(3))
    assert (harness.state_of(doubted).status, harness.state_of(doubted).unresolved) == ("active", True)
    harness.commit("t4", retracted(doubted, ended_at=THIRD_DECIDED_AT, text="She left."), at=day(3))
    assert (harness.state_of(doubted).status, harness.state_of(doubted).unresolved) == ("retracted", False)
