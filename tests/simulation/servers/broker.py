"""A simulated broker: topics, consumer groups, and a producer's sends that may fail before or after the append."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextvars import Context
from dataclasses import dataclass
from typing import Final

from aiokafka.errors import (  # type: ignore[import-untyped] # aiokafka ships no types
    KafkaTimeoutError,
    OutOfOrderSequenceNumber,
)
from aiokafka.partitioner import murmur2  # type: ignore[import-untyped] # as above

from mnemolog.projections.write.projector import LogRecord
from mnemolog.streams.kafka.record import KafkaRecord, Partition, RecordMetadata
from tests.simulation.loop import SimulatedLoop
from tests.simulation.servers.consumer_group import NETWORK_SECONDS, Group, travel
from tests.support.servers.memory_broker import SentRecord

START_TIME: Final = 1.7e9
REREAD_RECORDS: Final = 5
DEAD_PRODUCERS: Final = 0.2  # of failing sends, how many end the producer


@dataclass(frozen=True, kw_only=True)
class Appended:
    """A record that the broker has appended: when, by which process."""

    at: float
    member: str
    record: KafkaRecord


class Broker:
    """Topics of equal numbers of partitions, and a consumer group for each stage."""

    def __init__(self, loop: SimulatedLoop, *, partitions: int, session: float, rebalance: float) -> None:
        self.loop = loop
        self.partitions = partitions
        self.topics: dict[str, list[list[KafkaRecord]]] = {}
        self.appends: list[Appended] = []
        self.groups: dict[str, Group] = {}
        self.send_failures = 0.0
        self._session = session
        self._rebalance = rebalance
        self.commit_failures = 0.0
        self._context = Context()
        self._watched: dict[str, asyncio.Future[None]] = {}

    def set_failures(self, *, commits: float, sends: float) -> None:
        """The share of commits and sends that fail from now on."""
        self.commit_failures, self.send_failures = commits, sends
        for group in self.groups.values():
            group.commit_failures = commits

    def group(self, name: str, topic: str) -> Group:
        """The group of this name, which reads `topic`."""
        if name not in self.groups:
            self.groups[name] = Group(
                self.loop, topic=topic, partitions=self.partitions, session=self._session, rebalance=self._rebalance
            )
            self.groups[name].commit_failures = self.commit_failures
        return self.groups[name]

    def append(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes]], by: str
    ) -> RecordMetadata:
        partition = (murmur2(key or b"") & 0x7FFFFFFF) % self.partitions
        lane = self.lane(topic, partition)
        record = KafkaRecord(
            topic=topic,
            partition=partition,
            offset=len(lane),
            key=key,
            value=value,
            headers=tuple(headers),
            timestamp=START_TIME + self.loop.time(),
        )
        lane.append(record)
        self.wake_fetches(topic)
        self.appends.append(Appended(at=self.loop.time(), member=by, record=record))
        return SentRecord(topic=topic, partition=partition, offset=record.offset)

    def send(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes]], by: str
    ) -> "asyncio.Future[RecordMetadata]":
        """The broker's answer; what is on its way arrives although its sender is killed meanwhile."""
        answer: asyncio.Future[RecordMetadata] = self.loop.create_future()
        fate = self.loop.random.random() / self.send_failures if self.send_failures else 1.0

        def arrive() -> None:
            if fate < DEAD_PRODUCERS:
                reply(OutOfOrderSequenceNumber("the producer has to be started again"))
            elif fate < (1 + DEAD_PRODUCERS) / 2:
                reply(KafkaTimeoutError("not appended"))
            else:
                sent = self.append(topic, key, value, headers, by)
                reply(KafkaTimeoutError("appended, but the answer is lost") if fate < 1 else sent)

        def reply(told: RecordMetadata | Exception) -> None:
            self._later(lambda: _settle(answer, told))

        self._later(arrive)
        return answer

    def wake_fetches(self, topic: str) -> None:
        """Something may be to be fetched from `topic`: who waits for that looks again."""
        if (watched := self._watched.pop(topic, None)) is not None:
            watched.set_result(None)

    async def wait_for_records(self, topic: str, seconds: float) -> None:
        """Return when something of `topic` could be here, or after so many seconds."""
        if topic not in self._watched:
            self._watched[topic] = self.loop.create_future()
        done, _ = await asyncio.wait({self._watched[topic]}, timeout=seconds)
        if done:
            await travel(self.loop)

    def _later(self, what: Callable[[], None]) -> None:
        self.loop.call_later(self.loop.random.random() * NETWORK_SECONDS, what, context=self._context)

    def lane(self, topic: str, partition: int) -> list[KafkaRecord]:
        return self.topics.setdefault(topic, [[] for _ in range(self.partitions)])[partition]

    async def reread(self, partition: Partition, start: int, stop: int) -> tuple[Sequence[KafkaRecord], int]:
        """As `KafkaRereader.reread`."""
        await travel(self.loop)
        records = self.lane(*partition)[start : min(stop, start + REREAD_RECORDS)]
        return records, start + len(records)


def _settle(answer: "asyncio.Future[RecordMetadata]", told: RecordMetadata | Exception) -> None:
    if answer.done():
        return  # nobody waits any more
    if isinstance(told, Exception):
        answer.set_exception(told)
    else:
        answer.set_result(told)


class SimulatedLog:
    """A topic as a `LogSource`."""

    def __init__(self, broker: Broker, topic: str) -> None:
        self._broker = broker
        self._topic = topic

    async def partitions(self) -> list[int]:
        return list(range(self._broker.partitions))

    async def end_offset(self, partition: int) -> int:
        await travel(self._broker.loop)
        end = len(self._broker.lane(self._topic, partition))
        await travel(self._broker.loop)
        return end

    async def read(self, partition: int, start: int, stop: int) -> AsyncIterator[LogRecord]:
        await travel(self._broker.loop)
        for record in self._broker.lane(self._topic, partition)[start:stop]:
            yield LogRecord(offset=record.offset, value=record.value or b"")
