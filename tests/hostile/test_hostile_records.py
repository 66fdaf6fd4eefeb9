"""Thousands of hostile records: each ends, or is refused with a reason, and nobody else's data changes.

`make hostile` sends 10 000 (N=...) with a seed of its own (MNEMOLOG_HOSTILE_SEED repeats one), and prints how many
end in a second, how many healthy raw turns do so alone in the same run and beside them, how long the slowest take, and
the worker's CPU time for one.
"""

import asyncio
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest
from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped] # ships no types
from aiokafka.errors import MessageSizeTooLargeError, RecordTooLargeError  # type: ignore[import-untyped] # ships no types

from mnemolog.schemas.turn import Turn
from tests.hostile.records import HostileRecord, HostileRecords
from tests.support.harnesses.command_line import CommandLine, server_settings
from tests.support.harnesses.worker_harness import query_rows, user_turn
from tests.support.polling import until_grown

COUNT = int(os.environ.get("MNEMOLOG_HOSTILE_RECORDS", "300"))
SEED = int(os.environ.get("MNEMOLOG_HOSTILE_SEED", str(random.SystemRandom().randrange(10**6))))
PARTITIONS = 2
BYSTANDERS = [f"bystander{number}" for number in range(20)]
STATEMENTS = ("I live in Berlin.", "I moved from Berlin to Munich.", "I am allergic to nuts.", "My dog is called Rex.")
ENDS = "SELECT origin_partition, origin_offset, source_id, outcome, reason, published_at, decided_at FROM commits"
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
async def worker(shell: CommandLine) -> AsyncIterator[psutil.Process]:
    with shell.start("worker") as running:
        await asyncio.to_thread(running.ready_message)
        yield psutil.Process(running.process.pid)
        assert await asyncio.to_thread(running.terminate) == 0


def healthy_turns(prefix: str, users: Sequence[str]) -> list[Turn]:
    return [
        user_turn(f"{prefix}-{user}-{number}", text, user=user)
        for number, text in enumerate(STATEMENTS)
        for user in users
    ]


Published = Mapping["Place", HostileRecord]
Place = tuple[int, int] | str
"""The position of a record in the topic of turns; of one that is published again the id of its turn."""


def places_of(row: Mapping[str, Any]) -> set[Place]:
    return {(row["origin_partition"], row["origin_offset"]), row["source_id"]}


async def ended(database: str, places: set[Place]) -> list[dict[str, Any]]:
    """The commits once each of these records has one."""

    async def count() -> int:
        rows = await query_rows(database, "SELECT origin_partition, origin_offset, source_id FROM commits")
        return len(places & {place for row in rows for place in places_of(row)})

    await until_grown(count, len(places))
    return await query_rows(database, ENDS)


async def publish(kafka: str, topic: str, records: Sequence[HostileRecord]) -> Published:
    """The place of each; those that the client or the broker refuses are left out."""
    found: dict[Place, HostileRecord] = {}
    # Not idempotent: after a refusal such a producer sends nothing more.
    client = AIOKafkaProducer(bootstrap_servers=kafka, max_request_size=4 * 1024 * 1024, linger_ms=5)
    await client.start()
    try:

        async def send(record: HostileRecord) -> None:
            try:
                sent = await client.send_and_wait(
                    topic, record.value, record.key, record.partition, headers=list(record.headers)
                )
                found[record.copied_id or (sent.partition, sent.offset)] = record
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
    async with worker(shell) as process:
        calm = [HostileRecord("healthy", turn.scope.key, turn.to_bytes()) for turn in healthy_turns("t", BYSTANDERS)]
        await ended(database, set(await publish(bootstrap, topic, calm)))
        before = await digest_of_bystanders(database)
        used = [cpu_seconds(process)]
        alone = await ends_of(bootstrap, database, topic, {"healthy": raw_turns("alone", COUNT // 10)})
        used.append(cpu_seconds(process))
        facts = await query_rows(
            database, "SELECT fact_id::text, source_id FROM facts WHERE user_id = ANY(%s)", BYSTANDERS
        )
        drawn = HostileRecords(
            SEED, PARTITIONS, BYSTANDERS, [row["fact_id"] for row in facts], [row["source_id"] for row in facts]
        )
        hostile = list(drawn.draw(COUNT))
        only = await ends_of(bootstrap, database, topic, {"hostile": hostile[: COUNT // 2]})
        used.append(cpu_seconds(process))
        mixed = {"hostile": hostile[COUNT // 2 :], "healthy": raw_turns("beside", COUNT // 10)}
        beside = await ends_of(bootstrap, database, topic, mixed)
        say(f"healthy raw turns alone: {alone['healthy']}")
        say(f"hostile records alone: {only['hostile']}, ratio {only['hostile'].rate / alone['healthy'].rate:.2f}")
        cpu = [1000 * (used[1] - used[0]) / (COUNT // 10), 1000 * (used[2] - used[1]) / (COUNT // 2)]
        say(f"CPU of the worker: {cpu[0]:.1f} ms for a healthy raw turn, {cpu[1]:.1f} ms for a hostile record")
        say(f"hostile records and healthy raw turns at once: {beside['hostile']}; {beside['healthy']}")
        assert await digest_of_bystanders(database) == before
        audit = await asyncio.to_thread(shell.run, "audit", "--json")
        assert audit.code == 0, audit


@dataclass(frozen=True, slots=True)
class Ends:
    """Ends in a second, from the first publication to the last end, and the longest time of one record in seconds."""

    rate: float
    slowest: float

    def __str__(self) -> str:
        return f"{self.rate:.0f}/s, the slowest after {self.slowest:.1f} s"


async def ends_of(
    bootstrap: str, database: str, topic: str, records: Mapping[str, Sequence[HostileRecord]]
) -> dict[str, Ends]:
    """Publish all at once, evenly mixed, and wait for their ends; each that is not a success has a reason."""
    told = [(place / len(of_kind), kind, one) for kind, of_kind in records.items() for place, one in enumerate(of_kind)]
    began = datetime.now(UTC)
    published = await publish(bootstrap, topic, [one for *_, one in sorted(told, key=lambda one: one[0])])
    wanted = {place for place, record in published.items() if not record.may_repeat}
    records_of = [
        (row, published[place]) for row in await ended(database, wanted) for place in places_of(row) & published.keys()
    ]
    rows = [row for row, _ in records_of]
    assert all(row["reason"] for row in rows if row["outcome"] in ("failed", "rejected"))
    say(str(Counter(f"{row['outcome']}: {row['reason'] or 'well'}" for row in rows).most_common()))
    kinds = {id(record): kind for kind, of_kind in records.items() for record in of_kind}
    found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in records}
    for row, record in records_of:
        found[kinds[id(record)]].append(row)
    return {
        kind: Ends(
            rate=len(records[kind]) / (max(row["decided_at"] for row in of_kind) - began).total_seconds(),
            slowest=max((row["decided_at"] - row["published_at"]).total_seconds() for row in of_kind),
        )
        for kind, of_kind in found.items()
    }


def cpu_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def raw_turns(prefix: str, count: int) -> list[HostileRecord]:
    """Turns that need no model, four of a user."""
    users = [f"{prefix}{number}" for number in range(max(1, count // len(STATEMENTS)))]
    turns = (turn.model_copy(update={"infer": False}) for turn in healthy_turns(prefix, users))
    return [HostileRecord("healthy", turn.scope.key, turn.to_bytes()) for turn in turns]
