"""The alerts and the panels' figures on made-up series, also on those that have vanished."""

import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from scripts.figures import OVERWRITE_RATE_SHOWN, STAGES, STAGES_DOWN, WRONG_OVERWRITE_RATE, or_zero, total
from tests.support.paths import ROOT
from tests.support.programs import required_program
from tests.support.promtool import Firing, Series, check_alert, check_value

SHOWN = {"$__range": "20m"}


def over(expr: str) -> str:
    return expr.replace("$__range", SHOWN["$__range"])


def ready(**values: str) -> dict[str, str]:
    """Every stage in a process of its own, ready unless `values` say something else."""
    all_values = dict.fromkeys(STAGES, "1x30") | values
    return {
        f'mnemolog_stage_ready{{stage="{stage}",instance="{stage}:1"}}': shown for stage, shown in all_values.items()
    }


def dead(*stages: str) -> list[Firing]:
    return [Firing(severity="critical", labels={"stage": stage}) for stage in stages]


STAGE_CASES: dict[str, tuple[Series, tuple[str, ...]]] = {
    "all are there": (ready(), ()),
    "one has left its group": (ready(match="1x10 0x20"), ("match",)),
    "all series of one have vanished": (ready(embed="1x10 stale"), ("embed",)),
    "one was never there": ({name: value for name, value in ready().items() if "resolve" not in name}, ("resolve",)),
    "no process is scraped at all": ({}, STAGES),
    "one of two processes is down": (
        ready(embed="1x10 0x20") | {'mnemolog_stage_ready{stage="embed",instance="embed:2"}': "1x30"},
        (),
    ),
}


@pytest.mark.parametrize(("series", "stages"), STAGE_CASES.values(), ids=STAGE_CASES)
def test_a_dead_stage_is_red(series: Series, stages: tuple[str, ...], tmp_path: Path) -> None:
    check_alert(tmp_path, series, "MnemologStageDead", dead(*stages))
    check_value(tmp_path, series, STAGES_DOWN, {"{}": len(stages)})


def figures(**values: str) -> dict[str, str]:
    """The times of the last success, each at the time itself unless `values` say something else."""
    all_values = dict.fromkeys(("quality", "lag", "backlog"), "0+60x30") | values
    name = "mnemolog_figures_last_success_timestamp_seconds"
    return {f'{name}{{figures="{one}",instance="p:1"}}': shown for one, shown in all_values.items()}


FIGURE_CASES: dict[str, tuple[Series, list[dict[str, str]]]] = {
    "all are fresh": (figures(), []),
    "one has stopped": (figures(quality="0+60x10 600x20"), [{"figures": "quality", "instance": "p:1"}]),
    "one has vanished": (figures(lag="0+60x10 stale"), [{"figures": "lag"}]),
    "one never succeeded": (
        figures(backlog="0x30"),
        [{"figures": "backlog", "instance": "p:1"}, {"figures": "backlog"}],
    ),
    "nobody computes any": ({}, [{"figures": "quality"}, {"figures": "lag"}, {"figures": "backlog"}]),
}


@pytest.mark.parametrize(("series", "expected"), FIGURE_CASES.values(), ids=FIGURE_CASES)
def test_gauges_that_show_what_was_are_told(series: Series, expected: list[dict[str, str]], tmp_path: Path) -> None:
    check_alert(tmp_path, series, "MnemologFiguresStale", [Firing(labels=labels) for labels in expected])


def test_an_old_backlog_fires_by_stage_and_partition(tmp_path: Path) -> None:
    gauge = 'mnemolog_backlog_oldest_seconds{stage="%s",partition="%s",instance="p:1"}'
    series = {gauge % ("embed", 3): "0+60x30", gauge % ("embed", 4): "0x20 301x10", gauge % ("match", 3): "299x30"}
    check_alert(tmp_path, series, "MnemologBacklogOld", [Firing(labels={"stage": "embed", "partition": "3"})])


RARE = 'mnemolog_dead_letters_total{stage="extract",reason="not_json",instance="e:1"}'
LETTER = Firing(labels={"stage": "extract", "reason": "not_json"})
LETTERS: dict[str, tuple[str, list[Firing], float]] = {
    "the first of its kind, whose series comes with it": ("_x25 1x5", [LETTER], 1),
    "one more": ("4x25 5x5", [LETTER], 1),
    "those of yesterday": ("4x30", [], 0),
}


@pytest.mark.parametrize(("values", "expected", "shown"), LETTERS.values(), ids=LETTERS)
def test_the_first_dead_letter_is_seen(values: str, expected: list[Firing], shown: float, tmp_path: Path) -> None:
    check_alert(tmp_path, {RARE: values}, "MnemologDeadLetters", expected)
    shown_total = f"round({over(or_zero(total('mnemolog_dead_letters_total')))})"
    check_value(tmp_path, {RARE: values}, shown_total, {"{}": shown})


def recent(model: str, instance: str = "p:1", **results: int) -> dict[str, str]:
    labels = f'model="{model}",prompt_version="resolve-3",instance="{instance}"'
    return {f'mnemolog_recent_overwrites{{result="{name}",{labels}}}': f"{value}x30" for name, value in results.items()}


def test_the_model_that_overwrites_wrongly_is_named(tmp_path: Path) -> None:
    bad: dict[str, Any] = {"kept": 17, "undone": 1, "rejected": 1, "corrected": 1, "open": 50, "overtaken": 50}
    series = recent("bad", **bad) | recent("bad", "p:2", **bad) | recent("good", kept=100, rejected=10)
    few = recent("few", kept=10, rejected=9)
    labels = {"model": "bad", "prompt_version": "resolve-3"}
    check_alert(tmp_path, {**series, **few}, "MnemologWrongOverwrites", [Firing(labels=labels)])
    check_value(tmp_path, recent("bad", **bad) | recent("bad", "p:2", **bad), WRONG_OVERWRITE_RATE, {"{}": 3 / 20})


def test_the_overwrite_rate_is_of_models_and_of_statements(tmp_path: Path) -> None:
    ended = 'mnemolog_overwrites_total{event="fact_replaced",by="%s",model="%s",prompt_version=""}'
    decided = 'mnemolog_events_projected_total{event="fact_added",by="%s"}'
    series = {
        ended % ("model", "m1"): "_x25 1x5",
        ended % ("timer", ""): "_x25 900x5",
        ended % ("person", ""): "_x25 9x5",
        decided % "rule": "_x25 6x5",
        decided % "model": "_x25 2x5",
        decided % "timer": "_x25 900x5",
        decided % "person": "_x25 9x5",
    }
    check_value(tmp_path, series, over(OVERWRITE_RATE_SHOWN), {"{}": 1 / 8})
    quiet = {decided % "rule": "_x25 6x5"}
    check_value(tmp_path, quiet, over(OVERWRITE_RATE_SHOWN), {"{}": 0})


NOT_APPLIED: Final = 'mnemolog_rejections_total{reason="%s"}'
OTHERS: Final[dict[str, tuple[Series, Firing]]] = {
    "MnemologStageStalled": (
        {'mnemolog_window_stalled_seconds{stage="embed"}': "0x20 121x10"},
        Firing(labels={"stage": "embed"}),
    ),
    "MnemologPartitionUnfetched": (
        {'mnemolog_unfetched_seconds{stage="embed",partition="3",instance="e:1"}': "0x20 121x10"},
        Firing(severity="critical", labels={"stage": "embed", "partition": "3", "instance": "e:1"}),
    ),
    "MnemologStageCrashes": (
        {'mnemolog_stage_crashes_total{stage="embed"}': "_x25 3x5"},
        Firing(severity="critical", labels={"stage": "embed"}),
    ),
    "MnemologRecordsNotApplied": (
        {NOT_APPLIED % "not_a_commit": "_x25 1x5", NOT_APPLIED % "duplicate_source": "_x25 1x5"},
        Firing(labels={"reason": "not_a_commit"}),
    ),
    "MnemologTablesBehind": ({'mnemolog_projection_lag{partition="1"}': "2000x30"}, Firing(labels={"partition": "1"})),
    "MnemologModelErrors": (
        {'mnemolog_model_errors_total{purpose="extract",model="m",error="timeout"}': "0+1x30"},
        Firing(labels={"purpose": "extract", "model": "m"}),
    ),
    "MnemologServersUnavailable": (
        {'mnemolog_database_retries_total{operation="project"}': "0+1x30"},
        Firing(labels={"operation": "project"}),
    ),
    "MnemologPoolTooSmall": ({'mnemolog_pool_waiting{pool="worker"}': "1x30"}, Firing(labels={"pool": "worker"})),
}


@pytest.mark.parametrize("alert", OTHERS)
def test_each_other_alert_fires_and_is_silent(alert: str, tmp_path: Path) -> None:
    series, firing = OTHERS[alert]
    check_alert(tmp_path, series, alert, [firing])
    check_alert(tmp_path, dict.fromkeys(series, "0x30"), alert, [])


def test_promtool_accepts_the_rules() -> None:
    done = subprocess.run(
        [required_program("promtool"), "check", "rules", "--lint=all", "--lint-fatal", str(ROOT / "deploy/alerts.yml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
