"""Options of a search as they are read, without a database."""

from datetime import datetime
from typing import Any

import pytest

from mnemolog.projections.errors import QueryError
from mnemolog.projections.search.search import DEFAULT_WEIGHTS, SearchOptions
from tests.support.builders.commits import day


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"limit": 0}, "limit must be at least 1, not 0"),
        ({"limit": -5}, "limit must be at least 1, not -5"),
        ({"limit": 101}, "limit must be at most 100, not 101"),
        ({"limit": True}, "limit must be a whole number"),
        ({"limit": 1.5}, "limit must be a whole number"),
        ({"threshold": float("nan")}, "threshold must be"),
        ({"threshold": -0.1}, r"threshold must be at least 0, not -0\.1"),
        ({"threshold": 1.1}, r"threshold must be at most 1, not 1\.1"),
        ({"threshold": "high"}, "threshold must be a number, not text"),
        ({"state": "gone"}, "state.0 must be 'active'"),
        ({"state": []}, "state must have at least 1 item"),
        ({"state": ["active"] * 8}, "state must have at most 7 items"),
        ({"believed_at": datetime(2026, 1, 1)}, "believed_at needs a zone"),  # noqa: DTZ001 - that is what is refused
        ({"fusion": "borda"}, "fusion must be 'rrf' or 'weighted', not 'borda'"),
        ({"fusion": ["rrf"]}, "fusion must be 'rrf' or 'weighted'"),
        ({"rrf_k": 0}, "rrf_k must be at least 1"),
        ({"half_life_days": 0.0}, "half_life_days must be at least 0.001"),
        ({"half_life_days": float("inf")}, "half_life_days must be"),
        ({"weights": {"vector": -1.0}}, "weights.vector must be at least 0"),
        ({"weights": {"magic": 1.0}}, "weights.magic is not a known field"),
        ({"weights": 3}, "weights must be an object"),
        ({"filters": {"nope": 1}}, "nope is not a known field"),
        ({"only_period": True}, "only_period needs a period"),
        ({"period": [day(2), day(1)]}, "period must end after it begins"),
        ({"period": [day(2)]}, "period.1 is missing"),
        ({"boost": 1}, "boost is not a known field"),
    ],
)
def test_what_is_no_option_is_refused_with_its_place(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(QueryError, match=words):
        SearchOptions.read(wrong)


def test_weights_that_are_not_given_are_those_of_the_fusion() -> None:
    assert SearchOptions.read({}).weights == DEFAULT_WEIGHTS["weighted"]
    assert SearchOptions.read({"fusion": "rrf"}).weights == DEFAULT_WEIGHTS["rrf"]
    read = SearchOptions.read({"weights": {"recency": 0.3}}).weights
    assert read == DEFAULT_WEIGHTS["weighted"].model_copy(update={"recency": 0.3})


def test_the_weighted_parts_are_shares_of_one() -> None:
    shares = SearchOptions.read({"weights": {"text": 0.9, "neighbours": 0.3}}).shares
    assert sum(shares[name] for name in ("vector", "text", "names", "recency", "times")) == pytest.approx(1)
    assert shares["text"] == pytest.approx(2 * shares["vector"])
    assert (shares["neighbours"], shares["importance"]) == (0.3, 0.05)
    nothing = dict.fromkeys(("vector", "text", "names", "recency", "times"), 0.0)
    assert SearchOptions.read({"weights": nothing}).shares["text"] == 0
    assert SearchOptions.read({"fusion": "rrf"}).shares["text"] == 1
