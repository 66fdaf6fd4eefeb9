"""The machines of a chaos run together: Kafka, Postgres, the model's server and three workers with all stages.

The model answers with the home that a statement names; a new home takes the place of the old.
"""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from tests.chaos.brokers import Brokers
from tests.chaos.machines import Server, Worker, mnemolog
from tests.support.builders.model_replies import decision_json, decisions_reply, fact_json, facts_reply
from tests.support.servers.canned_replies import ChatRequest
from tests.support.servers.openai_server import OpenAiServer

SPEAKER: Final = re.compile(r"^speaker: (.+)$", re.MULTILINE)
HOME: Final = re.compile(r"I (?:live in|moved from \w+ to) (\w+)\.")
KNOWN: Final = re.compile(r"^K(\d+) \((.*?)\): (.+)$", re.MULTILINE)
NEW: Final = re.compile(r"^N(\d+) \(.*?\): (.+)$", re.MULTILINE)


def home_reply(request: ChatRequest) -> str:
    if request.turn_id is None:
        return _decisions(request.question)
    speaker, homes = SPEAKER.search(request.question), list(HOME.finditer(request.question))
    if speaker is None or not homes:
        return facts_reply()
    home = homes[-1]  # those before it are of the conversation before the turn
    text = f"{speaker[1]} lives in {home[1]}."
    slot: dict[str, Any] = {"key": "home_city", "value": home[1], "single_valued": True}
    return facts_reply(fact_json(text, excerpt=home[0], subject=speaker[1], **slot))


def _decisions(question: str) -> str:
    current = [int(number) for number, notes, _ in KNOWN.findall(question) if "ended" not in notes]
    new = [int(number) for number, _ in NEW.findall(question)]
    return decisions_reply(
        *(decision_json(number, "REPLACE", current[-1]) if current else decision_json(number, "ADD") for number in new)
    )


PREFIX: Final = "chaos-"
TURNS: Final = f"{PREFIX}conversation_turns"
LOG: Final = f"{PREFIX}memory_events"
PARTITIONS: Final = 4
WORKERS: Final = 3
SESSION_SECONDS: Final = 3.0
MODEL_TIMEOUT_SECONDS: Final = 5.0
MODEL_SECONDS: Final = 0.05


class Cluster:
    """Starts and stops everything; `bootstrap` and `database` are addresses that stay the same."""

    def __init__(self, folder: Path, kafka: Server | Brokers) -> None:
        self.kafka = kafka
        self.postgres = Server("postgres", folder / "p")
        self.model = OpenAiServer(home_reply, latency=MODEL_SECONDS, embedding_latency=MODEL_SECONDS)
        self.environ = worker_environ() | {"MNEMOLOG_REPLICATION_FACTOR": str(kafka.copies)}
        self.bootstrap = self.database = ""
        self.workers = [Worker(f"worker{number}", self.environ, folder) for number in range(WORKERS)]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Servers, topics, tables and workers; all stopped at the end."""
        with self.model:
            try:
                self.bootstrap, self.database = await self.kafka.start(), await self.postgres.start()
                servers = {"KAFKA": self.bootstrap, "POSTGRES": self.database, "BASE_URL": self.model.base_url}
                self.environ |= {f"MNEMOLOG_{name}": address for name, address in servers.items()}
                for command in (("migrate",), ("topics", "--create")):
                    code, said = await mnemolog(self.environ, *command)
                    assert code == 0, said
                await self.start_workers()
                yield
            finally:
                await self._stop()

    async def start_workers(self) -> None:
        await asyncio.gather(*(worker.start() for worker in self.workers))

    async def _stop(self) -> None:
        self._keep_logs()
        for worker in self.workers:
            if worker.is_running:
                worker.send(signal.SIGCONT)
                await worker.kill()
        await self.kafka.stop()
        await self.postgres.stop()

    def _keep_logs(self) -> None:
        """Where a folder is named, the logs of the workers outlive the run."""
        if folder := os.environ.get("MNEMOLOG_CHAOS_LOGS"):
            for worker in self.workers:
                (Path(folder) / f"{worker.name}.log").write_text(worker.log)


def worker_environ() -> dict[str, str]:
    """Small windows, so that they are full at most rebalances, and sessions that end soon."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MNEMOLOG_")}
    settings = {
        "TOPIC_PREFIX": PREFIX,
        "PARTITIONS": PARTITIONS,
        "SESSION_TIMEOUT": SESSION_SECONDS,
        "MAX_PENDING": 12,
        "MAX_IN_FLIGHT": 4,
        "DRAIN_GRACE": 10,
        "CHAIN": os.environ.get("MNEMOLOG_CHAOS_CHAIN", "all") == "all",
        "METRICS_PORT": 0,
        "POSTGRES_POOL_SIZE": 8,
        "LOG_LEVEL": "warning",
        "PROVIDER": "openai",
        "LLM_TIMEOUT": MODEL_TIMEOUT_SECONDS,
        "EMBEDDING_TIMEOUT": MODEL_TIMEOUT_SECONDS,
    }
    threads = {"OMP_NUM_THREADS": "1"}
    return inherited | threads | {f"MNEMOLOG_{name}": str(value) for name, value in settings.items()}
