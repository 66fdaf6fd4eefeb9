"""Which ends move when an event withdraws a fact that had ended others, or moves its beginning.

The facts that it had ended are open again, or end at another time. `move_ends` is the entry; `mark_unresolved` looks at
the facts that an undo opens again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final
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
from mnemolog.streams.entities.subjects import relation_to_known, subjects_by_fact
from mnemolog.streams.merges import candidate_of, known_candidate
from mnemolog.streams.text.differences import EntityRelation, SubjectRelation, relate_names

if TYPE_CHECKING:
    from mnemolog.projections.stores.facts import FactStore


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRules:
    """The policy and the names of the user, which say which facts are values of one slot."""

    policy: EffectivePolicy = field(default_factory=EffectivePolicy)
    user_names: tuple[str, ...] = ()

    def holds_one(self, fact: ExtractedFact | Candidate) -> bool:
        """Whether the key of a fact holds one value at a time."""
        return fact.single_valued or self.policy.is_single_valued(fact.key)

    def slot_relation(
        self, one: ExtractedFact | Candidate, other: ExtractedFact | Candidate, entities: EntityRelation | None = None
    ) -> SubjectRelation:
        """Whether both are values of one slot: of the same subject for certain, perhaps, or not at all.

        `entities` is the relation of the entities that the facts are about; none given: the one that a candidate has.
        """
        if one.key is None or one.key != other.key or not (self.holds_one(one) or other.single_valued):
            return "other"
        entities = entities or (other.subject_relation if isinstance(other, Candidate) else None)
        return relate_names(one.subject, other.subject, entities, self.user_names)


@dataclass(frozen=True, slots=True, kw_only=True)
class EndRules(SlotRules):
    """When the ends move (`at`), the rules of keys and names, and which facts stay ended (`stays_ended`).

    `subject_of` gives the entity that the new fact of an event is about, where its source names it. Where the events
    change entities, `subjects` has whom facts are about then, and `parted` are facts that others than their enders
    are about.
    """

    at: datetime
    stays_ended: Callable[[Candidate], bool] = lambda _: False
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


def values_of(
    events: Sequence[MemoryEvent], facts: Mapping[UUID, StoredFact], subjects: Sequence[KnownEntity], rules: EndRules
) -> tuple[dict[UUID, Candidate], EndRules]:
    """The known `facts` and those that the events add, by their ids; and the rules with the entities of all of them.

    A new fact is about the entity that its source names; else about the one entity of the facts whose place it takes
    under the same name.
    """
    about = {**subjects_by_fact(subjects), **rules.subjects}
    values = {fact_id: candidate_of(known) for fact_id, known in facts.items()}
    for event in events:
        if (fact := event.new_fact) is None:
            continue
        fact_id, subject = fact.fact_id, rules.subject_of(event)
        if subject is None:
            replaced = (known_id for known_id in event.affected_ids if known_id in facts)
            of_name = [known_id for known_id in replaced if facts[known_id].fact.subject == fact.subject]
            found = {one.entity_id: one for known_id in of_name if (one := about.get(known_id)) is not None}
            subject = next(iter(found.values())) if len(found) == 1 else None
        about[fact_id] = subject
        values[fact_id] = known_candidate(fact, fact_id=fact_id, confidence=fact.confidence, true_from=fact.true_from)
    return values, replace(rules, subjects=about)


def last_held(known: Candidate) -> datetime:
    """When a known fact was last said to hold: a plan not before it begins."""
    return max(known.true_from, known.said_at or known.true_from)


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
    elif event.relation is not None and rules.holds_one(fact):
        yield from ((target, fact.true_from) for target in event.named_ids if target != fact.fact_id)


def has_ended(stored: StoredFact) -> bool:
    """Whether it was true until a time; what was deleted, merged or never confirmed was not."""
    state = stored.state
    is_believed = state.believed_from is not None and state.believed_to is None
    return state.status in ENDED_STATUSES and is_believed


def heirs(event: MemoryEvent) -> tuple[UUID, ...]:
    """The fact that a merge, or a command with a new text, puts in the place of other facts."""
    is_version = is_new_version(event) or (isinstance(event, FactReplaced) and event.decision.by == "person")
    return event.successor_ids if event.overwrite == "merge" or is_version else ()


def is_new_version(event: MemoryEvent) -> bool:
    """Whether a command gave the disbelieved fact a new text."""
    return isinstance(event, FactCorrected) or (isinstance(event, FactContradicted) and event.decision.by == "person")


def values_relation(one: Candidate, other: Candidate, rules: EndRules) -> SubjectRelation:
    """Whether `other` is a value of the slot of `one`, by the entities that both are about; an end is no value."""
    return "other" if other.action_hint == "retract" else rules.slot_relation(one, other, _entities(one, other, rules))


def _entities(one: Candidate, other: Candidate, rules: EndRules) -> EntityRelation | None:
    """The relation of their entities; a possible twin counts as another entity until somebody says more."""
    about, of_other = rules.subjects.get(one.fact_id), rules.subjects.get(other.fact_id)
    found = relation_to_known(one.subject, about, other, of_other, rules.user_names)
    return "other" if found == "twin" else found


def may_be_rivals(one: Candidate, other: Candidate, rules: EndRules) -> bool:
    """Whether both may be different values of one slot, or `other` is a later statement that `one` has ended."""
    if one.true_from < other.true_from and tells_end_of(other, one):
        return relate_names(one.subject, other.subject, _entities(one, other, rules), rules.user_names) != "other"
    return not same_value(one, other) and values_relation(one, other, rules) != "other"


def same_value(one: ExtractedFact | Candidate, other: ExtractedFact | Candidate) -> bool:
    """Whether two facts without a term have one value, perhaps with other details."""
    is_lasting = one.valid_until is None and other.valid_until is None
    return is_lasting and one.value is not None and one.value == other.value


def tells_end_of(one: ExtractedFact | Candidate, other: ExtractedFact | Candidate) -> bool:
    """Whether a fact only states an end, and states it of the value of the other fact, under the same key."""
    is_end = one.action_hint == "retract" and other.action_hint != "retract"
    return is_end and one.key is not None and one.key == other.key and same_value(one, other)


class _CommitEnds:
    """Which fact has ended which (`_enders`), as the events of one commit change it one after another.

    `between` has, by a fact whose beginning moves, the values of its slot that ended before it began.
    """

    def __init__(
        self,
        events: Sequence[MemoryEvent],
        *,
        ended: Sequence[EndedFact],
        known: Mapping[UUID, StoredFact],
        between: Mapping[UUID, Sequence[UUID]],
        values: Mapping[UUID, Candidate],
        rules: EndRules,
    ) -> None:
        self._rules, self._known, self._between, self._values = rules, known, between, values
        self._ended = {one.fact_id: one for one in ended}
        self._enders = {one.fact_id: one.ended_by for one in ended}
        self._closed = {fact_id for event in events for fact_id in event.disbelieved_ids}
        deletions = (event for event in events if isinstance(event, FactRetracted) and event.ended_at is None)
        self._deleted = {fact_id for event in deletions for fact_id in event.targets}
        undone = (event for event in events if isinstance(event, RestoringEvent))
        self._restored = {reversal.fact_id for event in undone for reversal in event.reversals}

    def apply(self, event: MemoryEvent) -> MemoryEvent:
        """The event with the ends that it moves; without the earlier beginning where the fact cannot have it."""
        if event.moved_beginning is not None:  # then it ended the older values, unless one of them held after it
            fact_id, since = event.moved_beginning
            older, known = self._values_before(fact_id), self._values[fact_id]
            is_refused = any(last_held(value) >= since or not self._may_end(known, value) for value in older)
            moved = () if is_refused else tuple(self._ends_at(since, known, older))
            event = event.model_copy(update={"true_from": None} if is_refused else {"moved_ends": moved})
        elif isinstance(event, FactAdded):
            event = self._with_end_of_older(event)
        else:
            event = self._with_freed_facts(event)
        enders = {moved.fact_id: moved.ended_by for moved in event.moved_ends}
        if isinstance(event, FactAdded) and event.ended_at is not None:
            enders[event.fact.fact_id] = event.ended_by
        for fact_id, ender in enders.items():
            self._enders.pop(fact_id, None)
            if ender is not None:
                self._enders[fact_id] = ender
        return event

    def _with_freed_facts(self, event: MemoryEvent) -> MemoryEvent:
        """The event of which facts that it frees end at another time or are open; its own ends come first.

        A fact is freed where the fact that ended it is withdrawn, or is about another entity now. What the commit
        deletes too does not come back, nor a text that a command replaced by one that is deleted.
        """
        if event.end_time is not None and event.overwrite in ("replace", "retract", "expire"):
            self._closed.update(event.affected_ids)
            if successor := next(iter(event.successor_ids), None):
                self._enders |= dict.fromkeys(event.affected_ids, successor)
        own: list[MovedEnd] = []
        for end in event.moved_ends:
            ender = self._known.get(end.ender)
            if ender is not None and end.ended_at is not None and end.ended_by is None:  # both end together
                end = end.model_copy(update={"ended_by": ender.state.superseded_by})  # noqa: PLW2901 -- the same end
            own.append(end)
        own += [*self._inherited_ends(event), *self._ends_by_older_part(event)]
        disbelieved = set(event.disbelieved_ids)
        parted = self._rules.parted if isinstance(event, SubjectsChanged) else {}
        is_deletion = event.event == "fact_retracted" and event.decision.by == "person"
        replaced = {one.fact_id for one in self._ended.values() if one.by_command and is_deletion}
        staying = disbelieved | self._deleted | self._restored | replaced | set(event.named_ids)
        freed = [
            self._values[fact_id]
            for fact_id, ender_id in self._enders.items()
            if (ender_id in disbelieved or fact_id in parted)
            and fact_id in self._values
            and fact_id not in staying
            and not self._rules.stays_ended(self._values[fact_id])
        ]
        moved = [self._moved_end(value, event, freed) for value in freed]
        self._closed.difference_update(end.fact_id for end in moved)
        return event.model_copy(update={"moved_ends": (*own, *moved)}) if own or moved else event

    def _inherited_ends(self, event: MemoryEvent) -> Iterator[MovedEnd]:
        """The announced end of a fact that is merged or gets a new text: its new version has that end too."""
        for heir in heirs(event)[:1]:
            parts = (self._known[fact_id] for fact_id in event.affected_ids if fact_id in self._known)
            ends = [
                (end, part.fact_id, part.state.superseded_by)
                for part in parts
                if part.state.status == "active" and (end := part.state.true_to) is not None
                if heir in self._values and end > self._values[heir].true_from
            ]
            for ended_at, ender, ended_by in sorted(ends, key=lambda end: end[:2])[:1]:
                yield MovedEnd(fact_id=heir, ender=ender, ended_at=ended_at, ended_by=ended_by)

    def _values_before(self, fact_id: UUID) -> list[Candidate]:
        """The values that a fact had ended, and the other values of its slot that ended before it began."""
        value = self._values[fact_id]
        if value.valid_until is not None:
            return []
        ended = [self._values[known] for known, by in self._enders.items() if by == fact_id and known in self._values]
        before = [self._values[known] for known in self._between.get(fact_id, ()) if known in self._values]
        of_slot = [other for other in before if values_relation(value, other, self._rules) != "other"]
        return list({older.fact_id: older for older in (*ended, *of_slot)}.values())

    def _ends_by_older_part(self, event: MemoryEvent) -> Iterator[MovedEnd]:
        """The ends by a merged fact, or a detail, that began before a known fact: it ends what that fact had ended."""
        for fact_id, since in moved_beginnings(event, self._rules):
            known = self._values.get(fact_id)
            if known is None or event.new_fact is None or known.true_from <= since:
                continue
            if event.overwrite == "merge" or same_value(known, event.new_fact):
                new = self._values[event.new_fact.fact_id]
                yield from self._ends_at(since, new, self._values_before(fact_id))

    def _may_end(self, value: Candidate, older: Candidate) -> bool:
        """Whether a value ends another value without a question."""
        return not same_value(older, value) and self._takes_place(value, older)

    def _takes_place(self, value: Candidate, older: Candidate) -> bool:
        """Whether a value is certainly of the slot of an older one, and no guard keeps it from ending that."""
        if values_relation(older, value, self._rules) != "same":
            return False
        if older.fact_id not in self._known:
            return True
        return guard_against("REPLACE", value.confidence, older, self._rules.policy) is None

    def _ends_at(self, since: datetime, value: Candidate, older: Iterable[Candidate]) -> Iterator[MovedEnd]:
        """The older values that a value ends at `since`: which were known to hold until later, and not said since."""
        for one in older:
            if last_held(one) >= since or not self._may_end(value, one):
                continue
            stored = self._known.get(one.fact_id)
            known_end = one.true_from if stored is None else stored.state.true_to or one.true_from
            ender = self._enders.get(one.fact_id) or self._known[one.fact_id].state.superseded_by
            if since < known_end:
                by = value.fact_id
                yield MovedEnd(fact_id=one.fact_id, ender=ender or by, ended_at=since, ended_by=by)

    def _with_end_of_older(self, event: FactAdded) -> FactAdded:
        """A late value of a slot ends older values that are known to have ended later and were not said since.

        History that ended together with a known fact ended in favour of the fact that ended the known one.
        """
        if event.ended_at is None:
            return event
        known, since = self._known.get(event.ended_by) if event.ended_by else None, event.fact.true_from
        if known is not None and known.true_from < event.ended_at == known.state.true_to:
            event = event.model_copy(update={"ended_by": known.state.superseded_by})
        if event.fact.valid_until is not None:
            return event
        followed = (fact_id for fact_id, ender in self._enders.items() if ender == event.ended_by)
        weighed = (one.fact_id for one in event.decision.candidates)
        ended = (fact_id for fact_id in weighed if fact_id in self._known and has_ended(self._known[fact_id]))
        older = [
            value
            for fact_id in dict.fromkeys((*followed, *ended))
            if (value := self._values.get(fact_id)) is not None and value.valid_until is None
        ]
        moved = tuple(self._ends_at(since, self._values[event.fact.fact_id], older))
        return event.model_copy(update={"moved_ends": (*event.moved_ends, *moved)}) if moved else event

    def _moved_end(self, value: Candidate, event: MemoryEvent, siblings: Sequence[Candidate]) -> MovedEnd:
        """The fact ends at the first end that is left, if there is one; `siblings` are all facts that are freed.

        It is unresolved beside another fact that may be a value of its slot at the same time.
        """
        ended_at, ended_by = min(self._ends_left(value, event, siblings), key=lambda end: end[0], default=(None, None))
        ended = self._ended.get(value.fact_id)
        doubtful = (
            sibling.fact_id
            for sibling in siblings
            if not self._stood_beside(value, sibling)
            and (value.true_from == sibling.true_from or values_relation(value, sibling, self._rules) != "same")
        )
        left_out = self._closed | {sibling.fact_id for sibling in siblings}
        known_rivals = (fact_id for fact_id in (ended.rival_ids if ended else ()) if fact_id not in left_out)
        is_open = ended_at is None or ended_at > self._rules.at
        rivals: list[Candidate] = []
        for fact_id in dict.fromkeys((*doubtful, *event.successor_ids, *known_rivals)) if is_open else ():
            other, stored = self._values.get(fact_id), self._known.get(fact_id)
            if other is None or fact_id in (value.fact_id, ended_by):
                continue
            other_end = stored.state.true_to if stored else None
            meets = (ended_at is None or other.true_from < ended_at) and (not other_end or value.true_from < other_end)
            if meets and may_be_rivals(value, other, self._rules):
                rivals.append(other)
        certain = [other for other in rivals if values_relation(value, other, self._rules) == "same"]
        was_unresolved = ended is not None and ended.was_unresolved and not isinstance(event, SubjectsChanged)
        return MovedEnd(
            fact_id=value.fact_id,
            ender=self._enders[value.fact_id],
            ended_at=ended_at,
            ended_by=ended_by,
            unresolved=is_open and (was_unresolved or bool(rivals)),
            beside=tuple(other.fact_id for other in certain or rivals),
        )

    def _ends_left(
        self, value: Candidate, event: MemoryEvent, siblings: Sequence[Candidate]
    ) -> Iterator[tuple[datetime, UUID | None]]:
        """When, and by which fact, it ends.

        By its own term, by other facts that ended it, at the end of the disbelieved fact, by newer values of its slot.
        """
        stored, ended = self._known.get(value.fact_id), self._ended.get(value.fact_id)
        if stored is not None and stored.fact.valid_until is not None and stored.fact.valid_until <= self._rules.at:
            yield stored.fact.valid_until, None
        if ended is not None and ended.earlier_end is not None:
            earlier = self._values.get(ended.earlier_ender) if ended.earlier_ender else None
            if earlier is None or _entities(value, earlier, self._rules) != "other":  # both may be of two by now
                yield ended.earlier_end, ended.earlier_ender
        later: list[tuple[UUID, datetime | None]] = []
        ender = self._known.get(self._enders[value.fact_id])
        if ender is not None and ender.state.true_to is not None and ender.state.superseded_by is not None:
            later.append((ender.state.superseded_by, max(ender.state.true_to, value.true_from)))  # its announced end
        later += [(fact_id, None) for fact_id in (ended.later_ids if ended else ())]
        for fact_id, ended_at in later:
            newer = self._values.get(fact_id)
            if newer is not None and fact_id not in self._closed and self._takes_place(newer, value):
                yield ended_at or newer.true_from, fact_id
        takers = [self._values[fact_id] for fact_id in event.successor_ids if fact_id in self._values]
        rivals = [sibling for sibling in siblings if not self._stood_beside(value, sibling)]
        for taker in (*takers, *rivals):
            is_version = taker in takers and is_new_version(event)
            is_after = taker.true_from > value.true_from
            is_later = is_after and taker.valid_until is None
            is_older_version = is_version and ended is not None and ended.by_command
            if is_older_version and (is_after or not may_be_rivals(value, taker, self._rules)):
                yield max(taker.true_from, value.true_from), taker.fact_id
            elif is_later and ((is_version and taker.action_hint != "retract") or self._takes_place(taker, value)):
                yield taker.true_from, taker.fact_id

    def _stood_beside(self, value: Candidate, other: Candidate) -> bool:
        """Whether both held at once before a fact ended them, or one adds to the other."""
        one, two = self._ended.get(value.fact_id), self._ended.get(other.fact_id)
        if one is None or two is None:
            return True
        return (one.was_open and two.was_open) or two.fact_id in one.related_ids


async def move_ends(events: Sequence[MemoryEvent], reader: "FactStore", rules: EndRules) -> tuple[MemoryEvent, ...]:
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
        needed |= dict.fromkeys(event.named_ids)
        if isinstance(event, FactAdded) and event.ended_at is not None:  # it may end what it was compared with
            needed |= dict.fromkeys(one.fact_id for one in event.decision.candidates)
    for known in ended:
        needed |= dict.fromkeys((known.fact_id, *known.rival_ids, *known.later_ids))
        if known.earlier_ender is not None:
            needed[known.earlier_ender] = None
    for others in between.values():
        needed |= dict.fromkeys(others)
    facts, subjects = await reader.facts(tuple(needed)), await reader.subjects_of(tuple(needed))
    values, rules = values_of(events, facts, subjects, rules)
    commit = _CommitEnds(events, ended=ended, known=facts, between=between, values=values, rules=rules)
    return tuple(map(commit.apply, events))


async def mark_unresolved(
    events: Sequence[MemoryEvent], reader: "FactStore", rules: EndRules
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
    values, rules = values_of((), facts, await reader.subjects_of(needed), rules)
    beside: dict[UUID, tuple[UUID, ...]] = {}
    for fact_id, others in newer.items():
        beside[fact_id] = tuple(
            other
            for other in others
            if (other not in restored or _is_open_again(restored[other]))
            and not (facts[fact_id].fact.valid_until or facts[other].fact.valid_until or facts[other].state.true_to)
            and not _say_the_same(facts[fact_id].fact, facts[other].fact)
            and may_be_rivals(values[fact_id], values[other], rules)
        )
    marked: list[MemoryEvent] = []
    for event in events:
        ends: list[MovedEnd] = []
        reversals: list[Reversal] = []
        for reversal in event.reversals if isinstance(event, RestoringEvent) else ():
            fact_id, before, rivals = reversal.fact_id, reversal.before, beside.get(reversal.fact_id)
            if rivals and before is not None and _is_open_again(reversal):
                ends.append(MovedEnd(fact_id=fact_id, ender=fact_id, unresolved=True, beside=rivals))
                reversal = reversal.model_copy(update={"before": before.model_copy(update={"unresolved": True})})  # noqa: PLW2901 -- the same fact
            reversals.append(reversal)
        update = {"reversals": tuple(reversals), "moved_ends": (*event.moved_ends, *ends)}
        marked.append(event.model_copy(update=update) if ends else event)
    return tuple(marked)


def _say_the_same(one: ExtractedFact, other: ExtractedFact) -> bool:
    """Whether two facts say that one value holds, or that it does not."""
    is_same = same_value(one, other) or one.content_hash == other.content_hash
    return is_same and (one.action_hint == "retract") == (other.action_hint == "retract")


def _is_open_again(reversal: Reversal) -> bool:
    before = reversal.before
    return before is not None and before.status == "active" and before.true_to is None
