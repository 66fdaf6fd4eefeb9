"""Laws of the fold over random logs: batches do not matter, repeats change nothing, equal logs give equal rows."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any
from uuid import UUID

from hypothesis import assume, given
from hypothesis import strategies as st

from mnemolog.projections.write.fold import FoldState, fold
from mnemolog.projections.write.projector import LogRecord, fold_batch, parse_records
from mnemolog.projections.write.rows import Changes, FormerStateRow, LogPosition, TimedFactState, merge_changes
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.facts import OPEN_STATUSES, FactState, Reversal
from mnemolog.schemas.ids import event_id, fact_id
from mnemolog.schemas.policy import LimitHit, Policy
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
from tests.support.builders.sample_logs import ACTIVE_STATE
from tests.support.harnesses.fold_harness import event_state, next_state

SOURCES = ["t1", "t2", "t3", "t4", "t5", "t6"]
# Few facts, so that a random log comes back to one that it has ended.
TARGETS = [fact_id(scope.owner, source, 0) for scope in (ALICE, BOB) for source in SOURCES[:2]]
EVENTS = [event_id(ALICE.owner, source, 0) for source in SOURCES[:3]]
ACTIONS = ["merge", "replace", "contradict", "retract", "expire"]
ONCE_ACTIVE = ACTIVE_STATE.model_copy(update={"confidence": 0.5})
ONCE_PENDING = ONCE_ACTIVE.model_copy(update={"status": "pending_confirmation", "believed_from": None})
STATUSES = ["active", "superseded", "archived", "pending_confirmation", "undone"]


def simple(first: UUID, second: UUID) -> list[Draft]:
    """Every event that says it all by its targets."""
    return [
        skipped(first),
        confirmed(first),
        merged("merged", first, second),
        replaced("replaced", first),
        contradicted("contradicted", first, second),
        extended("extended", first),
        related("related", first),
        corrected("corrected", first),
        retracted(first, second),
        policy_set(Policy(add_only=True)),
    ]


@st.composite
def drafts(draw: st.DrawFn) -> Draft:
    first, second = draw(st.lists(st.sampled_from(TARGETS), min_size=2, max_size=2))
    ended_at = draw(st.none() | st.integers(0, 9).map(day))
    action = draw(st.sampled_from(ACTIONS))
    before = draw(st.sampled_from([None, ONCE_ACTIVE, ONCE_PENDING]))
    reversal = Reversal(fact_id=first, now=draw(st.sampled_from(STATUSES)), before=before)
    text = draw(st.sampled_from([None, "said"]))
    return draw(
        st.sampled_from(
            [
                *simple(first, second),
                added("new", confidence=0.6, unresolved=draw(st.booleans())),
                added("late", ended_at=ended_at, ended_by=first),
                replaced("replaced", first, ended_at=ended_at),
                retracted(first, ended_at=ended_at, text=text),
                expired(first, ended_at=ended_at, text=text),
                pending("pending", second, action=action),
                pending_confirmed(first, second, action=action, ended_at=ended_at, text=text),
                pending_rejected(first, confirmed=second, text=text),
                resolved(first, second, action=draw(st.sampled_from(["keep_both", "keep_old", *ACTIONS[1:3]]))),
                undone(draw(st.sampled_from(EVENTS)), reversal, reinstated=draw(st.sampled_from([None, *EVENTS]))),
            ]
        )
    )


@st.composite
def commits(draw: st.DrawFn) -> Commit:
    limit = LimitHit(name="active_facts", level="scope", count=1, limit=1)
    refused: dict[str, Any] = {"outcome": "rejected", "limit": limit} if draw(st.integers(0, 4)) == 0 else {}
    return commit(
        draw(st.sampled_from(SOURCES)),
        *([] if refused else draw(st.lists(drafts(), max_size=3))),
        scope=draw(st.sampled_from([ALICE, ALICE, BOB])),
        at=day(draw(st.integers(0, 9))),
        attempt=draw(st.sampled_from([1, 1, 2])),
        **refused,
    )


@st.composite
def records(draw: st.DrawFn) -> bytes:
    return b"no commit" if draw(st.integers(0, 9)) == 0 else draw(commits()).to_bytes()


BEGINNING = [
    commit("t1", added("of Alice"), at=day(4)).to_bytes(),
    commit("t2", pending("held back", TARGETS[0]), at=day(5)).to_bytes(),
    commit("t1", added("of Bob", unresolved=True), scope=BOB, at=day(4)).to_bytes(),
]
logs = st.lists(records(), max_size=12).map(
    lambda values: [LogRecord(offset=offset, value=value) for offset, value in enumerate([*BEGINNING, *values])]
)


def folded(state: FoldState, records: Sequence[LogRecord]) -> tuple[Changes, FoldState]:
    changes = fold_batch(state, parse_records(0, records))
    return changes, next_state(state, changes)


@given(logs, st.data())
def test_batches_of_any_sizes_equal_one_by_one(log: list[LogRecord], data: st.DataObject) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(log)), max_size=4).map(lambda cuts: sorted({0, len(log), *cuts})))
    state, parts = FoldState(), []
    for start, stop in pairwise(cuts):
        changes, state = folded(state, log[start:stop])
        parts.append(changes)
    whole, end = folded(FoldState(), log)
    assert state == end
    assert merge_changes(parts) == whole


@given(logs)
def test_a_log_delivered_twice_changes_nothing_the_second_time(log: list[LogRecord]) -> None:
    _, state = folded(FoldState(), log)
    again, after = folded(state, log)
    assert after == state
    assert again == Changes(rejections=again.rejections)
    assert {row.reason for row in again.rejections} <= {"duplicate_source", "not_a_commit"}


@given(logs)
def test_every_record_is_a_commit_or_a_rejection(log: list[LogRecord]) -> None:
    changes, _ = folded(FoldState(), log)
    ends = [row.position for row in changes.commits] + [row.position for row in changes.rejections if row.item == 0]
    assert sorted(position.offset for position in ends) == [record.offset for record in log]


@given(logs)
def test_nothing_is_lost_and_no_scope_reaches_into_another(log: list[LogRecord]) -> None:
    changes, _ = folded(FoldState(), log)
    applied = [row.commit for row in changes.commits]
    assert [row.fact.fact_id for row in changes.facts] == [
        fact.fact_id for committed in applied for event in committed.events if (fact := event.new_fact)
    ]
    owners = {row.fact.fact_id: row.commit.owner for row in changes.facts}
    events = {row.event.event_id: row.commit.owner for row in changes.events}
    for row in changes.facts:
        assert {owners[ended] for ended in row.supersedes} <= {row.commit.owner}
    for relation in changes.relations:
        assert owners[relation.fact_id] == owners[relation.related_id]
    for former in changes.former_states:
        assert owners[former.fact_id] == events[former.event_id]


@given(logs)
def test_a_scope_steps_on_with_every_commit_that_has_events_and_counts_its_open_facts(log: list[LogRecord]) -> None:
    changes, _ = folded(FoldState(), log)
    with_events = Counter(row.commit.owner for row in changes.commits if row.commit.events)
    assert {step.owner: step.commits for step in changes.scope_increments} == with_events
    is_open = Counter(row.commit.owner for row in changes.facts if row.state.status in OPEN_STATUSES)
    assert {step.owner: step.facts for step in changes.scope_increments if step.facts} == is_open


def past(changes: Changes) -> Iterator[tuple[list[FormerStateRow], TimedFactState]]:
    """The former states of each fact of a whole log, in order, and its present state."""
    for row in changes.facts:
        yield [former for former in changes.former_states if former.fact_id == row.fact.fact_id], row.state


@given(logs)
def test_former_states_cover_the_time_of_a_fact_without_gap_or_overlap(log: list[LogRecord]) -> None:
    changes, _ = folded(FoldState(), log)
    begun = {row.fact.fact_id: row.commit.decided_at for row in changes.facts}
    assert {former.fact_id for former in changes.former_states} <= set(begun)
    for row, (formers, state) in zip(changes.facts, past(changes), strict=True):
        since = [*(former.state.state_since for former in formers), state.state_since]
        assert since[0] == begun[row.fact.fact_id]
        assert [former.until for former in formers] == since[1:]
        assert since == sorted(since)


@given(logs)
def test_a_pending_fact_is_never_believed(log: list[LogRecord]) -> None:
    changes, _ = folded(FoldState(), log)
    for formers, state in past(changes):
        for one in (*(former.state for former in formers), state):
            if one.status == "pending_confirmation":
                assert one.believed_from is None
            if one.status == "active":
                assert one.believed_from is not None
            if one.believed_from is None:
                assert one.believed_to is None


@given(logs)
def test_what_is_pending_is_what_has_an_open_row(log: list[LogRecord]) -> None:
    changes, _ = folded(FoldState(), log)
    held = {row.event.fact.fact_id for row in changes.pending}
    open_rows = held - {row.fact_id for row in changes.settlements if row.settlement}
    waiting = {row.fact.fact_id for row in changes.facts if row.state.status == "pending_confirmation"}
    assert open_rows == waiting & held


def reversals(changes: Changes, state: FoldState) -> list[Reversal]:
    """What takes the last event of `changes` back."""
    event = changes.events[-1].event
    brought = event.new_fact
    former = {row.fact_id: event_state(row.state) for row in changes.former_states if row.event_id == event.event_id}
    before = former | ({brought.fact_id: None} if brought else {})
    return [
        Reversal(fact_id=fact_id, now=state.facts[fact_id].state.status, before=old) for fact_id, old in before.items()
    ]


def happens(state: FoldState, committed: Commit) -> tuple[Changes, FoldState]:
    changes = fold(state, committed, LogPosition(partition=0, offset=99), b"")
    return changes, next_state(state, changes)


def states_of(state: FoldState) -> dict[UUID, FactState]:
    return {fact_id: event_state(known.state) for fact_id, known in state.facts.items()}


@given(logs, drafts(), st.integers(0, 12))
def test_undoing_restores_exactly_and_undoing_that_gives_what_was_before(
    log: list[LogRecord], draft: Draft, number: int
) -> None:
    _, state = folded(FoldState(), log)
    before = states_of(state)
    changes, state = happens(state, commit("last", draft, at=day(number)))
    after = states_of(state)
    assume(after != before)

    taken_back = commit("undo", undone(changes.events[-1].event.event_id, *reversals(changes, state)), at=day(13))
    changes, state = happens(state, taken_back)
    assert changes.rejections == []
    brought = fact_id_at(commit("last", draft))
    assert {one: present for one, present in states_of(state).items() if one != brought} == before
    assert brought not in state.facts or state.facts[brought].state.status == "undone"

    put_back = commit("redo", undone(changes.events[-1].event.event_id, *reversals(changes, state)), at=day(14))
    changes, state = happens(state, put_back)
    assert changes.rejections == []
    assert states_of(state) == after
