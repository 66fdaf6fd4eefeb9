"""Moves ends with their enders: what a fact has ended is open again, or ends otherwise, once the fact is disbelieved.

The result is that of a history in which the disbelieved fact was never told, or in which a fact that is found to have
begun earlier, or between two others, was told then. Resolution and commands call it on the events that they have made;
the log has the outcome, so the fold decides nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol
from uuid import UUID

from mnemolog.schemas.events import (
    DecisionUndone,
    FactAdded,
    FactContradicted,
    FactCorrected,
    FactReplaced,
    MemoryEvent,
)
from mnemolog.schemas.facts import ExtractedFact, MovedEnd
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.stored import EndedFact, StoredFact
from mnemolog.streams.text.subjects import SubjectRelation, compare_subjects


class EndedFactReader(Protocol):
    """Reads what facts have ended. Each call is one round trip, and waits while Postgres is unavailable."""

    async def facts(self, fact_ids: Sequence[UUID]) -> Mapping[UUID, StoredFact]:
        """Those of `fact_ids` that exist, whatever their scope and status."""

    async def ended_facts(self, fact_ids: Sequence[UUID]) -> Sequence[EndedFact]:
        """The facts that were true until one of `fact_ids`, or what was merged into it, ended them."""

    async def values_before(self, fact_id: UUID, since: datetime) -> Sequence[UUID]:
        """The other facts of its key that held at `since` or began since then, and ended before it began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndRules:
    """When the ends move, what is known of keys and names, and which facts stay ended (`stays_ended`)."""

    at: datetime
    policy: EffectivePolicy = field(default_factory=EffectivePolicy)
    user_names: tuple[str, ...] = ()
    stays_ended: Callable[[ExtractedFact], bool] = lambda _: False


@dataclass(frozen=True, slots=True, kw_only=True)
class EndLookups:
    """What is known of the facts that an event may touch: `between` are the values of a slot before a fact of it."""

    ended: Sequence[EndedFact] = ()
    facts: Mapping[UUID, StoredFact] = field(default_factory=dict)
    between: Mapping[UUID, Sequence[UUID]] = field(default_factory=dict)


async def move_ends(events: Sequence[MemoryEvent], reader: EndedFactReader, rules: EndRules) -> tuple[MemoryEvent, ...]:
    """The events of one commit, with the ends that move; nothing is read where no ender changes."""
    disbelieved = [fact_id for event in events for fact_id in event.disbelieved_ids]
    moved = dict(event.moved_beginning for event in events if event.moved_beginning is not None)
    newer = (event.ended_by for event in events if isinstance(event, FactAdded) and event.ended_by is not None)
    enders = tuple(dict.fromkeys((*disbelieved, *moved, *newer)))
    if not enders and not any(_heirs(event) or event.moved_ends for event in events):
        return tuple(events)
    ended = await reader.ended_facts(enders) if enders else ()
    between = {fact_id: await reader.values_before(fact_id, since) for fact_id, since in moved.items()}
    needed = dict.fromkeys(enders)
    for event in events:
        needed |= dict.fromkeys((*event.named_ids, *_weighed_ids(event)))
    for one in ended:
        needed |= dict.fromkeys((one.fact_id, *one.rival_ids, *one.later_ids))
    for others in between.values():
        needed |= dict.fromkeys(others)
    return events_with_ends(
        events, EndLookups(ended=ended, facts=await reader.facts(tuple(needed)), between=between), rules
    )


def events_with_ends(events: Sequence[MemoryEvent], lookups: EndLookups, rules: EndRules) -> tuple[MemoryEvent, ...]:
    """As `move_ends`, by what was read."""
    commit = _CommitEnds(events, lookups, rules)
    return tuple(map(commit.apply, events))


@dataclass(frozen=True, slots=True)
class _Value:
    """A fact with its beginning, and when it was last said to hold."""

    fact_id: UUID
    fact: ExtractedFact
    true_from: datetime
    last_said: datetime


@dataclass(frozen=True, slots=True)
class _End:
    """When a fact ends, and in favour of what; None for its own term."""

    at: datetime
    ended_by: UUID | None


class _CommitEnds:
    """What has ended what, as the events of one commit change it one after another."""

    def __init__(self, events: Sequence[MemoryEvent], lookups: EndLookups, rules: EndRules) -> None:
        self._rules = rules
        self._known = lookups.facts
        self._between = lookups.between
        self._ended = {one.fact_id: one for one in lookups.ended}
        self._enders = {one.fact_id: one.ended_by for one in lookups.ended}
        self._values = dict(_values(events, lookups.facts))
        self._closed = {fact_id for event in events for fact_id in event.disbelieved_ids}
        undone = (event for event in events if isinstance(event, DecisionUndone))
        self._restored = {reversal.fact_id for event in undone for reversal in event.reversals}

    def apply(self, event: MemoryEvent) -> MemoryEvent:
        """The event with the ends that it moves; without a beginning where that cannot move."""
        if event.moved_beginning is not None:
            return self._with_beginning(event, *event.moved_beginning)
        if isinstance(event, FactAdded):
            return self._with_end_of_older(self._with_end_of_known(event))
        successor = next(iter(event.successor_ids), None)
        for fact_id in _truly_ended(event):
            self._closed.add(fact_id)
            if successor is not None:
                self._enders[fact_id] = successor
        found = [self._values[fact_id] for fact_id in self._freed_ids(event)]
        moved = tuple(self._moved_end(value, event, found) for value in found)
        for one in moved:
            del self._enders[one.fact_id]
            self._closed.discard(one.fact_id)
        own = [self._with_ender(one) for one in event.moved_ends] + list(self._inherited_ends(event))
        return event.model_copy(update={"moved_ends": (*own, *moved)}) if own or moved else event

    def _inherited_ends(self, event: MemoryEvent) -> Iterator[MovedEnd]:
        """What has an announced end, and is merged or gets a new text, has that end in its new version too."""
        heir = next((self._values[fact_id] for fact_id in _heirs(event) if fact_id in self._values), None)
        if heir is None:
            return
        ends = [
            (end, fact_id)
            for fact_id in event.affected_ids
            if (stored := self._known.get(fact_id)) is not None
            and stored.state.status == "active"
            and (end := stored.state.true_to) is not None
            and end > heir.true_from
        ]
        for end, fact_id in sorted(ends)[:1]:
            yield self._with_ender(MovedEnd(fact_id=heir.fact_id, ender=fact_id, ended_at=end))

    def _with_ender(self, moved: MovedEnd) -> MovedEnd:
        """The same end, in favour of what ends the fact with which it ends."""
        stored = self._known.get(moved.ender)
        if stored is None or moved.ended_by is not None:
            return moved
        return moved.model_copy(update={"ended_by": stored.state.superseded_by})

    def _with_beginning(self, event: MemoryEvent, fact_id: UUID, since: datetime) -> MemoryEvent:
        """The fact that is repeated began at `since`, and what it had ended did so then; unless that held after it."""
        fact = self._values[fact_id].fact
        ended = [one for one, ender in self._enders.items() if ender == fact_id and one in self._values]
        before = (one for one in self._between.get(fact_id, ()) if one in self._values)
        of_slot = (one for one in before if self._slot_relation(fact, self._values[one].fact) != "other")
        older = [self._values[one] for one in dict.fromkeys((*ended, *of_slot))]
        if any(one.last_said >= since for one in older):
            return event.model_copy(update={"true_from": None})
        return event.model_copy(update={"moved_ends": tuple(self._ends_at(since, older, fact_id))})

    def _ends_at(self, since: datetime, values: Iterable[_Value], ended_by: UUID) -> Iterator[MovedEnd]:
        """What held until later ends at `since`."""
        for one in values:
            ender = self._enders.get(one.fact_id) or self._known[one.fact_id].state.superseded_by
            if since < self._end_of(one):
                yield MovedEnd(fact_id=one.fact_id, ender=ender or ended_by, ended_at=since, ended_by=ended_by)

    def _with_end_of_known(self, event: FactAdded) -> FactAdded:
        """History that ended with a known fact ended in favour of what ended that, and moves with it."""
        known = self._known.get(event.ended_by) if event.ended_by is not None else None
        if known is None or event.ended_at is None or not known.true_from < event.ended_at == known.state.true_to:
            return event
        return event.model_copy(update={"ended_by": known.state.superseded_by})

    def _with_end_of_older(self, event: FactAdded) -> MemoryEvent:
        """A late value of a slot ends the older one that is known to have ended later, unless that was said since."""
        if event.ended_at is None:
            return event
        since = event.fact.true_from
        followed = (one for one, ender in self._enders.items() if ender == event.ended_by)
        held = (one for one in _weighed_ids(event) if one in self._known and _has_ended(self._known[one]))
        older = [
            one
            for fact_id in dict.fromkeys((*followed, *held))
            if (one := self._values.get(fact_id)) is not None
            and one.last_said < since
            and one.fact.valid_until is None
            and (one.fact.value is None or one.fact.value != event.fact.value)
            and self._slot_relation(one.fact, event.fact) == "same"
        ]
        moved = tuple(self._ends_at(since, older, event.fact.fact_id))
        self._enders |= {one.fact_id: event.fact.fact_id for one in moved}
        return event.model_copy(update={"moved_ends": moved}) if moved else event

    def _end_of(self, value: _Value) -> datetime:
        stored = self._known.get(value.fact_id)
        return value.true_from if stored is None else stored.state.true_to or value.true_from

    def _freed_ids(self, event: MemoryEvent) -> list[UUID]:
        """The facts that were ended by what the event withdraws."""
        disbelieved = set(event.disbelieved_ids)
        return [
            fact_id
            for fact_id, ender in self._enders.items()
            if ender in disbelieved
            and fact_id in self._values
            and fact_id not in disbelieved | self._restored | set(event.named_ids)
            and not self._rules.stays_ended(self._values[fact_id].fact)
        ]

    def _moved_end(self, value: _Value, event: MemoryEvent, siblings: Sequence[_Value]) -> MovedEnd:
        """The fact ends at the first of the ends that are left, if there is one."""
        end = min(self._ends_left(value, event, siblings), key=lambda end: end.at, default=None)
        rivals = [one for one in siblings if not self._stood_beside(value, one)]
        doubtful = (one.fact_id for one in rivals if not self._follow_each_other(value, one))
        others = (*doubtful, *event.successor_ids, *self._rivals(value, siblings))
        possible = (other for other in dict.fromkeys(others) if other not in (value.fact_id, end and end.ended_by))
        is_open = end is None or end.at > self._rules.at
        ended = self._ended.get(value.fact_id)
        was_unresolved = ended is not None and ended.was_unresolved
        rivals_left = [other for other in possible if is_open and self._may_rival(value, end, other)]
        certain = [
            other for other in rivals_left if self._slot_relation(value.fact, self._values[other].fact) == "same"
        ]
        return MovedEnd(
            fact_id=value.fact_id,
            ender=self._enders[value.fact_id],
            ended_at=end.at if end else None,
            ended_by=end.ended_by if end else None,
            unresolved=is_open and (was_unresolved or bool(rivals_left)),
            beside=tuple(certain or rivals_left),
        )

    def _ends_left(self, value: _Value, event: MemoryEvent, siblings: Sequence[_Value]) -> Iterator[_End]:
        """Its own term, what else had ended it, what ends the disbelieved fact, and newer values of its slot."""
        stored, ended = self._known.get(value.fact_id), self._ended.get(value.fact_id)
        if stored is not None and stored.fact.valid_until is not None and stored.fact.valid_until <= self._rules.at:
            yield _End(stored.fact.valid_until, None)
        if ended is not None and ended.earlier_end is not None:
            yield _End(ended.earlier_end, ended.earlier_ender)
        yield from self._end_of_ender(value)
        for later_id in ended.later_ids if ended is not None else ():
            later = self._values.get(later_id)
            is_value = later is not None and self._slot_relation(value.fact, later.fact) == "same"
            if later is not None and is_value and later_id not in self._closed:
                yield _End(later.true_from, later_id)
        takers = [self._values[fact_id] for fact_id in event.successor_ids if fact_id in self._values]
        rivals = [sibling for sibling in siblings if not self._stood_beside(value, sibling)]
        for taker in (*takers, *rivals):
            is_version = taker in takers and _is_new_version(event) and taker.fact.action_hint != "retract"
            if taker.true_from > value.true_from and (
                is_version or self._slot_relation(value.fact, taker.fact) == "same"
            ):
                yield _End(taker.true_from, taker.fact_id)

    def _end_of_ender(self, value: _Value) -> Iterator[_End]:
        """The announced end of the disbelieved fact, where a value takes its place then."""
        ender = self._known.get(self._enders[value.fact_id])
        if ender is None or ender.state.true_to is None or ender.state.superseded_by is None:
            return
        newer = self._values.get(ender.state.superseded_by)
        is_value = newer is not None and self._slot_relation(value.fact, newer.fact) == "same"
        if newer is not None and is_value and newer.fact_id not in self._closed:
            yield _End(max(ender.state.true_to, value.true_from), newer.fact_id)

    def _rivals(self, value: _Value, siblings: Sequence[_Value]) -> Iterable[UUID]:
        ended = self._ended.get(value.fact_id)
        left_out = self._closed | {sibling.fact_id for sibling in siblings}
        return (fact_id for fact_id in (ended.rival_ids if ended else ()) if fact_id not in left_out)

    def _stood_beside(self, value: _Value, other: _Value) -> bool:
        """Whether both held at once before one fact ended them, or one adds to the other."""
        one, two = self._ended.get(value.fact_id), self._ended.get(other.fact_id)
        if one is None or two is None:
            return True
        return (one.was_open and two.was_open) or two.fact_id in one.related_ids

    def _may_rival(self, value: _Value, end: _End | None, other_id: UUID) -> bool:
        """Whether another fact may be a value of the same slot at the same time."""
        other, stored = self._values.get(other_id), self._known.get(other_id)
        if other is None or (end is not None and end.at <= other.true_from):
            return False
        other_end = stored.state.true_to if stored else None
        is_over = other_end is not None and other_end <= value.true_from
        return not is_over and self._slot_relation(value.fact, other.fact) != "other"

    def _follow_each_other(self, value: _Value, other: _Value) -> bool:
        """Whether one of two values certainly ends with the beginning of the other."""
        return value.true_from != other.true_from and self._slot_relation(value.fact, other.fact) == "same"

    def _slot_relation(self, one: ExtractedFact, other: ExtractedFact) -> SubjectRelation:
        """Whether `other` is a value of the slot of `one`, and is so for certain."""
        holds_one = one.single_valued or other.single_valued or self._rules.policy.is_single_valued(one.key)
        if other.action_hint == "retract" or one.key is None or one.key != other.key or not holds_one:
            return "other"
        return compare_subjects(one.subject, other.subject, self._rules.user_names)


def _values(events: Sequence[MemoryEvent], known: Mapping[UUID, StoredFact]) -> Iterator[tuple[UUID, _Value]]:
    for fact_id, stored in known.items():
        last_said = max(stored.true_from, stored.state.last_confirmed_at or stored.true_from)
        yield fact_id, _Value(fact_id, stored.fact, stored.true_from, last_said)
    for fact in (event.new_fact for event in events if event.new_fact is not None):
        yield fact.fact_id, _Value(fact.fact_id, fact, fact.true_from, fact.true_from)


def _weighed_ids(event: MemoryEvent) -> Sequence[UUID]:
    """The known facts that a late value was compared with, some of which it may end earlier than was known."""
    if not isinstance(event, FactAdded) or event.ended_at is None:
        return ()
    return [weighed.fact_id for weighed in event.decision.candidates]


def _has_ended(stored: StoredFact) -> bool:
    state = stored.state
    return state.status in ("superseded", "retracted", "expired") and state.believed_to is None


def _truly_ended(event: MemoryEvent) -> tuple[UUID, ...]:
    """The facts that were true and that the event ends."""
    if event.end_time is None or event.overwrite not in ("replace", "retract", "expire"):
        return ()
    return event.affected_ids


def _heirs(event: MemoryEvent) -> tuple[UUID, ...]:
    """The fact that a merge, or a command with a new text, puts in the place of others."""
    is_version = _is_new_version(event) or (isinstance(event, FactReplaced) and event.decision.by == "application")
    return event.successor_ids if event.overwrite == "merge" or is_version else ()


def _is_new_version(event: MemoryEvent) -> bool:
    """Whether a command gave the disbelieved fact a new text."""
    return isinstance(event, FactCorrected) or (
        isinstance(event, FactContradicted) and event.decision.by in ("application", "human")
    )
