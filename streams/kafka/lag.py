"""How many records wait for each stage, for how long, and how many workers run it."""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from aiokafka import TopicPartition  # type: ignore[import-untyped] # aiokafka ships no types

from mnemolog.streams.kafka import connected_admin, connected_consumer
from mnemolog.streams.kafka.admin import partition_counts
from mnemolog.streams.kafka.readers import committed_offsets
from mnemolog.streams.kafka.topics import CHAIN_PROTOCOL, CHAINED_BEHIND, TOPICS, group_id, topic_name
from mnemolog.streams.kafka_address import KafkaAddress


@dataclass(frozen=True, slots=True, kw_only=True)
class StageLag:
    """One stage: how many workers run it, and how many records of its topic wait for it.

    A stage that workers chain behind `extract` has their number, and no records in its topic.
    """

    stage: str
    workers: int
    lag: int


async def stage_lags(address: KafkaAddress, *, prefix: str = "") -> list[StageLag]:
    """The lag of every stage in the order of a turn's way. Raises aiokafka's errors where no broker answers."""
    found = []
    async with connected_consumer(address) as consumer, connected_admin(address) as admin:
        chained = await chaining_workers(admin, prefix)
        for stage, unread in (await unread_offsets(admin, consumer, prefix)).items():
            members = await group_members(admin, group_id(stage, prefix))
            workers = members + (chained if stage in CHAINED_BEHIND else 0)
            found.append(StageLag(stage=stage, workers=workers, lag=sum(end - start for start, end in unread.values())))
    return found


async def unread_offsets(
    admin: Any, consumer: Any, prefix: str
) -> Mapping[str, Mapping[TopicPartition, tuple[int, int]]]:
    """By stage and partition of its topic, the offset of the oldest record that waits for it and the end of the log.

    Both are the same where none waits. What retention has deleted waits for nobody.
    """
    counts = await partition_counts(admin)
    places = {
        stage: [TopicPartition(name, partition) for partition in range(counts.get(name, 0))]
        for topic in TOPICS
        for stage in topic.consumers
        for name in [topic_name(topic, prefix)]
    }
    every = sorted({place for of_stage in places.values() for place in of_stage})
    starts, ends = await consumer.beginning_offsets(every), await consumer.end_offsets(every)
    found = {}
    for stage, of_stage in places.items():
        committed = await committed_offsets(admin, group_id(stage, prefix), of_stage)
        found[stage] = {
            place: (min(max(offset, starts[place]), ends[place]), ends[place]) for place, offset in committed.items()
        }
    return found


async def chaining_workers(admin: Any, prefix: str = "") -> int:
    """How many workers chain their stages; 0 while their group rebalances, as it does not tell its protocol then."""
    answers = await admin.describe_consumer_groups([group_id("extract", prefix)])
    return sum(len(found[5]) for answer in answers for found in answer.groups if found[4] == CHAIN_PROTOCOL)


async def group_members(admin: Any, group: str) -> int:
    """How many workers take part in a consumer group, or did until a moment ago."""
    answers = await admin.describe_consumer_groups([group])
    return sum(len(found[5]) for answer in answers for found in answer.groups)


FETCH_BYTES: Final = 64 * 1024  # of a partition; a larger first record comes whole
TIMEOUT_SECONDS: Final = 20.0


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

    def __init__(self, address: KafkaAddress, *, prefix: str = "") -> None:
        self._address = address
        self._prefix = prefix
        self._times: dict[tuple[str, TopicPartition], tuple[int, datetime]] = {}
        self._connections = AsyncExitStack()
        self._clients: tuple[Any, Any] | None = None
        self.fetched = 0  # records, so far

    async def read(self) -> list[PartitionBacklog]:
        """The backlog of every stage and partition.

        Raises aiokafka's errors while Kafka is unavailable, and `TimeoutError` where it does not answer in time.
        """
        found = []
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                if self._clients is None:  # they are kept: connecting takes most of the time of a reading
                    connect = self._connections.enter_async_context
                    admin = await connect(connected_admin(self._address))
                    options = {"max_partition_fetch_bytes": FETCH_BYTES, "auto_offset_reset": "earliest"}
                    self._clients = admin, await connect(connected_consumer(self._address, **options))
                admin, consumer = self._clients
                for stage, unread in (await unread_offsets(admin, consumer, self._prefix)).items():
                    waiting = {place: start for place, (start, end) in unread.items() if start < end}
                    await self._look_up(consumer, stage, waiting)
                    for place, (start, end) in unread.items():
                        oldest_at = self._times[stage, place][1] if place in waiting else None
                        found.append(
                            PartitionBacklog(
                                stage=stage, partition=place.partition, records=end - start, oldest_at=oldest_at
                            )
                        )
        except BaseException:
            await self.close()
            raise
        return found

    async def close(self) -> None:
        """Disconnect; a later call connects again."""
        self._clients = None
        await self._connections.aclose()

    async def _look_up(self, consumer: Any, stage: str, waiting: Mapping[TopicPartition, int]) -> None:
        """Learn the times of the oldest waiting records, as far as the stage has committed since."""
        wanted = {place: at for place, at in waiting.items() if self._times.get((stage, place), (-1,))[0] != at}
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
