"""Times and vectors for tests."""

import math
import random
from datetime import UTC, datetime, timedelta

from schemas.vector import Vector

MODEL = "test-embedder"
START = datetime(2026, 1, 1, 9, 0, tzinfo=UTC)


def day(number: float) -> datetime:
    """`number` days after the start of all tests' time."""
    return START + timedelta(days=number)


def vector(*values: float, model: str = MODEL) -> Vector:
    """A unit vector in the direction of `values`."""
    length = math.hypot(*values)
    return Vector.of(model, [value / length for value in values])


def similar(cosine: float, model: str = MODEL) -> Vector:
    """A vector with this similarity to `similar(1)`, which is the direction of the first of three axes."""
    return vector(cosine, math.sqrt(1 - cosine * cosine), 0.0, model=model)


def noise(seed: object, dimensions: int = 384, model: str = MODEL) -> Vector:
    """A direction of its own for each seed: two of them are nearly orthogonal."""
    source = random.Random(repr(seed))
    return vector(*(source.gauss(0, 1) for _ in range(dimensions)), model=model)
