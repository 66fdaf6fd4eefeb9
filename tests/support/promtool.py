"""Expressions and alert rules, evaluated by promtool on series that a test makes up."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.paths import ROOT
from tests.support.programs import required_program

RULES = ROOT / "deploy/alerts.yml"
Series = Mapping[str, str]
"""Values by name and labels, a minute apart, in promtool's words: `1+0x20`, `1x3 stale`."""


@dataclass(frozen=True, kw_only=True)
class Firing:
    """An alert that is expected: its labels, without the name and the severity."""

    severity: str = "warning"
    labels: Mapping[str, str] = field(default_factory=dict)


def check_alert(folder: Path, series: Series, name: str, expected: Sequence[Firing], *, at: str = "30m") -> None:
    """Fail unless exactly these alerts of `name` fire at a time."""
    alerts = [{"exp_labels": {"severity": one.severity, **one.labels}} for one in expected]
    _run(folder, series, {"alert_rule_test": [{"eval_time": at, "alertname": name, "exp_alerts": alerts}]})


def check_value(folder: Path, series: Series, expr: str, expected: Mapping[str, float], *, at: str = "30m") -> None:
    """Fail unless `expr` has exactly these values by their labels, as `{stage="embed"}`."""
    samples = [{"labels": labels, "value": value} for labels, value in expected.items()]
    _run(folder, series, {"promql_expr_test": [{"expr": expr, "eval_time": at, "exp_samples": samples}]})


def _run(folder: Path, series: Series, test: dict[str, Any]) -> None:
    given = [{"series": name, "values": values} for name, values in series.items()]
    content = {
        "rule_files": [str(_bare_rules(folder))],
        "evaluation_interval": "1m",
        "tests": [{"interval": "1m", "input_series": given, **test}],
    }
    path = folder / "test.yml"
    path.write_text(json.dumps(content))
    done = subprocess.run(
        [required_program("promtool"), "test", "rules", str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _bare_rules(folder: Path) -> Path:
    """The rules without their annotations, so that a test need not repeat the texts."""
    path = folder / "alerts.yml"
    lines = RULES.read_text().splitlines(keepends=True)
    texts = ("          summary:", "          description:", "        annotations:")
    path.write_text("".join(line for line in lines if not line.startswith(texts)))
    return path
