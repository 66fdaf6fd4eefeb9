"""How many records wait for each stage, for how long, and how many workers run it."""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from aiokafka import TopicPartition  # type: ignore[import-untyped] # aiokafka ships no types

from mnemolog.streams.kafka import connected_admin, connected_consumer
from mnemolog.streams.kafka.admin import describe_topics, partition_counts
from mnemolog.streams.kafka.readers import committed_offsets
from mnemolog.streams.kafka.topics import CHAIN_PROTOCOL, CHAINED_BEHIND, TOPICS, group_id, topic_name


@dataclass(frozen=True, slots=True, kw_only=True)
class StageLag:
    """One stage: how many workers run it, and how many records of its topic wait for it.

    A stage that workers chain behind `extract` has their number, and no records in its topic.
    """

    stage: str
    workers: int
    lag: int


async def stage_lags(bootstrap: str, *, prefix: str = "") -> list[StageLag]:
    """The lag of every stage in the order of a turn's way. Raises aiokafka's errors where no broker answers."""
    topics = await describe_topics(bootstrap, prefix=prefix)
    found = []
    async with connected_admin(bootstrap) as admin:
        chained = await chaining_workers(admin, prefix)
        for state in topics:
            for stage in state.topic.consumers:
                group = group_id(stage, prefix)
                workers = await group_members(admin, group) + (chained if stage in CHAINED_BEHIND else 0)
                places = [TopicPartition(state.name, number) for number in state.end_offsets]
                done = await committed_offsets(admin, group, places)
                lag = sum(  # records that retention has deleted wait for nobody
                    max(0, state.end_offsets[place.partition] - max(offset, state.start_offsets[place.partition]))
                    for place, offset in done.items()
                )
                found.append(StageLag(stage=stage, workers=workers, lag=lag))
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
                await self._connections.enter_async_context(
                    connected_consumer(
                        self._bootstrap, max_partition_fetch_bytes=FETCH_BYTES, auto_offset_reset="earliest"
                    )
                ),
            )
        return self._clients

    async def _read(self, admin: Any, consumer: Any) -> list[PartitionBacklog]:
        counts = await partition_counts(admin)
        places = {
            stage: [TopicPartition(name, partition) for partition in range(counts.get(name, 0))]
            for topic in TOPICS
            for stage in topic.consumers
            for name in [topic_name(topic, self._prefix)]
        }
        every = sorted({place for of_stage in places.values() for place in of_stage})
        starts, ends = await consumer.beginning_offsets(every), await consumer.end_offsets(every)
        found = []
        for stage, of_stage in places.items():
            committed = await committed_offsets(admin, group_id(stage, self._prefix), of_stage)
            # What retention has deleted waits for nobody.
            unread = {place: max(offset, starts[place]) for place, offset in committed.items()}
            await self._look_up(consumer, stage, {place: at for place, at in unread.items() if at < ends[place]})
            for place, offset in unread.items():
                records = max(0, ends[place] - offset)
                _, oldest_at = self._times.get((stage, place), (0, None)) if records else (0, None)
                found.append(
                    PartitionBacklog(stage=stage, partition=place.partition, records=records, oldest_at=oldest_at)
                )
        return found

    async def _look_up(self, consumer: Any, stage: str, unread: Mapping[TopicPartition, int]) -> None:
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
