"""The arithmetic of measurements: rates, percentiles, and figures beside their yardsticks. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.bench.markdown import table


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One look: the time in seconds, how much was done by then, and CPU seconds by process."""

    at: float
    done: int
    cpu: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """What happened between two looks."""

    seconds: float
    done: int
    cpu: Mapping[str, float]

    @classmethod
    def between(cls, before: Sample, after: Sample) -> "Rate":
        """A process that is new at the later look counts from 0."""
        cpu = {name: seconds - before.cpu.get(name, 0.0) for name, seconds in after.cpu.items()}
        return cls(seconds=after.at - before.at, done=after.done - before.done, cpu=cpu)

    @property
    def per_second(self) -> float:
        return self.done / self.seconds

    def cpu_milliseconds(self, *names: str) -> float:
        """CPU milliseconds of each thing that was done, over processes whose name is or begins with one of `names`."""
        spent = sum(seconds for name, seconds in self.cpu.items() if name.split(":")[0] in names or name in names)
        return spent * 1000 / max(1, self.done)

    @property
    def cores(self) -> float:
        """How many cores all processes together kept busy."""
        return sum(self.cpu.values()) / self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Percentiles:
    """Percentiles of many values, in the values' own unit."""

    count: int
    p50: float
    p95: float
    highest: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Percentiles":
        """Raises ValueError for no values."""
        return cls(count=len(values), p50=percentile(values, 0.5), p95=percentile(values, 0.95), highest=max(values))

    def cells(self, digits: int) -> tuple[str, str]:
        """The median and the 95th percentile."""
        return f"{self.p50:.{digits}f}", f"{self.p95:.{digits}f}"


def percentile(values: Sequence[float], fraction: float) -> float:
    """The smallest value that at least `fraction` of all do not exceed. Raises ValueError for no values."""
    if not values:
        raise ValueError("a percentile needs at least one value")
    return sorted(values)[max(0, math.ceil(fraction * len(values)) - 1)]


def due_count(started: float, now: float, rate: float, limit: int) -> int:
    """How many of `limit` events at `rate` a second, the first one at `started`, have to have happened by `now`."""
    return max(0, min(limit, math.floor((now - started) * rate) + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A figure of this run beside its yardstick of this run: only such ratios compare between days and machines.

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


def ratio_table(measured: str, yardstick: str, ratios: Sequence[Ratio]) -> str:
    rows = []
    for one in ratios:
        value = "" if one.value is None else f"{one.value:.3g}" if one.value < 100 else f"{one.value:.0f}"
        aim = "" if one.aim is None else f"{'at most' if one.at_most else 'at least'} {one.aim:.2g}"
        reached = {None: "", True: "yes", False: "no"}[one.reached]
        rows.append((one.name, one.measured, one.yardstick, value, aim, reached))
    return table(("", measured, yardstick, "ratio", "aim", "reached"), rows)
