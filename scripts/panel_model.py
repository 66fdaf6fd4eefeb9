"""The parts of a dashboard: panels and rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One graph or number; `unit` is Grafana's name of it, `description` its help text.

    `queries` gives PromQL by what Grafana calls the series, `{{label}}` being a label's value. `red_from` is the value
    from which a number is red; one that is missing says so and is not green.
    """

    title: str
    description: str
    queries: Mapping[str, str]
    unit: str = "short"
    kind: Literal["stat", "timeseries"] = "timeseries"
    width: int = 8
    red_from: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Panels under one heading."""

    title: str
    panels: tuple[Panel, ...]
