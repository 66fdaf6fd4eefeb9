"""Laws of the fold over random logs: batches do not matter, repeats change nothing, equal logs give equal rows."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from projections.projector import LogRecord, fold_readings, read_commit
from projections.rows import Changes, together
from projections.state import State
from schemas.commit import Commit
from schemas.ids import fact_id
from tests.builders import (
    ALICE,
    BOB,
    Draft,
    added,
    commit,
    confirmed,
    contradicted,
    day,
    merged,
    replaced,
    skipped,
)

SOURCES = ["t1", "t2", "t3", "t4"]
# Few facts, so that a random log comes back to one that it has ended.
TARGETS = [fact_id(scope.owner, source, 0) for scope in (ALICE, BOB) for source in SOURCES[:2]]


@st.composite
def drafts(draw: st.DrawFn) -> Draft:
    first, second = draw(st.lists(st.sampled_from(TARGETS), min_size=2, max_size=2))
    return draw(
        st.sampled_from(
            [
                added("new", confidence=0.6),
                skipped(first),
                confirmed(first),
                merged("merged", first, second),
                replaced("replaced", first),
                contradicted("contradicted", first, second),
            ]
        )
    )


@st.composite
def records(draw: st.DrawFn) -> bytes:
    if draw(st.integers(0, 9)) == 0:
        return b"no commit"
    committed = commit(
        draw(st.sampled_from(SOURCES)),
        *draw(st.lists(drafts(), max_size=3)),
        scope=draw(st.sampled_from([ALICE, BOB])),
        at=day(draw(st.integers(0, 9))),
    )
    return committed.to_bytes()


logs = st.lists(records(), max_size=12).map(
    lambda values: [LogRecord(offset=offset, value=value) for offset, value in enumerate(values)]
)


def folded(state: State, records: Sequence[LogRecord]) -> tuple[Changes, State]:
    changes = fold_readings(state, 0, [(record, read_commit(record.value)) for record in records])
    return changes, state.after(changes)


@given(logs, st.data())
def test_batches_of_any_sizes_equal_one_by_one(log: list[LogRecord], data: st.DataObject) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(log)), max_size=4).map(lambda cuts: sorted({0, len(log), *cuts})))
    state, parts = State(), []
    for start, stop in pairwise(cuts):
        changes, state = folded(state, log[start:stop])
        parts.append(changes)
    whole, end = folded(State(), log)
    assert state == end
    assert together(parts) == whole


@given(logs)
def test_the_same_log_gives_the_same_rows(log: list[LogRecord]) -> None:
    assert folded(State(), log) == folded(State(), log)


@given(logs)
def test_a_log_delivered_twice_changes_nothing_the_second_time(log: list[LogRecord]) -> None:
    _, state = folded(State(), log)
    again, after = folded(state, log)
    assert after == state
    assert again == Changes(rejections=again.rejections)
    assert {row.reason for row in again.rejections} <= {"duplicate_source", "not_a_commit"}


@given(logs)
def test_every_record_is_a_commit_or_a_rejection(log: list[LogRecord]) -> None:
    changes, _ = folded(State(), log)
    ends = [row.position for row in changes.commits] + [row.position for row in changes.rejections if row.item == 0]
    assert sorted(position.offset for position in ends) == [record.offset for record in log]


@given(logs)
def test_nothing_is_lost_and_no_scope_reaches_into_another(log: list[LogRecord]) -> None:
    changes, _ = folded(State(), log)
    applied = [row.commit for row in changes.commits]
    assert [row.fact.fact_id for row in changes.facts] == [
        event.fact.fact_id for committed in applied for event in committed.events if hasattr(event, "fact")
    ]
    owners = {row.fact.fact_id: row.commit.owner for row in changes.facts}
    for row in changes.facts:
        assert {owners[ended] for ended in row.supersedes} <= {row.commit.owner}
        assert (row.state.status == "active") == (row.state.superseded_by is None)


@given(logs)
def test_a_scope_steps_on_with_every_commit_that_has_events(log: list[LogRecord]) -> None:
    changes, _ = folded(State(), log)
    with_events = Counter(row.commit.owner for row in changes.commits if row.commit.events)
    assert {step.owner: step.commits for step in changes.steps} == with_events


@given(logs)
def test_a_fact_is_ended_once(log: list[LogRecord]) -> None:
    changes, _ = folded(State(), log)
    ended = [target for row in changes.facts for target in row.supersedes]
    assert len(ended) == len(set(ended))
    assert {row.fact.fact_id for row in changes.facts if row.state.status != "active"} == set(ended)


def test_bytes_that_are_a_commit_are_read() -> None:
    assert isinstance(read_commit(commit("t1").to_bytes()), Commit)
