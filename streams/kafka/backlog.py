"""How many records wait for each stage, and for how long the oldest of them has waited, by partition."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition  # type: ignore[import-untyped] # aiokafka ships no types

from mnemolog.streams.kafka import finish
from mnemolog.streams.kafka.admin import connected_admin, partition_counts
from mnemolog.streams.kafka.committed import committed_offsets
from mnemolog.streams.kafka.topics import TOPICS, group_id, topic_name

FETCH_BYTES: Final = 64 * 1024  # of a partition; a larger first record comes whole
TIMEOUT_SECONDS: Final = 20.0

Offsets = Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionBacklog:
    """The records of one partition that a stage has not acknowledged, and the broker's time of the oldest of them."""

    stage: str
    partition: int
    records: int
    oldest_at: datetime | None


class BacklogReader:
    """Reads the backlog of all stages, also of those that no process runs.

    The oldest unread record of a partition is fetched once, and again only when the stage has committed another offset.
    """

    def __init__(self, bootstrap: str, *, prefix: str = "") -> None:
        self._bootstrap = bootstrap
        self._prefix = prefix
        self._times: dict[tuple[str, TopicPartition], tuple[int, datetime]] = {}
        self._connections = AsyncExitStack()
        self._clients: tuple[Any, Any] | None = None
        self.fetched = 0
        """How many records have been fetched so far."""

    async def read(self) -> list[PartitionBacklog]:
        """The backlog of every stage and partition.

        Raises aiokafka's errors while Kafka is unavailable, and `TimeoutError` where it does not answer in time.
        """
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                return await self._read(*await self._connected())
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Disconnect; a later call connects again."""
        self._clients = None
        await self._connections.aclose()

    async def _connected(self) -> tuple[Any, Any]:
        """The admin client and the consumer, which are kept: connecting takes most of the time of a reading."""
        if self._clients is None:
            self._clients = (
                await self._connections.enter_async_context(connected_admin(self._bootstrap)),
                await self._connections.enter_async_context(_connected_consumer(self._bootstrap)),
            )
        return self._clients

    async def _read(self, admin: Any, consumer: Any) -> list[PartitionBacklog]:
        places = _places(await partition_counts(admin), self._prefix)
        every = sorted({place for of_stage in places.values() for place in of_stage})
        starts, ends = await consumer.beginning_offsets(every), await consumer.end_offsets(every)
        found: list[PartitionBacklog] = []
        for stage, of_stage in places.items():
            committed = await committed_offsets(admin, group_id(stage, self._prefix), of_stage)
            # What retention has deleted waits for nobody.
            unread = {place: max(offset, starts[place]) for place, offset in committed.items()}
            await self._look_up(consumer, stage, {p: at for p, at in unread.items() if at < ends[p]})
            found.extend(self._backlogs(stage, unread, ends))
        return found

    def _backlogs(self, stage: str, unread: Offsets, ends: Offsets) -> Iterator[PartitionBacklog]:
        for place, offset in unread.items():
            records = max(0, ends[place] - offset)
            _, oldest_at = self._times.get((stage, place), (0, None)) if records else (0, None)
            yield PartitionBacklog(stage=stage, partition=place.partition, records=records, oldest_at=oldest_at)

    async def _look_up(self, consumer: Any, stage: str, unread: Offsets) -> None:
        """Learn the times of these records, of which one stands at or after each of the offsets."""
        wanted = {
            place: offset for place, offset in unread.items() if self._times.get((stage, place), (-1,))[0] != offset
        }
        if not wanted:
            return
        consumer.assign(list(wanted))
        for place, offset in wanted.items():
            consumer.seek(place, offset)
        for place, offset in wanted.items():
            record = await consumer.getone(place)
            self.fetched += 1
            self._times[stage, place] = (offset, datetime.fromtimestamp(record.timestamp / 1000, UTC))
        consumer.unsubscribe()  # it would go on fetching


@asynccontextmanager
async def _connected_consumer(bootstrap: str) -> AsyncIterator[Any]:
    """A consumer without a group."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bootstrap, max_partition_fetch_bytes=FETCH_BYTES, auto_offset_reset="earliest"
    )
    try:
        await consumer.start()
        yield consumer
    finally:
        await finish(consumer.stop())


def _places(counts: Mapping[str, int], prefix: str) -> dict[str, list[TopicPartition]]:
    """The partitions of each stage, in the order of a turn's way."""
    return {
        stage: [TopicPartition(name, partition) for partition in range(counts.get(name, 0))]
        for topic in TOPICS
        for stage in topic.consumers
        for name in [topic_name(topic, prefix)]
    }
