"""Create missing topics, refuse those that differ from their declaration, and describe what the broker has."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from aiokafka import TopicPartition  # type: ignore[import-untyped] # aiokafka ships no types
from aiokafka.admin import NewTopic  # type: ignore[import-untyped] # as above
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType  # type: ignore[import-untyped] # as above
from aiokafka.errors import NoError, TopicAlreadyExistsError  # type: ignore[import-untyped] # as above

from mnemolog.streams.errors import PartitionCountDiffers, RetentionTooShort, TimestampTypeDiffers, TopicNotCreated
from mnemolog.streams.kafka import connected_admin, connected_consumer
from mnemolog.streams.kafka.topics import TOPICS, Topic, topic_name

APPEAR_SECONDS: Final = 30.0
POLL_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicState:
    """A declared topic and what the broker has of it; `partitions` is 0 where it is missing.

    `retention` None means for ever; `start_offsets` and `end_offsets` give the first offset that is kept and the next
    one, per partition.
    """

    topic: Topic
    name: str
    partitions: int
    retention: timedelta | None
    start_offsets: Mapping[int, int]
    end_offsets: Mapping[int, int]


async def ensure_topics(bootstrap: str, *, partitions: int, replication_factor: int = 1, prefix: str = "") -> list[str]:
    """Create the missing topics and return their names.

    Changes nothing that exists. Raises `PartitionCountDiffers`, `RetentionTooShort`, `TimestampTypeDiffers` or
    `TopicNotCreated`, and aiokafka's `KafkaConnectionError` where no broker answers.
    """
    async with connected_admin(bootstrap) as admin:
        present = await partition_counts(admin)
        missing = [topic for topic in TOPICS if topic_name(topic, prefix) not in present]
        created = await _create(admin, missing, partitions, replication_factor, prefix)
        counts = await _await_topics(admin, [topic_name(topic, prefix) for topic in TOPICS])
        _check_partitions(counts, partitions)
        await _check_retention(admin, prefix)
        await _check_timestamps(admin, prefix)
    return created


async def describe_topics(bootstrap: str, *, prefix: str = "") -> list[TopicState]:
    """Show every declared topic as the broker has it; raises what aiokafka raises where no broker answers."""
    async with connected_admin(bootstrap) as admin:
        counts = await partition_counts(admin)
        present = [topic for topic in TOPICS if topic_name(topic, prefix) in counts]
        configs = await _configs(admin, [topic_name(topic, prefix) for topic in present])
    places = [TopicPartition(name, number) for name in configs for number in range(counts[name])]
    starts: Mapping[TopicPartition, int] = {}
    ends: Mapping[TopicPartition, int] = {}
    if places:  # a consumer that is stopped right after its start raises CancelledError
        async with connected_consumer(bootstrap) as consumer:
            starts, ends = await consumer.beginning_offsets(places), await consumer.end_offsets(places)

    def state(topic: Topic) -> TopicState:
        name = topic_name(topic, prefix)
        milliseconds = int(configs.get(name, {}).get("retention.ms", "0"))
        return TopicState(
            topic=topic,
            name=name,
            partitions=counts.get(name, 0),
            retention=None if milliseconds < 0 else timedelta(milliseconds=milliseconds),
            start_offsets={place.partition: offset for place, offset in starts.items() if place.topic == name},
            end_offsets={place.partition: offset for place, offset in ends.items() if place.topic == name},
        )

    return [state(topic) for topic in TOPICS]


async def _create(
    admin: Any, topics: Sequence[Topic], partitions: int, replication_factor: int, prefix: str
) -> list[str]:
    if not topics:
        return []
    wanted = [
        NewTopic(topic_name(topic, prefix), partitions, replication_factor, topic_configs=dict(topic.config))
        for topic in topics
    ]
    answer = await admin.create_topics(wanted)
    created = []
    for name, code, *message in answer.topic_errors:
        if code == NoError.errno:
            created.append(name)
        # Another worker that starts at the same time may have been first.
        elif code != TopicAlreadyExistsError.errno:
            raise TopicNotCreated(f"the broker refused to create topic {name}: error {code}, {message}")
    return created


async def _await_topics(admin: Any, names: Sequence[str]) -> dict[str, int]:
    try:
        async with asyncio.timeout(APPEAR_SECONDS):
            while True:
                counts = await partition_counts(admin)
                if all(counts.get(name) for name in names):
                    return {name: counts[name] for name in names}
                await asyncio.sleep(POLL_SECONDS)
    except TimeoutError as error:
        raise TopicNotCreated(
            f"the broker did not show all topics within {APPEAR_SECONDS:.0f} s: look at its log, then start again"
        ) from error


async def partition_counts(admin: Any) -> dict[str, int]:
    rows = await admin.describe_topics()
    return {row["topic"]: len(row["partitions"]) for row in rows if row["error_code"] == NoError.errno}


def _check_partitions(counts: Mapping[str, int], wanted: int) -> None:
    differing = {name: count for name, count in counts.items() if count != wanted}
    if differing:
        found = ", ".join(f"{name} has {count}" for name, count in sorted(differing.items()))
        raise PartitionCountDiffers(
            f"{wanted} partitions are set, but {found}. The count decides in which partition a user's records are: "
            "another one would break their order. Set the partition count to what the topics have, or use new topics "
            "under another topic prefix."
        )


async def _check_retention(admin: Any, prefix: str) -> None:
    permanent = [topic_name(topic, prefix) for topic in TOPICS if topic.retention is None]
    for name, config in (await _configs(admin, permanent)).items():
        limits = {key: config.get(key) for key in ("retention.ms", "retention.bytes")}
        if any(value != "-1" for value in limits.values()) or config.get("cleanup.policy") != "delete":
            raise RetentionTooShort(
                f"topic {name} is the only source of truth and must keep its records for ever, but has {limits} and "
                f"cleanup.policy={config.get('cleanup.policy')}. Set retention.ms=-1, retention.bytes=-1 and "
                "cleanup.policy=delete on it (kafka-configs --alter), then start again."
            )


async def _check_timestamps(admin: Any, prefix: str) -> None:
    """Where records are deleted by age, a publisher whose clock is wrong could lose its turns or have them refused."""
    names = [topic_name(topic, prefix) for topic in TOPICS if topic.retention is not None]
    configs = await _configs(admin, names)
    wrong = [name for name, config in configs.items() if config.get("message.timestamp.type") != "LogAppendTime"]
    if wrong:
        raise TimestampTypeDiffers(
            f"{', '.join(sorted(wrong))}: retention goes by the clocks of publishers, so that a slow clock would have "
            "records deleted before they are read, and a fast one have them refused. Set "
            "message.timestamp.type=LogAppendTime on them, for each `kafka-configs.sh --alter --entity-type topics "
            "--entity-name NAME --add-config message.timestamp.type=LogAppendTime`, then start again."
        )


async def _configs(admin: Any, names: Sequence[str]) -> dict[str, dict[str, str]]:
    if not names:
        return {}
    answers = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name) for name in names])
    return {
        resource[3]: {entry[0]: entry[1] for entry in resource[4]}
        for answer in answers
        for resource in answer.resources
    }
