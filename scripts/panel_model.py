"""The parts of a dashboard: panels and rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One graph or number; `unit` is Grafana's name of it, `description` its help text.

    `queries` gives PromQL by what Grafana calls the series, `{{label}}` being a label's value.
    """

    title: str
    description: str
    queries: Mapping[str, str]
    unit: str = "short"
    kind: Literal["stat", "timeseries"] = "timeseries"
    width: int = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Panels under one heading."""

    title: str
    panels: tuple[Panel, ...]
