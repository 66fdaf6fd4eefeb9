"""Both sides of a comparison, their ratio, and the report. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter

from tests.bench.figures import Percentiles, Rate, Ratio, ratio_table
from tests.bench.markdown import table

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
    smart, their_smart = both.ours.smart, both.theirs.smart
    raw, their_raw = both.ours.raw, both.theirs.raw
    search, their_search = both.ours.search, both.theirs.search
    return (
        Ratio.of("smart stores a second", smart.per_second, their_smart.per_second, aim=15),
        Ratio.of("raw stores a second", raw.per_second, their_raw.per_second, aim=5),
        Ratio.of("CPU ms a smart store", smart.own_cpu, their_smart.own_cpu, aim=1 / 5, at_most=True),
        Ratio.of("CPU ms a raw store", raw.own_cpu, their_raw.own_cpu, aim=1 / 3, at_most=True),
        Ratio.of("search p50, ms", search.waits.p50, their_search.waits.p50),
        Ratio.of("search p95, ms", search.waits.p95, their_search.waits.p95),
        Ratio.of("hits of 10", search.hits, their_search.hits),
        Ratio.of("share of searches whose first hit is right", search.found, their_search.found, digits=2),
        Ratio.of("model calls a smart turn", smart.model_calls, their_smart.model_calls, digits=2),
        Ratio.of("prompt tokens a smart turn", smart.prompt_tokens, their_smart.prompt_tokens, digits=0),
        Ratio.of("reply tokens a smart turn", smart.reply_tokens, their_smart.reply_tokens, digits=0),
        Ratio.of("memories a smart turn", smart.memories, their_smart.memories, digits=2),
        Ratio.of("memories a raw turn", raw.memories, their_raw.memories, digits=2),
    )


def report(both: Comparison) -> str:
    """In Markdown, for the page and for the screen."""
    ours, theirs = both.ours, both.theirs
    processes = (*OWN_PROCESSES, "model")
    rows = [
        (f"{name}, {kind}", *(f"{one.cpu[process]:.1f}" if process in one.cpu else "" for process in processes))
        for name, side in (("Mnemolog", ours), ("mem0", theirs))
        for kind, one in (("smart", side.smart), ("raw", side.raw))
    ]
    return f"""\
Measured by `make bench-rival` on {both.at:%Y-%m-%d %H:%M} UTC: {both.machine}, load average before it {both.load:.1f}.
{both.rival} has its documented set-up for Postgres and otherwise its own defaults, with telemetry off. Both sides
have the same Postgres, model server ({both.model_seconds * 1000:g} ms a completion), turns and {both.users} users, in
the same run, {both.seconds:g} s each.

{ratio_table("Mnemolog", "mem0", ratios(both))}

CPU is that of the calling process, the workers, Kafka and Postgres. How each side is called was chosen by short trials,
as what stored most: smart stores by {ours.smart.how} and {theirs.smart.how}; raw stores by {ours.raw.how} and
{theirs.raw.how}. Searches run one after another in {both.facts} memories of users with 100 each, with the embedding of
the query, for 10 hits.

CPU ms a store, by process:

{table(("", *processes), rows)}
"""
