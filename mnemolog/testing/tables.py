"""The tables in memory: commits, folded by the product's own fold, and the rows that come of them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Final, cast
from uuid import UUID

from mnemolog.projections.write.fold import FoldState, fold
from mnemolog.projections.write.rows import (
    AliasRow,
    Changes,
    EntityRow,
    EventRow,
    FactRow,
    FormerStateRow,
    LinkRow,
    LogPosition,
    TimedFactState,
)
from mnemolog.schemas.command import Command
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.facts import ENDED_STATUSES, OPEN_STATUSES, ExtractedFact, FactState
from mnemolog.schemas.scope import Scope, ScopeColumns, scope_columns
from mnemolog.schemas.stored import StoredFact
from mnemolog.schemas.turn import Turn

_WAS_TRUE: Final = ENDED_STATUSES | {"active"}
_NAME_KEYS: Final = ("name", "full_name", "first_name", "nickname")
_MAX_NAME: Final = 100
_TAKING_BACK: Final = ("fact_retracted", "pending_rejected", "conflict_resolved")


@dataclass
class Tables:
    """What a log of commits has made, and the turns and commands that were received."""

    state: FoldState = field(default_factory=FoldState)
    rows: Changes = field(default_factory=Changes)
    facts: dict[UUID, FactRow] = field(default_factory=dict)
    received: dict[tuple[str, str], Turn | Command] = field(default_factory=dict)
    """By owner and source id, the first of each."""
    _length: int = 0
    _records: int = 0

    def next_offset(self) -> int:
        """The offset of the next record that is received."""
        self._records += 1
        return self._records - 1

    def append(self, commit: Commit) -> None:
        """Take a commit as the next record of the log."""
        changes = fold(self.state, commit, LogPosition(partition=0, offset=self._length), commit.to_bytes())
        self._length += 1
        self.state.advance(changes)
        for kind in fields(Changes):
            getattr(self.rows, kind.name).extend(getattr(changes, kind.name))
        self.facts |= {row.fact.fact_id: row for row in changes.facts}

    def state_of(self, fact_id: UUID) -> TimedFactState:
        return self.state.facts[fact_id].state

    def in_scope(self, scope: ScopeColumns, *statuses: str) -> list[FactRow]:
        """The facts of exactly one scope in the order in which they were learned; those of some statuses, or all."""
        found = [row for row in self.facts.values() if scope_columns(row.commit.scope) == scope]
        wanted = [one for one in found if not statuses or self.state_of(one.fact.fact_id).status in statuses]
        return sorted(wanted, key=learned)

    def superseded_by(self, ender: UUID) -> list[FactRow]:
        """The facts of its scope in whose place a fact has come."""
        scope = self.facts[ender].commit.scope
        return [
            row
            for row in self.facts.values()
            if self.state_of(row.fact.fact_id).superseded_by == ender and row.commit.scope == scope
        ]

    def holds(self, row: FactRow, at: datetime) -> bool:
        """Whether a fact has not ended at a time."""
        return (end := self.ends_at(row)) is None or end > at

    def ends_at(self, row: FactRow) -> datetime | None:
        ends = (row.fact.valid_until, self.state_of(row.fact.fact_id).true_to)
        return min((end for end in ends if end is not None), default=None)

    def stored(self, fact_id: UUID) -> StoredFact:
        row, state = self.facts[fact_id], self.state_of(fact_id)
        return StoredFact(
            fact_id=fact_id,
            scope=cast("Scope", row.commit.scope),
            fact=ExtractedFact(**{name: getattr(row.fact, name) for name in ExtractedFact.model_fields}),
            true_from=state.true_from,
            speaker=row.fact.speaker,
            authority=row.fact.authority,
            metadata=row.fact.metadata or row.commit.metadata,
            state=event_state(state),
        )

    def former(self, fact_id: UUID) -> list[FormerStateRow]:
        """The former states of a fact, the oldest first."""
        found = (row for row in self.rows.former_states if row.fact_id == fact_id)
        return sorted(found, key=lambda row: (row.until, row.state.state_since))

    def is_undone(self, event_id: UUID) -> bool:
        turns = [row.undone_by for row in self.rows.undone if row.event_id == event_id]
        return bool(turns) and turns[-1] is not None

    def events_of(self, *fact_ids: UUID) -> list[EventRow]:
        """The events that made, touched or challenged one of these facts, in the order of the log."""
        changed = {row.event_id for row in self.rows.former_states if row.fact_id in fact_ids}
        return [
            row
            for row in self.rows.events
            if row.fact_id in fact_ids or not set(fact_ids).isdisjoint(row.targets) or row.event.event_id in changed
        ]

    def merged_into(self, fact_id: UUID) -> list[UUID]:
        """A fact, what it was merged or corrected into, what that was, and so on."""
        found = [fact_id]
        for one in found:
            state = self.state_of(one)
            is_part = state.status == "superseded" and state.believed_to is not None
            if is_part and state.superseded_by is not None and state.superseded_by not in found:
                found.append(state.superseded_by)
        return found

    def is_taken_back(self, fact_id: UUID) -> bool:
        """Whether a command ended a fact, or what it was merged or corrected into, as one that says nothing more."""
        return any(map(self._was_taken_back, self.merged_into(fact_id)))

    def _was_taken_back(self, fact_id: UUID) -> bool:
        state = self.state_of(fact_id)
        if state.status in OPEN_STATUSES:
            return False
        was_true = state.believed_from is not None and state.believed_to is None
        changing = {row.event_id for row in self.former(fact_id)}
        return any(
            row.event.decision.by == "person"
            and row.event.event not in ("decision_undone", "subjects_changed")
            and (fact_id in row.targets or (row.fact_id == fact_id and row.event.event in _TAKING_BACK))
            and not (was_true and row.event.event in ("pending_confirmed", "conflict_resolved"))
            and not self.is_undone(row.event.event_id)
            for row in self.rows.events
            if row.event.event_id in changing
        )

    def challenged(self, pending_id: UUID) -> dict[UUID, bool]:
        """The open facts that a held overwrite challenges, and whether each is only what a target has become."""
        waiting = next(row.event for row in self.rows.pending if row.event.fact.fact_id == pending_id)
        found = dict.fromkeys(waiting.targets, False)
        for target in waiting.targets:
            for one in self.merged_into(target)[1:]:
                if one == pending_id:
                    break
                found.setdefault(one, True)
        return {
            fact_id: is_later for fact_id, is_later in found.items() if self.state_of(fact_id).status in OPEN_STATUSES
        }

    def user_names(self, scope: ScopeColumns, speaker: str | None, user_words: Sequence[str]) -> tuple[str, ...]:
        """The names of the user of a scope: the first speaker and what facts about the user have as a name."""
        if not scope[1]:
            return ()
        spoken = [name for step in self.rows.scope_increments if step.scope == scope for name in step.speakers]
        named = (name for name in (*spoken, speaker) if name is not None and name.lower() not in user_words)
        first = next(named, None)
        subjects = {None, *user_words, *({first.lower()} if first else ())}
        facts = [
            row
            for row in self.in_scope(scope, *_WAS_TRUE)
            if row.fact.key in _NAME_KEYS
            and 1 <= len(row.fact.value or "") <= _MAX_NAME
            and self.state_of(row.fact.fact_id).believed_to is None
            and (row.fact.subject and row.fact.subject.lower()) in subjects
        ]
        values = {row.fact.value for row in facts[-20:]} | {first}
        return tuple(sorted(value for value in values if value))

    def due(self, now: datetime) -> Iterator[tuple[datetime, FactRow]]:
        """The open facts whose end has passed, but for those that the timer has closed since; in the order of ends."""
        ends = [(end, row) for row in self.facts.values() if (end := self.ends_at(row)) is not None and end <= now]
        for end, row in sorted(ends, key=lambda one: (one[0], one[1].fact.fact_id)):
            fact_id = row.fact.fact_id
            closed = any(
                one.fact_id == fact_id and one.event.decision.by == "timer" and one.commit.decided_at >= end
                for one in self.rows.events
            )
            if self.state_of(fact_id).status in OPEN_STATUSES and not closed:
                yield end, row

    @property
    def aliases(self) -> Iterator[AliasRow]:
        return (row for row in self.rows.entities if isinstance(row, AliasRow))

    @property
    def entities(self) -> Mapping[UUID, EntityRow]:
        return {row.event.entity_id: row for row in self.rows.entities if isinstance(row, EntityRow)}

    def links(self, fact_ids: Iterable[UUID]) -> list[LinkRow]:
        wanted = frozenset(fact_ids)
        return [row for row in self.rows.entities if isinstance(row, LinkRow) and row.fact_id in wanted]


def event_state(state: TimedFactState) -> FactState:
    """The state as events have it."""
    return FactState(**{name: getattr(state, name) for name in FactState.model_fields})


def learned(row: FactRow) -> tuple[datetime, int, UUID]:
    """The place of a fact in the order in which facts were learned."""
    return row.commit.decided_at, row.ordinal, row.fact.fact_id


def said_at(row: FactRow) -> datetime:
    return row.fact.said_at or row.commit.occurred_at
