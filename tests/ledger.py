"""The tables in memory, by the same fold: what undoing reads of them, without a database."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from mnemolog.projections.fold import fold
from mnemolog.projections.known import StoredFact
from mnemolog.projections.past import FormerState, LogPlace, Past, PastEvent, Root
from mnemolog.projections.rows import EventRow, FactRow, LogPosition
from mnemolog.projections.state import State
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.events import DecisionUndone, Standing
from mnemolog.schemas.facts import ExtractedFact
from tests.builders import Draft, commit, day


@dataclass
class Ledger:
    """A log and what it comes to."""

    log: list[Commit] = field(default_factory=list)
    state: State = field(default_factory=State)
    facts: dict[UUID, FactRow] = field(default_factory=dict)
    events: list[EventRow] = field(default_factory=list)
    former: dict[UUID, list[FormerState]] = field(default_factory=dict)
    undone: set[UUID] = field(default_factory=set)

    def add(self, *drafts: Draft, source_id: str | None = None) -> Commit:
        """Append a commit of these events, a day after the one before."""
        number = len(self.log)
        made = commit(source_id or f"t{number}", *drafts, at=day(number))
        self.append(made)
        return made

    def append(self, made: Commit) -> None:
        changes = fold(self.state, made, LogPosition(partition=0, offset=len(self.log)), b"")
        self.log.append(made)
        self.state = self.state.after(changes)
        self.facts |= {row.fact.fact_id: row for row in changes.facts}
        self.events += changes.events
        for row in changes.former:
            former = FormerState(event_id=row.event_id, standing=row.state.standing)
            self.former.setdefault(row.fact_id, []).append(former)
        for undone in changes.undone:
            (self.undone.discard if undone.undone_by is None else self.undone.add)(undone.event_id)

    def standing(self, fact_id: UUID) -> Standing:
        return self.state.facts[fact_id].state.standing

    def past(self) -> Past:
        return Past(
            facts={fact_id: self._stored(row) for fact_id, row in self.facts.items()},
            former=self.former,
            events=[self._past_event(row) for row in self.events],
        )

    def aimed(self, *event_ids: UUID) -> Sequence[PastEvent]:
        return [event for event in self.past().events if event.event_id in event_ids]

    def _stored(self, row: FactRow) -> StoredFact:
        known = self.state.facts[row.fact.fact_id]
        return StoredFact(
            fact_id=row.fact.fact_id,
            scope=known.scope,
            fact=ExtractedFact(**{name: getattr(row.fact, name) for name in ExtractedFact.model_fields}),
            true_from=row.fact.true_from,
            speaker=row.fact.speaker,
            authority=row.fact.authority,
            standing=known.state.standing,
        )

    def _past_event(self, row: EventRow) -> PastEvent:
        event, root = row.event, self._root(row)
        fact = getattr(event, "fact", None)
        turning = [one.event.event_id for one in self.events if self._root(one) is root]
        changed = frozenset(
            fact_id for fact_id, states in self.former.items() if any(one.event_id == event.event_id for one in states)
        )
        named = {*row.targets, *root.targets, row.fact_id, root.fact_id, getattr(root.event, "ended_by", None)}
        return PastEvent(
            event_id=event.event_id,
            event=event.event,
            place=_place(row),
            source_id=row.commit.source_id,
            occurred_at=row.commit.occurred_at,
            root=Root(event_id=root.event.event_id, event=root.event.event, place=_place(root)),
            turns_on=not isinstance(event, DecisionUndone) or event.reinstated is not None,
            latest=turning[-1],
            said=fact.text if fact else None,
            brought=fact.fact_id if fact else None,
            changed=changed,
            named=changed | {fact_id for fact_id in named if fact_id},
        )

    def _root(self, row: EventRow) -> EventRow:
        if not isinstance(row.event, DecisionUndone):
            return row
        wanted = row.event.reinstated or row.event.undone
        return next(one for one in self.events if one.event.event_id == wanted)


def _place(row: EventRow) -> LogPlace:
    return (row.position.partition, row.position.offset, row.event.ordinal)
