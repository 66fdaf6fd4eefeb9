"""Counts hits by the signals that found them: the lexical and the vector hit rate."""

from collections.abc import Iterable
from typing import Literal

from mnemolog.client.metrics import SEARCH_HITS
from mnemolog.projections.search.hits import Hit, Score

FoundBy = Literal["words", "vector", "both", "other"]


def count_hits(hits: Iterable[Hit], threshold: float) -> None:
    """Add the hits of a search to the metric; `threshold` is the cosine from which a vector alone finds a fact."""
    for hit in hits:
        SEARCH_HITS.labels(found_by=found_by(hit.score, threshold)).inc()


def found_by(score: Score, threshold: float) -> FoundBy:
    """Which signals would have found this hit without the others; `other` where a name in the question did."""
    by_words = score.text_score is not None
    by_vector = score.similarity is not None and score.similarity >= threshold
    if by_words and by_vector:
        return "both"
    if by_words:
        return "words"
    return "vector" if by_vector else "other"
