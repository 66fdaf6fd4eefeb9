"""How well a ranking shows the evidence of a question, and how sure a mean over questions is."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

DEPTHS: Final = (1, 5, 10, 20)
DEEPEST: Final = max(DEPTHS)
GAIN_DEPTH: Final = 10
RESAMPLES: Final = 2000
CONFIDENCE: Final = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """What the hits of a question rest on, best first, and which turns were looked for."""

    hits: Sequence[frozenset[str]]
    evidence: frozenset[str]


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


def measure(ranking: Ranking) -> Measures:
    """The measures of one question."""
    found = [ranking.evidence.intersection(frozenset().union(*ranking.hits[:depth])) for depth in DEPTHS]
    places = [place for place, hit in enumerate(ranking.hits[:DEEPEST], start=1) if hit & ranking.evidence]
    gains = list(_gains(ranking))
    ideal = sum(_discount(place) for place in range(1, min(len(ranking.evidence), GAIN_DEPTH) + 1))
    return Measures(
        recall=tuple(len(turns) / len(ranking.evidence) for turns in found),
        reciprocal_rank=1 / places[0] if places else 0.0,
        ndcg=min(1.0, sum(gains) / ideal),  # a fact may rest on several turns, so that fewer hits have them all
    )


def mean_of(values: Sequence[float], seed: int = 0) -> Mean:
    """The mean, with the interval that holds 95 of 100 means of as many questions drawn anew."""
    drawn = np.random.default_rng(seed).integers(0, len(values), (RESAMPLES, len(values)))
    means = np.asarray(values, np.float64)[drawn].mean(axis=1)
    low, high = np.quantile(means, ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2))
    return Mean(value=float(np.mean(values)), low=float(low), high=float(high))


def mean_difference(values: Sequence[float], others: Sequence[float], seed: int = 0) -> Mean:
    """How much better `values` are than `others` of the same questions."""
    return mean_of([one - other for one, other in zip(values, others, strict=True)], seed)


def _gains(ranking: Ranking) -> Iterator[float]:
    """What each of the first hits adds: the evidence that none before it has, less for a later place."""
    seen: set[str] = set()
    for place, hit in enumerate(ranking.hits[:GAIN_DEPTH], start=1):
        new = (hit & ranking.evidence) - seen
        seen |= new
        yield len(new) * _discount(place)


def _discount(place: int) -> float:
    return 1 / math.log2(place + 1)
