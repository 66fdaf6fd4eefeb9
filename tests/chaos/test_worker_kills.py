"""Processes of single stages, and a chain of them, are killed while turns come in; then log and tables are checked.

`make chaos` runs more rounds (MNEMOLOG_CHAOS_ROUNDS) with a seed of its own (MNEMOLOG_CHAOS_SEED repeats one).
"""

import asyncio
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mnemolog.schemas.provenance import Stage
from mnemolog.schemas.turn import Turn
from mnemolog.streams.kafka.admin import ensure_topics
from mnemolog.streams.kafka.topics import MEMORY_EVENTS, topic_name
from mnemolog.streams.kafka_address import KafkaAddress
from mnemolog.streams.runtime.worker import ALL_STAGES
from mnemolog.streams.settings import StreamsSettings
from tests.chaos.checker import check, read_log
from tests.chaos.machines import Worker, mnemolog
from tests.support.harnesses.worker_harness import publish_records, query_rows, user_turn, worker_settings
from tests.support.polling import until_grown
from tests.support.servers.kafka_client import wait_until
from tests.support.servers.openai_server import OpenAiServer

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.chaos, pytest.mark.timeout(3600)]

ROUNDS = int(os.environ.get("MNEMOLOG_CHAOS_ROUNDS", "3"))
SEED = int(os.environ.get("MNEMOLOG_CHAOS_SEED", str(random.SystemRandom().randrange(10**6))))
USERS = 30
TURNS_EACH = max(10, 3 * ROUNDS)
LATENCY_SECONDS = 0.2
LONGEST_LIFE_SECONDS = 1.0


def statement(user: int, number: int) -> Turn:
    """Every third turn repeats the one before it, which only a resolver that reads its own writes notices."""
    text = f"User {user} tells thing {number - 1 if number % 3 == 2 else number}."
    return user_turn(f"u{user}-{number}", text, user=f"user{user}")


@asynccontextmanager
async def model_server(
    bootstrap: str, database: str, suffix: str
) -> AsyncIterator[tuple[OpenAiServer, StreamsSettings]]:
    """A server, and settings of workers that ask it and soon notice a kill."""
    with OpenAiServer(latency=LATENCY_SECONDS) as server:
        settings = worker_settings(
            bootstrap,
            database,
            f"{suffix}-",
            provider="openai",
            base_url=server.base_url,
            session_timeout=2.0,
            max_pending=64,
            conflict_threshold=0.97,  # the server's vectors mean nothing: only equal words are near
        )
        await ensure_topics(KafkaAddress(bootstrap), partitions=settings.partitions, prefix=settings.topic_prefix)
        yield server, settings


def environ_of(settings: StreamsSettings) -> dict[str, str]:
    named = settings.model_dump(exclude_none=True, exclude_defaults=True)
    return os.environ | {f"MNEMOLOG_{name.upper()}": str(value) for name, value in named.items()}


@asynccontextmanager
async def workers(settings: StreamsSettings, logs: Path, *stages: Sequence[Stage]) -> AsyncIterator[list[Worker]]:
    """A process for each of these; it has to stop as it is asked."""
    environ = environ_of(settings)
    started = [Worker("-".join(one), environ, logs, stages=one) for one in stages]
    try:
        for worker in started:
            await worker.start()
        yield started
    finally:
        codes = await asyncio.gather(*(worker.terminate() for worker in started))
    assert set(codes) == {0}, codes


async def test_killing_every_process_again_and_again_loses_and_doubles_nothing(
    bootstrap: str, database: str, topic_suffix: str, tmp_path: Path
) -> None:
    chance = random.Random(SEED)
    print(f"\nchaos: {ROUNDS} rounds, seed {SEED}")  # noqa: T201 -- what makes a failure repeatable
    turns = [statement(user, number) for number in range(TURNS_EACH) for user in range(USERS)]

    async def count_ends() -> int:
        (row,) = await query_rows(database, "SELECT count(*) AS ends FROM commits")
        return int(row["ends"])

    async with (
        model_server(bootstrap, database, topic_suffix) as (_, settings),
        workers(settings, tmp_path, *((stage,) for stage in ALL_STAGES)) as processes,
    ):
        victims = [one for _ in range(ROUNDS) for one in chance.sample(processes, len(processes))]
        size = -(-len(turns) // len(victims))
        for number, victim in enumerate(victims):
            await publish_records(settings, *turns[number * size :][:size])
            await asyncio.sleep(chance.uniform(0, LONGEST_LIFE_SECONDS))
            await victim.kill_and_start()
            print(f"chaos: {number + 1}/{len(victims)} killed {victim.name}", flush=True)  # noqa: T201 -- progress
        await until_grown(count_ends, len(turns))
    await assert_all_ended(settings, turns)
    mentions = Counter((turn.scope.user_id, turn.messages[0].content) for turn in turns)
    found = await query_rows(database, "SELECT user_id, text, mention_count FROM facts")
    assert sorted((row["user_id"], row["text"], row["mention_count"]) for row in found) == sorted(
        (user, text, count) for (user, text), count in mentions.items()
    )
    for command in (("audit",), ("rebuild", "--verify-only"), ("rebuild", "--from", "table", "--verify-only")):
        code, said = await mnemolog(environ_of(settings), *command)
        assert code == 0, said


async def test_a_killed_chain_repeats_no_paid_call(
    bootstrap: str, database: str, topic_suffix: str, tmp_path: Path
) -> None:
    """The second turn waits in the last stage for the first one's projection, which nobody makes before the kill."""
    turns = [statement(0, number) for number in range(2)]

    async def both_are_paid() -> bool:
        stored = await query_rows(database, "SELECT stage FROM mnemolog_journal.model_replies WHERE model <> ''")
        return sorted(row["stage"] for row in stored) == ["embed", "embed", "extract", "extract"]

    async def both_have_ended() -> bool:
        return len(await query_rows(database, "SELECT FROM commits")) == len(turns)

    async with model_server(bootstrap, database, topic_suffix) as (server, settings):
        async with workers(settings, tmp_path, ALL_STAGES[:-1]) as (chain,):
            await publish_records(settings, *turns)
            await wait_until(both_are_paid)
            paid = dict(server.requests)
            await chain.kill_and_start()
            async with workers(settings, tmp_path, ALL_STAGES[-1:]):
                await wait_until(both_have_ended)
        assert dict(server.requests) == paid
    await assert_all_ended(settings, turns)


async def assert_all_ended(settings: StreamsSettings, turns: Sequence[Turn]) -> None:
    """Each turn once, with the facts that it states, and those of an owner in the order of publication."""
    assert settings.kafka is not None
    assert settings.postgres is not None
    log = await read_log(settings.kafka, topic_name(MEMORY_EVENTS, settings.topic_prefix), settings.partitions)
    published: dict[str, list[str]] = {}
    active: dict[str, set[str]] = {}
    for turn in turns:
        published.setdefault(turn.scope.owner, []).append(turn.turn_id)
        active.setdefault(turn.scope.user_id or "", set()).add(turn.messages[0].content)
    verdict = check(log, settings.postgres, published, active, {turn.turn_id: "stored" for turn in turns})
    assert not verdict.faults, verdict.faults
