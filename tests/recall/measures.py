"""How well a ranking shows the evidence of a question, and how sure a mean over questions is."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

DEPTHS: Final = (1, 5, 10, 20)
DEEPEST: Final = max(DEPTHS)
GAIN_DEPTH: Final = 10
RESAMPLES: Final = 2000
CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Measures:
    """Of one question, each 0..1: the share of the evidence among the first hits, by their number; the reciprocal rank
    of the first hit that rests on evidence, of 20; and nDCG of the first 10, where a turn counts once.
    """

    recall: tuple[float, ...]
    reciprocal_rank: float
    ndcg: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A mean over questions with its interval of confidence: bootstrap over questions, percentiles."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Mean":
        """The mean, with the interval that holds 95 of 100 means of as many questions drawn anew."""
        drawn = np.random.default_rng(0).integers(0, len(values), (RESAMPLES, len(values)))
        means = np.asarray(values, np.float64)[drawn].mean(axis=1)
        low, high = np.quantile(means, ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2))
        return cls(value=float(np.mean(values)), low=float(low), high=float(high))

    @classmethod
    def of_difference(cls, values: Sequence[float], others: Sequence[float]) -> "Mean":
        """How much better `values` are than `others` of the same questions."""
        return cls.of([one - other for one, other in zip(values, others, strict=True)])


def measure(hits: Sequence[frozenset[str]], evidence: frozenset[str]) -> Measures:
    """The measures of one question, from what its hits rest on, best first, and the turns that are looked for."""
    found = [evidence.intersection(frozenset[str]().union(*hits[:depth])) for depth in DEPTHS]
    places = [place for place, hit in enumerate(hits[:DEEPEST], start=1) if hit & evidence]
    gain, seen = 0.0, set[str]()
    for place, hit in enumerate(hits[:GAIN_DEPTH], start=1):
        new = (hit & evidence) - seen  # what no hit before it has
        seen |= new
        gain += len(new) / math.log2(place + 1)
    ideal = sum(1 / math.log2(place + 1) for place in range(1, min(len(evidence), GAIN_DEPTH) + 1))
    return Measures(
        recall=tuple(len(turns) / len(evidence) for turns in found),
        reciprocal_rank=1 / places[0] if places else 0.0,
        ndcg=min(1.0, gain / ideal),  # a fact may rest on several turns, so that fewer hits have them all
    )
