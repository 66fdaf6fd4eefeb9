"""Which ends move when an event withdraws a fact that had ended others, or moves its beginning.

The facts that it had ended are open again, or end at another time. `move_ends` is the entry; `mark_unresolved` looks at
the facts that an undo opens again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Protocol, TypeVar
from uuid import UUID

from mnemolog.schemas.entities import KnownEntity
from mnemolog.schemas.events import (
    FactAdded,
    FactContradicted,
    FactCorrected,
    FactReplaced,
    FactRetracted,
    MemoryEvent,
    RestoringEvent,
    SubjectsChanged,
)
from mnemolog.schemas.facts import ENDED_STATUSES, OPEN_STATUSES, Candidate, ExtractedFact, MovedEnd, Reversal
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.provenance import Guard, Verdict
from mnemolog.schemas.stored import EndedFact, StoredFact
from mnemolog.streams.entities.subjects import entity_relation, subjects_by_fact
from mnemolog.streams.merges import candidate_of
from mnemolog.streams.text.differences import EntityRelation, SubjectRelation, relate_names


@dataclass(frozen=True, slots=True, kw_only=True)
class EndRules:
    """When the ends move (`at`), the rules of keys and names, and which facts stay ended (`stays_ended`).

    `subject_of` gives the entity that the new fact of an event is about, where its source names it. Where the events
    change entities, `subjects` has whom facts are about then, and `parted` are facts that others than their enders
    are about.
    """

    at: datetime
    policy: EffectivePolicy = field(default_factory=EffectivePolicy)
    user_names: tuple[str, ...] = ()
    stays_ended: Callable[["Value"], bool] = lambda _: False
    subject_of: Callable[[MemoryEvent], KnownEntity | None] = lambda _: None
    subjects: Mapping[UUID, KnownEntity | None] = field(default_factory=dict)
    parted: Mapping[UUID, UUID] = field(default_factory=dict)


DOUBTFUL_BELOW: Final = 0.50
"""Confidence below which a statement cannot end a certain fact, and a merged fact is not more certain (Mem Skill)."""
GUARDS_OF_CONFIDENCE: Final[tuple[Guard, ...]] = ("human_word", "high_confidence", "high_risk", "low_confidence")


def guard_against(verdict: Verdict, confidence: float, known: Candidate, policy: EffectivePolicy) -> Guard | None:
    """The guard that keeps a statement of this confidence from ending a known fact; None where it may.

    A fact that waits for a confirmation is guarded only where it is a human's word.
    """
    if known.authority == "human":
        return "human_word"
    if known.status == "pending_confirmation":
        return None
    is_sure, is_known_surely = (one >= policy.confirm_below for one in (confidence, known.confidence))
    is_risky = policy.is_high_risk(known.categories, known.key)
    if verdict == "CONTRADICT" and is_known_surely and (is_risky or not is_sure):
        return "high_confidence"
    if is_risky and not is_sure:
        return "high_risk"
    if is_sure or verdict == "MERGE":
        return None
    return "low_confidence" if confidence < DOUBTFUL_BELOW and is_known_surely else None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndLookups:
    """The known facts that an event may touch, with `subjects`, the entities that they are about.

    `between` has, by a fact whose beginning moves, the values of its slot that ended before it began.
    """

    ended: Sequence[EndedFact] = ()
    facts: Mapping[UUID, StoredFact] = field(default_factory=dict)
    between: Mapping[UUID, Sequence[UUID]] = field(default_factory=dict)
    subjects: Sequence[KnownEntity] = ()


@dataclass(frozen=True, slots=True)
class Value:
    """A fact with its beginning and its confidence, when it was last said to hold, and the entity that it is about."""

    fact_id: UUID
    fact: ExtractedFact
    true_from: datetime
    last_said: datetime
    confidence: float
    subject: KnownEntity | None = None


@dataclass(frozen=True, slots=True)
class End:
    """When a fact ends, and in favour of what; None for its own term."""

    at: datetime
    ended_by: UUID | None


def values_of(events: Sequence[MemoryEvent], lookups: EndLookups, rules: EndRules) -> Iterator[tuple[UUID, Value]]:
    subjects = {**subjects_by_fact(lookups.subjects), **rules.subjects}
    for fact_id, stored in lookups.facts.items():
        last_said = max(stored.true_from, stored.state.last_confirmed_at or stored.true_from)
        subject, confidence = subjects.get(fact_id), stored.state.confidence
        yield fact_id, Value(fact_id, stored.fact, stored.true_from, last_said, confidence, subject)
    for event in events:
        if (fact := event.new_fact) is not None:
            subject = rules.subject_of(event) or _subject_of_parts(event, lookups.facts, subjects)
            yield fact.fact_id, Value(fact.fact_id, fact, fact.true_from, fact.true_from, fact.confidence, subject)


def _subject_of_parts(
    event: MemoryEvent, known: Mapping[UUID, StoredFact], subjects: Mapping[UUID, KnownEntity | None]
) -> KnownEntity | None:
    """The entity that the facts whose place a new fact takes are about, if it is the same and under the same name."""
    fact = event.new_fact
    found = {
        subject.entity_id: subject
        for fact_id in event.affected_ids
        if (subject := subjects.get(fact_id)) is not None
        and fact_id in known
        and fact is not None
        and known[fact_id].fact.subject == fact.subject
    }
    return next(iter(found.values())) if len(found) == 1 else None


def moved_beginnings(event: MemoryEvent, rules: EndRules) -> Iterator[tuple[UUID, datetime]]:
    """The facts that may have begun earlier than was known, and when: by a repetition, a merge, or an older detail."""
    if event.moved_beginning is not None:
        yield event.moved_beginning
    fact = event.new_fact
    if fact is None:
        return
    if event.overwrite == "merge":
        yield from (
            (known.fact_id, fact.true_from) for known in event.decision.before if fact.true_from < known.true_from
        )
    elif event.relation is not None and (fact.single_valued or rules.policy.is_single_valued(fact.key)):
        yield from ((target, fact.true_from) for target in event.named_ids if target != fact.fact_id)


def weighed_ids(event: MemoryEvent) -> Sequence[UUID]:
    """The known facts that a late value was compared with: it may end them earlier than was known."""
    if not isinstance(event, FactAdded) or event.ended_at is None:
        return ()
    return [weighed.fact_id for weighed in event.decision.candidates]


def has_ended(stored: StoredFact) -> bool:
    """Whether it was true until a time; what was deleted, merged or never confirmed was not."""
    state = stored.state
    is_believed = state.believed_from is not None and state.believed_to is None
    return state.status in ENDED_STATUSES and is_believed


def truly_ended(event: MemoryEvent) -> tuple[UUID, ...]:
    """The facts that were true and that the event ends."""
    if event.end_time is None or event.overwrite not in ("replace", "retract", "expire"):
        return ()
    return event.affected_ids


def heirs(event: MemoryEvent) -> tuple[UUID, ...]:
    """The fact that a merge, or a command with a new text, puts in the place of other facts."""
    is_version = is_new_version(event) or (isinstance(event, FactReplaced) and event.decision.by == "application")
    return event.successor_ids if event.overwrite == "merge" or is_version else ()


def is_new_version(event: MemoryEvent) -> bool:
    """Whether a command gave the disbelieved fact a new text."""
    return isinstance(event, FactCorrected) or (
        isinstance(event, FactContradicted) and event.decision.by in ("application", "human")
    )


def slot_relation(
    one: ExtractedFact, other: ExtractedFact, rules: EndRules, entities: EntityRelation | None = None
) -> SubjectRelation:
    """Whether `other` is a value of the slot of `one`: of the same subject for certain, perhaps, or not at all.

    `entities` is the relation of the entities that the facts are about.
    """
    holds_one = one.single_valued or other.single_valued or rules.policy.is_single_valued(one.key)
    if other.action_hint == "retract" or one.key is None or one.key != other.key or not holds_one:
        return "other"
    return relate_names(one.subject, other.subject, entities, rules.user_names)


def values_relation(one: Value, other: Value, rules: EndRules) -> SubjectRelation:
    """As `slot_relation`, by the entities that both are about."""
    return slot_relation(one.fact, other.fact, rules, _entities(one, other))


def _entities(one: Value, other: Value) -> EntityRelation | None:
    """The relation of their entities; a possible twin counts as another entity until somebody says more."""
    found = entity_relation(one.subject, other.subject)
    return "other" if found == "twin" else found


def may_be_rivals(one: Value, other: Value, rules: EndRules) -> bool:
    """Whether both may be values of one slot, or `other` is a later statement that `one` has ended."""
    if one.true_from < other.true_from and tells_end_of(other.fact, one.fact):
        return relate_names(one.fact.subject, other.fact.subject, _entities(one, other), rules.user_names) != "other"
    return values_relation(one, other, rules) != "other"


def same_value(one: ExtractedFact, other: ExtractedFact | Candidate) -> bool:
    """Whether two facts without a term have one value, perhaps with other details."""
    is_lasting = one.valid_until is None and other.valid_until is None
    return is_lasting and one.value is not None and one.value == other.value


def tells_end_of(one: ExtractedFact, other: ExtractedFact) -> bool:
    """Whether a fact only states an end, and states it of the value of the other fact, under the same key."""
    is_end = one.action_hint == "retract" and other.action_hint != "retract"
    return is_end and one.key is not None and one.key == other.key and same_value(one, other)


class _CommitEnds:
    """Which fact has ended which (`_enders`), as the events of one commit change it one after another."""

    def __init__(self, events: Sequence[MemoryEvent], lookups: EndLookups, rules: EndRules) -> None:
        self._rules = rules
        self._known = lookups.facts
        self._between = lookups.between
        self._ended = {ended.fact_id: ended for ended in lookups.ended}
        self._enders = {ended.fact_id: ended.ended_by for ended in lookups.ended}
        self._values = dict(values_of(events, lookups, rules))
        self._closed = {fact_id for event in events for fact_id in event.disbelieved_ids}
        deletions = (event for event in events if isinstance(event, FactRetracted) and event.ended_at is None)
        self._deleted = {fact_id for event in deletions for fact_id in event.targets}
        undone = (event for event in events if isinstance(event, RestoringEvent))
        self._restored = {reversal.fact_id for event in undone for reversal in event.reversals}

    def apply(self, event: MemoryEvent) -> MemoryEvent:
        """The event with the ends that it moves; without the earlier beginning where the fact cannot have it."""
        event = self._with_moved_ends(event)
        enders = {moved.fact_id: moved.ended_by for moved in event.moved_ends}
        if isinstance(event, FactAdded) and event.ended_at is not None:
            enders[event.fact.fact_id] = event.ended_by
        for fact_id, ender in enders.items():
            self._enders.pop(fact_id, None)
            if ender is not None:
                self._enders[fact_id] = ender
        return event

    def _with_moved_ends(self, event: MemoryEvent) -> MemoryEvent:
        if event.moved_beginning is not None:
            return self._with_beginning(event, *event.moved_beginning)
        if isinstance(event, FactAdded):
            return self._with_end_of_older(self._with_end_of_known(event))
        successor = next(iter(event.successor_ids), None)
        for fact_id in truly_ended(event):
            self._closed.add(fact_id)
            if successor is not None:
                self._enders[fact_id] = successor
        freed = [self._values[fact_id] for fact_id in self._freed_ids(event)]
        moved = tuple(self._moved_end(value, event, freed) for value in freed)
        self._closed.difference_update(end.fact_id for end in moved)
        own = [self._with_ender(end) for end in event.moved_ends] + list(self._inherited_ends(event))
        own += self._ends_by_older_part(event)
        return event.model_copy(update={"moved_ends": (*own, *moved)}) if own or moved else event

    def _inherited_ends(self, event: MemoryEvent) -> Iterator[MovedEnd]:
        """The announced end of a fact that is merged or gets a new text: its new version has that end too."""
        heir = next((self._values[fact_id] for fact_id in heirs(event) if fact_id in self._values), None)
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
        """The end of a fact that ends together with `moved.ender`: in favour of the fact that ends the ender."""
        stored = self._known.get(moved.ender)
        if stored is None or moved.ended_at is None or moved.ended_by is not None:
            return moved
        return moved.model_copy(update={"ended_by": stored.state.superseded_by})

    def _with_beginning(self, event: MemoryEvent, fact_id: UUID, since: datetime) -> MemoryEvent:
        """The repeated fact began at `since` and ended the older values then; unless an older value held after it."""
        older, known = self._values_before(fact_id), self._values[fact_id]
        if any(value.last_said >= since or not self._may_end(known, value) for value in older):
            return event.model_copy(update={"true_from": None})
        return event.model_copy(update={"moved_ends": tuple(self._ends_at(since, older, fact_id))})

    def _values_before(self, fact_id: UUID) -> list[Value]:
        """The values that a fact had ended, and the other values of its slot that ended before it began."""
        value, between = self._values[fact_id], self._between.get(fact_id, ())
        if value.fact.valid_until is not None:
            return []
        ended = [self._values[known] for known, by in self._enders.items() if by == fact_id and known in self._values]
        before = [self._values[known] for known in between if known in self._values]
        of_slot = [other for other in before if values_relation(value, other, self._rules) != "other"]
        return list({older.fact_id: older for older in (*ended, *of_slot)}.values())

    def _ends_by_older_part(self, event: MemoryEvent) -> Iterator[MovedEnd]:
        """The ends by a merged fact, or a detail, that began before a known fact: it ends what that fact had ended."""
        for fact_id, since in moved_beginnings(event, self._rules):
            known = self._values.get(fact_id)
            if known is None or event.new_fact is None or known.true_from <= since:
                continue
            if event.overwrite == "merge" or same_value(known.fact, event.new_fact):
                new = self._values[event.new_fact.fact_id]
                before = self._values_before(fact_id)
                older = (value for value in before if value.last_said < since and self._may_end(new, value))
                yield from self._ends_at(since, older, new.fact_id)

    def _may_end(self, value: Value, older: Value) -> bool:
        """Whether a value ends another value without a question."""
        return not same_value(older.fact, value.fact) and self._takes_place(value, older)

    def _takes_place(self, value: Value, older: Value) -> bool:
        """Whether a value is certainly of the slot of an older one, and no guard keeps it from ending that."""
        if values_relation(older, value, self._rules) != "same":
            return False
        stored = self._known.get(older.fact_id)
        guarded = stored and guard_against("REPLACE", value.confidence, candidate_of(stored), self._rules.policy)
        return guarded is None

    def _ends_at(self, since: datetime, values: Iterable[Value], ended_by: UUID) -> Iterator[MovedEnd]:
        """The values that were known to hold until after `since` end then."""
        for value in values:
            stored = self._known.get(value.fact_id)
            known_end = value.true_from if stored is None else stored.state.true_to or value.true_from
            ender = self._enders.get(value.fact_id) or self._known[value.fact_id].state.superseded_by
            if since < known_end:
                yield MovedEnd(fact_id=value.fact_id, ender=ender or ended_by, ended_at=since, ended_by=ended_by)

    def _with_end_of_known(self, event: FactAdded) -> FactAdded:
        """History that ended together with a known fact: it ended in favour of the fact that ended the known one."""
        known = self._known.get(event.ended_by) if event.ended_by is not None else None
        if known is None or event.ended_at is None or not known.true_from < event.ended_at == known.state.true_to:
            return event
        return event.model_copy(update={"ended_by": known.state.superseded_by})

    def _with_end_of_older(self, event: FactAdded) -> MemoryEvent:
        """A late value of a slot ends older values that are known to have ended later and were not said since."""
        if event.ended_at is None or event.fact.valid_until is not None:
            return event
        since = event.fact.true_from
        followed = (fact_id for fact_id, ender in self._enders.items() if ender == event.ended_by)
        weighed = (fact_id for fact_id in weighed_ids(event) if fact_id in self._known)
        ended = (fact_id for fact_id in weighed if has_ended(self._known[fact_id]))
        older = [
            value
            for fact_id in dict.fromkeys((*followed, *ended))
            if (value := self._values.get(fact_id)) is not None
            and value.last_said < since
            and value.fact.valid_until is None
            and self._may_end(self._values[event.fact.fact_id], value)
        ]
        moved = tuple(self._ends_at(since, older, event.fact.fact_id))
        return event.model_copy(update={"moved_ends": moved}) if moved else event

    def _freed_ids(self, event: MemoryEvent) -> list[UUID]:
        """The facts that were ended by a fact that the event withdraws, or says to be about another entity.

        What the commit deletes too does not come back, nor a text that a command replaced by one that is deleted.
        """
        disbelieved = set(event.disbelieved_ids)
        parted = self._rules.parted if isinstance(event, SubjectsChanged) else {}
        replaced = {one.fact_id for one in self._ended.values() if one.by_command and event.event == "fact_retracted"}
        return [
            fact_id
            for fact_id, ender in self._enders.items()
            if (ender in disbelieved or fact_id in parted)
            and fact_id in self._values
            and fact_id not in disbelieved | self._deleted | self._restored | replaced | set(event.named_ids)
            and not self._rules.stays_ended(self._values[fact_id])
        ]

    def _moved_end(self, value: Value, event: MemoryEvent, siblings: Sequence[Value]) -> MovedEnd:
        """The fact ends at the first end that is left, if there is one; `siblings` are all facts that are freed."""
        end = min(self._ends_left(value, event, siblings), key=lambda end: end.at, default=None)
        ended = self._ended.get(value.fact_id)
        doubtful = (
            sibling.fact_id
            for sibling in siblings
            if not self._stood_beside(value, sibling)
            and (value.true_from == sibling.true_from or values_relation(value, sibling, self._rules) != "same")
        )
        left_out = self._closed | {sibling.fact_id for sibling in siblings}
        known_rivals = (fact_id for fact_id in (ended.rival_ids if ended else ()) if fact_id not in left_out)
        others = dict.fromkeys((*doubtful, *event.successor_ids, *known_rivals))
        possible = (other for other in others if other not in (value.fact_id, end and end.ended_by))
        is_open = end is None or end.at > self._rules.at
        was_unresolved = ended is not None and ended.was_unresolved and not isinstance(event, SubjectsChanged)
        rivals_left = [other for other in possible if is_open and self._may_rival(value, end, other)]
        certain = [other for other in rivals_left if values_relation(value, self._values[other], self._rules) == "same"]
        return MovedEnd(
            fact_id=value.fact_id,
            ender=self._enders[value.fact_id],
            ended_at=end.at if end else None,
            ended_by=end.ended_by if end else None,
            unresolved=is_open and (was_unresolved or bool(rivals_left)),
            beside=tuple(certain or rivals_left),
        )

    def _ends_left(self, value: Value, event: MemoryEvent, siblings: Sequence[Value]) -> Iterator[End]:
        """Its own term, other facts that ended it, the end of the disbelieved fact, and newer values of its slot."""
        stored, ended = self._known.get(value.fact_id), self._ended.get(value.fact_id)
        if stored is not None and stored.fact.valid_until is not None and stored.fact.valid_until <= self._rules.at:
            yield End(stored.fact.valid_until, None)
        if ended is not None and ended.earlier_end is not None:
            yield End(ended.earlier_end, ended.earlier_ender)
        ender = self._known.get(self._enders[value.fact_id])
        if ender is not None and ender.state.true_to is not None:  # announced: another value takes its place then
            newer = self._newer_value(value, ender.state.superseded_by)
            if newer is not None:
                yield End(max(ender.state.true_to, value.true_from), newer.fact_id)
        for later_id in ended.later_ids if ended is not None else ():
            if (later := self._newer_value(value, later_id)) is not None:
                yield End(later.true_from, later_id)
        takers = [self._values[fact_id] for fact_id in event.successor_ids if fact_id in self._values]
        rivals = [sibling for sibling in siblings if not self._stood_beside(value, sibling)]
        for taker in (*takers, *rivals):
            is_version = taker in takers and is_new_version(event) and taker.fact.action_hint != "retract"
            if (
                taker.fact.valid_until is None
                and taker.true_from > value.true_from
                and (is_version or self._takes_place(taker, value))
            ):
                yield End(taker.true_from, taker.fact_id)

    def _newer_value(self, value: Value, fact_id: UUID | None) -> Value | None:
        """The other fact, if it takes the place of the value and is not closed by this commit."""
        newer = self._values.get(fact_id) if fact_id is not None else None
        if newer is None or newer.fact_id in self._closed or not self._takes_place(newer, value):
            return None
        return newer

    def _stood_beside(self, value: Value, other: Value) -> bool:
        """Whether both held at once before a fact ended them, or one adds to the other."""
        one, two = self._ended.get(value.fact_id), self._ended.get(other.fact_id)
        if one is None or two is None:
            return True
        return (one.was_open and two.was_open) or two.fact_id in one.related_ids

    def _may_rival(self, value: Value, end: End | None, other_id: UUID) -> bool:
        """Whether another fact may be a value of the same slot at the same time."""
        other, stored = self._values.get(other_id), self._known.get(other_id)
        if other is None or (end is not None and end.at <= other.true_from):
            return False
        other_end = stored.state.true_to if stored else None
        if other_end is not None and other_end <= value.true_from:
            return False
        return may_be_rivals(value, other, self._rules)


class StoredFactReader(Protocol):
    """Reads known facts. Each call is one round trip, and waits while Postgres is unavailable."""

    async def facts(self, fact_ids: Sequence[UUID]) -> Mapping[UUID, StoredFact]:
        """The known facts among `fact_ids`, whatever their scope and status."""

    async def subjects_of(self, fact_ids: Sequence[UUID]) -> Sequence[KnownEntity]:
        """The entities that these facts are about, each with its facts among them (`subject_of`)."""


class EndedFactReader(StoredFactReader, Protocol):
    """Reads which facts were ended by which."""

    async def ended_facts(self, fact_ids: Sequence[UUID]) -> Sequence[EndedFact]:
        """The facts that were true until a fact of `fact_ids`, or a fact merged into it, ended them."""

    async def values_before(self, fact_id: UUID, since: datetime) -> Sequence[UUID]:
        """The other facts of its key that held at `since` or began since then, and ended before it began."""


async def move_ends(events: Sequence[MemoryEvent], reader: EndedFactReader, rules: EndRules) -> tuple[MemoryEvent, ...]:
    """The events of one commit, with the ends that they move; nothing is read where no ender changes."""
    disbelieved = [fact_id for event in events for fact_id in event.disbelieved_ids]
    moved = dict(begun for event in events for begun in moved_beginnings(event, rules))
    newer = (event.ended_by for event in events if isinstance(event, FactAdded) and event.ended_by is not None)
    enders = tuple(dict.fromkeys((*disbelieved, *moved, *newer, *rules.parted.values())))
    if not enders and not any(heirs(event) or event.moved_ends for event in events):
        return tuple(events)
    ended = await reader.ended_facts(enders) if enders else ()
    between = {fact_id: await reader.values_before(fact_id, since) for fact_id, since in moved.items()}
    needed = dict.fromkeys(enders)
    for event in events:
        needed |= dict.fromkeys((*event.named_ids, *weighed_ids(event)))
    for known in ended:
        needed |= dict.fromkeys((known.fact_id, *known.rival_ids, *known.later_ids))
    for others in between.values():
        needed |= dict.fromkeys(others)
    facts, subjects = await reader.facts(tuple(needed)), await reader.subjects_of(tuple(needed))
    lookups = EndLookups(ended=ended, facts=facts, between=between, subjects=subjects)
    return tuple(map(_CommitEnds(events, lookups, rules).apply, events))


class RivalReader(StoredFactReader, Protocol):
    """Reads which facts came after facts that have ended."""

    async def values_since(self, fact_ids: Sequence[UUID]) -> Mapping[UUID, Sequence[UUID]]:
        """By fact, the active facts of its key that were not active when it was closed, or became so since."""


async def mark_unresolved(
    events: Sequence[MemoryEvent], reader: RivalReader, rules: EndRules
) -> tuple[MemoryEvent, ...]:
    """The events of an undo or a change of entities, in which a restored value beside a newer value is unresolved."""
    undone = [event for event in events if isinstance(event, RestoringEvent)]
    restored = {reversal.fact_id: reversal for event in undone for reversal in event.reversals}
    changed = (one for event in undone if isinstance(event, SubjectsChanged) for one in event.reversals)
    were_open = {one.fact_id for one in changed if one.now in OPEN_STATUSES}  # their questions are asked already
    open_again = [
        fact_id for fact_id, reversal in restored.items() if _is_open_again(reversal) and fact_id not in were_open
    ]
    newer = await reader.values_since(open_again) if open_again else {}
    if not newer:
        return tuple(events)
    needed = tuple({*newer, *(other for others in newer.values() for other in others)})
    facts = await reader.facts(needed)
    lookups = EndLookups(facts=facts, subjects=await reader.subjects_of(needed))
    values = dict(values_of((), lookups, rules))
    beside: dict[UUID, tuple[UUID, ...]] = {}
    for fact_id, others in newer.items():
        rivals = tuple(
            other
            for other in others
            if (other not in restored or _is_open_again(restored[other]))
            and not (facts[fact_id].fact.valid_until or facts[other].fact.valid_until or facts[other].state.true_to)
            and not _say_the_same(facts[fact_id].fact, facts[other].fact)
            and may_be_rivals(values[fact_id], values[other], rules)
        )
        if rivals:
            beside[fact_id] = rivals
    return tuple(_marked(event, beside) if isinstance(event, RestoringEvent) else event for event in events)


def _say_the_same(one: ExtractedFact, other: ExtractedFact) -> bool:
    """Whether two facts say that one value holds, or that it does not."""
    is_same = same_value(one, other) or one.content_hash == other.content_hash
    return is_same and (one.action_hint == "retract") == (other.action_hint == "retract")


R = TypeVar("R", bound=RestoringEvent)


def _is_open_again(reversal: Reversal) -> bool:
    before = reversal.before
    return before is not None and before.status == "active" and before.true_to is None


def _marked(event: R, rivals: Mapping[UUID, tuple[UUID, ...]]) -> R:
    """The event, with the reversals of facts that have `rivals` as unresolved."""
    ends: list[MovedEnd] = []
    reversals: list[Reversal] = []
    for reversal in event.reversals:
        fact_id, before = reversal.fact_id, reversal.before
        if fact_id in rivals and before is not None and _is_open_again(reversal):
            ends.append(MovedEnd(fact_id=fact_id, ender=fact_id, unresolved=True, beside=rivals[fact_id]))
            unresolved = before.model_copy(update={"unresolved": True})
            reversals.append(reversal.model_copy(update={"before": unresolved}))
        else:
            reversals.append(reversal)
    if not ends:
        return event
    return event.model_copy(update={"reversals": tuple(reversals), "moved_ends": (*event.moved_ends, *ends)})
