"""Which signals found a hit."""

import pytest
from prometheus_client import REGISTRY

from mnemolog.client.search import FoundBy, count_hits, found_by
from tests.support.builders.hits import a_hit


@pytest.mark.parametrize(
    ("text_score", "similarity", "expected"),
    [
        (1, 0.5, "both"),
        (1, 0.1, "words"),
        (1, None, "words"),
        (None, 0.5, "vector"),
        (None, 0.1, "other"),
        (None, None, "other"),
    ],
)
def test_a_vector_finds_from_the_threshold_on(
    text_score: int | None, similarity: float | None, expected: FoundBy
) -> None:
    assert found_by(a_hit(text_score=text_score, similarity=similarity).score, 0.5) == expected


def test_every_hit_is_counted_once() -> None:
    before = {name: _counted(name) for name in ("words", "vector")}
    count_hits([a_hit(text_score=1, similarity=0.2), a_hit(similarity=0.9), a_hit(similarity=0.8)], 0.5)
    assert {name: _counted(name) - before[name] for name in before} == {"words": 1, "vector": 2}


def _counted(name: str) -> float:
    return REGISTRY.get_sample_value("mnemolog_client_search_hits_total", {"found_by": name}) or 0
