"""The dashboard asks only for what workers show, and for all of it."""

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

import mnemolog.client.metrics
import mnemolog.projections.metrics
import mnemolog.server.metrics
import mnemolog.streams.metrics
from scripts.dashboard import COLUMNS, DATASOURCE
from tests.support.deployment_files import read_yaml
from tests.support.paths import ROOT

DASHBOARDS = sorted((ROOT / "grafana/dashboards").glob("*.json"))
CATALOGUES = (
    module.metrics.CATALOGUE for module in (mnemolog.client, mnemolog.server, mnemolog.streams, mnemolog.projections)
)
METRICS = {metric.name: metric for catalogue in CATALOGUES for metric in catalogue}
NAME = re.compile(r"\bmnemolog_\w+")
SUFFIXES = ("_bucket", "_sum", "_count")


def _panels() -> Iterator[dict[str, Any]]:
    for path in DASHBOARDS:
        yield from json.loads(path.read_text())["panels"]


QUERIES = [
    pytest.param(target["expr"], target["legendFormat"], id=f"{panel['title']} {target['refId']}")
    for panel in _panels()
    for target in panel.get("targets", [])
]


def _metric_of(series: str) -> str:
    """The catalogue's name of a series; fails where workers show no such series."""
    if series in METRICS:
        assert METRICS[series].kind != "histogram", f"{series} needs one of {SUFFIXES}"
        return series
    base = next((series.removesuffix(suffix) for suffix in SUFFIXES if series.endswith(suffix)), series)
    assert base in METRICS, f"{series} is in no catalogue"
    assert METRICS[base].kind == "histogram"
    return base


def _labels(expr: str) -> set[str]:
    grouped = {label.strip() for group in re.findall(r"by \(([^)]*)\)", expr) for label in group.split(",")}
    matched = {label for one in re.findall(r"\{([^}]*)\}", expr) for label in re.findall(r"(\w+)\s*[=!]", one)}
    return grouped | matched


@pytest.mark.parametrize(("expr", "legend"), QUERIES)
def test_every_metric_and_label_exists(expr: str, legend: str) -> None:
    metrics = [METRICS[_metric_of(series)] for series in NAME.findall(expr)]
    assert metrics
    for metric in metrics:
        known = {*metric.labels, "le"} if metric.kind == "histogram" else set(metric.labels)
        assert _labels(expr) <= known, metric.name
    assert set(re.findall(r"\{\{(\w+)\}\}", legend)) <= _labels(expr)


def test_every_metric_is_shown() -> None:
    asked = {_metric_of(series) for query in QUERIES for series in NAME.findall(str(query.values[0]))}
    assert asked == set(METRICS)


def test_panels_stand_beside_each_other() -> None:
    places = [panel["gridPos"] for panel in _panels()]
    assert all(place["x"] + place["w"] <= COLUMNS for place in places)
    for one, other in itertools.combinations(places, 2):
        sides = (("x", "w"), ("y", "h"))
        apart = [a[at] + a[size] <= b[at] for at, size in sides for a, b in ((one, other), (other, one))]
        assert any(apart), (one, other)


def test_every_panel_says_what_it_shows_and_asks_the_provisioned_source() -> None:
    (source,) = read_yaml("grafana/provisioning/datasources/prometheus.yml")["datasources"]
    assert {"type": source["type"], "uid": source["uid"]} == DATASOURCE
    panels = [panel for panel in _panels() if panel["type"] != "row"]
    assert all(panel["title"] and panel["description"] and panel["targets"] for panel in panels)
    assert all(target["datasource"] == DATASOURCE for panel in panels for target in panel["targets"])
    assert len({panel["id"] for panel in _panels()}) == len(list(_panels()))
