"""The log read from a real Kafka."""

import socket

import pytest
from aiokafka import TopicPartition  # type: ignore[import-untyped] # aiokafka ships no types
from aiokafka.admin import RecordsToDelete  # type: ignore[import-untyped] # as above

from mnemolog.projections.errors import LogGapError, LogUnreadableError
from mnemolog.streams.kafka import connected_admin
from mnemolog.streams.kafka.admin import ensure_topics
from mnemolog.streams.kafka.readers import KafkaLogReader
from mnemolog.streams.kafka_address import KafkaAddress
from tests.support.servers.kafka_client import PARTITIONS, producer

pytestmark = pytest.mark.kafka
RECORDS = 700


async def fill(bootstrap: str, prefix: str) -> None:
    """Records 0..699 in partition 2, the last without a value."""
    await ensure_topics(KafkaAddress(bootstrap), partitions=PARTITIONS, prefix=prefix)
    async with producer(bootstrap) as client:
        for number in range(RECORDS):
            value = b"%d" % number if number < RECORDS - 1 else None
            await client.send(f"{prefix}memory_events", key=b"k", value=value, partition=2)
        await client.flush()


async def read(log: KafkaLogReader, start: int, stop: int) -> list[tuple[int, bytes]]:
    return [(record.offset, record.value) async for record in log.read(2, start, stop)]


async def test_reads_each_partition_between_two_offsets(bootstrap: str, topic_suffix: str) -> None:
    """A gap, and an end that never comes, are errors."""
    await fill(bootstrap, topic_suffix)
    log = KafkaLogReader(KafkaAddress(bootstrap), prefix=topic_suffix, timeout=1.5)
    try:
        assert await log.partitions() == list(range(PARTITIONS))
        assert [await log.end_offset(partition) for partition in range(3)] == [0, 0, RECORDS]
        whole = await read(log, 0, RECORDS)
        assert whole[:-1] == [(number, b"%d" % number) for number in range(RECORDS - 1)]
        assert whole[-1] == (RECORDS - 1, b"")
        assert await read(log, 10, 13) == whole[10:13]
        assert await read(log, 5, 5) == []
        with pytest.raises(LogUnreadableError, match="no record of partition 2 came"):
            await read(log, 690, RECORDS + 1)
        async with connected_admin(KafkaAddress(bootstrap)) as admin:
            place = TopicPartition(f"{topic_suffix}memory_events", 2)
            await admin.delete_records({place: RecordsToDelete(before_offset=20)})
        with pytest.raises(LogGapError, match="continues at offset 20, the tables expect 7"):
            await read(log, 7, RECORDS)
    finally:
        await log.close()


async def test_a_missing_topic_is_named(bootstrap: str, topic_suffix: str) -> None:
    log = KafkaLogReader(KafkaAddress(bootstrap), prefix=topic_suffix)
    try:
        with pytest.raises(LogUnreadableError, match=f"{topic_suffix}memory_events does not exist"):
            await log.partitions()
    finally:
        await log.close()


async def test_a_kafka_that_is_away_is_named_after_the_patience() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        with pytest.raises(LogUnreadableError, match=f"127.0.0.1:{port} cannot be read within 1 s"):
            await KafkaLogReader(KafkaAddress(f"127.0.0.1:{port}"), timeout=1).end_offset(0)
