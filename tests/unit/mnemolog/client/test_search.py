"""What a search does around its statement: the period, the wordings of its question, and which signals found a hit."""

import math
from datetime import UTC, date, datetime

import pytest
from prometheus_client import REGISTRY

from mnemolog import QueryError
from mnemolog.client.search import FoundBy, count_hits, found_by, joined_words, mean_vector
from mnemolog.client.search_arguments import search_options
from tests.support.builders.commits import vector
from tests.support.builders.hits import a_hit

FIRST, LAST = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "given", [("2026-03-01", "2026-04-01"), [date(2026, 3, 1), LAST], [FIRST, "2026-04-01T00:00:00Z"]]
)
def test_days_and_times_are_taken_as_everywhere(given: list[str]) -> None:
    assert search_options({"period": given}).period == (FIRST, LAST)


@pytest.mark.parametrize("given", [[1, 2], ["2026-03-01T00:00:00", "2026-04-01"], ["soon", "later"]])
def test_what_is_no_time_is_named(given: list[str]) -> None:
    with pytest.raises(QueryError, match=r"period\.0"):
        search_options({"period": given})


def test_the_mean_of_vectors_has_length_one_and_is_the_first_where_they_cancel_each_other_out() -> None:
    assert mean_vector([vector(1, 2, 3)]) == vector(1, 2, 3)
    assert mean_vector([vector(1, 0), vector(0, 1)]).values == pytest.approx([math.sqrt(0.5)] * 2, abs=1e-3)
    mean = mean_vector([vector(1, 0), vector(1, 0.1), vector(1, -0.5)])
    assert math.hypot(*mean.values) == pytest.approx(1, abs=2e-3)
    assert mean_vector([vector(1, 0), vector(-1, 0)]) == vector(1, 0)


def test_the_words_of_all_wordings_are_looked_for() -> None:
    assert joined_words("Where?", ["Which city?", "Her home"]) == "Where?\nWhich city?\nHer home"


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
