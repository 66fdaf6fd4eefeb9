import pytest

from tests.bench.ratios import Ratio


@pytest.mark.parametrize(
    ("measured", "aim", "at_most", "reached"),
    [(30, 15, False, True), (29.9, 15, False, False), (0.4, 0.2, True, True), (0.41, 0.2, True, False)],
)
def test_an_aim_is_reached_on_its_own_side(measured: float, aim: float, at_most: bool, reached: bool) -> None:
    assert Ratio.of("x", measured, 2, aim=aim, at_most=at_most).reached is reached


def test_without_an_aim_or_a_yardstick_nothing_is_reached() -> None:
    assert Ratio.of("x", 1, 2).reached is None
    assert Ratio.of("x", 1, 0, aim=1).cells == ("x", "1.0", "0.0", "", "at least 1", "")
