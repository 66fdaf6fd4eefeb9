"""A record of a Kafka topic with its position; its bytes are not decoded."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

Partition = tuple[str, int]
StartOffsetLookup = Callable[[frozenset[Partition]], Awaitable[Mapping[Partition, int]]]
"""Gives the offset to start at for each assigned partition of a topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaRecord:
    """One record; `timestamp` is the broker's or producer's, in seconds since 1970.

    `content` is what an earlier stage of the same process has made of the record, None while it is as it was read.
    """

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()
    timestamp: float
    content: object | None = field(default=None, repr=False)

    @property
    def position(self) -> str:
        """`topic/partition/offset`: names the record."""
        return f"{self.topic}/{self.partition}/{self.offset}"

    @property
    def topic_partition(self) -> Partition:
        return (self.topic, self.partition)


class RecordMetadata(Protocol):
    """Where the broker put a record (`aiokafka.structs.RecordMetadata` has these fields, and more)."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...


Reread = Callable[[Partition, int, int], Awaitable[tuple[Sequence[KafkaRecord], int]]]
"""Reads records of a partition again, from an offset on and before another: some of them, at least one if there are any
left, and the offset to go on at."""
