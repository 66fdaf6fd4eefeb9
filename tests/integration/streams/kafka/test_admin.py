"""Topics on a real broker: made when missing, refused when they differ, shown as they are."""

import asyncio
import time
from datetime import timedelta

import pytest
from aiokafka import TopicPartition  # type: ignore[import-untyped] # aiokafka ships no types
from aiokafka.admin import AIOKafkaAdminClient, NewTopic, RecordsToDelete  # type: ignore[import-untyped] # as above
from aiokafka.errors import KafkaError  # type: ignore[import-untyped] # as above

from mnemolog.common.retry import retry_while
from mnemolog.streams.errors import TopicNotCreated, TopicsDiffer
from mnemolog.streams.kafka import connected_admin
from mnemolog.streams.kafka.admin import describe_topics, ensure_topics
from mnemolog.streams.kafka.lag import stage_lags
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS, DEAD_LETTERS, MEMORY_EVENTS, TOPICS, Topic, topic_name
from mnemolog.streams.kafka_address import KafkaAddress
from tests.support.servers.kafka_client import PARTITIONS, producer, publish, read_all

pytestmark = pytest.mark.kafka


@pytest.fixture
def prefix(topic_suffix: str) -> str:
    return f"{topic_suffix}-"


async def create(bootstrap: str, name: str, partitions: int = PARTITIONS, **config: str) -> None:
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        settings = {key.replace("_", "."): value for key, value in config.items()}
        answer = await admin.create_topics([NewTopic(name, partitions, 1, topic_configs=settings)])
        assert answer.topic_errors[0][1] == 0
    finally:
        await admin.close()


async def test_the_missing_ones_are_created_and_the_others_left_alone(bootstrap: str, prefix: str) -> None:
    given = {topic_name(CONVERSATION_TURNS, prefix), topic_name(MEMORY_EVENTS, prefix)}
    await create(
        bootstrap,
        topic_name(CONVERSATION_TURNS, prefix),
        retention_ms="1209600000",
        message_timestamp_type="LogAppendTime",
    )
    await create(bootstrap, topic_name(MEMORY_EVENTS, prefix), retention_ms="-1", retention_bytes="-1")
    # Several workers may create at once.
    created = await asyncio.gather(
        *(ensure_topics(KafkaAddress(bootstrap), partitions=PARTITIONS, prefix=prefix) for _ in range(3))
    )
    assert sorted(name for names in created for name in names) == sorted(
        {topic_name(topic, prefix) for topic in TOPICS} - given
    )
    assert await ensure_topics(KafkaAddress(bootstrap), partitions=PARTITIONS, prefix=prefix) == []
    states = {state.topic.name: state for state in await describe_topics(KafkaAddress(bootstrap), prefix=prefix)}
    assert {state.partitions for state in states.values()} == {PARTITIONS}
    assert states["conversation_turns"].retention == timedelta(days=14)
    assert states["memory_events"].retention is None
    assert states["dead_letters"].retention == DEAD_LETTERS.retention
    with pytest.raises(TopicsDiffer, match=r"12 partitions are set, but .*memory_events has 4"):
        await ensure_topics(KafkaAddress(bootstrap), partitions=12, prefix=prefix)


@pytest.mark.parametrize(
    ("topic", "config", "advice"),
    [
        (CONVERSATION_TURNS, {}, "clocks of publishers.*--add-config message.timestamp.type=LogAppendTime`"),
        (CONVERSATION_TURNS, {"retention_ms": "60000"}, "before they are read.*retention.ms=604800000"),
        (CONVERSATION_TURNS, {"max_message_bytes": "1000"}, "larger records are refused.*max.message.bytes=1048576"),
        (MEMORY_EVENTS, {"retention_ms": "604800000"}, "only source of truth.*--add-config retention.ms=-1`"),
        (MEMORY_EVENTS, {"retention_ms": "-1", "cleanup_policy": "compact"}, "cleanup.policy=compact.*policy=delete`"),
    ],
    ids=["clocks of publishers", "a minute", "small records", "the log forgets", "the log compacts"],
)
async def test_a_topic_that_loses_records_is_refused_with_what_to_set(
    bootstrap: str, prefix: str, *, topic: Topic, config: dict[str, str], advice: str
) -> None:
    await create(bootstrap, topic_name(topic, prefix), PARTITIONS, **config)
    with pytest.raises(TopicsDiffer, match=advice):
        await ensure_topics(KafkaAddress(bootstrap), partitions=PARTITIONS, prefix=prefix)


async def test_a_refusal_of_the_broker_is_passed_on(bootstrap: str, prefix: str) -> None:
    with pytest.raises(TopicNotCreated, match="Error 38"):
        await ensure_topics(KafkaAddress(bootstrap), partitions=PARTITIONS, replication_factor=9, prefix=prefix)


async def test_topics_are_shown_with_their_ends_and_missing_ones_as_empty(bootstrap: str, prefix: str) -> None:
    assert {state.partitions for state in await describe_topics(KafkaAddress(bootstrap), prefix=prefix)} == {0}
    await create(bootstrap, topic_name(CONVERSATION_TURNS, prefix))
    await publish(bootstrap, topic_name(CONVERSATION_TURNS, prefix), [(b"k", b"v")] * 5)
    states = {state.topic.name: state for state in await describe_topics(KafkaAddress(bootstrap), prefix=prefix)}
    assert set(states) == {topic.name for topic in TOPICS}
    assert sum(states["conversation_turns"].end_offsets.values()) == 5
    assert (states["memory_events"].partitions, states["memory_events"].end_offsets) == (0, {})


async def test_a_publishers_clock_decides_neither_when_a_record_is_deleted_nor_whether_it_is_taken(
    bootstrap: str, prefix: str
) -> None:
    await ensure_topics(KafkaAddress(bootstrap), partitions=PARTITIONS, prefix=prefix)
    name = topic_name(CONVERSATION_TURNS, prefix)
    before = time.time()
    async with producer(bootstrap) as client:
        for clock in (timedelta(), timedelta(seconds=before) + timedelta(days=1)):
            milliseconds = clock // timedelta(milliseconds=1)
            await client.send_and_wait(name, key=b"k", value=b"v", timestamp_ms=milliseconds)
    after = time.time()
    stamped = [record.timestamp for record in await read_all(bootstrap, name)]
    assert len(stamped) == 2
    assert all(before - 1 <= moment <= after + 1 for moment in stamped)


async def test_records_that_were_deleted_wait_for_no_stage(bootstrap: str, prefix: str) -> None:
    await ensure_topics(KafkaAddress(bootstrap), partitions=PARTITIONS, prefix=prefix)
    name = topic_name(CONVERSATION_TURNS, prefix)
    (first, *_) = await publish(bootstrap, name, [(b"default/mira", b"{}")] * 3)
    place = TopicPartition(name, int(first.split("/")[1]))
    async with connected_admin(KafkaAddress(bootstrap)) as admin:
        await admin.delete_records({place: RecordsToDelete(before_offset=2)})
        await retry_while(
            lambda error: isinstance(error, KafkaError) and error.retriable,
            lambda: admin.find_coordinator("mnemolog"),
            delay=lambda _: 0.1,
        )
    (state, *_) = await describe_topics(KafkaAddress(bootstrap), prefix=prefix)
    assert (state.start_offsets[place.partition], state.end_offsets[place.partition]) == (2, 3)
    lags = {one.stage: one for one in await stage_lags(KafkaAddress(bootstrap), prefix=prefix)}
    assert list(lags) == ["journal", "extract", "embed", "match", "resolve", "project"]
    assert {stage: one.lag for stage, one in lags.items() if one.lag} == {"journal": 1, "extract": 1}
    assert {one.workers for one in lags.values()} == {0}
