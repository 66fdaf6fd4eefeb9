"""Who waits for a turn learns within seconds what fails in the workers."""

import asyncio
import json
import urllib.request
from time import monotonic

import pytest

from mnemolog.errors import WaitTimeoutError
from mnemolog.streams.settings import StreamsSettings
from tests.support.harnesses.pipeline_harness import PipelineHarness
from tests.support.harnesses.worker_harness import running_worker
from tests.support.servers.kafka_client import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]

TOLD_WITHIN = 10.0  # seconds
ADVICE = "the server refuses the key: correct MNEMOLOG_API_KEY (http_401)"


async def test_a_refused_key_stands_in_the_status_the_timeout_and_the_health(settings: StreamsSettings) -> None:
    async with PipelineHarness.without_worker(settings) as harness, running_worker(harness.settings) as report:
        memory = harness.memory
        harness.server.fail(mode="status", status=401, times=None)
        began = monotonic()
        turn = await memory.add("I live in Bern.", user_id="mira")

        async def is_told() -> bool:
            return any(ADVICE in note for note in (await memory.status(turn)).notes)

        await wait_until(is_told)
        assert monotonic() - began < TOLD_WITHIN
        with pytest.raises(WaitTimeoutError, match="the server refuses the key"):
            await memory.wait(turn, timeout=0.5)
        health = await asyncio.to_thread(shown_health, report.metrics_url)
        assert ADVICE in health["failing"].values()
        harness.server.failures.clear()
        assert (await memory.wait(turn, timeout=30)).status == "no_facts"

        async def is_over() -> bool:
            return await harness.rows("SELECT part FROM mnemolog_journal.worker_problems") == []

        await wait_until(is_over)


def shown_health(url: str) -> dict[str, dict[str, str]]:
    with urllib.request.urlopen(f"{url}/health", timeout=10) as response:  # noqa: S310 -- our own worker on loopback
        shown: dict[str, dict[str, str]] = json.load(response)
    return shown
