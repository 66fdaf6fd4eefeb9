"""Hits that differ: maximal marginal relevance (Carbonell and Goldstein, 1998), which a search does not have."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from mnemolog.schemas.vector import Vector

Hit = TypeVar("Hit")


def diversified(
    hits: Sequence[Hit], scores: Sequence[float], vectors: Sequence[Vector], diversity: float, depth: int
) -> list[Hit]:
    """The first `depth` hits in the order of MMR with lambda = 1 - `diversity`.

    Next is the hit with the greatest lambda * score - diversity * cosine to the nearest one that was taken before.
    """
    unit = np.array([vector.values for vector in vectors])
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    left, nearest = list(range(len(hits))), np.zeros(len(hits))
    taken: list[Hit] = []
    while left and len(taken) < depth:
        best = max(left, key=lambda place: (1 - diversity) * scores[place] - diversity * nearest[place])
        left.remove(best)
        taken.append(hits[best])
        nearest = np.maximum(nearest, unit @ unit[best])
    return taken
