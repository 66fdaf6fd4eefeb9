"""How many records wait for each stage, and for how long the oldest of them has waited, by partition."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition  # type: ignore[import-untyped] # aiokafka ships no types

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
        self.fetched = 0
        """How many records have been fetched so far."""

    async def read(self) -> list[PartitionBacklog]:
        """The backlog of every stage and partition.

        Raises aiokafka's errors while Kafka is unavailable, and `TimeoutError` where it does not answer in time.
        """
        async with asyncio.timeout(TIMEOUT_SECONDS):
            async with connected_admin(self._bootstrap) as admin, _connected_consumer(self._bootstrap) as consumer:
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
        await consumer.stop()


def _places(counts: Mapping[str, int], prefix: str) -> dict[str, list[TopicPartition]]:
    """The partitions of each stage, in the order of a turn's way."""
    return {
        stage: [TopicPartition(name, partition) for partition in range(counts.get(name, 0))]
        for topic in TOPICS
        for stage in topic.consumers
        for name in [topic_name(topic, prefix)]
    }
