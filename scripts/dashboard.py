"""The Grafana dashboard: the panels laid out, as the JSON that Grafana reads."""

import json
from collections.abc import Iterator
from typing import Any, Final

from scripts.dashboard_rows import ROWS
from scripts.panel_model import Panel, Row

DATASOURCE: Final = {"type": "prometheus", "uid": "prometheus"}
COLUMNS: Final = 24
HEIGHT: Final = {"stat": 4, "timeseries": 8}


def dashboard() -> str:
    """What Grafana reads from grafana/dashboards/mnemolog.json."""
    content = {
        "uid": "mnemolog",
        "title": "Mnemolog",
        "description": "Latency, cost, decisions and errors of all stages. Written by `make generate`.",
        "tags": ["mnemolog"],
        "schemaVersion": 41,
        "editable": False,
        "graphTooltip": 1,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "panels": [{"id": number, **panel} for number, panel in enumerate(_layout(ROWS), start=1)],
    }
    return json.dumps(content, indent=2) + "\n"


def _layout(rows: tuple[Row, ...]) -> Iterator[dict[str, Any]]:
    y = 0
    for row in rows:
        yield {"type": "row", "title": row.title, "collapsed": False, "panels": [], "gridPos": _at(0, y, COLUMNS, 1)}
        x, y = 0, y + 1
        for panel in row.panels:
            if x + panel.width > COLUMNS:
                x, y = 0, y + HEIGHT[panel.kind]
            yield _panel_json(panel, _at(x, y, panel.width, HEIGHT[panel.kind]))
            x += panel.width
        y += HEIGHT[row.panels[-1].kind]


def _at(x: int, y: int, w: int, h: int) -> dict[str, int]:
    return {"x": x, "y": y, "w": w, "h": h}


def _panel_json(panel: Panel, position: dict[str, int]) -> dict[str, Any]:
    return {
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": DATASOURCE,
        "gridPos": position,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0, **_colors(panel)}, "overrides": []},
        "options": _options(panel),
        "targets": [
            {
                "refId": chr(ord("A") + number),
                "datasource": DATASOURCE,
                "expr": expr,
                "legendFormat": legend,
            }
            for number, (legend, expr) in enumerate(panel.queries.items())
        ],
    }


def _colors(panel: Panel) -> dict[str, Any]:
    if panel.red_from is None:
        return {}
    steps = [{"color": "green", "value": None}, {"color": "red", "value": panel.red_from}]
    return {
        "noValue": "no data",
        "color": {"mode": "thresholds"},
        "thresholds": {"mode": "absolute", "steps": steps},
    }


def _options(panel: Panel) -> dict[str, Any]:
    if panel.kind == "stat":
        color = "none" if panel.red_from is None else "background"
        # `last` and not `lastNotNull`: where the newest value is missing, an older one is not the figure.
        return {"reduceOptions": {"calcs": ["last"]}, "colorMode": color, "graphMode": "area"}
    return {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi", "sort": "desc"}}
