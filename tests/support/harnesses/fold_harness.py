"""Folds a log commit by commit in memory, for tests of the fold."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from mnemolog.projections.write.fold import FoldState, fold
from mnemolog.projections.write.rows import Changes, LogPosition, TimedFactState
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.facts import FactState, FactStatus, Reversal
from tests.support.builders.commits import (
    Draft,
    added,
    commit,
    day,
    fact_id_at,
)

SECOND_DAY = day(2)
FIRST_DECIDED_AT, SECOND_DECIDED_AT, THIRD_DECIDED_AT = (day(number) + timedelta(seconds=3) for number in (1, 2, 3))
FIRST_COMMIT = commit("t1", added("Alice lives in Bern.", confidence=0.8), added("Alice likes tea."), at=day(1))
BERN, TEA = fact_id_at(FIRST_COMMIT), fact_id_at(FIRST_COMMIT, 1)


def event_state(state: TimedFactState) -> FactState:
    """The state as events have it."""
    return FactState(**{name: getattr(state, name) for name in FactState.model_fields})


def next_state(state: FoldState, changes: Changes) -> FoldState:
    """The state in which the next commit is folded; `state` is not modified."""
    after = replace(state, applied=dict(state.applied), facts=dict(state.facts), entities=dict(state.entities))
    after.advance(changes)
    return after


class FoldHarness:
    """A log of Alice's; the first commit is folded already."""

    def __init__(self) -> None:
        self.state = FoldState()
        self.changes = Changes()
        self.apply(FIRST_COMMIT)

    def apply(self, committed: Commit) -> Commit:
        self.changes = fold(self.state, committed, LogPosition(partition=0, offset=0), committed.to_bytes())
        self.state = next_state(self.state, self.changes)
        return committed

    def commit(self, source_id: str, *drafts: Draft, at: datetime = SECOND_DAY) -> Commit:
        return self.apply(commit(source_id, *drafts, at=at))

    def state_of(self, fact_id: UUID) -> TimedFactState:
        return self.state.facts[fact_id].state

    @property
    def settlements(self) -> list[tuple[UUID, str | None]]:
        return [(row.fact_id, row.settlement) for row in self.changes.settlements]


def expected_state(**fields: Any) -> TimedFactState:
    """The state of the fact about Bern, changed in the second commit."""
    defaults: dict[str, Any] = {"confidence": 0.8, "believed_from": FIRST_DECIDED_AT, "state_since": SECOND_DECIDED_AT}
    defaults["true_from"] = day(1)
    return TimedFactState(**defaults | fields)


def reversal(fact_id: UUID, now: FactStatus, before: TimedFactState | None = None) -> Reversal:
    return Reversal(fact_id=fact_id, now=now, before=event_state(before) if before else None)
