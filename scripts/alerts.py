"""The alerts of Prometheus: deploy/alerts.yml, and their table in docs/metrics.md."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from mnemolog.streams.runtime.loops import FIGURES
from scripts.figures import SETTLED, STAGES_READY, WRONG_OVERWRITE_RATE_BY_MODEL, each_of, recent, total

SUCCEEDED: Final = "mnemolog_figures_last_success_timestamp_seconds"
WRONG_SHARE: Final = 0.1
ENOUGH_OVERWRITES: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One rule: it fires when `expr` has held for `wait`. `meaning` and `action` are one sentence each."""

    name: str
    expr: str
    wait: str
    when: str
    meaning: str
    action: str
    severity: Literal["critical", "warning"] = "warning"


ALERTS: Final = (
    Alert(
        name="MnemologStageDead",
        expr=f"{STAGES_READY} == 0",
        wait="2m",
        when="no process of a stage is a member of its group, or none is scraped",
        meaning="Nothing is done for the stage {{ $labels.stage }}: its turns wait.",
        action="Start it; its log says why it stopped (stage_down).",
        severity="critical",
    ),
    Alert(
        name="MnemologBacklogOld",
        expr="max by (stage, partition) (mnemolog_backlog_oldest_seconds) > 300",
        wait="10m",
        when="the oldest unread record of a stage and partition is older than 5 minutes",
        meaning="The stage {{ $labels.stage }}, or one that it hands records on to, is slower than its input, "
        "or waits for a server.",
        action="Follow the runbook on lag.",
    ),
    Alert(
        name="MnemologStageStalled",
        expr="max by (stage) (mnemolog_window_stalled_seconds) > 120",
        wait="1m",
        when="a stage has finished no record for 2 minutes while some are pending",
        meaning="The stage {{ $labels.stage }} hangs; it restarts itself after MNEMOLOG_WATCHDOG seconds.",
        action="Look for model errors and repeated database operations.",
    ),
    Alert(
        name="MnemologPartitionUnfetched",
        expr="mnemolog_unfetched_seconds > 120",
        wait="1m",
        when="a worker has not fetched a partition that it has for 2 minutes, and its window has room",
        meaning="The stage {{ $labels.stage }} does not read partition {{ $labels.partition }}: its turns wait.",
        action="Follow the runbook on partitions that are not fetched.",
        severity="critical",
    ),
    Alert(
        name="MnemologStageCrashes",
        expr=f"{total('mnemolog_stage_crashes_total', 'stage', span='10m')} > 2",
        wait="0m",
        when="a stage has crashed more than twice in 10 minutes",
        meaning="The stage {{ $labels.stage }} cannot start or run.",
        action="The log event stage_down says why.",
        severity="critical",
    ),
    Alert(
        name="MnemologDeadLetters",
        expr=f"{total('mnemolog_dead_letters_total', 'stage', 'reason', span='15m')} > 0",
        wait="0m",
        when="a record has become a dead letter in the last 15 minutes",
        meaning="A turn has ended as failed in {{ $labels.stage }}: {{ $labels.reason }}.",
        action="Follow the runbook on dead letters.",
    ),
    Alert(
        name="MnemologRecordsNotApplied",
        expr="{} > 0".format(total('mnemolog_rejections_total{reason!="duplicate_source"}', "reason", span="15m")),
        wait="0m",
        when="a record or event of the log could not be applied in the last 15 minutes",
        meaning="The log has something that the tables cannot hold: {{ $labels.reason }}.",
        action="The table rejections has it with its reason.",
    ),
    Alert(
        name="MnemologFiguresStale",
        expr=(
            f"time() - {SUCCEEDED} > 300 or "
            f"{each_of('figures', FIGURES, f'(max by (figures) ({SUCCEEDED}) > bool 0)')} == 0"
        ),
        wait="5m",
        when="gauges that are computed from time to time are older than 5 minutes, or no process computes them",
        meaning="The gauges of {{ $labels.figures }} show what was, and not what is.",
        action="The log event background_round_failed of project says why.",
    ),
    Alert(
        name="MnemologWrongOverwrites",
        expr=(
            f"{WRONG_OVERWRITE_RATE_BY_MODEL} > {WRONG_SHARE} "
            f"and {recent(SETTLED, 'model', 'prompt_version')} >= {ENOUGH_OVERWRITES}"
        ),
        wait="15m",
        when=f"of at least {ENOUGH_OVERWRITES} settled overwrites of a model and prompt version in 30 days, more than "
        "a tenth was wrong",
        meaning="{{ $labels.model }} with {{ $labels.prompt_version }} overwrites memory wrongly.",
        action="Follow the runbook on wrong overwrites.",
    ),
    Alert(
        name="MnemologTablesBehind",
        expr="max by (partition) (mnemolog_projection_lag) > 1000",
        wait="5m",
        when="more than 1000 commits of a partition are not in the tables",
        meaning="Commits are not in the tables yet, and the next turn of each user waits for them.",
        action="Follow the runbook on lag.",
    ),
    Alert(
        name="MnemologModelErrors",
        expr="sum by (purpose, model) (rate(mnemolog_model_errors_total[5m])) > 0",
        wait="5m",
        when="calls of a model have failed for 5 minutes",
        meaning="The server of {{ $labels.model }} is unavailable or refuses calls; turns wait, none fails.",
        action="Look at the model's server.",
    ),
    Alert(
        name="MnemologServersUnavailable",
        expr=(
            "sum by (operation) (rate(mnemolog_database_retries_total[5m])) > 0 "
            "or sum by (topic) (rate(mnemolog_send_retries_total[5m])) > 0"
        ),
        wait="5m",
        when="operations of Postgres or sends to Kafka have been repeated for 5 minutes",
        meaning="Postgres or Kafka is unavailable: {{ $labels.operation }}{{ $labels.topic }} is repeated.",
        action="Look at the server; nothing is lost, turns wait.",
    ),
    Alert(
        name="MnemologPoolTooSmall",
        expr="max by (pool) (mnemolog_pool_waiting) > 0",
        wait="5m",
        when="requests have waited for a connection to Postgres for 5 minutes",
        meaning="The pool {{ $labels.pool }} is too small.",
        action="Raise MNEMOLOG_POSTGRES_POOL_SIZE, within max_connections of Postgres.",
    ),
)


def alert_rules() -> str:
    """What Prometheus reads from deploy/alerts.yml; JSON strings are YAML strings."""
    head = "# Written by `make generate` from scripts/alerts.py. What to do for each: docs/how-to/incidents.md.\n"
    return f"{head}groups:\n  - name: mnemolog\n    rules:\n{''.join(line for one in ALERTS for line in _rule(one))}"


def _rule(alert: Alert) -> Iterator[str]:
    yield f"      - alert: {alert.name}\n"
    yield f"        expr: {json.dumps(alert.expr)}\n"
    yield f"        for: {alert.wait}\n"
    yield f"        labels: {{severity: {alert.severity}}}\n"
    yield "        annotations:\n"
    yield f"          summary: {json.dumps(alert.meaning)}\n"
    yield f"          description: {json.dumps(alert.action)}\n"
