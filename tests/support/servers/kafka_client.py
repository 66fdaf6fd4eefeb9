"""What tests do with a real Kafka: publish, read a topic, look at the offsets that a group has committed."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition  # type: ignore[import-untyped] # ships no types
from aiokafka.admin import AIOKafkaAdminClient  # type: ignore[import-untyped] # as above
from aiokafka.errors import GroupCoordinatorNotAvailableError  # type: ignore[import-untyped] # as above

from mnemolog.streams.kafka.app import MAX_REQUEST_BYTES
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.topics import Headers
from mnemolog.streams.settings import StreamsSettings
from tests.support.polling import eventually

T = TypeVar("T")
PARTITIONS: Final = 4


def quick_settings(bootstrap: str, prefix: str) -> StreamsSettings:
    """Of a stage that notices soon that another one has come or gone."""
    return StreamsSettings(kafka=bootstrap, topic_prefix=prefix, session_timeout=2.0, drain_grace=10.0)


async def wait_until(condition: Callable[[], Awaitable[T]]) -> T:
    """Poll an async condition until its value is true; a minute is for a machine that is busy."""
    poll: Callable[[], T | Awaitable[T]] = condition
    return await eventually(poll, timeout=60)


@asynccontextmanager
async def producer(bootstrap: str) -> AsyncIterator[Any]:
    client = AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True, max_request_size=MAX_REQUEST_BYTES)
    await client.start()
    try:
        yield client
    finally:
        await client.stop()


async def publish(
    bootstrap: str, topic: str, records: Sequence[tuple[bytes | None, bytes]], headers: Headers = ()
) -> list[str]:
    """Publish and wait until all are acknowledged; the position of each, `topic/partition/offset`."""
    async with producer(bootstrap) as client:
        sent = [await client.send(topic, key=key, value=value, headers=list(headers)) for key, value in records]
        return [f"{one.topic}/{one.partition}/{one.offset}" for one in await asyncio.gather(*sent)]


async def read_all(bootstrap: str, topic: str) -> list[KafkaRecord]:
    """Everything that is in a topic now, each partition in order."""
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap)
    await consumer.start()
    try:
        partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        consumer.assign(partitions)
        await consumer.seek_to_beginning(*partitions)
        ends = await consumer.end_offsets(partitions)
        records: list[KafkaRecord] = []
        while any([await consumer.position(tp) < end for tp, end in ends.items()]):
            for batch in (await consumer.getmany(timeout_ms=500)).values():
                records.extend(_record(message) for message in batch)
        return records
    finally:
        await consumer.stop()


async def committed_offset(bootstrap: str, group: str, topic: str) -> int:
    """The sum of a group's committed offsets over a topic's partitions."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        try:
            offsets = await admin.list_consumer_group_offsets(group)
        except GroupCoordinatorNotAvailableError:
            return 0  # the first group ever: Kafka still makes its topic of offsets
        return sum(max(entry.offset, 0) for tp, entry in offsets.items() if tp.topic == topic)
    finally:
        await admin.close()


def _record(message: Any) -> KafkaRecord:
    return KafkaRecord(
        topic=message.topic,
        partition=message.partition,
        offset=message.offset,
        key=message.key,
        value=message.value,
        headers=tuple(message.headers),
        timestamp=message.timestamp / 1000,
    )
