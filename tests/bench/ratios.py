"""Figures beside yardsticks of the same run: only their ratios compare between days and machines. Pure."""

from dataclasses import dataclass
from typing import Final

from tests.bench.markdown import table


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """One line: a figure, its yardstick, and how many times the one the other is.

    `aim` is at least, or with `at_most` at most, that much; `value` is None where there is no yardstick.
    """

    name: str
    measured: str
    yardstick: str
    value: float | None
    aim: float | None = None
    at_most: bool = False

    @classmethod
    def of(
        cls,
        name: str,
        measured: float,
        yardstick: float,
        *,
        digits: int = 1,
        aim: float | None = None,
        at_most: bool = False,
    ) -> "Ratio":
        """The ratio of two figures of the same unit."""
        return cls(
            name=name,
            measured=f"{measured:.{digits}f}",
            yardstick=f"{yardstick:.{digits}f}",
            value=measured / yardstick if yardstick else None,
            aim=aim,
            at_most=at_most,
        )

    @property
    def reached(self) -> bool | None:
        """None where there is no aim, or no ratio."""
        if self.aim is None or self.value is None:
            return None
        return self.value <= self.aim if self.at_most else self.value >= self.aim

    @property
    def cells(self) -> tuple[str, ...]:
        value = "" if self.value is None else f"{self.value:.3g}" if self.value < 100 else f"{self.value:.0f}"
        aim = "" if self.aim is None else f"{'at most' if self.at_most else 'at least'} {self.aim:.2g}"
        return (self.name, self.measured, self.yardstick, value, aim, _WORDS[self.reached])


_WORDS: Final = {None: "", True: "yes", False: "no"}


def ratio_table(measured: str, yardstick: str, ratios: tuple[Ratio, ...]) -> str:
    return table(("", measured, yardstick, "ratio", "aim", "reached"), [one.cells for one in ratios])
