"""Read records of a partition again, beside the consumer group."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition  # type: ignore[import-untyped] # aiokafka ships no types
from aiokafka.errors import KafkaError  # type: ignore[import-untyped] # as above

from mnemolog.common.logs import get_logger
from mnemolog.common.retry import growing_delay, retry_while
from mnemolog.streams.errors import LogTruncated
from mnemolog.streams.kafka import finish
from mnemolog.streams.kafka.record import KafkaRecord, Partition

POLL_MILLISECONDS: Final = 1000
CHUNK_RECORDS: Final = 100
FETCH_BYTES: Final = 262_144

log = get_logger(__name__)


class KafkaRereader:
    """Reads records by partition and offset. Connects when it is first asked; waits while Kafka is unavailable."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._delay = growing_delay(0.2, 5.0)
        self._consumers: dict[Partition, Any] = {}
        self._locks: dict[Partition, asyncio.Lock] = {}

    async def reread(self, partition: Partition, start: int, stop: int) -> tuple[Sequence[KafkaRecord], int]:
        """Some records of `partition` from `start` on and before `stop`, and the offset to go on at.

        Records that retention has deleted are left out. Raises `LogTruncated` where the log now ends before `stop`.
        """

        def on_retry(failures: int, error: BaseException) -> None:
            log.warning("reread_retried", topic=partition[0], failures=failures, error=repr(error))

        async with self._locks.setdefault(partition, asyncio.Lock()):
            return await retry_while(
                lambda error: isinstance(error, KafkaError),
                lambda: self._read(partition, start, stop),
                delay=self._delay,
                on_retry=on_retry,
            )

    async def close(self) -> None:
        """Disconnect; a later call connects again."""
        consumers, self._consumers = list(self._consumers.values()), {}
        for consumer in consumers:
            await finish(consumer.stop())

    async def _read(self, partition: Partition, start: int, stop: int) -> tuple[Sequence[KafkaRecord], int]:
        place = TopicPartition(*partition)
        consumer = await self._connected_consumer(partition, place)
        if await consumer.position(place) != start:
            consumer.seek(place, start)
        while True:
            found = await consumer.getmany(place, timeout_ms=POLL_MILLISECONDS, max_records=CHUNK_RECORDS)
            records = [to_kafka_record(message) for message in found.get(place, ()) if message.offset < stop]
            next_offset = await consumer.position(place)
            if records or next_offset >= stop:
                return records, min(next_offset, stop)
            end = (await consumer.end_offsets([place]))[place]
            if end < stop:
                raise LogTruncated(*partition, expected=stop, end=end)

    async def _connected_consumer(self, partition: Partition, place: Any) -> Any:
        if partition not in self._consumers:
            consumer = AIOKafkaConsumer(
                bootstrap_servers=self._bootstrap, auto_offset_reset="earliest", max_partition_fetch_bytes=FETCH_BYTES
            )
            try:
                await consumer.start()
            except BaseException:
                await finish(consumer.stop())
                raise
            consumer.assign([place])
            consumer.seek(place, 0)
            self._consumers[partition] = consumer
        return self._consumers[partition]


def to_kafka_record(message: Any) -> KafkaRecord:
    """The record of aiokafka's own consumer."""
    return KafkaRecord(
        topic=message.topic,
        partition=message.partition,
        offset=message.offset,
        key=message.key,
        value=message.value,
        headers=tuple((name, content or b"") for name, content in message.headers or ()),
        timestamp=message.timestamp / 1000,
    )
