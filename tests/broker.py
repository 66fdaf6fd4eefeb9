"""A broker in memory, as honest as the tests that use it need: the contract suite holds it to a real one."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from zlib import crc32

from aiokafka.errors import MessageSizeTooLargeError  # type: ignore[import-untyped]  # ships no types

from mnemolog.streams.records import Record
from mnemolog.streams.send import Sent


@dataclass
class MemoryBroker:
    """Topics appear with their first record; equal keys share a partition. Larger values are refused."""

    partitions: int = 4
    largest: int = 1_000_000
    topics: dict[str, list[list[Record]]] = field(default_factory=dict)

    async def enqueue(
        self, topic: str, *, key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes]]
    ) -> Awaitable[Sent]:
        """As `AIOKafkaProducer.send`: the result's result is the broker's answer."""
        if len(value or b"") > self.largest:
            raise MessageSizeTooLargeError(f"{len(value or b'')} bytes")
        lanes = self.topics.setdefault(topic, [[] for _ in range(self.partitions)])
        partition = crc32(key or b"") % self.partitions
        offset = len(lanes[partition])
        lanes[partition].append(
            Record(
                topic=topic,
                partition=partition,
                offset=offset,
                key=key,
                value=value,
                headers=tuple(headers),
                timestamp=1.7e9,
            )
        )

        async def answer() -> Sent:
            return Sent(topic=topic, partition=partition, offset=offset)

        return answer()

    def records(self, topic: str) -> list[Record]:
        """Everything in a topic, each partition in order."""
        return [record for lane in self.topics.get(topic, []) for record in lane]
