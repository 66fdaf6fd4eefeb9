"""Classifies a fact as new, duplicate, conflict or obsolete, by similarity, words, key and time.

A fact is compared with known facts, with earlier facts of its turn, and with what the turn's decisions made of both.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.events import FactAdded, FactPending, FactReplaced, MemoryEvent, PendingConfirmed
from mnemolog.schemas.facts import ActionHint, Authority, Candidate, EmbeddedFact, ExtractedFact, MatchedFact
from mnemolog.schemas.ids import provisional_fact_id
from mnemolog.schemas.provenance import Guard
from mnemolog.schemas.stored import CandidateQuery
from mnemolog.schemas.vector import Vector, cosine_similarity
from mnemolog.streams.ends import heirs, last_held, same_value
from mnemolog.streams.merges import known_candidate
from mnemolog.streams.resolution.guards import StatementContext, TurnRules, is_plan, predates, statement_confidence
from mnemolog.streams.text.assertions import tells_otherwise
from mnemolog.streams.text.differences import (
    relate_subjects,
    same_negations,
    same_terms,
    subjects_differ,
    texts_equivalent,
)
from mnemolog.streams.text.readings import read
from mnemolog.streams.text.tokens import words_of

MAX_ENDED_CANDIDATES: Final = 3
"""How many known facts below the conflict threshold a statement that ends something is compared with."""
MAX_EARLIER_FACTS: Final = 32
"""With how many earlier facts of its turn a fact is compared: with all of them, but for the longest turns."""


@dataclass(frozen=True, slots=True)
class New:
    """No known fact is near: add. `guard` is the policy for which near facts are ignored."""

    matched: MatchedFact
    guard: Guard | None = None


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A known fact says the same, word for word or nearly so."""

    matched: MatchedFact
    candidate: Candidate


@dataclass(frozen=True, slots=True)
class Conflict:
    """Known facts are near, and the LLM has to decide what the new one means for them; the likeliest come first."""

    matched: MatchedFact
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class Obsolete:
    """A late statement about a value that was superseded, by `newer_values` that have ended: stored as history."""

    matched: MatchedFact
    newer_values: tuple[Candidate, ...]


Classification = New | Duplicate | Conflict | Obsolete


def classify(matched: MatchedFact, rules: TurnRules) -> Classification:
    """In a raw turn there are only duplicates and new facts; under `add_only` only equal words are duplicates."""
    fact, thresholds = matched.fact, rules.thresholds
    bound = thresholds.duplicate if rules.infer else thresholds.raw_duplicate
    repeated = [  # the cheapest test first: each statement is compared with all of its candidates
        known
        for known in matched.candidates
        if known.status != "ended"
        and (known.content_hash == fact.content_hash or known.similarity > bound)
        and texts_equivalent(fact.text, known.text)
        and not subjects_differ(fact, known, rules.user_names)
        and tells_again(fact, known, matched.candidates, rules)
        and (known.key is not None or not _has_slot_taken(matched, rules))
    ]
    equal = (known for known in repeated if known.content_hash == fact.content_hash)
    same = min(equal, key=lambda known: (known.status, known.key != fact.key), default=None)  # active before pending
    if same is not None:
        return Duplicate(matched, same)
    if rules.policy.add_only:
        return New(matched, "add_only" if matched.candidates else None)
    if repeated:
        return Duplicate(matched, max(repeated, key=lambda known: known.similarity))
    near = conflicting_facts(fact, matched.candidates, rules) if rules.infer else ()
    near = tuple(
        known
        for known in near
        if not _has_words_of(fact, known) or not _has_news_since(fact, known, matched.candidates, rules)
    )
    return Conflict(matched, near) if near else New(matched)


def tells_again(fact: ExtractedFact, known: Candidate, candidates: Sequence[Candidate], rules: TurnRules) -> bool:
    """Whether a statement that says what a known fact says tells the same once more, and not another event like it.

    The one rule on repetitions: by equal words, by a model, and where a model is asked again. Both name one term, one
    time and the same names; and nothing that they speak of has begun, ended or been told anew since the known fact was
    last said. `candidates` are all known facts near the statement.
    """
    names_other = words_of(fact.text) == words_of(known.text) and not texts_equivalent(fact.text, known.text)
    names_other = names_other and not rules.holds_one(fact)  # "turkey" and "Turkey"
    if names_other or not same_terms(fact, known) or _tells_other_event(fact, known, rules):
        return False
    return known.status == "pending_confirmation" or not _has_news_since(fact, known, candidates, rules)


def _has_news_since(fact: ExtractedFact, known: Candidate, candidates: Sequence[Candidate], rules: TurnRules) -> bool:
    """Whether something that a statement speaks of began, ended or was told otherwise since a known fact was last said.

    Then the known fact is no candidate either. An end or a change tells of whatever else was said near it, and a change
    of what is in doubt. A value that a key has goes on until there is news of that key, whatever else was said.
    """
    tells, last_said, is_value = _tells(fact), last_held(known), _has_value(fact, known)
    since = [other for other in candidates if other.status == "active" and last_held(other) > last_said]
    return (tells == "update" and known.unresolved) or any(
        (tells_otherwise(fact, other) if tells == "new" else _tells(other) != tells)
        and (not is_value or (other.key == fact.key and not _has_value(fact, other)))
        and relate_subjects(fact, other, rules.user_names) != "other"
        for other in (conflicting_facts(fact, since, rules) if since else ())
    )


def _tells(one: ExtractedFact | Candidate) -> ActionHint:
    """What a fact says to have happened, by its extraction or by its words: "I sold my car" tells an end."""
    return "retract" if read(one.text).ending else one.action_hint


def _has_slot_taken(matched: MatchedFact, rules: TurnRules) -> bool:
    """Whether it names a slot that a known fact fills: which of the two values holds is to be decided."""
    active = (one for one in matched.candidates if one.status == "active")
    return any(rules.slot_relation(matched.fact, one) != "other" for one in active)


def _has_value(fact: ExtractedFact, known: Candidate) -> bool:
    """Whether both say that one value of a key holds."""
    is_end = "retract" in (fact.action_hint, known.action_hint)
    return not is_end and fact.key is not None and fact.key == known.key and same_value(fact, known)


def _tells_other_event(fact: ExtractedFact, known: Candidate, rules: TurnRules) -> bool:
    """Whether a fact names another time than a known one, and both are not one value of a slot, which goes on.

    A known fact without a time is of the time when it was last said, or before. A plan for a later day is another one.
    """
    if fact.event_time is None or fact.event_time == known.event_time:
        return False
    if is_plan(known) and fact.event_time > known.true_from:
        return True
    if known.event_time is None and fact.event_time <= last_held(known):
        return False
    return not (same_value(fact, known) and rules.slot_relation(fact, known) == "same")


def classify_late(
    matched: MatchedFact, statement: StatementContext, rules: TurnRules
) -> Duplicate | Obsolete | Conflict | None:
    """What the facts that have ended since a statement was said make of it without a model, or None.

    The statement is a `Duplicate` of an ended fact, or `Obsolete`: older than another value that its key held then or
    later. Only values of certainly the same subject count: the model judges doubtful subjects, and facts with a term.
    The statement of an end is a `Conflict` where its fact held then, ended later, and was said again since.
    """
    fact, since = matched.fact, statement.true_from
    ended = [one for one in matched.candidates if one.status == "ended"]
    late = [one for one in ended if one.true_to is None or statement.said_at < one.true_to]
    held = [one for one in late if one.true_to is None or since < one.true_to]
    if repeated := _repeated_ended_fact(matched, held, since, rules):
        return Duplicate(matched, repeated)
    of_then = [known for known in held if known.true_from <= since]
    if fact.action_hint == "retract":
        same_words = (known for known in matched.candidates if _has_words_of(fact, known))
        is_said_again = bool(of_then) and any(known.true_from > since for known in same_words)
        near = conflicting_facts(fact, matched.candidates, rules) if is_said_again else ()
        return Conflict(matched, near) if near else None
    of_slot = [known for known in late if known.valid_until is None and rules.slot_relation(fact, known) == "same"]
    if any(same_value(fact, known) for known in of_slot if known in of_then):
        return None
    newer = tuple(known for known in of_slot if predates(since, statement, known))
    return Obsolete(matched, newer) if newer and rules.fills_slot(fact) else None


def _has_words_of(fact: ExtractedFact, known: Candidate) -> bool:
    """Whether both have the same words: the hash is of words without capitals, and "turkey" is not "Turkey"."""
    return known.content_hash == fact.content_hash and texts_equivalent(fact.text, known.text)


def _repeated_ended_fact(
    matched: MatchedFact, held: Sequence[Candidate], since: datetime, rules: TurnRules
) -> Candidate | None:
    """The ended fact that a statement repeats: it held then, or began next; None where an open fact did."""
    fact = matched.fact
    open_facts = (known for known in matched.candidates if known.status != "ended")
    if any(_has_words_of(fact, known) and known.true_from <= since for known in open_facts):
        return None
    comparable = [
        known
        for known in held
        if not (subjects_differ(fact, known, rules.user_names) or _tells_other_event(fact, known, rules))
    ]
    alike = [known for known in comparable if _has_words_of(fact, known)] or [
        known
        for known in comparable
        if known.similarity > rules.thresholds.duplicate and texts_equivalent(fact.text, known.text)
    ]
    return min(alike, key=lambda known: (known.true_from > since, known.true_from), default=None)


def candidate_query(embedded: EmbeddedFact, rules: TurnRules) -> CandidateQuery:
    """What to compare a fact with; the statement of a change or an end is compared with less similar facts too.

    With those of its key whatever their distance: all, or where the key holds several values the ends of its values.
    """
    fact, thresholds = embedded.fact, rules.thresholds
    floor = min(thresholds.conflict, thresholds.raw_duplicate, thresholds.duplicate)
    return CandidateQuery(
        vector=embedded.vector,
        content_hash=fact.content_hash,
        min_similarity=floor if fact.action_hint == "new" else min(floor, thresholds.ending),
        key=fact.key,
        subject=fact.subject,
        ends_only=fact.action_hint != "retract" and not rules.holds_one(fact),
    )


def conflicting_facts(fact: ExtractedFact, candidates: Sequence[Candidate], rules: TurnRules) -> tuple[Candidate, ...]:
    """The known facts that a fact may conflict with: of its slot, denying it, near it, or so near that it ends them.

    Facts of certainly its subject come first, so that a bounded list has them, and ended facts last.
    """
    thresholds = rules.thresholds
    relations = [(known, rules.slot_relation(fact, known)) for known in candidates]
    found = [known for wanted in ("same", "unsure") for known, relation in relations if relation == wanted]
    found += [known for known in candidates if _denies(fact, known, rules)]
    found += [known for known in candidates if known.similarity >= thresholds.conflict]
    if fact.action_hint != "new":
        below = [known for known in candidates if thresholds.ending <= known.similarity < thresholds.conflict]
        found += sorted(below, key=lambda known: -known.similarity)[:MAX_ENDED_CANDIDATES]
    return tuple(sorted(dict.fromkeys(found), key=lambda known: known.status == "ended"))


def _denies(fact: ExtractedFact, known: Candidate, rules: TurnRules) -> bool:
    """Whether one of them tells the end or the denial of what the other says of a key."""
    is_denial = (fact.action_hint == "retract") != (known.action_hint == "retract")
    if not is_denial or fact.key is None or fact.key != known.key or not (fact.value or known.value):
        return False
    is_of_value = fact.value is None or known.value is None or same_value(fact, known)
    return is_of_value and relate_subjects(fact, known, rules.user_names) != "other"


def with_earlier_facts(envelope: MatchedFacts, rules: TurnRules) -> tuple[MatchedFact, ...]:
    """The facts of a turn, each with the earlier facts as further candidates that may be corrected by it.

    Mostly facts of one turn are true together, however alike they are ("a dog and a cat"): asking about all of them
    would take an LLM call for nearly every turn. An earlier fact has the `provisional_fact_id` of its place.
    """
    if len(envelope.facts) == 1:
        return envelope.facts
    earlier: list[tuple[Candidate, Vector]] = []
    facts: list[MatchedFact] = []
    for place, matched in enumerate(envelope.facts):
        fact, candidates = matched.fact, list(matched.candidates)
        for known, vector in earlier[-MAX_EARLIER_FACTS:]:
            if (
                fact.action_hint != "new"
                or (fact.key == known.key and (fact.key is None or known.single_valued or rules.holds_one(fact)))
                or fact.content_hash == known.content_hash
                or not same_negations(fact.text, known.text)
            ):
                is_comparable = matched.vector.model == vector.model
                similarity = cosine_similarity(matched.vector.values, vector.values) if is_comparable else 0.0
                bounded = round(max(-1.0, min(1.0, similarity)), 4)
                candidates.append(known.model_copy(update={"similarity": bounded}))
        facts.append(matched.model_copy(update={"candidates": tuple(candidates)}))
        fact_id = provisional_fact_id(envelope.owner, envelope.id_source, place)
        earlier.append((stated_candidate(matched, envelope, rules, fact_id=fact_id), matched.vector))
    return tuple(facts)


def without_candidates(turn: MatchedFacts, fact_ids: Collection[UUID]) -> MatchedFacts:
    """The turn, none of whose facts is compared with these known facts."""
    facts = (
        one.model_copy(update={"candidates": tuple(known for known in one.candidates if known.fact_id not in fact_ids)})
        for one in turn.facts
    )
    return turn.model_copy(update={"facts": tuple(facts)}) if fact_ids else turn


def stated_candidate(matched: MatchedFact, turn: MatchedFacts, rules: TurnRules, **fields: Any) -> Candidate:
    """A statement of a turn as a candidate, with its times, its authority and its first confidence."""
    own_authority: Authority = "human" if turn.immutable else "extracted"
    return known_candidate(
        matched.fact,
        confidence=statement_confidence(matched, rules.policy),
        true_from=matched.holds_since(turn.occurred_at),
        said_at=matched.said_at(turn.occurred_at),
        authority=own_authority if matched.original is None else matched.original.authority,
        **fields,
    )


class TurnState:
    """What a turn's decisions so far did to known facts, and which facts the turn added.

    `confirmed_ids` are the facts whose confidence the turn may not raise (again), `held_back` its own pending
    overwrites, `version_starts` the starts of the versions before a fact. `said_by` has the facts that the turn added,
    but for merges with known facts, each with the source that it was promoted from, if it was.
    """

    def __init__(self, version_starts: Mapping[UUID, tuple[datetime, ...]]) -> None:
        self.confirmed_ids: set[UUID] = set()
        self.held_back: dict[UUID, FactPending] = {}
        self.said_by: dict[UUID, str | None] = {}
        self.version_starts = dict(version_starts)
        self._actual_ids: dict[UUID, UUID] = {}
        self._facts: dict[UUID, Candidate] = {}
        self._ended_ids: set[UUID] = set()

    def facts_of(self, source_id: str | None) -> frozenset[UUID]:
        """The facts of the turn that were promoted from a source, or with None that the turn itself said."""
        return frozenset(fact_id for fact_id, said_by in self.said_by.items() if said_by == source_id)

    def current_fact(self, candidate: Candidate) -> Candidate:
        """What a candidate is by now."""
        fact_id = candidate.fact_id
        while (actual_id := self._actual_ids.get(fact_id)) is not None:
            fact_id = actual_id
        own = {"similarity": candidate.similarity, "subject_relation": candidate.subject_relation}
        return self._facts.setdefault(fact_id, candidate).model_copy(update=own)

    def open_facts(self, candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
        """What the candidates are by now, each once, without those that ended before the turn or by it."""
        found: dict[UUID, Candidate] = {}
        for known in map(self.current_fact, candidates):
            if known.status != "ended" and known.fact_id not in self._ended_ids:
                found.setdefault(known.fact_id, known)
        return tuple(found.values())

    def ended_facts(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """The candidates that had ended before this turn was decided, or that it has added as history."""
        return [known for known in map(self.current_fact, candidates) if known.status == "ended"]

    def open_ids(self, fact_ids: Iterable[UUID]) -> tuple[UUID, ...]:
        """The ids of facts that this turn has not ended."""
        return tuple(fact_id for fact_id in fact_ids if fact_id not in self._ended_ids)

    def compared_facts(self, fact_ids: Iterable[UUID]) -> tuple[Candidate, ...]:
        """The facts among `fact_ids` that a fact of this turn was compared with, as they are by now."""
        return tuple(self._facts[fact_id] for fact_id in fact_ids if fact_id in self._facts)

    def apply(  # noqa: C901 - one case an event
        self, events: Sequence[MemoryEvent], provisional_id: UUID | None = None
    ) -> None:
        """Apply the events of one decision, which was about the turn's fact with `provisional_id`."""
        for event in events:
            self._ended_ids.update(event.ended_ids)
            if event.confirmed_id is not None:
                self.confirmed_ids.add(event.confirmed_id)
            for heir in heirs(event):  # what is said of a parent from now on is said of the merged fact
                self._actual_ids |= dict.fromkeys(event.affected_ids, heir)
            if isinstance(event, PendingConfirmed):
                self._facts[event.target] = self._facts[event.target].model_copy(update={"status": "active"})
            if isinstance(event, FactPending):
                self.held_back[event.fact.fact_id] = event
            if isinstance(event, FactReplaced):
                self.version_starts[event.fact.fact_id] = tuple(
                    began
                    for known in self.compared_facts(event.targets)
                    for began in (known.true_from, *self.version_starts.get(known.fact_id, ()))
                )
            if (fact := event.new_fact) is not None:
                said_by = event.promoted_from.source_id if event.promoted_from else None
                if event.overwrite != "merge" or self.facts_of(said_by).issuperset(event.affected_ids):
                    self.said_by[fact.fact_id] = said_by
                self.confirmed_ids.add(fact.fact_id)  # a turn does not confirm its own facts
                ends = [moved.ended_at for moved in event.moved_ends if moved.fact_id == fact.fact_id]
                if isinstance(event, FactAdded) and event.ended_at is not None:  # history has ended when it comes
                    ends.append(event.ended_at)
                status = "pending_confirmation" if isinstance(event, FactPending) else "active"
                has_ended = ends and ends[-1] is not None
                self._facts[fact.fact_id] = known_candidate(
                    fact,
                    fact_id=fact.fact_id,
                    confidence=fact.confidence,
                    true_from=fact.true_from,
                    true_to=ends[-1] if ends else None,
                    status="ended" if has_ended else status,
                    said_at=fact.said_at,
                    authority=fact.authority,
                    metadata=fact.metadata or {},
                )
        if provisional_id is not None:
            own = [event.new_fact.fact_id for event in events if event.new_fact]
            actual_id = own[-1] if own else events[0].repeated_id or events[0].subject_id
            if actual_id is None:
                raise AssertionError(f"no statement leads to {events[0].event} alone")
            self._actual_ids[provisional_id] = actual_id
