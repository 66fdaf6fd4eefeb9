import pytest

from tests.bench.statistics import Percentiles, Rate, Sample, due_count, percentile, rate_between


@pytest.mark.parametrize(("fraction", "expected"), [(0.0, 1), (0.5, 5), (0.51, 6), (0.95, 10), (0.9, 9), (1.0, 10)])
def test_a_percentile_is_a_value_that_was_measured(fraction: float, expected: float) -> None:
    assert percentile([10, 1, 9, 2, 8, 3, 7, 4, 6, 5], fraction) == expected


def test_no_values_have_no_percentile() -> None:
    with pytest.raises(ValueError, match="at least one"):
        percentile([], 0.5)


def test_a_spread_of_one_value_is_that_value() -> None:
    assert Percentiles.of([3.0]) == Percentiles(count=1, p50=3.0, p95=3.0, highest=3.0)


def test_a_rate_counts_what_happened_in_between() -> None:
    before = Sample(at=10.0, done=100, cpu={"worker:extract": 1.0, "kafka": 5.0})
    after = Sample(at=14.0, done=300, cpu={"worker:extract": 3.0, "kafka": 6.0, "worker:embed": 1.0})
    rate = rate_between(before, after)
    assert rate.per_second == 50
    assert rate.cpu_milliseconds("kafka") == 5
    assert rate.cpu_milliseconds("worker") == 15
    assert rate.cpu_milliseconds("worker:extract") == 10
    assert rate.cpu_milliseconds("worker", "kafka") == 20
    assert rate.cores == 1


def test_nothing_done_costs_no_division_by_zero() -> None:
    assert Rate(seconds=1, done=0, cpu={"kafka": 1.0}).cpu_milliseconds("kafka") == 1000


@pytest.mark.parametrize(("now", "expected"), [(4.9, 0), (5.0, 1), (5.12, 1), (5.125, 2), (7.0, 8), (99.0, 8)])
def test_events_are_due_at_an_even_rate_up_to_a_limit(now: float, expected: int) -> None:
    assert due_count(5.0, now, rate=8, limit=8) == expected
