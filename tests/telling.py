"""A log that is told commit by commit, and how its facts stand after each: for tests of the fold."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from mnemolog.projections.fold import fold
from mnemolog.projections.rows import Changes, FactState, LogPosition
from mnemolog.projections.state import State
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.events import Reversal
from mnemolog.schemas.facts import FactStatus
from tests.builders import (
    Draft,
    added,
    commit,
    day,
    fact_of,
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


def stood(**fields: Any) -> FactState:
    """The fact of Bern, changed in the second commit."""
    defaults: dict[str, Any] = {"confidence": 0.8, "believed_from": BEGUN, "state_since": DECIDED}
    return FactState(**defaults | fields)


def reversal(fact_id: UUID, now: FactStatus, before: FactState | None = None) -> Reversal:
    return Reversal(fact_id=fact_id, now=now, before=before.standing if before else None)
