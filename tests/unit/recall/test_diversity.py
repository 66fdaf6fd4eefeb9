"""The order of maximal marginal relevance."""

import pytest

from tests.recall.diversity import diversified
from tests.support.builders.commits import vector

HITS = ("best", "twin", "other")
VECTORS = (vector(1, 0), vector(1, 0.01), vector(0, 1))


@pytest.mark.parametrize(
    ("diversity", "depth", "order"),
    [
        (0.0, 3, ["best", "twin", "other"]),
        (0.3, 3, ["best", "other", "twin"]),
        (0.3, 2, ["best", "other"]),
        (0.1, 3, ["best", "twin", "other"]),
    ],
)
def test_what_is_like_a_better_hit_comes_later(diversity: float, depth: int, order: list[str]) -> None:
    assert diversified(HITS, (0.9, 0.8, 0.6), VECTORS, diversity, depth) == order
