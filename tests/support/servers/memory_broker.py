"""A broker in memory; the contract suite compares it with a real one."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from zlib import crc32

from aiokafka.errors import MessageSizeTooLargeError  # type: ignore[import-untyped]  # ships no types

from mnemolog.streams.kafka.record import KafkaRecord, RecordMetadata


@dataclass(frozen=True, kw_only=True)
class SentRecord:
    """Where a record was put."""

    topic: str
    partition: int
    offset: int


@dataclass
class MemoryBroker:
    """Topics appear with their first record; equal keys share a partition. Larger values are refused."""

    partitions: int = 4
    max_value_bytes: int = 1_000_000
    topics: dict[str, list[list[KafkaRecord]]] = field(default_factory=dict)

    async def enqueue(
        self, topic: str, *, key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes]]
    ) -> Awaitable[RecordMetadata]:
        """As `AIOKafkaProducer.send`: the result's result is the broker's answer."""
        if len(value or b"") > self.max_value_bytes:
            raise MessageSizeTooLargeError(f"{len(value or b'')} bytes")
        lanes = self.topics.setdefault(topic, [[] for _ in range(self.partitions)])
        partition = crc32(key or b"") % self.partitions
        offset = len(lanes[partition])
        lanes[partition].append(
            KafkaRecord(
                topic=topic,
                partition=partition,
                offset=offset,
                key=key,
                value=value,
                headers=tuple(headers),
                timestamp=1.7e9,
            )
        )

        async def answer() -> RecordMetadata:
            return SentRecord(topic=topic, partition=partition, offset=offset)

        return answer()

    def records(self, topic: str) -> list[KafkaRecord]:
        """Everything in a topic, each partition in order."""
        return [record for lane in self.topics.get(topic, []) for record in lane]
