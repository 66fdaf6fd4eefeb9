"""Processes are killed again and again while turns come in; then log and tables are checked.

Each stage has a process of its own, or two have all stages and chain them.

`make chaos` runs more rounds (MNEMOLOG_CHAOS_ROUNDS) with a seed of its own (MNEMOLOG_CHAOS_SEED repeats one).
"""

import asyncio
import json
import os
import random
import signal
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mnemolog.schemas.commit import Commit
from mnemolog.schemas.provenance import Stage
from mnemolog.schemas.turn import Turn
from mnemolog.streams.kafka.admin import ensure_topics
from mnemolog.streams.kafka.topics import MEMORY_EVENTS, topic_name
from mnemolog.streams.runtime.worker import ALL_STAGES
from mnemolog.streams.settings import StreamsSettings
from tests.support.harnesses.worker_harness import (
    publish_records,
    query_rows,
    user_turn,
    wait_for_outcomes,
    worker_settings,
)
from tests.support.paths import ROOT
from tests.support.polling import until_grown
from tests.support.servers.kafka_client import read_all, wait_until
from tests.support.servers.openai_server import OpenAiServer

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.chaos, pytest.mark.timeout(3600)]

ROUNDS = int(os.environ.get("MNEMOLOG_CHAOS_ROUNDS", "3"))
SEED = int(os.environ.get("MNEMOLOG_CHAOS_SEED", str(random.SystemRandom().randrange(10**6))))
USERS = 30
TURNS_EACH = max(10, 3 * ROUNDS)
LATENCY_SECONDS = 0.2
LONGEST_LIFE_SECONDS = 1.0


def statement_of(user: int, number: int) -> str:
    """Every third turn repeats the one before it, which only a resolver that reads its own writes notices."""
    return f"User {user} tells thing {number - 1 if number % 3 == 2 else number}."


def all_turns() -> list[Turn]:
    return [
        user_turn(f"u{user}-{number}", statement_of(user, number), user=f"user{user}")
        for number in range(TURNS_EACH)
        for user in range(USERS)
    ]


LAYOUTS: dict[str, dict[str, Sequence[Stage]]] = {
    "alone": {stage: (stage,) for stage in ALL_STAGES},
    "chained": {"one": ALL_STAGES, "other": ALL_STAGES},
}
"""By the name of each process, its stages."""


class WorkerProcesses:
    """Processes of a layout, of which a killed one is started again at once."""

    def __init__(self, settings: StreamsSettings, logs: Path, layout: Mapping[str, Sequence[Stage]]) -> None:
        self._logs = logs
        self._layout = layout
        named = settings.model_dump(exclude_none=True, exclude_defaults=True)
        self._environ = os.environ | {f"MNEMOLOG_{name.upper()}": str(value) for name, value in named.items()}
        self._running: dict[str, asyncio.subprocess.Process] = {}

    async def start(self, name: str) -> None:
        with (self._logs / f"{name}.log").open("ab") as output:
            self._running[name] = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "mnemolog",
                "worker",
                *self._layout[name],
                cwd=ROOT,
                env=self._environ,
                stdout=output,
                stderr=output,
            )

    async def kill(self, name: str) -> None:
        process = self._running[name]
        assert process.returncode is None, self.log(name)
        process.send_signal(signal.SIGKILL)
        await process.wait()
        await self.start(name)

    async def stop(self) -> dict[str, int]:
        """Ask all to stop; their exit codes."""
        for process in self._running.values():
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
        return {name: await process.wait() for name, process in self._running.items()}

    def log(self, name: str) -> str:
        return (self._logs / f"{name}.log").read_text()[-3000:]


@asynccontextmanager
async def workers(
    settings: StreamsSettings, logs: Path, layout: Mapping[str, Sequence[Stage]]
) -> AsyncIterator[WorkerProcesses]:
    processes = WorkerProcesses(settings, logs, layout)
    try:
        for name in layout:
            await processes.start(name)
        yield processes
    finally:
        codes = await processes.stop()
    assert set(codes.values()) == {0}, codes


async def mnemolog(settings: StreamsSettings, *arguments: str) -> tuple[int, str]:
    """The command line as a user would call it; exit code and output."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "mnemolog",
        *arguments,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=os.environ
        | {
            "MNEMOLOG_KAFKA": settings.kafka or "",
            "MNEMOLOG_POSTGRES": settings.postgres or "",
            "MNEMOLOG_TOPIC_PREFIX": settings.topic_prefix,
        },
    )
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode()


def chunks(turns: Sequence[Turn], count: int) -> list[Sequence[Turn]]:
    size = -(-len(turns) // count)
    return [turns[start : start + size] for start in range(0, len(turns), size)]


@pytest.mark.parametrize("layout", LAYOUTS)
async def test_killing_every_process_again_and_again_loses_and_doubles_nothing(
    bootstrap: str, database: str, topic_suffix: str, tmp_path: Path, layout: str
) -> None:
    chance, names = random.Random(SEED), list(LAYOUTS[layout])
    print(f"\nchaos: {layout}, {ROUNDS} rounds, seed {SEED}")  # noqa: T201 -- what makes a failure repeatable
    with OpenAiServer(latency=LATENCY_SECONDS) as server:
        settings = worker_settings(
            bootstrap,
            database,
            f"{topic_suffix}-",
            provider="openai",
            base_url=server.base_url,
            session_timeout=2.0,  # quick to notice a kill
            heartbeat_interval=0.3,
            max_pending=64,
            conflict_threshold=0.97,  # the server's vectors mean nothing: only equal words are near
        )
        await ensure_topics(bootstrap, partitions=settings.partitions, prefix=settings.topic_prefix)
        turns = all_turns()
        async with workers(settings, tmp_path, LAYOUTS[layout]) as processes:
            victims = [name for _ in range(ROUNDS) for name in chance.sample(names, len(names))]
            for number, portion in enumerate(chunks(turns, len(victims))):
                await publish_records(settings, *portion)
                await asyncio.sleep(chance.uniform(0, LONGEST_LIFE_SECONDS))
                await processes.kill(victims[number])
                print(f"chaos: {number + 1}/{len(victims)} killed {victims[number]}", flush=True)  # noqa: T201 -- progress
            await until_grown(lambda: count_ends(database), len(turns))
            outcomes = await wait_for_outcomes(database, len(turns))
        assert outcomes == {turn.turn_id: "facts" for turn in turns}
    await assert_log_in_order(settings, turns)
    await assert_facts(database)
    for command in (["audit"], ["rebuild", "--verify-only"], ["rebuild", "--from", "table", "--verify-only"]):
        code, output = await mnemolog(settings, *command, "--json")
        assert code == 0, output
        assert json.loads(output)


async def test_a_killed_chain_repeats_no_paid_call(
    bootstrap: str, database: str, topic_suffix: str, tmp_path: Path
) -> None:
    """The second turn waits in the last stage for the first one's projection, which nobody makes before the kill."""
    with OpenAiServer() as server:
        settings = worker_settings(
            bootstrap,
            database,
            f"{topic_suffix}-",
            provider="openai",
            base_url=server.base_url,
            session_timeout=2.0,
            heartbeat_interval=0.3,
            conflict_threshold=0.97,
        )
        await ensure_topics(bootstrap, partitions=settings.partitions, prefix=settings.topic_prefix)
        turns = [user_turn(f"t{number}", statement_of(0, number)) for number in range(2)]

        async def both_are_paid() -> bool:
            stored = await query_rows(database, "SELECT stage FROM mnemolog_journal.model_replies WHERE model <> ''")
            return sorted(row["stage"] for row in stored) == ["embed", "embed", "extract", "extract"]

        async with workers(settings, tmp_path, {"chain": ALL_STAGES[:-1]}) as processes:
            await publish_records(settings, *turns)
            await wait_until(both_are_paid)
            paid = dict(server.requests)
            await processes.kill("chain")
            async with workers(settings, tmp_path, {"project": ALL_STAGES[-1:]}):
                outcomes = await wait_for_outcomes(database, len(turns), seconds=60)
        assert outcomes == {turn.turn_id: "facts" for turn in turns}
        assert dict(server.requests) == paid
    await assert_log_in_order(settings, turns)


async def count_ends(database: str) -> int:
    (row,) = await query_rows(database, "SELECT count(*) AS ends FROM commits")
    return int(row["ends"])


async def assert_log_in_order(settings: StreamsSettings, turns: Sequence[Turn]) -> None:
    """Per owner the first commits have the order of publication, and each belongs to a published turn."""
    assert settings.kafka is not None
    log = await read_all(settings.kafka, topic_name(MEMORY_EVENTS, settings.topic_prefix))
    committed: dict[str, dict[str, None]] = defaultdict(dict)
    for record in log:
        commit = Commit.from_bytes(record.value)
        committed[commit.owner].setdefault(commit.source_id)
    published: dict[str, dict[str, None]] = defaultdict(dict)
    for turn in turns:
        published[turn.scope.owner][turn.turn_id] = None
    assert {owner: list(ids) for owner, ids in committed.items()} == {
        owner: list(ids) for owner, ids in published.items()
    }


async def assert_facts(database: str) -> None:
    """Each statement is one active fact, mentioned as often as it was published, and no decision met a stale fact."""
    found = await query_rows(database, "SELECT user_id, text, mention_count, status, stale FROM facts")
    mentions: dict[tuple[str, str], int] = defaultdict(int)
    for user in range(USERS):
        for number in range(TURNS_EACH):
            mentions[f"user{user}", statement_of(user, number)] += 1
    assert {(row["user_id"], row["text"]): row["mention_count"] for row in found} == mentions
    assert len(found) == len(mentions)
    assert {(row["status"], row["stale"]) for row in found} == {("active", False)}
