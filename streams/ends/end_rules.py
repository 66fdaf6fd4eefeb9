"""What a commit's ends are moved by: what is known of the facts that it touches, and what its events tell of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from mnemolog.schemas.entities.model import KnownEntity
from mnemolog.schemas.events import FactAdded, FactContradicted, FactCorrected, FactReplaced, MemoryEvent
from mnemolog.schemas.facts import Candidate, ExtractedFact
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.stored import EndedFact, StoredFact
from mnemolog.streams.entities.subject_relations import entity_relation, subjects_by_fact
from mnemolog.streams.text.subjects import EntityRelation, SubjectRelation, relate_names


@dataclass(frozen=True, slots=True, kw_only=True)
class EndRules:
    """When the ends move, what is known of keys and names, and which facts stay ended (`stays_ended`).

    `may_end` says of a confidence and a known fact whether no guard keeps a statement from ending the fact.
    `subject_of` says what entity the new fact of an event is about, where its source tells.
    """

    at: datetime
    policy: EffectivePolicy = field(default_factory=EffectivePolicy)
    user_names: tuple[str, ...] = ()
    stays_ended: Callable[["Value"], bool] = lambda _: False
    may_end: Callable[[float, StoredFact], bool] = lambda _confidence, _known: True
    subject_of: Callable[[MemoryEvent], KnownEntity | None] = lambda _: None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndLookups:
    """What is known of the facts that an event may touch: `between` are the values of a slot before a fact of it.

    `subjects` are the entities that these facts are about.
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
    subjects = subjects_by_fact(lookups.subjects)
    for fact_id, stored in lookups.facts.items():
        last_said = max(stored.true_from, stored.state.last_confirmed_at or stored.true_from)
        subject, confidence = subjects.get(fact_id), stored.state.confidence
        yield fact_id, Value(fact_id, stored.fact, stored.true_from, last_said, confidence, subject)
    for event in events:
        if (fact := event.new_fact) is not None:
            subject = rules.subject_of(event) or _subject_of_parts(event, lookups.facts, subjects)
            yield fact.fact_id, Value(fact.fact_id, fact, fact.true_from, fact.true_from, fact.confidence, subject)


def _subject_of_parts(
    event: MemoryEvent, known: Mapping[UUID, StoredFact], subjects: Mapping[UUID, KnownEntity]
) -> KnownEntity | None:
    """The one entity that the facts in whose place a new one comes are about, under the name of its subject."""
    fact = event.new_fact
    found = {
        subjects[one].entity_id: subjects[one]
        for one in event.affected_ids
        if one in subjects and one in known and fact is not None and known[one].fact.subject == fact.subject
    }
    return next(iter(found.values())) if len(found) == 1 else None


def moved_beginnings(event: MemoryEvent, rules: EndRules) -> Iterator[tuple[UUID, datetime]]:
    """The facts that may be found to have begun earlier, and when: by a repetition, by a merge, by an older detail."""
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
    """The known facts that a late value was compared with, some of which it may end earlier than was known."""
    if not isinstance(event, FactAdded) or event.ended_at is None:
        return ()
    return [weighed.fact_id for weighed in event.decision.candidates]


def has_ended(stored: StoredFact) -> bool:
    state = stored.state
    return state.status in ("superseded", "retracted", "expired") and state.believed_to is None


def truly_ended(event: MemoryEvent) -> tuple[UUID, ...]:
    """The facts that were true and that the event ends."""
    if event.end_time is None or event.overwrite not in ("replace", "retract", "expire"):
        return ()
    return event.affected_ids


def heirs(event: MemoryEvent) -> tuple[UUID, ...]:
    """The fact that a merge, or a command with a new text, puts in the place of others."""
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
    """Whether `other` is a value of the slot of `one`, and is so for certain; `entities` are their subjects'."""
    holds_one = one.single_valued or other.single_valued or rules.policy.is_single_valued(one.key)
    if other.action_hint == "retract" or one.key is None or one.key != other.key or not holds_one:
        return "other"
    return relate_names(one.subject, other.subject, entities, rules.user_names)


def values_relation(one: Value, other: Value, rules: EndRules) -> SubjectRelation:
    """As `slot_relation`, by what is known of the entities that they are about."""
    return slot_relation(one.fact, other.fact, rules, _entities(one, other))


def _entities(one: Value, other: Value) -> EntityRelation | None:
    """A possible twin is another one: an entity of its own until somebody says more."""
    found = entity_relation(one.subject, other.subject)
    return "other" if found == "twin" else found


def may_be_rivals(one: Value, other: Value, rules: EndRules) -> bool:
    """Whether both may be values of one slot, or `other` tells later that `one` has ended."""
    if one.true_from < other.true_from and tells_end_of(other.fact, one.fact):
        return relate_names(one.fact.subject, other.fact.subject, _entities(one, other), rules.user_names) != "other"
    return values_relation(one, other, rules) != "other"


def same_value(one: ExtractedFact, other: ExtractedFact | Candidate) -> bool:
    """Whether two lasting values of a slot are one, perhaps with other details."""
    is_lasting = one.valid_until is None and other.valid_until is None
    return is_lasting and one.value is not None and one.value == other.value


def tells_end_of(one: ExtractedFact, other: ExtractedFact) -> bool:
    """Whether a fact only tells an end, and that of a value of just this key."""
    is_end = one.action_hint == "retract" and other.action_hint != "retract"
    return is_end and one.key is not None and one.key == other.key and same_value(one, other)
