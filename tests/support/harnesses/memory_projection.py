"""The tables in memory of `mnemolog.testing`, for tests of decisions without a database."""

from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entities import KnownEntity
from mnemolog.schemas.facts import FactState
from mnemolog.schemas.stored import EndedFact, EventHistory, LoggedEvent
from mnemolog.testing.stores import MemoryFacts
from mnemolog.testing.tables import Tables, made
from tests.support.builders.commits import ALICE, Draft, commit, day

T = TypeVar("T")


@dataclass
class MemoryProjection(Tables):
    """A log, and the tables that it is folded to."""

    log: list[Commit] = field(default_factory=list)
    subjects: dict[UUID, KnownEntity] = field(default_factory=dict)
    """The entities that facts are about, where a test tells."""

    @property
    def reader(self) -> "MemoryReader":
        reader: MemoryReader = MemoryReader.over(self)
        return reader

    def add(self, *drafts: Draft, source_id: str | None = None) -> Commit:
        """Append a commit of these events, a day after the one before."""
        number = len(self.log)
        committed = commit(source_id or f"t{number}", *drafts, at=day(number))
        self.append(committed)
        return committed

    def append(self, committed: Commit) -> None:
        super().append(committed)
        self.log.append(committed)

    def state_of(self, fact_id: UUID) -> FactState:
        return made(FactState, self.version(fact_id).state)

    def event_history(self) -> EventHistory:
        return _at_once(self.reader.history_of(ALICE, tuple(self.facts)))

    def events_by_id(self, *event_ids: UUID) -> Sequence[LoggedEvent]:
        return _at_once(self.reader.events(event_ids))

    def ended_facts(self, ender: UUID) -> Sequence[EndedFact]:
        return _at_once(self.reader.ended_facts([ender]))


class MemoryReader(MemoryFacts):
    """What decisions ask about known facts; the subjects of facts are those that a test tells."""

    async def subjects_of(self, fact_ids: Sequence[UUID]) -> tuple[KnownEntity, ...]:
        told: dict[UUID, KnownEntity] = self._tables.subjects  # type: ignore[attr-defined] # of a `MemoryProjection`
        return tuple(told[one].model_copy(update={"subject_of": (one,)}) for one in fact_ids if one in told)


def _at_once(answer: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that waits for nothing."""
    try:
        answer.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError
