"""Every example of an event goes through the fold: on a state that knows its targets, and on one that does not."""

from pathlib import Path
from uuid import UUID

import pytest
from pydantic import TypeAdapter

from mnemolog.projections.write.effects import required_statuses
from mnemolog.projections.write.fold import FoldState, fold
from mnemolog.projections.write.rows import Changes, KnownFact, LogPosition, TimedFactState
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.events import (
    EVENT_CLASSES,
    ConflictResolved,
    FactExtended,
    FactPending,
    FactsRelated,
    MemoryEvent,
    PendingRejected,
)
from mnemolog.schemas.scope import Scope, scope_columns
from tests.support.builders.commits import commit, day
from tests.support.harnesses.fold_harness import next_state
from tests.support.paths import ROOT

FOLDER = ROOT / "schemas" / "examples"
EXAMPLES = [path for event in EVENT_CLASSES for path in sorted(FOLDER.glob(f"{event}/*/*.json"))]
COMMITS = sorted(FOLDER.glob("commit/*/*.json"))
NADIA = Scope(user_id="nadia", app_id="diary")
EVENT: TypeAdapter[MemoryEvent] = TypeAdapter(MemoryEvent)
HERE = LogPosition(partition=3, offset=7)


def _name(path: Path) -> str:
    return "/".join(path.parts[-3:])


def _folded(event: MemoryEvent, state: FoldState) -> Changes:
    committed = commit("t1", scope=NADIA, outcome="stored", events=(event,))
    return fold(state, committed, HERE, committed.to_bytes())


def _knowing(event: MemoryEvent) -> FoldState:
    known = [
        KnownFact(
            fact_id=target,
            scope=scope_columns(NADIA),
            state=TimedFactState(
                status=min(required_statuses(event, target)),
                confidence=0.8,
                true_from=day(0),
                believed_from=day(0),
                unresolved=isinstance(event, ConflictResolved),
                state_since=day(0),
            ),
        )
        for target in event.named_ids
    ]
    return FoldState(facts={fact.fact_id: fact for fact in known})


def _left_alone(event: MemoryEvent) -> set[UUID]:
    """The facts that an event names and does not change."""
    match event:
        case FactExtended() | FactsRelated() | FactPending():
            return set(event.targets)
        case PendingRejected(confirmed=UUID() as confirmed, statement=None):
            return {confirmed}
        case _:
            return set()


@pytest.mark.parametrize("path", EXAMPLES, ids=_name)
def test_an_event_adds_its_fact_and_changes_its_targets_where_they_are_known(path: Path) -> None:
    event = EVENT.validate_json(path.read_bytes())
    changes = _folded(event, _knowing(event))
    assert [row.event for row in changes.events if not row.stale] == [event]
    assert changes.rejections == []
    assert {known.fact_id for known in changes.updates} == set(event.named_ids) - _left_alone(event)
    assert {former.fact_id for former in changes.former_states} == {known.fact_id for known in changes.updates}
    stale = _folded(event, FoldState())
    assert [row.stale for row in stale.events] == [bool(event.named_ids)]
    assert stale.updates == []
    for one in (changes, stale):
        assert [row.fact for row in one.facts] == ([event.new_fact] if event.new_fact else [])


@pytest.mark.parametrize("path", COMMITS, ids=_name)
def test_a_commit_is_applied_once_whatever_its_end(path: Path) -> None:
    record = path.read_bytes()
    committed = Commit.from_bytes(record)
    changes = fold(FoldState(), committed, HERE, record)
    assert [(row.commit, row.record) for row in changes.commits] == [(committed, record)]
    again = fold(next_state(FoldState(), changes), committed, HERE, record)
    (rejection,) = again.rejections
    assert again == Changes(rejections=[rejection])
    assert (rejection.item, rejection.reason, rejection.source_id, rejection.record) == (
        0,
        "duplicate_source",
        committed.source_id,
        record,
    )
