"""PromQL with the variables of Grafana for spans of time, and the figures that are made of several metrics.

Each figure is defined once, for the panels, the alerts and docs/metrics.md.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, get_args

from mnemolog.schemas.provenance import Stage


def rate(metric: str, *by: str) -> str:
    """Events a second, over all processes."""
    return _sum(f"rate({metric}[$__rate_interval])", by)


def total(metric: str, *by: str, span: str = "$__range") -> str:
    """Events in the time that is shown, or in `span`; `increase` alone misses the first of a series."""
    began = f"{metric} offset {span}"
    rise = f"(increase({metric}[{span}]) and {began}) or (last_over_time({metric}[{span}]) unless {began})"
    return _sum(rise, by)


def quantile(share: float, metric: str, *by: str) -> str:
    """The value of a histogram below which `share` of its observations lie."""
    return f"histogram_quantile({share}, {_sum(f'rate({metric}_bucket[$__rate_interval])', ('le', *by))})"


def mean(metric: str) -> str:
    """The mean of a histogram's observations."""
    return f"{rate(f'{metric}_sum')} / {rate(f'{metric}_count')}"


def ratio(part: str, whole: str) -> str:
    """A share; nothing where there is no whole."""
    return f"{part} / ({whole} > 0)"


def share_of_each(parts: str, whole: str) -> str:
    """Each of `parts` as a share of one `whole`; nothing where there is no whole."""
    return f"{parts} / on () group_left () ({whole} > 0)"


def or_zero(expr: str) -> str:
    """A number that is 0, and not missing, where there is no series yet."""
    return f"({expr} or vector(0))"


def each_of(label: str, values: Iterable[str], expr: str, missing: int = 0) -> str:
    """`expr` for each of a fixed list of values of a label; one of which all series have vanished is `missing`."""
    made = (f'label_replace(vector({missing}), "{label}", "{value}", "", "")' for value in values)
    return f"({' or '.join((expr, *made))})"


def _sum(expr: str, by: tuple[str, ...]) -> str:
    return f"sum by ({', '.join(by)}) ({expr})" if by else f"sum({expr})"


STAGES: Final[tuple[str, ...]] = get_args(Stage)
OF_MODELS: Final = 'mnemolog_overwrites_total{by=~"model|rule"}'
ON_STATEMENTS: Final = 'mnemolog_events_projected_total{by=~"model|rule"}'
WRONG: Final = 'mnemolog_recent_overwrites{result=~"undone|rejected|corrected"}'
SETTLED: Final = 'mnemolog_recent_overwrites{result=~"kept|undone|rejected|corrected"}'
PROPOSER: Final = ("model", "prompt_version")


def overwrite_rate(span: str) -> str:
    return ratio(or_zero(total(OF_MODELS, span=span)), total(ON_STATEMENTS, span=span))


OVERWRITE_RATE: Final = overwrite_rate("$__rate_interval")
OVERWRITE_RATE_SHOWN: Final = overwrite_rate("$__range")
STAGES_READY: Final = each_of("stage", STAGES, "max by (stage) (mnemolog_stage_ready)")
STAGES_DOWN: Final = or_zero(f"count({STAGES_READY} == 0)")


def recent(series: str, *by: str) -> str:
    """Recent overwrites by labels; each process shows all of them, so the largest of the processes counts."""
    each = f"max by (result, model, prompt_version) ({series})"
    return f"sum by ({', '.join(by)}) ({each})" if by else f"sum({each})"


WRONG_OVERWRITE_RATE: Final = ratio(or_zero(recent(WRONG)), recent(SETTLED))
WRONG_OVERWRITE_RATE_BY_MODEL: Final = ratio(recent(WRONG, *PROPOSER), recent(SETTLED, *PROPOSER))


def held(labels: str = "") -> str:
    """Overwrites that were held back; each process shows all of them."""
    return f"sum(max by (settlement) (mnemolog_recent_held{{{labels}}}))"


USED_FACTS: Final = "max by (rank) (mnemolog_recent_feedback_facts)"
"""Each process shows all of them, so the largest of the processes counts."""


def recall_by_feedback(ranks: str) -> str:
    """The share of all used facts that was shown at these ranks."""
    shown = f'max by (rank) (mnemolog_recent_feedback_facts{{rank=~"{ranks}"}})'
    return ratio(f"sum({shown})", f"sum({USED_FACTS})")


def hit_rate(found_by: str) -> str:
    """The share of the hits of searches that these signals found."""
    found = f'mnemolog_client_search_hits_total{{found_by=~"{found_by}"}}'
    return ratio(or_zero(total(found)), total("mnemolog_client_search_hits_total"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure with its definition in one sentence, and its PromQL over the time that a dashboard shows."""

    name: str
    definition: str
    expr: str


FIGURES: Final = (
    Figure(
        name="overwrite rate",
        definition="overwrites that a model proposed and that were carried out, divided by all decisions on "
        "statements, which are all events but those of commands (`application`, `human`) and of the timer",
        expr=OVERWRITE_RATE_SHOWN,
    ),
    Figure(
        name="wrong-overwrite rate",
        definition="of the overwrites that models proposed in the last 30 days, those that were undone, rejected or "
        "corrected, divided by these and the ones that were kept; open and overtaken ones count on neither side",
        expr=WRONG_OVERWRITE_RATE,
    ),
    Figure(
        name="pending-confirmation resolution rate",
        definition="of the overwrites held back in the last 30 days, those that a confirmation or a rejection settled",
        expr=ratio(held('settlement=~"confirmed|rejected"'), held()),
    ),
    Figure(
        name="lexical hit rate",
        definition="of the hits of searches in the time shown, those with a word in common with the question, of "
        "applications that export their registry",
        expr=hit_rate("words|both"),
    ),
    Figure(
        name="vector hit rate",
        definition="the same for hits whose vector was near enough",
        expr=hit_rate("vector|both"),
    ),
    Figure(
        name="top-k recall by feedback",
        definition="of the facts that feedback of the last 30 days names as used, the share that the search or context "
        "had shown within the first ten; those that were not shown count as missed",
        expr=recall_by_feedback("1|2-5|6-10"),
    ),
)
