"""What turns are expected to add before they are decided, and what is open until then.

A turn without a conflict is decided by rules alone, so what it adds is known ahead. A wrong expectation costs tokens
and nothing else: an answer counts only for the very question that a turn asks when its turn comes.
"""

import math
from dataclasses import dataclass
from operator import mul
from uuid import UUID

from mnemolog.schemas.envelopes import MatchedFacts
from mnemolog.schemas.events import FactAdded
from mnemolog.schemas.facts import Candidate, MatchedFact, NewFact
from mnemolog.schemas.policy import EffectivePolicy
from mnemolog.schemas.provenance import Thresholds
from mnemolog.schemas.stored import CandidateQuery
from mnemolog.schemas.vector import Vector
from mnemolog.streams.resolution.classify import Conflict, candidate_query
from mnemolog.streams.resolution.decide import decide
from mnemolog.streams.resolution.turn import PreparedTurn
from mnemolog.streams.resolution.turn_state import known_candidate


@dataclass(frozen=True, slots=True)
class _VectorNumbers:
    """A vector as it is compared: its model, its numbers and its length."""

    model: str
    values: tuple[float, ...]
    length: float

    @classmethod
    def of(cls, vector: Vector) -> "_VectorNumbers":
        values = vector.values
        return cls(vector.model, values, math.hypot(*values))

    def similarity(self, other: "_VectorNumbers") -> float | None:
        """Cosine; None where the two cannot be compared."""
        lengths = self.length * other.length
        if self.model != other.model or len(self.values) != len(other.values) or not lengths:
            return None
        return max(-1.0, min(1.0, math.fsum(map(mul, self.values, other.values)) / lengths))


@dataclass(frozen=True, slots=True)
class _Expected:
    fact: Candidate
    direction: _VectorNumbers


class PredictedFacts:
    """The facts that turns of one scope will add if they are decided as it looks now, and what may become otherwise."""

    def __init__(self) -> None:
        self._sure: list[_Expected] = []
        self._open: list[_Expected] = []
        self._touched: set[UUID] = set()

    def with_candidates(self, turn: MatchedFacts, thresholds: Thresholds, rules: EffectivePolicy) -> MatchedFacts:
        """The turn with the expected facts among its candidates, in the order that a lookup would give them."""
        facts = tuple(
            self._extended(matched, turn, candidate_query(matched, thresholds, rules)) for matched in turn.facts
        )
        return turn.model_copy(update={"facts": facts})

    def is_open(self, prepared: PreparedTurn) -> bool:
        """Whether a turn depends on what is not decided yet: on known facts that may change, or facts that may come."""
        compared = {known.fact_id for matched in prepared.turn.facts for known in matched.candidates}
        if not self._touched.isdisjoint(compared):
            return True
        thresholds, rules = prepared.context.thresholds, prepared.context.rules
        queries = [candidate_query(matched, thresholds, rules) for matched in prepared.turn.facts]
        directions = [_VectorNumbers.of(query.vector) for query in queries]
        return any(
            _as_candidate(expected, query, direction) is not None
            for expected in self._open
            for query, direction in zip(queries, directions, strict=True)
        )

    def add(self, prepared: PreparedTurn) -> None:
        """Expect what a turn adds. What it asks about is open, and all of a turn that depends on such."""
        depends = self.is_open(prepared)
        asked = [one for one in prepared.classifications if depends or isinstance(one, Conflict)]
        self._touched |= {known.fact_id for one in asked for known in one.matched.candidates}
        for retry in prepared.retries:
            self._touched |= {retry.unresolved.fact_id, *(rival.fact_id for rival in retry.rivals)}
        for end in prepared.ends:
            self._touched |= {end.told.fact_id, end.statement.fact_id}
        for event in decide(prepared.classifications, {}, prepared.context):
            if isinstance(event, FactAdded):
                expected = _expected(event.fact, prepared)
                (self._open if depends or event.unresolved else self._sure).append(expected)

    def _extended(self, matched: MatchedFact, turn: MatchedFacts, query: CandidateQuery) -> MatchedFact:
        if not self._sure:
            return matched
        direction = _VectorNumbers.of(query.vector)
        found = (_as_candidate(expected, query, direction) for expected in self._sure)
        near = [known for known in found if known is not None and _holds(known, turn)]
        if not near:
            return matched
        candidates = sorted((*matched.candidates, *near), key=lambda known: (-known.similarity, known.fact_id))
        return matched.model_copy(update={"candidates": tuple(candidates)})


def _expected(fact: NewFact, prepared: PreparedTurn) -> _Expected:
    said_at = fact.said_at or prepared.turn.occurred_at
    state = {name: getattr(fact, name) for name in ("fact_id", "confidence", "true_from", "authority")}
    return _Expected(known_candidate(fact, said_at=said_at, **state), _VectorNumbers.of(fact.vector))


def _as_candidate(expected: _Expected, query: CandidateQuery, direction: _VectorNumbers) -> Candidate | None:
    """The expected fact as a lookup would find it; None where it would not."""
    fact, measured = expected.fact, direction.similarity(expected.direction)
    is_equal = fact.content_hash == query.content_hash
    is_of_key = query.key is not None and fact.key == query.key
    if not (is_equal or is_of_key or (measured is not None and measured >= query.min_similarity)):
        return None
    return fact.model_copy(update={"similarity": 1.0 if is_equal else measured or 0.0})


def _holds(known: Candidate, turn: MatchedFacts) -> bool:
    return known.valid_until is None or known.valid_until > turn.occurred_at
