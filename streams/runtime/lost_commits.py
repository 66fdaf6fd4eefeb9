"""Appends to `memory_events` the commits that it has lost and that the tables still hold, byte for byte.

A power cut can take the newest records of a single broker, of which the tables already knew. Their positions are part
of the tables. So the lost records get their old offsets again where nothing was written since; otherwise they come
after what was written, and the tables have to be rebuilt from the log.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Any, Final

from mnemolog.projections.rebuild.replay import LogSource
from mnemolog.projections.write.projector import LogRecord, parse_commit
from mnemolog.schemas.commit import Commit
from mnemolog.streams.errors import LogNotRestored, WorkersRunning
from mnemolog.streams.kafka import connected_admin, new_producer
from mnemolog.streams.kafka.lag import group_members
from mnemolog.streams.kafka.topics import MEMORY_EVENTS, TOPICS, group_id, topic_name
from mnemolog.streams.kafka_address import KafkaAddress
from mnemolog.streams.settings import StreamsSettings

BATCH: Final = 200
MAX_REQUEST_BYTES: Final = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLoss:
    """A partition of the log and of the tables: the next offset of each, and how many records the log lacks.

    `differs_at` is the first offset where both have a record and not the same: something was written after the loss.
    """

    partition: int
    log_end: int
    table_end: int
    differs_at: int | None
    missing: int

    @property
    def same_offsets(self) -> bool:
        """Whether the missing records get the offsets back that they had."""
        return self.differs_at is None

    @property
    def first_missing(self) -> int:
        return self.log_end if self.differs_at is None else self.differs_at


async def refuse_running_workers(address: KafkaAddress, *, prefix: str = "") -> None:
    """Raise `WorkersRunning` where a stage has members: what they write meanwhile would take the lost offsets."""
    stages = sorted({stage for topic in TOPICS for stage in topic.consumers})
    async with connected_admin(address) as admin:
        running = [stage for stage in stages if await group_members(admin, group_id(stage, prefix))]
    if running:
        raise WorkersRunning(
            f"workers still run {', '.join(running)}: stop them all, then start this command again. Kafka lists one "
            "that was killed until its session ends (MNEMOLOG_SESSION_TIMEOUT)"
        )


async def find_losses(log: LogSource, tables: LogSource) -> list[PartitionLoss]:
    """Compare every record of the log with the one in the tables; one entry for each partition that lacks some.

    Reads both whole. Raises `LogUnreadableError`, and `LogGapError` where the log has lost its beginning.
    """
    found = []
    for partition in await tables.partitions():
        log_end, table_end = await log.end_offset(partition), await tables.end_offset(partition)
        differs_at = await _first_difference(log, tables, partition, min(log_end, table_end))
        loss = PartitionLoss(
            partition=partition, log_end=log_end, table_end=table_end, differs_at=differs_at, missing=0
        )
        missing = [1 async for _ in _missing_records(loss, log, tables)]
        if missing:
            found.append(replace(loss, missing=len(missing)))
    return found


async def append_lost_commits(
    settings: StreamsSettings,
    losses: list[PartitionLoss],
    log: LogSource,
    tables: LogSource,
    *,
    on_appended: Callable[[int], None] = lambda _: None,
) -> None:
    """Append what `find_losses` found, in the order of the log, and compare again.

    `on_appended` gets the number of records that are appended so far. Interrupted, it can be called again with new
    losses. Raises `LogNotRestored` where something else was written meanwhile, or the log is still not what the tables
    hold.
    """
    producer = new_producer(
        settings.kafka_address,
        enable_idempotence=True,  # keeps the order of what it sends
        compression_type=None if settings.compression == "none" else settings.compression,
        max_request_size=MAX_REQUEST_BYTES,
    )
    topic, appended = topic_name(MEMORY_EVENTS, settings.topic_prefix), 0
    try:
        await producer.start()
        for loss in losses:
            next_offset, records = loss.log_end, _missing_records(loss, log, tables)
            while True:
                sent: list[Any] = []
                while len(sent) < BATCH and (record := await anext(records, None)) is not None:
                    commit = parse_commit(record.value)  # what is no commit was written by others, without a trace
                    key = commit.key if isinstance(commit, Commit) else None
                    sent.append(await producer.send(topic, key=key, value=record.value, partition=loss.partition))
                if not sent:
                    break
                for place in await asyncio.gather(*sent):
                    if place.offset != next_offset:
                        raise LogNotRestored(
                            f"partition {loss.partition} of {topic} gave offset {place.offset} where {next_offset} was "
                            "next: something else writes to it. Stop all workers, then start this command again"
                        )
                    next_offset += 1
                appended += len(sent)
                on_appended(appended)
            await _verify(loss, log, tables)
    finally:
        await producer.stop()


async def _first_difference(log: LogSource, tables: LogSource, partition: int, stop: int) -> int | None:
    known = tables.read(partition, 0, stop)
    async for record in log.read(partition, 0, stop):
        if record != await anext(known, None):
            return record.offset
    return None


async def _missing_records(loss: PartitionLoss, log: LogSource, tables: LogSource) -> AsyncIterator[LogRecord]:
    """What the tables have from the first difference on, without what stands in the log all the same."""
    start = loss.first_missing
    present = await _digests(log, loss.partition, start, loss.log_end)
    async for record in tables.read(loss.partition, start, loss.table_end):
        if hashlib.sha256(record.value).digest() not in present:
            yield record


async def _digests(log: LogSource, partition: int, start: int, stop: int) -> frozenset[bytes]:
    return frozenset([hashlib.sha256(record.value).digest() async for record in log.read(partition, start, stop)])


async def _verify(loss: PartitionLoss, log: LogSource, tables: LogSource) -> None:
    end = await log.end_offset(loss.partition)
    if loss.same_offsets:
        whole = end == loss.table_end and await _first_difference(log, tables, loss.partition, end) is None
    else:
        start, present = loss.first_missing, await _digests(log, loss.partition, loss.first_missing, end)
        whole = await _digests(tables, loss.partition, start, loss.table_end) <= present
    if not whole:
        raise LogNotRestored(
            f"partition {loss.partition} of memory_events still differs from the tables: start this command again"
        )
