"""A log that is shorter than the tables gets back what it has lost, over a real Kafka and a real Postgres."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from mnemolog.admin import rebuild
from mnemolog.projections.database import open_pool
from mnemolog.projections.rebuild.replay import TableLogSource
from mnemolog.projections.write.projector import LogRecord, Projector
from mnemolog.restore import restore_log
from mnemolog.schemas.commit import Commit
from mnemolog.settings import Settings
from mnemolog.streams.errors import LogMismatch, LogNotRestored, WorkersRunning
from mnemolog.streams.kafka.admin import ensure_topics
from mnemolog.streams.kafka.readers import KafkaLogReader
from mnemolog.streams.kafka_address import KafkaAddress
from mnemolog.streams.llm.minilm_embedder import MODEL_NAME
from mnemolog.streams.runtime.lost_commits import append_lost_commits, find_losses
from mnemolog.streams.stages.project import checked_end
from tests.support.builders.commits import added, commit, pseudo_random_vector
from tests.support.harnesses.command_line import CommandLine
from tests.support.harnesses.worker_harness import (
    publish_records,
    query_rows,
    running_worker,
    user_turn,
    wait_for_outcomes,
    worker_settings,
)
from tests.support.servers.kafka_client import PARTITIONS, producer, read_all

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]
PARTITION = 2
NOT_A_COMMIT = b"\xff no commit"


@pytest_asyncio.fixture
async def settings(bootstrap: str, database: str, topic_suffix: str) -> Settings:
    prefix = f"{topic_suffix}-"
    await ensure_topics(KafkaAddress(bootstrap), partitions=PARTITIONS, prefix=prefix)
    return Settings(kafka=bootstrap, postgres=database, topic_prefix=prefix, partitions=PARTITIONS)


@pytest_asyncio.fixture
async def projector(database: str) -> AsyncIterator[Projector]:
    async with open_pool(database, min_size=1, max_size=1, application_name="test") as pool:
        yield Projector(pool)


def commits(*numbers: int) -> list[Commit]:
    """Facts with vectors of the model that the workers have."""
    texts = {number: f"thing {number}" for number in numbers}
    vectors = {number: pseudo_random_vector(text, model=MODEL_NAME) for number, text in texts.items()}
    return [commit(f"t{number}", added(text, vector=vectors[number])) for number, text in texts.items()]


async def project(projector: Projector, values: Sequence[bytes]) -> None:
    await projector.apply({PARTITION: [LogRecord(offset=at, value=value) for at, value in enumerate(values)]})


async def write(settings: Settings, records: Sequence[Commit | bytes]) -> None:
    async with producer(settings.kafka or "") as client:
        for record in records:
            key, value = (None, record) if isinstance(record, bytes) else (record.key, record.to_bytes())
            await client.send_and_wait(log_name(settings), key=key, value=value, partition=PARTITION)


def log_name(settings: Settings) -> str:
    return f"{settings.topic_prefix}memory_events"


async def log_of(settings: Settings) -> list[tuple[int, bytes | None, bytes]]:
    records = await read_all(settings.kafka or "", log_name(settings))
    return [(one.offset, one.key, one.value or b"") for one in records if one.partition == PARTITION]


async def restore(settings: Settings, *, verify_only: bool = False) -> list[tuple[int, bool]]:
    """What was missing per partition, and whether it got its old offsets."""
    report = await restore_log(settings, verify_only=verify_only, on_progress=lambda *_: None)
    assert bool(report.rebuilt) == (report.appended and not all(loss.same_offsets for loss in report.losses))
    return [(loss.missing, loss.same_offsets) for loss in report.losses]


async def assert_equal_after_a_rebuild(settings: Settings) -> None:
    report = await rebuild(settings, "kafka", verify_only=True, on_progress=lambda *_: None)
    assert report.equal, report


@pytest.mark.parametrize("kept", [0, 6])
async def test_the_end_of_the_log_comes_back_byte_for_byte(settings: Settings, projector: Projector, kept: int) -> None:
    known: list[Commit | bytes] = [*commits(0, 1, 2, 3), NOT_A_COMMIT, *commits(4, 5)]
    values = [one if isinstance(one, bytes) else one.to_bytes() for one in known]
    await project(projector, values)
    await write(settings, known[:kept])
    assert await restore(settings, verify_only=True) == [(7 - kept, True)]
    assert len(await log_of(settings)) == kept
    assert await restore(settings) == [(7 - kept, True)]
    assert await log_of(settings) == [
        (at, None if isinstance(one, bytes) else one.key, value)
        for at, (one, value) in enumerate(zip(known, values, strict=True))
    ]
    assert await restore(settings) == []
    await assert_equal_after_a_rebuild(settings)


async def test_what_was_written_after_the_loss_stays_and_the_tables_are_rebuilt(
    settings: Settings, projector: Projector
) -> None:
    """The same where an earlier call has appended a part of what was lost."""
    known, later = commits(0, 1, 2, 3, 4), commits(7, 8)
    await project(projector, [one.to_bytes() for one in known])
    whole = [*known[:2], *later, *known[2:]]
    await write(settings, whole[:5])
    assert await restore(settings) == [(2, False)]
    assert await log_of(settings) == [(at, one.key, one.to_bytes()) for at, one in enumerate(whole)]
    found = await query_rows(settings.postgres or "", "SELECT source_id, log_offset FROM commits ORDER BY log_offset")
    assert [(row["source_id"], row["log_offset"]) for row in found] == [
        (one.source_id, at) for at, one in enumerate(whole)
    ]
    assert await projector.next_offsets() == {PARTITION: 7}
    assert await restore(settings) == []
    await assert_equal_after_a_rebuild(settings)


async def test_somebody_who_writes_meanwhile_is_noticed(settings: Settings, projector: Projector) -> None:
    known = commits(0, 1, 2)
    await project(projector, [one.to_bytes() for one in known])
    log = KafkaLogReader(settings.kafka_address, prefix=settings.topic_prefix)
    async with open_pool(settings.postgres or "", min_size=1, max_size=1, application_name="test") as pool:
        tables = TableLogSource(pool)
        losses = await find_losses(log, tables)
        await write(settings, commits(9))
        with pytest.raises(LogNotRestored, match="something else writes to it"):
            await append_lost_commits(settings, losses, log, tables)
        await log.close()


async def test_nothing_is_decided_over_a_log_that_is_shorter_than_the_tables(
    settings: Settings, projector: Projector, bootstrap: str, database: str, tmp_path: Path
) -> None:
    """Before, `resolve` wrote new commits to the offsets of lost ones."""
    await project(projector, [one.to_bytes() for one in commits(0, 1)])
    log = KafkaLogReader(KafkaAddress(bootstrap), prefix=settings.topic_prefix)
    with pytest.raises(LogMismatch, match="restore-log"):
        await checked_end(projector, log)(PARTITION)
    await log.close()
    running = worker_settings(bootstrap, database, settings.topic_prefix)
    users = [f"user{number}" for number in range(12)]
    await publish_records(running, *(user_turn(f"n-{user}", "I live in Bern.", user=user) for user in users))
    named = running.model_dump(exclude_none=True, exclude_defaults=True)
    shell = CommandLine(folder=tmp_path, settings={name.upper(): str(value) for name, value in named.items()})
    ended = await asyncio.to_thread(shell.run, "worker", "extract", "embed", "match", "resolve")
    assert ended.code == 2
    assert "mnemolog restore-log" in " ".join(ended.stderr.split())
    assert await log_of(settings) == []
    shown = await asyncio.to_thread(restored_by_command, shell)
    assert (shown["losses"][0]["missing"], shown["appended"]) == (2, True)
    async with running_worker(running):
        assert len(await wait_for_outcomes(database, 14)) == 14
        with pytest.raises(WorkersRunning, match="extract"):
            await restore(settings)
    await assert_equal_after_a_rebuild(settings)


def restored_by_command(shell: CommandLine) -> Any:
    """What `restore-log` says, once Kafka has forgotten the worker that has just ended."""
    deadline = time.monotonic() + 60
    while (ended := shell.run("restore-log", "--json")).code == 2 and time.monotonic() < deadline:
        assert "workers still run" in " ".join(ended.stderr.split())
    assert ended.code == 0, ended
    return ended.json
