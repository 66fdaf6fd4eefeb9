"""What records are made of, for tests: times, vectors, decisions and facts."""

import math
import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from mnemolog.schemas.facts import CONFIDENCE_OF_CERTAINTY, NewFact
from mnemolog.schemas.ids import fact_id
from mnemolog.schemas.provenance import Decision, WeighedCandidate
from mnemolog.schemas.vector import Vector

MODEL = "test-embedder"
START_TIME = datetime(2026, 1, 1, 9, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPlace:
    """The position of an event: what its ids and times follow from."""

    owner: str
    source_id: str
    ordinal: int
    at: datetime


def day(number: float) -> datetime:
    """`number` days after the start of all tests' time."""
    return START_TIME + timedelta(days=number)


def vector(*values: float, model: str = MODEL) -> Vector:
    """A unit vector in the direction of `values`."""
    length = math.hypot(*values)
    return Vector.from_values(model, [value / length for value in values])


def vector_with_similarity(cosine: float, model: str = MODEL) -> Vector:
    """A vector with this similarity to `vector_with_similarity(1)`, the direction of the first of three axes."""
    return vector(cosine, math.sqrt(1 - cosine * cosine), 0.0, model=model)


def pseudo_random_vector(seed: object, dimensions: int = 384, model: str = MODEL) -> Vector:
    """A direction of its own for each seed: two of them are nearly orthogonal."""
    source = random.Random(repr(seed))
    return vector(*(source.gauss(0, 1) for _ in range(dimensions)), model=model)


def decision(reason: str = "said so", **fields: Any) -> Decision:
    return Decision(**{"by": "threshold", "reason": reason, **fields})


def weighed_candidate(target: UUID, similarity: float = 0.8) -> WeighedCandidate:
    return WeighedCandidate(fact_id=target, similarity=similarity)


def new_fact(place: EventPlace, text: str, **fields: Any) -> NewFact:
    """A fact with every field filled in; `fields` overrides any of them."""
    defaults: dict[str, Any] = {
        "fact_id": fact_id(place.owner, place.source_id, place.ordinal),
        "text": text,
        "excerpt": text,
        "search_text": text,
        "confidence": CONFIDENCE_OF_CERTAINTY["explicit"],
        "true_from": place.at,
        "vector": pseudo_random_vector(text, 3),
    }
    return NewFact(**defaults | fields)
