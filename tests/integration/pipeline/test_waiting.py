"""Who waits for a turn learns within seconds what fails in the workers."""

import asyncio
import json
import urllib.request
from time import monotonic
from typing import Any

import pytest

from mnemolog.errors import WaitTimeoutError
from mnemolog.streams.settings import StreamsSettings
from tests.support.harnesses.pipeline_harness import PipelineHarness
from tests.support.harnesses.worker_harness import running_worker
from tests.support.servers.kafka_client import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

TOLD_WITHIN = 10.0  # seconds


@pytest.mark.parametrize(
    ("failure", "advice"),
    [
        ({"mode": "status", "status": 401}, "the server refuses the key: correct MNEMOLOG_API_KEY (http_401)"),
        ({"mode": "hang"}, "has not answered for"),
    ],
    ids=["refused key", "no answer"],
)
async def test_what_a_server_lacks_stands_in_the_status_the_timeout_and_the_health(
    settings: StreamsSettings, failure: dict[str, Any], advice: str
) -> None:
    at_start = {f"extract {settings.chat_model}": "at the start the server refuses the key"}
    async with (
        PipelineHarness.without_worker(settings) as harness,
        running_worker(harness.settings, failing=at_start) as report,
    ):
        memory = harness.memory

        async def is_told_before_a_turn() -> bool:
            rows = await harness.rows("SELECT part, problem FROM mnemolog_journal.worker_problems")
            return {row["part"]: row["problem"] for row in rows} == at_start

        await wait_until(is_told_before_a_turn)
        harness.server.fail(**failure, times=None)
        began = monotonic()
        turn = await memory.add("I live in Bern.", user_id="mira")

        async def is_told() -> bool:
            return any(advice in note for note in (await memory.status(turn)).notes)

        await wait_until(is_told)
        assert monotonic() - began < TOLD_WITHIN
        with pytest.raises(WaitTimeoutError, match=advice.partition(":")[0]):
            await memory.wait(turn, timeout=0.5)
        health = await asyncio.to_thread(shown_health, report.metrics_url)
        assert advice in " ".join(health["failing"].values())
        harness.server.failures.clear()
        assert (await memory.wait(turn, timeout=30)).status == "nothing_stored"

        async def is_over() -> bool:
            return await harness.rows("SELECT part FROM mnemolog_journal.worker_problems") == []

        await wait_until(is_over)
        # What a server refuses without a word is left out, which hinders no turn, and is shown.
        harness.server.habits.refused, harness.server.habits.silent = frozenset({"seed"}), True
        assert (await memory.add("I live in Ulm.", user_id="mira", wait=True)).status == "nothing_stored"

        async def is_shown() -> bool:
            parts = await harness.rows("SELECT part FROM mnemolog_journal.worker_problems")
            return [row["part"].endswith("(seed)") for row in parts] == [True]

        await wait_until(is_shown)
        shown = " ".join((await asyncio.to_thread(shown_health, report.metrics_url))["failing"].values())
        assert shown == "seed is refused, and left out from now on: name it in MNEMOLOG_LEAVE_OUT"


def shown_health(url: str) -> dict[str, dict[str, str]]:
    with urllib.request.urlopen(f"{url}/health", timeout=10) as response:  # noqa: S310 -- our own worker on loopback
        shown: dict[str, dict[str, str]] = json.load(response)
    return shown
