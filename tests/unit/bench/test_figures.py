import pytest

from tests.bench.figures import Percentiles, Rate, Ratio, Sample, due_count, percentile, ratio_table


@pytest.mark.parametrize(("fraction", "expected"), [(0.0, 1), (0.5, 5), (0.51, 6), (0.95, 10), (0.9, 9), (1.0, 10)])
def test_a_percentile_is_a_value_that_was_measured(fraction: float, expected: float) -> None:
    assert percentile([10, 1, 9, 2, 8, 3, 7, 4, 6, 5], fraction) == expected


def test_percentiles_need_a_value() -> None:
    assert Percentiles.of([3.0]) == Percentiles(count=1, p50=3.0, p95=3.0, highest=3.0)
    with pytest.raises(ValueError, match="at least one"):
        Percentiles.of([])


def test_a_rate_counts_what_happened_in_between() -> None:
    before = Sample(at=10.0, done=100, cpu={"worker:extract": 1.0, "kafka": 5.0})
    after = Sample(at=14.0, done=300, cpu={"worker:extract": 3.0, "kafka": 6.0, "worker:embed": 1.0})
    rate = Rate.between(before, after)
    assert (rate.per_second, rate.cores) == (50, 1)
    of = {("kafka",): 5, ("worker",): 15, ("worker:extract",): 10, ("worker", "kafka"): 20}
    assert {names: rate.cpu_milliseconds(*names) for names in of} == of
    assert Rate(seconds=1, done=0, cpu={"kafka": 1.0}).cpu_milliseconds("kafka") == 1000


@pytest.mark.parametrize(("now", "expected"), [(4.9, 0), (5.0, 1), (5.12, 1), (5.125, 2), (7.0, 8), (99.0, 8)])
def test_events_are_due_at_an_even_rate_up_to_a_limit(now: float, expected: int) -> None:
    assert due_count(5.0, now, rate=8, limit=8) == expected


@pytest.mark.parametrize(
    ("ratio", "reached", "row"),
    [
        (Ratio.of("x", 30, 2, aim=15), True, "| x | 30.0 | 2.0 | 15 | at least 15 | yes |"),
        (Ratio.of("x", 29.9, 2, aim=15), False, "| x | 29.9 | 2.0 | 14.9 | at least 15 | no |"),
        (Ratio.of("x", 0.4, 2, aim=0.2, at_most=True), True, "| x | 0.4 | 2.0 | 0.2 | at most 0.2 | yes |"),
        (Ratio.of("x", 0.41, 2, aim=0.2, at_most=True), False, "| x | 0.4 | 2.0 | 0.205 | at most 0.2 | no |"),
        (Ratio.of("x", 1000, 2, digits=0), None, "| x | 1000 | 2 | 500 |  |  |"),
        (Ratio.of("x", 1, 0, aim=1), None, "| x | 1.0 | 0.0 |  | at least 1 |  |"),
    ],
)
def test_an_aim_is_reached_on_its_own_side(ratio: Ratio, reached: bool | None, row: str) -> None:
    assert ratio.reached is reached
    assert ratio_table("", "", [ratio]).splitlines()[-1] == row
