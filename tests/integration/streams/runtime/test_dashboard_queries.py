"""The dashboard's queries, sent to a real Prometheus that reads a real worker.

Not among the tests that share a worker: that one would set the same gauges of this process.
"""

import json
import subprocess
from functools import partial
from pathlib import Path
from uuid import UUID

import httpx
import pytest

from mnemolog.schemas.command import Command, Feedback
from mnemolog.server.serve import serving
from mnemolog.settings import Settings
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS, topic_name
from mnemolog.streams.settings import StreamsSettings
from tests.support.harnesses.worker_harness import (
    MONDAY,
    publish_records,
    running_worker,
    user_turn,
    wait_for_outcomes,
)
from tests.support.paths import ROOT
from tests.support.programs import required_program
from tests.support.servers.kafka_client import publish, wait_until
from tests.support.servers.prometheus_server import Prometheus, running_prometheus

# Labels of what has not happened have no series yet.
NEEDS_TROUBLE = {
    "mnemolog_background_failures_total",
    "mnemolog_database_retries_total",
    "mnemolog_drain_redone_total",
    "mnemolog_entity_changes_total",
    "mnemolog_facts_dropped_total",
    "mnemolog_model_errors_total",
    "mnemolog_model_paused",
    "mnemolog_stage_held",
    "mnemolog_overwrites_taken_back_total",
    "mnemolog_recent_held",
    "mnemolog_prompt_tokens_total",  # only where the server of the model tells
    "mnemolog_model_cost_total",  # only where models have a price
    "mnemolog_model_unpriced_calls_total",
    "mnemolog_over_budget_total",
    "mnemolog_rejections_total",
    "mnemolog_backlog_oldest_seconds) > 5",
    "mnemolog_unfetched_seconds) > 5",
    "mnemolog_client_query_seconds",
    "mnemolog_client_query_vectors_total",
    "mnemolog_client_search_hits_total",
    "mnemolog_client_search_seconds",
    "mnemolog_client_context_",
    "mnemolog_repeats_dropped_total",
    "mnemolog_reprompts_total",
    "mnemolog_send_retries_total",
    "mnemolog_stage_crashes_total",
    "mnemolog_turns_asked_alone_total",
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
    settings: StreamsSettings, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    required_program("prometheus")
    monkeypatch.setattr("mnemolog.streams.runtime.worker.QUALITY_SECONDS", 1.0)
    async with running_worker(settings) as worker, running_prometheus(worker.metrics_url, tmp_path) as prometheus:
        await _a_first_look(settings, database, prometheus)
        moved = user_turn("t3", "I moved from Munich to Hamburg.")
        await publish_records(settings, moved, user_turn("t4", "I love green tea."), feedback())
        await wait_for_outcomes(database, 6)
        over_http = Settings.model_validate(settings.model_dump() | {"http_port": 0})
        async with serving(over_http, without_keys=True) as url, httpx.AsyncClient(base_url=url) as http:
            assert (await http.get("/health/live")).status_code == 200  # its metrics are in this process, too

        for question in _questions():
            asked = partial(prometheus.query, question)
            await (asked() if _needs_trouble(question) else wait_until(asked))


def feedback() -> Command:
    """A command of the user of all turns here."""
    given = Feedback(shown=(UUID(int=1), UUID(int=2)), used=(UUID(int=2),))
    return Command(command_id="c1", scope=user_turn("t0", "Hi.").scope, issued_at=MONDAY, order=given)


async def _a_first_look(settings: StreamsSettings, database: str, prometheus: Prometheus) -> None:
    """A rise is seen only of what has been seen before: replace a fact, break a record, and wait until it is read."""
    moved = user_turn("t2", "I moved from Berlin to Munich.")
    await publish_records(settings, user_turn("t1", "I live in Berlin."), moved)
    await publish(settings.kafka or "", topic_name(CONVERSATION_TURNS, settings.topic_prefix), [(None, b"no record")])
    await wait_for_outcomes(database, 3)

    async def is_read() -> bool:
        return bool(await prometheus.query("mnemolog_overwrites_total > 0"))

    await wait_until(is_read)


def test_promtool_accepts_the_configuration() -> None:
    checked = subprocess.run(
        [required_program("promtool"), "check", "config", str(ROOT / "deploy/prometheus.yml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
