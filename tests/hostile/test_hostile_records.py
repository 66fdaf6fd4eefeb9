"""Thousands of hostile records: each ends, or is refused with a reason, and nobody else's data changes.

`make hostile` sends 10 000 (N=...) with a seed of its own (MNEMOLOG_HOSTILE_SEED repeats one), and says how many were
handled in a second beside healthy turns in the same run.
"""

import asyncio
import os
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped] # ships no types
from aiokafka.errors import MessageSizeTooLargeError, RecordTooLargeError  # type: ignore[import-untyped] # ships no types

from mnemolog.schemas.turn import Turn
from tests.hostile.records import HostileRecord, HostileRecords
from tests.support.harnesses.command_line import CommandLine, server_settings
from tests.support.harnesses.worker_harness import query_rows, user_turn

COUNT = int(os.environ.get("MNEMOLOG_HOSTILE_RECORDS", "300"))
SEED = int(os.environ.get("MNEMOLOG_HOSTILE_SEED", str(random.SystemRandom().randrange(10**6))))
PARTITIONS = 2
BYSTANDERS = [f"bystander{number}" for number in range(20)]
STATEMENTS = ("I live in Berlin.", "I moved from Berlin to Munich.", "I am allergic to nuts.", "My dog is called Rex.")
QUIET_SECONDS = 300
OWNED = {
    "facts": "fact_id",
    "former_states": None,
    "commits": "log_offset",
    "memory_events": "event_id",
    "profiles": None,
    "pending_confirmations": "fact_id",
}


def say(text: str) -> None:
    print(f"hostile: {text}", flush=True)  # noqa: T201 -- what makes a failure repeatable, and the rates


@asynccontextmanager
async def worker(shell: CommandLine) -> AsyncIterator[None]:
    with shell.start("worker") as running:
        await asyncio.to_thread(running.ready_message)
        yield
        assert await asyncio.to_thread(running.terminate) == 0


def healthy_turns(prefix: str, users: Sequence[str]) -> list[Turn]:
    return [
        user_turn(f"{prefix}-{user}-{number}", text, user=user)
        for number, text in enumerate(STATEMENTS)
        for user in users
    ]


async def ended(database: str, positions: set[tuple[int, int]], seconds: float = QUIET_SECONDS) -> list[dict[str, Any]]:
    """The commits once each of these positions of the topic of turns has one."""
    deadline = time.monotonic() + seconds
    while True:
        rows = await query_rows(
            database, "SELECT origin_partition, origin_offset, outcome, reason, detail FROM commits"
        )
        missing = positions - {(row["origin_partition"], row["origin_offset"]) for row in rows}
        if not missing:
            return rows
        assert time.monotonic() < deadline, f"{len(missing)} records have no end: {sorted(missing)[:20]}"
        await asyncio.sleep(0.2)


async def publish(kafka: str, topic: str, records: Sequence[HostileRecord]) -> dict[tuple[int, int], HostileRecord]:
    """The position of each; those that the client or the broker refuses are left out."""
    found: dict[tuple[int, int], HostileRecord] = {}
    # Not idempotent: after a refusal such a producer sends nothing more.
    client = AIOKafkaProducer(bootstrap_servers=kafka, max_request_size=4 * 1024 * 1024, linger_ms=5)
    await client.start()
    try:

        async def send(record: HostileRecord) -> None:
            try:
                sent = await client.send_and_wait(
                    topic, record.value, record.key, record.partition, headers=list(record.headers)
                )
                found[sent.partition, sent.offset] = record
            except (MessageSizeTooLargeError, RecordTooLargeError):
                assert record.kind == "large"

        for start in range(0, len(records), 200):
            await asyncio.gather(*map(send, records[start : start + 200]))
    finally:
        await client.stop()
    return found


async def digest_of_bystanders(database: str) -> dict[str, str]:
    """A sum over every row of theirs, by table."""
    sums = {}
    for table in OWNED:
        (row,) = await query_rows(
            database,
            f"SELECT md5(coalesce(string_agg(t::text, '|' ORDER BY t::text), '')) AS sum FROM {table} AS t "  # noqa: S608 -- our own names
            + (
                "WHERE user_id = ANY(%s)"
                if table != "former_states"
                else "WHERE fact_id IN (SELECT fact_id FROM facts WHERE user_id = ANY(%s))"
            ),
            BYSTANDERS,
        )
        sums[table] = row["sum"]
    return sums


@pytest.mark.kafka
@pytest.mark.postgres
@pytest.mark.timeout(3600)
async def test_every_hostile_record_ends_and_nobody_else_is_touched(
    bootstrap: str, database: str, tmp_path: Path
) -> None:
    say(f"{COUNT} records, seed {SEED}")
    shell = CommandLine(folder=tmp_path, settings=server_settings(bootstrap, database) | {"LOG_LEVEL": "warning"})
    topic = f"{shell.settings['TOPIC_PREFIX']}conversation_turns"
    async with worker(shell):
        calm = [HostileRecord("healthy", turn.scope.key, turn.to_bytes()) for turn in healthy_turns("t", BYSTANDERS)]
        await ended(database, set(await publish(bootstrap, topic, calm)))
        before = await digest_of_bystanders(database)
        others = [f"user{number}" for number in range(max(1, COUNT // 40))]
        raw = [turn.model_copy(update={"infer": False}) for turn in healthy_turns("h", others)]
        healthy = await rate(
            bootstrap, database, topic, [HostileRecord("healthy", turn.scope.key, turn.to_bytes()) for turn in raw]
        )
        facts = await query_rows(
            database, "SELECT fact_id::text, source_id FROM facts WHERE user_id = ANY(%s)", BYSTANDERS
        )
        drawn = HostileRecords(
            SEED, PARTITIONS, BYSTANDERS, [row["fact_id"] for row in facts], [row["source_id"] for row in facts]
        )
        hostile = await rate(bootstrap, database, topic, list(drawn.draw(COUNT)))
        say(f"healthy raw turns {healthy:.0f}/s, hostile records {hostile:.0f}/s, ratio {hostile / healthy:.2f}")
        assert await digest_of_bystanders(database) == before
        audit = await asyncio.to_thread(shell.run, "audit", "--json")
        assert audit.code == 0, audit


async def rate(bootstrap: str, database: str, topic: str, records: Sequence[HostileRecord]) -> float:
    """Ends in a second; each end that is not a success has a reason."""
    began = time.monotonic()
    published = await publish(bootstrap, topic, records)
    wanted = {position for position, record in published.items() if not record.may_repeat}
    rows = await ended(database, wanted)
    seconds = time.monotonic() - began
    of_these = [row for row in rows if (row["origin_partition"], row["origin_offset"]) in published]
    assert all(row["reason"] for row in of_these if row["outcome"] in ("failed", "rejected"))
    say(str(Counter(f"{row['outcome']}: {row['reason'] or 'well'}" for row in of_these).most_common()))
    return len(records) / seconds


def test_every_kind_of_record_is_drawn() -> None:
    drawn = HostileRecords(1, PARTITIONS, BYSTANDERS, ["f"], ["s"])
    assert len({record.kind for record in drawn.draw(600)}) >= 20
