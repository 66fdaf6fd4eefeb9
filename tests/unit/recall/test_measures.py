"""The measures of a ranking, by hand."""

import math

import pytest

from tests.recall.measures import DEPTHS, Ranking, mean_difference, mean_of, measure


def ranking(*hits: str, evidence: str) -> Ranking:
    """Hits and evidence of turns that have one letter each; "." is a hit that rests on none."""
    return Ranking(hits=[frozenset(hit) for hit in hits], evidence=frozenset(evidence))


def test_the_share_of_the_evidence_grows_with_the_depth() -> None:
    found = measure(ranking("x", "a", "y", "z", "b", *"uvwst", "c", evidence="abcd"))
    assert dict(zip(DEPTHS, found.recall, strict=True)) == {1: 0, 5: 0.5, 10: 0.5, 20: 0.75}


def test_the_rank_is_that_of_the_first_hit_with_evidence() -> None:
    assert measure(ranking("x", "y", "b", "a", evidence="ab")).reciprocal_rank == pytest.approx(1 / 3)


def test_a_hit_beyond_the_twentieth_has_no_rank() -> None:
    late = ranking(*["x"] * 20, "a", evidence="a")
    assert measure(late).reciprocal_rank == 0
    assert measure(late).recall == (0, 0, 0, 0)


def test_gains_are_less_for_later_places() -> None:
    found = measure(ranking("x", "a", "b", evidence="ab"))
    assert found.ndcg == pytest.approx((1 / math.log2(3) + 1 / math.log2(4)) / (1 + 1 / math.log2(3)))
    assert measure(ranking("a", "b", evidence="ab")).ndcg == pytest.approx(1)


def test_evidence_that_was_shown_before_is_no_gain() -> None:
    assert measure(ranking("a", "a", evidence="ab")).ndcg < measure(ranking("a", "b", evidence="ab")).ndcg


def test_one_hit_may_have_the_whole_evidence() -> None:
    found = measure(ranking("abc", evidence="abc"))
    assert found.recall == (1, 1, 1, 1)
    assert found.ndcg == 1


def test_nothing_found_is_nothing() -> None:
    found = measure(ranking(evidence="a"))
    assert (found.recall, found.reciprocal_rank, found.ndcg) == ((0, 0, 0, 0), 0, 0)


def test_an_interval_holds_its_mean_and_narrows_with_more_questions() -> None:
    few, many = mean_of([0, 1] * 10), mean_of([0, 1] * 1000)
    for mean in (few, many):
        assert mean.low < mean.value == 0.5 < mean.high
    assert many.high - many.low < few.high - few.low


def test_the_interval_is_as_wide_as_the_normal_one() -> None:
    mean = mean_of([0, 1] * 200)
    assert mean.high - mean.low == pytest.approx(2 * 1.96 * 0.5 / math.sqrt(400), rel=0.1)


def test_a_difference_is_of_the_same_questions() -> None:
    one = [1.0, 0.0] * 50
    same = mean_difference([value + 0.1 for value in one], one)
    assert same.low == pytest.approx(0.1) == same.high
