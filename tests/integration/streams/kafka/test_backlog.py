"""The backlog of stages, of a real broker: also where nothing is fetched, and the oldest by the broker's time."""

import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition  # type: ignore[import-untyped] # aiokafka ships no types
from aiokafka.admin import RecordsToDelete  # type: ignore[import-untyped] # as above
from aiokafka.conn import AIOKafkaConnection  # type: ignore[import-untyped] # as above
from aiokafka.errors import GroupLoadInProgressError, KafkaError  # type: ignore[import-untyped] # as above
from aiokafka.structs import OffsetAndMetadata  # type: ignore[import-untyped] # as above

from mnemolog.streams.kafka import connected_admin
from mnemolog.streams.kafka.admin import ensure_topics
from mnemolog.streams.kafka.lag import BacklogReader, PartitionBacklog
from mnemolog.streams.kafka.readers import committed_offsets
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS, group_id, topic_name
from mnemolog.streams.kafka_address import KafkaAddress
from tests.support.servers.kafka_client import PARTITIONS, producer, wait_until

pytestmark = pytest.mark.kafka
STAGES = ["journal", "extract", "embed", "match", "resolve", "project"]


@pytest.fixture
def prefix(topic_suffix: str) -> str:
    return f"{topic_suffix}-"


@pytest.fixture
async def reader(bootstrap: str, prefix: str) -> AsyncIterator[BacklogReader]:
    reader = BacklogReader(KafkaAddress(bootstrap), prefix=prefix)
    yield reader
    await reader.close()


@pytest.fixture
async def turns(bootstrap: str, prefix: str) -> str:
    await ensure_topics(KafkaAddress(bootstrap), partitions=PARTITIONS, prefix=prefix)
    return topic_name(CONVERSATION_TURNS, prefix)


async def send(bootstrap: str, topic: str, count: int, *, partition: int = 1) -> list[datetime]:
    """Append records one by one; gives the broker's time of each."""
    async with producer(bootstrap) as client:
        sent = [await client.send_and_wait(topic, value=b"{}", partition=partition) for _ in range(count)]
    return [datetime.fromtimestamp(one.timestamp / 1000, UTC) for one in sent]


async def commit_as(bootstrap: str, group: str, topic: str, offset: int) -> None:
    """Commit an offset as the group of a stage that no process runs."""
    consumer: Any = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=group)
    consumer.assign([TopicPartition(topic, 1)])
    await consumer.start()
    try:
        await consumer.commit({TopicPartition(topic, 1): OffsetAndMetadata(offset, "")})
    finally:
        await consumer.stop()


async def read(reader: BacklogReader) -> dict[tuple[str, int], PartitionBacklog]:
    """The backlog, as soon as the broker knows the groups."""

    async def attempt() -> list[PartitionBacklog] | None:
        try:
            return await reader.read()
        except KafkaError:
            return None

    return {(one.stage, one.partition): one for one in await wait_until(attempt) or ()}


async def test_every_stage_and_partition_has_one_though_none_runs(
    bootstrap: str, prefix: str, turns: str, reader: BacklogReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The oldest record is the first that is not committed, and is fetched again only when the stage has gone on."""
    connected, connect = list[object](), AIOKafkaConnection.connect

    def count(connection: Any) -> Any:
        connected.append(connection)
        return connect(connection)

    times = await send(bootstrap, turns, 3)
    backlog = await read(reader)
    assert set(backlog) == {(stage, partition) for stage in STAGES for partition in range(PARTITIONS)}
    waiting = {place: (one.records, one.oldest_at) for place, one in backlog.items() if one.records}
    assert waiting == {("journal", 1): (3, times[0]), ("extract", 1): (3, times[0])}
    assert all(one.oldest_at is None for place, one in backlog.items() if place not in waiting)
    with monkeypatch.context() as patched:
        patched.setattr(AIOKafkaConnection, "connect", count)
        fetched = reader.fetched
        assert await read(reader) == backlog
        assert (fetched, reader.fetched, connected) == (2, 2, []), "readings share their connections"
        await reader.close()
        assert await read(reader) == backlog
        assert connected
    fetched = reader.fetched
    await commit_as(bootstrap, group_id("extract", prefix), turns, 2)
    await commit_as(bootstrap, group_id("journal", prefix), turns, 3)
    backlog = await read(reader)
    assert reader.fetched == fetched + 1
    assert (backlog["extract", 1].records, backlog["extract", 1].oldest_at) == (1, times[2])
    assert (backlog["journal", 1].records, backlog["journal", 1].oldest_at) == (0, None)


async def test_what_retention_has_deleted_waits_for_nobody(bootstrap: str, turns: str, reader: BacklogReader) -> None:
    times = await send(bootstrap, turns, 3)
    async with connected_admin(KafkaAddress(bootstrap)) as admin:
        await admin.delete_records({TopicPartition(turns, 1): RecordsToDelete(before_offset=2)})
    backlog = await read(reader)
    assert (backlog["extract", 1].records, backlog["extract", 1].oldest_at) == (1, times[2])


async def test_records_larger_than_a_fetch_are_read_of_all_partitions(
    bootstrap: str, turns: str, reader: BacklogReader
) -> None:
    async with producer(bootstrap) as client:
        for partition in range(PARTITIONS):
            await client.send_and_wait(turns, value=b"x" * 200_000, partition=partition)
    before = datetime.fromtimestamp(time.time(), UTC)
    backlog = await read(reader)
    for partition in range(PARTITIONS):
        one = backlog["extract", partition]
        assert one.oldest_at is not None
        assert one.oldest_at <= before


async def test_a_coordinator_that_is_still_loading_is_no_group_without_offsets() -> None:
    class Loading:
        async def list_consumer_group_offsets(self, *_: object, **__: object) -> dict[object, object]:
            return {}

    with pytest.raises(GroupLoadInProgressError):
        await committed_offsets(Loading(), "group", [TopicPartition("topic", 0)])
