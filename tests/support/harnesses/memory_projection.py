"""The tables in memory, filled by the real fold, for tests of undo without a database."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from mnemolog.projections.write.fold import FoldState, fold
from mnemolog.projections.write.rows import EventRow, FactRow, LogPosition
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entities import KnownEntity
from mnemolog.schemas.events import DecisionUndone
from mnemolog.schemas.facts import ExtractedFact, FactState
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.stored import (
    EndedFact,
    EventHistory,
    EventPosition,
    FormerState,
    LoggedEvent,
    OriginalDecision,
    StoredFact,
)
from tests.support.builders.commits import Draft, commit, day
from tests.support.harnesses.fold_harness import event_state, next_state


@dataclass
class MemoryProjection:
    """A log, and the rows that it is folded to."""

    log: list[Commit] = field(default_factory=list)
    state: FoldState = field(default_factory=FoldState)
    facts: dict[UUID, FactRow] = field(default_factory=dict)
    events: list[EventRow] = field(default_factory=list)
    former: dict[UUID, list[FormerState]] = field(default_factory=dict)
    undone: set[UUID] = field(default_factory=set)
    subjects: dict[UUID, KnownEntity] = field(default_factory=dict)
    """The entities that facts are about, where a test tells."""

    def add(self, *drafts: Draft, source_id: str | None = None) -> Commit:
        """Append a commit of these events, a day after the one before."""
        number = len(self.log)
        committed = commit(source_id or f"t{number}", *drafts, at=day(number))
        self.append(committed)
        return committed

    def append(self, committed: Commit) -> None:
        changes = fold(self.state, committed, LogPosition(partition=0, offset=len(self.log)), b"")
        self.log.append(committed)
        self.state = next_state(self.state, changes)
        self.facts |= {row.fact.fact_id: row for row in changes.facts}
        self.events += changes.events
        for row in changes.former_states:
            former = FormerState(event_id=row.event_id, state=event_state(row.state))
            self.former.setdefault(row.fact_id, []).append(former)
        for undone in changes.undone:
            (self.undone.discard if undone.undone_by is None else self.undone.add)(undone.event_id)

    def state_of(self, fact_id: UUID) -> FactState:
        return event_state(self.state.facts[fact_id].state)

    def event_history(self) -> EventHistory:
        return EventHistory(
            facts={fact_id: self._stored_fact(row) for fact_id, row in self.facts.items()},
            former_states=self.former,
            events=[self._past_event(row) for row in self.events],
        )

    def events_by_id(self, *event_ids: UUID) -> Sequence[LoggedEvent]:
        return [event for event in self.event_history().events if event.event_id in event_ids]

    def _ended_by(self, ender: UUID) -> Iterator[UUID]:
        """What the fact ended, and what those had ended that were merged into it."""
        for fact_id, known in self.state.facts.items():
            state = known.state
            if state.superseded_by != ender:
                continue
            if state.status == "superseded" and state.believed_to is not None:
                yield from self._ended_by(fact_id)
            elif state.believed_from is not None and state.believed_to is None and state.true_to is not None:
                yield fact_id

    def ended_facts(self, ender: UUID) -> list[EndedFact]:
        """What was true until this fact, or what was merged into it, ended it."""
        return [self._ended_fact(fact_id, ender) for fact_id in self._ended_by(ender)]

    def _ended_fact(self, fact_id: UUID, ender: UUID) -> EndedFact:
        row = self.facts[fact_id]
        others = (one for one, known in self.state.facts.items() if known.state.status == "active")
        successor = self.state.facts[ender].state.superseded_by
        return EndedFact(
            fact_id=fact_id,
            ended_by=ender,
            was_open=any(
                former.state.status == "active"
                and former.state.superseded_by != self.state.facts[fact_id].state.superseded_by
                for former in self.former.get(fact_id, ())
            ),
            rival_ids=tuple(
                one
                for one in dict.fromkeys((*others, *([successor] if successor else [])))
                if one not in (fact_id, ender) and (one == successor or self.facts[one].fact.key == row.fact.key)
            ),
        )

    def _stored_fact(self, row: FactRow) -> StoredFact:
        known = self.state.facts[row.fact.fact_id]
        return StoredFact(
            fact_id=row.fact.fact_id,
            scope=Scope.from_columns(known.scope),
            fact=ExtractedFact(**{name: getattr(row.fact, name) for name in ExtractedFact.model_fields}),
            true_from=known.state.true_from,
            speaker=row.fact.speaker,
            authority=row.fact.authority,
            metadata=row.fact.metadata or row.commit.metadata,
            state=event_state(known.state),
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


class MemoryReader:
    """What a `MemoryProjection` answers about the ends of facts, without the ends that were set before others."""

    def __init__(self, projection: MemoryProjection) -> None:
        self._projection = projection

    async def facts(self, fact_ids: Sequence[UUID]) -> Mapping[UUID, StoredFact]:
        known = self._projection.event_history().facts
        return {fact_id: known[fact_id] for fact_id in fact_ids if fact_id in known}

    async def subjects_of(self, fact_ids: Sequence[UUID]) -> Sequence[KnownEntity]:
        told = self._projection.subjects
        return [told[one].model_copy(update={"subject_of": (one,)}) for one in fact_ids if one in told]

    async def ended_facts(self, fact_ids: Sequence[UUID]) -> Sequence[EndedFact]:
        return [ended for fact_id in fact_ids for ended in self._projection.ended_facts(fact_id)]

    async def values_before(self, fact_id: UUID, since: datetime) -> Sequence[UUID]:
        known = await self.facts(tuple(self._projection.facts))
        asked = known[fact_id]
        return [
            one.fact_id
            for one in known.values()
            if one.fact_id != fact_id
            and one.fact.key is not None
            and one.fact.key == asked.fact.key
            and one.state.believed_from is not None
            and one.state.believed_to is None
            and one.true_from < asked.true_from
            and one.fact.valid_until is None
            and one.state.true_to is not None
            and since < one.state.true_to <= asked.true_from
        ]
