"""Facts of one turn among each other: earlier ones are known to later ones, as whatever has become of them."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from mnemolog.schemas import ids
from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.events import FactPending, FactReplaced, MemoryEvent, PendingConfirmed
from mnemolog.schemas.facts import Candidate, ExtractedFact, MatchedFact
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.streams.resolution.guards import confidence_of
from mnemolog.streams.stages.embed import cosine_similarity
from mnemolog.streams.text.differences import differences

MAX_EARLIER_FACTS: Final = 32
"""How many facts before it a fact is compared with: all of them, but for the longest turns."""
_ModelVector = tuple[str, tuple[float, ...]]  # a vector's model and numbers: read once, as reading is half of comparing


def with_earlier_facts(envelope: MatchedFacts, rules: EffectivePolicy) -> tuple[MatchedFact, ...]:
    """The facts, each with those before it that it may clash with as further candidates.

    `provisional_fact_id` is the id that these go by.
    """
    if len(envelope.facts) == 1:
        return envelope.facts
    told: list[tuple[Candidate, _ModelVector]] = []
    facts: list[MatchedFact] = []
    for place, matched in enumerate(envelope.facts):
        fact, values = matched.fact, (matched.vector.model, matched.vector.values)
        clashing = ((known, other) for known, other in told[-MAX_EARLIER_FACTS:] if _may_conflict(fact, known, rules))
        earlier = tuple(
            known.model_copy(update={"similarity": _similarity(values, other)}) for known, other in clashing
        )
        facts.append(matched.model_copy(update={"candidates": (*matched.candidates, *earlier)}))
        told.append((_earlier_candidate(envelope, place, rules), values))
    return tuple(facts)


def _may_conflict(fact: ExtractedFact, earlier: Candidate, rules: EffectivePolicy) -> bool:
    """Whether one speaker in one breath may have changed his mind.

    Mostly what he says belongs together, however alike it is ("a dog and a cat"): asking about all of it would make a
    call of nearly every turn.
    """
    one_value = fact.single_valued or earlier.single_valued or rules.is_single_valued(fact.key)
    return (
        fact.action_hint != "new"
        or (fact.key == earlier.key and (fact.key is None or one_value))
        or fact.content_hash == earlier.content_hash
        or "negation" in differences(fact.text, earlier.text)
    )


def _similarity(one: _ModelVector, other: _ModelVector) -> float:
    return round(max(-1.0, min(1.0, cosine_similarity(one[1], other[1]))), 4) if one[0] == other[0] else 0.0


def provisional_fact_id(owner: str, source_id: str, index: int) -> UUID:
    """What the fact in `place` of a turn is called while it is not known which event it becomes."""
    return ids.fact_id(owner, source_id, index)


def _earlier_candidate(envelope: MatchedFacts, index: int, rules: EffectivePolicy) -> Candidate:
    fact = envelope.facts[index].fact
    return _candidate(
        fact,
        fact_id=provisional_fact_id(envelope.owner, envelope.source_id, index),
        confidence=confidence_of(fact, rules),
        true_from=fact.event_time or envelope.occurred_at,
        said_at=envelope.occurred_at,
    )


class TurnState:
    """What a turn has done so far to the known facts, and what its own facts have become.

    `confirmed_ids` are the facts whose confidence it may not raise (again), `held_back` the overwrites that it has
    held back, `version_starts` the beginnings of the versions before a fact.
    """

    def __init__(self, version_starts: Mapping[UUID, tuple[datetime, ...]]) -> None:
        self.confirmed_ids: set[UUID] = set()
        self.held_back: dict[UUID, FactPending] = {}
        self.version_starts = dict(version_starts)
        self._actual_ids: dict[UUID, UUID] = {}
        self._facts: dict[UUID, Candidate] = {}
        self._ended_ids: set[UUID] = set()

    def current_fact(self, candidate: Candidate) -> Candidate:
        """The fact that a candidate stands for by now."""
        fact_id = self._actual_ids.get(candidate.fact_id, candidate.fact_id)
        return self._facts.setdefault(fact_id, candidate).model_copy(update={"similarity": candidate.similarity})

    def open_fact(self, candidate: Candidate) -> Candidate | None:
        """The same, or None where this very turn has ended it."""
        known = self.current_fact(candidate)
        return None if known.fact_id in self._ended_ids else known

    def open_facts(self, candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
        """The facts that the candidates stand for, each once, without those that are ended."""
        found: dict[UUID, Candidate] = {}
        for candidate in candidates:
            if (known := self.open_fact(candidate)) is not None:
                found.setdefault(known.fact_id, known)
        return tuple(found.values())

    def open_ids(self, fact_ids: Iterable[UUID]) -> tuple[UUID, ...]:
        """Those that this turn has not ended."""
        return tuple(fact_id for fact_id in fact_ids if fact_id not in self._ended_ids)

    def compared_facts(self, fact_ids: Iterable[UUID]) -> tuple[Candidate, ...]:
        """Those that a fact of this turn was compared with, as they stand now."""
        return tuple(self._facts[fact_id] for fact_id in fact_ids if fact_id in self._facts)

    def apply(self, events: Sequence[MemoryEvent], provisional_id: UUID | None = None) -> None:
        """Take in what was decided, about the fact at `place` where it was one of this turn's."""
        for event in events:
            self._ended_ids.update(event.ended_ids)
            if event.confirmed_id is not None:
                self.confirmed_ids.add(event.confirmed_id)
            if isinstance(event, PendingConfirmed):
                self._facts[event.target] = self._facts[event.target].model_copy(update={"status": "active"})
            if isinstance(event, FactPending):
                self.held_back[event.fact.fact_id] = event
            if isinstance(event, FactReplaced):
                self.version_starts[event.fact.fact_id] = self._version_starts_of(event.targets)
            if (fact := event.new_fact) is not None:
                self.confirmed_ids.add(fact.fact_id)  # no turn is its own witness
                status = "pending_confirmation" if isinstance(event, FactPending) else "active"
                self._facts[fact.fact_id] = _candidate(
                    fact, fact_id=fact.fact_id, confidence=fact.confidence, true_from=fact.true_from, status=status
                )
        if provisional_id is not None:
            self._actual_ids[provisional_id] = _remaining_fact_id(events)

    def _version_starts_of(self, fact_ids: Iterable[UUID]) -> tuple[datetime, ...]:
        return tuple(
            began
            for known in self.compared_facts(fact_ids)
            for began in (known.true_from, *self.version_starts.get(known.fact_id, ()))
        )


def _remaining_fact_id(events: Sequence[MemoryEvent]) -> UUID:
    """The fact that stands for a statement after the events it led to: its own, or the one that it repeats."""
    own = [fact.fact_id for event in events if (fact := event.new_fact) is not None]
    fact_id = own[-1] if own else events[0].confirmed_id or events[0].subject_id
    if fact_id is None:
        raise AssertionError(f"no statement leads to {events[0].event} alone")
    return fact_id


def _candidate(fact: ExtractedFact, **fields: Any) -> Candidate:
    shared = ("text", "content_hash", "key", "value", "valid_until", "category", "subject", "excerpt", "single_valued")
    taken = {name: getattr(fact, name) for name in (*shared, "event_time")}
    return Candidate(similarity=0.0, **taken, **fields)
