"""Two columns and their ratio. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from tests.bench.ratios import Ratio
from tests.bench.statistics import Percentiles, Rate

FIGURES: Final = Path(__file__).with_name("comparison.json")
"""Of the last full run."""
OWN_PROCESSES: Final = ("client", "worker", "kafka", "postgres")
"""Whose CPU a store costs; the model server's is not the memory's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFigures:
    """Stores at steady state, arranged as `how` says; the rest but `per_second` is per turn, CPU in milliseconds."""

    how: str
    per_second: float
    cpu: Mapping[str, float]
    model_calls: float
    prompt_tokens: float
    reply_tokens: float
    memories: float

    @property
    def own_cpu(self) -> float:
        return sum(self.cpu.get(name, 0.0) for name in OWN_PROCESSES)

    @staticmethod
    def cpu_of(rate: Rate) -> dict[str, float]:
        """CPU milliseconds a turn, of all processes of a kind together."""
        kinds = sorted({name.partition(":")[0] for name in rate.cpu})
        return {kind: rate.cpu_milliseconds(kind) for kind in kinds}


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFigures:
    """Searches one after another, with the embedding of the query. `found` is the share whose first hit is right."""

    waits: Percentiles
    hits: float
    found: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    smart: StoreFigures
    raw: StoreFigures
    search: SearchFigures


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A short measurement that chose how a side is arranged."""

    side: str
    kind: str
    how: str
    per_second: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Both sides in one run; `seconds` is the window of each store, `facts` what was searched in."""

    at: datetime
    machine: str
    load: float
    rival: str
    seconds: float
    model_seconds: float
    users: int
    facts: int
    ours: Side
    theirs: Side
    trials: tuple[Trial, ...]

    def to_json(self) -> bytes:
        return _ADAPTER.dump_json(self, indent=2) + b"\n"

    @classmethod
    def from_json(cls, content: bytes) -> "Comparison":
        """Raises pydantic.ValidationError for the JSON of another version."""
        return _ADAPTER.validate_json(content)


_ADAPTER: Final = TypeAdapter(Comparison)


def ratios(both: Comparison) -> tuple[Ratio, ...]:
    """Ours to theirs, those with an aim first."""
    ours, theirs = both.ours, both.theirs
    return (
        Ratio.of("smart stores a second", ours.smart.per_second, theirs.smart.per_second, aim=15),
        Ratio.of("raw stores a second", ours.raw.per_second, theirs.raw.per_second, aim=5),
        Ratio.of("CPU ms a smart store", ours.smart.own_cpu, theirs.smart.own_cpu, aim=1 / 5, at_most=True),
        Ratio.of("CPU ms a raw store", ours.raw.own_cpu, theirs.raw.own_cpu, aim=1 / 3, at_most=True),
        *_searches(ours.search, theirs.search),
        *_costs(ours.smart, theirs.smart),
        Ratio.of("memories a raw turn", ours.raw.memories, theirs.raw.memories, digits=2),
    )


def _searches(ours: SearchFigures, theirs: SearchFigures) -> tuple[Ratio, ...]:
    return (
        Ratio.of("search p50, ms", ours.waits.p50, theirs.waits.p50),
        Ratio.of("search p95, ms", ours.waits.p95, theirs.waits.p95),
        Ratio.of("hits of 10", ours.hits, theirs.hits),
        Ratio.of("share of searches whose first hit is right", ours.found, theirs.found, digits=2),
    )


def _costs(ours: StoreFigures, theirs: StoreFigures) -> tuple[Ratio, ...]:
    return (
        Ratio.of("model calls a smart turn", ours.model_calls, theirs.model_calls, digits=2),
        Ratio.of("prompt tokens a smart turn", ours.prompt_tokens, theirs.prompt_tokens, digits=0),
        Ratio.of("reply tokens a smart turn", ours.reply_tokens, theirs.reply_tokens, digits=0),
        Ratio.of("memories a smart turn", ours.memories, theirs.memories, digits=2),
    )
