"""The tables in memory, filled by the real fold, for tests of undo without a database."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from mnemolog.projections.write.fold import fold
from mnemolog.projections.write.rows import EventRow, FactRow, LogPosition
from mnemolog.projections.write.state import FoldState
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.events import DecisionUndone
from mnemolog.schemas.facts import ExtractedFact, FactState
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import EventHistory, EventPosition, FormerState, LoggedEvent, OriginalDecision, StoredFact
from tests.support.builders.commits import Draft, commit, day


@dataclass
class MemoryProjection:
    """A log, and the rows that it is folded to."""

    log: list[Commit] = field(default_factory=list)
    state: FoldState = field(default_factory=FoldState)
    facts: dict[UUID, FactRow] = field(default_factory=dict)
    events: list[EventRow] = field(default_factory=list)
    former: dict[UUID, list[FormerState]] = field(default_factory=dict)
    undone: set[UUID] = field(default_factory=set)

    def add(self, *drafts: Draft, source_id: str | None = None) -> Commit:
        """Append a commit of these events, a day after the one before."""
        number = len(self.log)
        committed = commit(source_id or f"t{number}", *drafts, at=day(number))
        self.append(committed)
        return committed

    def append(self, committed: Commit) -> None:
        changes = fold(self.state, committed, LogPosition(partition=0, offset=len(self.log)), b"")
        self.log.append(committed)
        self.state = self.state.apply(changes)
        self.facts |= {row.fact.fact_id: row for row in changes.facts}
        self.events += changes.events
        for row in changes.former_states:
            former = FormerState(event_id=row.event_id, state=row.state.event_state)
            self.former.setdefault(row.fact_id, []).append(former)
        for undone in changes.undone:
            (self.undone.discard if undone.undone_by is None else self.undone.add)(undone.event_id)

    def state_of(self, fact_id: UUID) -> FactState:
        return self.state.facts[fact_id].state.event_state

    def event_history(self) -> EventHistory:
        return EventHistory(
            facts={fact_id: self._stored_fact(row) for fact_id, row in self.facts.items()},
            former_states=self.former,
            events=[self._past_event(row) for row in self.events],
        )

    def events_by_id(self, *event_ids: UUID) -> Sequence[LoggedEvent]:
        return [event for event in self.event_history().events if event.event_id in event_ids]

    def _stored_fact(self, row: FactRow) -> StoredFact:
        known = self.state.facts[row.fact.fact_id]
        return StoredFact(
            fact_id=row.fact.fact_id,
            scope=Scope.from_columns(known.scope),
            fact=ExtractedFact(**{name: getattr(row.fact, name) for name in ExtractedFact.model_fields}),
            true_from=row.fact.true_from,
            speaker=row.fact.speaker,
            authority=row.fact.authority,
            state=known.state.event_state,
        )

    def _past_event(self, row: EventRow) -> LoggedEvent:
        event, root = row.event, self._original(row)
        fact = event.new_fact
        turning_events = [one.event.event_id for one in self.events if self._original(one) is root]
        changed = frozenset(
            fact_id for fact_id, states in self.former.items() if any(one.event_id == event.event_id for one in states)
        )
        named = {*row.targets, *root.targets, row.fact_id, root.fact_id, getattr(root.event, "ended_by", None)}
        return LoggedEvent(
            event_id=event.event_id,
            event=event.event,
            position=_place(row),
            source_id=row.commit.source_id,
            occurred_at=row.commit.occurred_at,
            original=OriginalDecision(event_id=root.event.event_id, event=root.event.event, position=_place(root)),
            enables=not isinstance(event, DecisionUndone) or event.reinstated is not None,
            latest_id=turning_events[-1],
            statement_text=fact.text if fact else None,
            new_fact_id=fact.fact_id if fact else None,
            changed_fact_ids=changed,
            named_fact_ids=changed | {fact_id for fact_id in named if fact_id},
        )

    def _original(self, row: EventRow) -> EventRow:
        if not isinstance(row.event, DecisionUndone):
            return row
        wanted = row.event.reinstated or row.event.undone
        return next(one for one in self.events if one.event.event_id == wanted)


def _place(row: EventRow) -> EventPosition:
    return (row.position.partition, row.position.offset, row.event.ordinal)
