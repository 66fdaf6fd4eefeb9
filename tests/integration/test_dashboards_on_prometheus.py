"""What the dashboard asks, asked of a real Prometheus that reads a real worker."""

import json
import subprocess
from functools import partial
from pathlib import Path

import pytest

from mnemolog.streams.settings import StreamsSettings
from mnemolog.streams.topics import CONVERSATION_TURNS, topic_name
from tests.deployment import ROOT
from tests.kafka import publish, until
from tests.pipeline import ends, running, say, settings_for, turn
from tests.prometheus import Prometheus, prometheus_of
from tests.support import installed

# Labels of what has not happened have no series yet.
NEEDS_TROUBLE = {
    "mnemolog_database_retries_total",
    "mnemolog_drain_redone_total",
    "mnemolog_facts_dropped_total",
    "mnemolog_model_errors_total",
    "mnemolog_overwrites_taken_back_total",
    "mnemolog_recent_held",
    "mnemolog_rejections_total",
    "mnemolog_repeats_dropped_total",
    "mnemolog_reprompts_total",
    "mnemolog_send_retries_total",
    "mnemolog_stage_crashes_total",
}
GRAFANA_SPANS = {"$__rate_interval": "1m", "$__range": "5m"}


def _questions() -> list[str]:
    panels = json.loads((ROOT / "grafana/dashboards/mnemolog.json").read_text())["panels"]
    questions = [target["expr"] for panel in panels for target in panel.get("targets", [])]
    for variable, span in GRAFANA_SPANS.items():
        questions = [question.replace(variable, span) for question in questions]
    assert not any("$" in question for question in questions)
    return questions


def _needs_trouble(question: str) -> bool:
    return any(metric in question for metric in NEEDS_TROUBLE)


@pytest.mark.kafka
@pytest.mark.postgres
async def test_every_question_of_the_dashboard_is_answered(
    bootstrap: str, database: str, topic_suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed("prometheus", "prometheus")
    monkeypatch.setattr("mnemolog.streams.quality_watch.WATCH_SECONDS", 1.0)
    settings = settings_for(bootstrap, database, f"{topic_suffix}-")
    async with running(settings) as worker, prometheus_of(worker.metrics_url, tmp_path) as prometheus:
        await _a_first_look(settings, database, prometheus)
        await say(settings, turn("t3", "I moved to Hamburg."), turn("t4", "I love green tea."))
        await ends(database, 5)

        for question in _questions():
            asked = partial(prometheus.ask, question)
            await (asked() if _needs_trouble(question) else until(asked))


async def _a_first_look(settings: StreamsSettings, database: str, prometheus: Prometheus) -> None:
    """A rise is seen only of what has been seen before: replace a fact, break a record, and wait until it is read."""
    await say(settings, turn("t1", "I live in Berlin."), turn("t2", "I moved to Munich."))
    await publish(settings.kafka or "", topic_name(CONVERSATION_TURNS, settings.topic_prefix), [(None, b"no record")])
    await ends(database, 3)

    async def is_read() -> bool:
        return bool(await prometheus.ask("mnemolog_overwrites_total > 0"))

    await until(is_read)


def test_promtool_accepts_the_configuration() -> None:
    checked = subprocess.run(
        [installed("promtool", "prometheus"), "check", "config", str(ROOT / "deploy/prometheus.yml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
