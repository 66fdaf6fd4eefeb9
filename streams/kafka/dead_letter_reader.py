"""Reads the newest records of the topic `dead_letters`, and one by its position."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition  # type: ignore[import-untyped] # aiokafka ships no types

from mnemolog.streams.kafka.admin import connected_admin, partition_counts
from mnemolog.streams.kafka.dead_letters import DeadLetter
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.topics import DEAD_LETTERS, topic_name

TIMEOUT_SECONDS: Final = 30.0
_POLL_MILLISECONDS: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDeadLetter:
    """A dead letter at its position (topic/partition/offset) in `dead_letters`."""

    position: str
    letter: DeadLetter


async def newest_dead_letters(bootstrap: str, *, prefix: str = "", limit: int) -> list[StoredDeadLetter]:
    """The newest `limit` dead letters, the newest first. Raises aiokafka's errors, and `TimeoutError` after 30 s."""
    async with asyncio.timeout(TIMEOUT_SECONDS), _consumer(bootstrap) as consumer:
        places = await _partitions(bootstrap, topic_name(DEAD_LETTERS, prefix))
        first, ends = await consumer.beginning_offsets(places), await consumer.end_offsets(places)
        starts = {place: max(first[place], ends[place] - limit) for place in places}
        found = [_stored(record) async for record in _records(consumer, starts, ends)]
    return sorted(filter(None, found), key=lambda one: one.letter.at, reverse=True)[:limit]


async def read_dead_letter(bootstrap: str, partition: int, offset: int, *, prefix: str = "") -> StoredDeadLetter | None:
    """The dead letter at a position; None where the topic has none there. Raises as `newest_dead_letters` does."""
    async with asyncio.timeout(TIMEOUT_SECONDS), _consumer(bootstrap) as consumer:
        place = TopicPartition(topic_name(DEAD_LETTERS, prefix), partition)
        if place not in await _partitions(bootstrap, place.topic):
            return None
        first, ends = await consumer.beginning_offsets([place]), await consumer.end_offsets([place])
        if not first[place] <= offset < ends[place]:
            return None
        async for record in _records(consumer, {place: offset}, {place: offset + 1}):
            return _stored(record)
    return None


@asynccontextmanager
async def _consumer(bootstrap: str) -> AsyncIterator[Any]:
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="none")
    try:
        await consumer.start()
        yield consumer
    finally:
        await consumer.stop()


async def _partitions(bootstrap: str, topic: str) -> list[TopicPartition]:
    """The partitions of a topic; none where the broker does not have it."""
    async with connected_admin(bootstrap) as admin:
        counts = await partition_counts(admin)
    return [TopicPartition(topic, number) for number in range(counts.get(topic, 0))]


async def _records(
    consumer: Any, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
) -> AsyncIterator[KafkaRecord]:
    """The records of each partition from its start up to its end."""
    waiting = {place for place, start in starts.items() if start < ends[place]}
    consumer.assign(list(waiting))
    for place in waiting:
        consumer.seek(place, starts[place])
    while waiting:
        for place, records in (await consumer.getmany(timeout_ms=_POLL_MILLISECONDS)).items():
            for record in records:
                if record.offset < ends[place]:
                    yield record
        waiting = {place for place in waiting if await consumer.position(place) < ends[place]}


def _stored(record: KafkaRecord) -> StoredDeadLetter | None:
    """None for a record that is no dead letter: others may write to the topic."""
    try:
        letter = DeadLetter.from_record(record)
    except (KeyError, ValueError):
        return None
    return StoredDeadLetter(position=f"{record.topic}/{record.partition}/{record.offset}", letter=letter)
