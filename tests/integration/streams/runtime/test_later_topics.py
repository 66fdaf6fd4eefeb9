"""Where a chain may begin: what a real broker has between the stages, partition by partition."""

from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition  # type: ignore[import-untyped] # aiokafka ships no types
from aiokafka.structs import OffsetAndMetadata  # type: ignore[import-untyped] # as above

from mnemolog.schemas.provenance import Stage
from mnemolog.streams.kafka.admin import ensure_topics
from mnemolog.streams.kafka.topics import group_id
from mnemolog.streams.runtime.later_topics import LaterTopics
from tests.support.servers.kafka_client import producer, wait_until

pytestmark = pytest.mark.kafka

STAGES: tuple[Stage, ...] = ("embed", "match", "resolve")


@pytest.fixture
async def prefix(bootstrap: str, topic_suffix: str) -> str:
    await ensure_topics(bootstrap, partitions=3, prefix=f"{topic_suffix}-")
    return f"{topic_suffix}-"


async def send(bootstrap: str, topic: str, partition: int) -> None:
    async with producer(bootstrap) as client:
        await client.send_and_wait(topic, value=b"{}", partition=partition)


async def commit(bootstrap: str, group: str, topic: str, partition: int, offset: int) -> None:
    place = TopicPartition(topic, partition)
    consumer: Any = AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=group)
    consumer.assign([place])
    await consumer.start()
    try:
        await consumer.commit({place: OffsetAndMetadata(offset, "")})
    finally:
        await consumer.stop()


async def test_each_partition_waits_for_its_own_records_in_every_later_topic(bootstrap: str, prefix: str) -> None:
    later = LaterTopics(bootstrap, STAGES, prefix=prefix)

    async def all_are_finished() -> bool:
        return await later.finished({0, 1, 2}) == {0, 1, 2}

    await wait_until(all_are_finished)  # once the broker has places for groups
    await send(bootstrap, f"{prefix}extracted_facts", 0)
    await send(bootstrap, f"{prefix}matched_facts", 2)
    assert await later.finished({0, 1, 2}) == {1}
    assert await later.finished({0, 2}) == set()
    await commit(bootstrap, group_id("resolve", prefix), f"{prefix}matched_facts", 2, 1)
    assert await later.finished({0, 1, 2}) == {1, 2}
    await commit(bootstrap, group_id("embed", prefix), f"{prefix}extracted_facts", 0, 1)
    assert await later.finished({0, 1, 2}) == {0, 1, 2}


async def test_only_the_topics_of_the_chains_own_stages_are_waited_for(bootstrap: str, prefix: str) -> None:
    later = LaterTopics(bootstrap, STAGES[:2], prefix=prefix)
    await send(bootstrap, f"{prefix}matched_facts", 0)

    async def both_are_finished() -> bool:
        return await later.finished({0, 1}) == {0, 1}

    await wait_until(both_are_finished)


async def test_no_partition_begins_while_kafka_is_away() -> None:
    assert await LaterTopics("localhost:1", STAGES).finished({0, 1}) == set()
