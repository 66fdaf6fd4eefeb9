"""The arithmetic of measurements: rates, percentiles, differences. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


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


def percentile(values: Sequence[float], fraction: float) -> float:
    """The smallest value that at least `fraction` of all do not exceed. Raises ValueError for no values."""
    if not values:
        raise ValueError("a percentile needs at least one value")
    return sorted(values)[max(0, math.ceil(fraction * len(values)) - 1)]


def rate_between(before: Sample, after: Sample) -> Rate:
    """The rate from one look to a later one; a process that is new at the later one counts from 0."""
    return Rate(
        seconds=after.at - before.at,
        done=after.done - before.done,
        cpu={name: seconds - before.cpu.get(name, 0.0) for name, seconds in after.cpu.items()},
    )


def due_count(started: float, now: float, rate: float, limit: int) -> int:
    """How many of `limit` events at `rate` a second, the first one at `started`, have to have happened by `now`."""
    return max(0, min(limit, math.floor((now - started) * rate) + 1))
