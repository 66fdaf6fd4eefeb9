"""A record of a Kafka topic with its position, its bytes not decoded.

And the origins that a stage has processed, by which repeats are dropped.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

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

    @classmethod
    def of_message(cls, message: Any, *, timestamp: float) -> "KafkaRecord":
        """The record of a message of Faust or aiokafka, whose units of time differ."""
        headers = message.headers or ()
        pairs = headers.items() if isinstance(headers, Mapping) else headers
        return cls(
            topic=message.topic,
            partition=message.partition,
            offset=message.offset,
            key=message.key,
            value=message.value,
            headers=tuple((name, content or b"") for name, content in pairs),
            timestamp=timestamp,
        )

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


class SeenOrigins:
    """The newest `size` origins, each `topic/partition/offset` of the record that a record came from.

    Add an origin when its output is durable, never before. What is no longer remembered, or was processed by another
    process, is processed again; deterministic ids make that harmless.
    """

    # A set, not the highest offset: the origins of one user can come in any order.

    def __init__(self, size: int = 65_536) -> None:
        self._size = size
        self._origins: OrderedDict[str, None] = OrderedDict()

    def __contains__(self, origin: str) -> bool:
        if origin not in self._origins:
            return False
        self._origins.move_to_end(origin)
        return True

    def add(self, origin: str) -> None:
        self._origins[origin] = None
        self._origins.move_to_end(origin)
        if len(self._origins) > self._size:
            self._origins.popitem(last=False)
