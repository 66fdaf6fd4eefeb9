"""One search for a question and its other wordings: their words together, and the mean of their vectors."""

import math
from collections.abc import Sequence

from mnemolog.schemas.vector import Vector


def joined_words(question: str, wordings: Sequence[str]) -> str:
    """The text whose words are looked for."""
    return "\n".join((question, *wordings))


def mean_vector(vectors: Sequence[Vector]) -> Vector:
    """The direction between vectors of one model, of length 1; the first one where they cancel each other out."""
    first, *others = vectors
    if not others:
        return first
    sums = [sum(column) for column in zip(*(vector.values for vector in vectors), strict=True)]
    length = math.hypot(*sums)
    return Vector.from_values(first.model, [value / length for value in sums]) if length else first
