"""Create missing topics, refuse those that differ from their declaration, and describe what the broker has."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from sys import maxsize
from typing import Any, Final

from aiokafka import TopicPartition  # type: ignore[import-untyped] # aiokafka ships no types
from aiokafka.admin import NewTopic  # type: ignore[import-untyped] # as above
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType  # type: ignore[import-untyped] # as above
from aiokafka.errors import NoError, TopicAlreadyExistsError, for_code  # type: ignore[import-untyped] # as above

from mnemolog.common.logs import get_logger
from mnemolog.schemas.errors import SettingsError
from mnemolog.streams.errors import TopicNotCreated, TopicsDiffer
from mnemolog.streams.kafka import connected_admin, connected_consumer
from mnemolog.streams.kafka.access import missing_right
from mnemolog.streams.kafka.topics import TOPICS, Topic, topic_name
from mnemolog.streams.kafka_address import KafkaAddress

log = get_logger(__name__)

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


async def ensure_topics(
    address: KafkaAddress, *, partitions: int, replication_factor: int = 1, prefix: str = ""
) -> list[str]:
    """Create the missing topics and return their names.

    Changes nothing that exists. Raises `TopicsDiffer` or `TopicNotCreated`, and aiokafka's `KafkaConnectionError` where
    no broker answers.
    """
    topics, created = {topic_name(topic, prefix): topic for topic in TOPICS}, []
    async with connected_admin(address) as admin:
        present = await partition_counts(admin)
        wanted = [
            NewTopic(name, partitions, replication_factor, topic_configs=dict(topic.config(replication_factor)))
            for name, topic in topics.items()
            if name not in present
        ]
        answers = (await admin.create_topics(wanted)).topic_errors if wanted else ()
        for name, code, *message in answers:
            if code == NoError.errno:
                created.append(name)
            # Another worker that starts at the same time may have been first.
            elif code != TopicAlreadyExistsError.errno:
                error = for_code(code)(*message)
                if problem := missing_right(address, error):
                    raise SettingsError(f"{problem}; or create {name} with an account that may")
                raise TopicNotCreated(f"the broker refused to create topic {name}: {error}")
        try:
            async with asyncio.timeout(APPEAR_SECONDS):
                while True:
                    layouts = await _partitions(admin)
                    if all(map(layouts.get, topics)):
                        break
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError as error:
            raise TopicNotCreated(
                f"the broker did not show all topics within {APPEAR_SECONDS:.0f} s: look at its log, then start again"
            ) from error
        configs = await _configs(admin, topics)
        replicas = {name: min(len(one["replicas"]) for one in layouts[name]) for name in topics}
        _check_partitions({name: len(layouts[name]) for name in topics}, partitions)
        for name, topic in topics.items():
            _check_topic(name, topic, configs[name], replicas[name])
        if (alone := sorted(name for name in topics if replicas[name] == 1)) and not _is_loopback(address):
            log.warning("topics_have_one_replica", topics=alone, loses="what is acknowledged, with its broker")
    return created


async def describe_topics(address: KafkaAddress, *, prefix: str = "") -> list[TopicState]:
    """Show every declared topic as the broker has it; raises what aiokafka raises where no broker answers."""
    async with connected_admin(address) as admin:
        counts = await partition_counts(admin)
        present = [topic for topic in TOPICS if topic_name(topic, prefix) in counts]
        configs = await _configs(admin, [topic_name(topic, prefix) for topic in present])
    places = [TopicPartition(name, number) for name in configs for number in range(counts[name])]
    starts: Mapping[TopicPartition, int] = {}
    ends: Mapping[TopicPartition, int] = {}
    if places:  # a consumer that is stopped right after its start raises CancelledError
        async with connected_consumer(address) as consumer:
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


async def partition_counts(admin: Any) -> dict[str, int]:
    return {name: len(partitions) for name, partitions in (await _partitions(admin)).items()}


async def _partitions(admin: Any) -> dict[str, list[dict[str, Any]]]:
    """The partitions of each topic as the broker describes them, with their `replicas`."""
    rows = await admin.describe_topics()
    return {row["topic"]: row["partitions"] for row in rows if row["error_code"] == NoError.errno}


def _is_loopback(address: KafkaAddress) -> bool:
    return all(server.startswith(("127.", "localhost:", "[::1]")) for server in address.servers.split(","))


def _check_partitions(counts: Mapping[str, int], wanted: int) -> None:
    differing = [f"{name} has {count}" for name, count in sorted(counts.items()) if count != wanted]
    if differing:
        raise TopicsDiffer(
            f"{wanted} partitions are set, but {', '.join(differing)}. The count decides in which partition a user's "
            "records are: another one would break their order. Set the partition count to what the topics have, or use "
            "new topics under another topic prefix."
        )


def _check_topic(name: str, topic: Topic, config: Mapping[str, str], replicas: int) -> None:
    """Raise `TopicsDiffer` where acknowledged records could be lost or refused, with the command that mends it."""
    declared = topic.config(replicas)
    bounds = {"max.message.bytes": "larger records are refused", "min.insync.replicas": "one broker has them alone"}
    reasons = {key: why for key, why in bounds.items() if int(config[key]) < int(declared[key])}
    if topic.retention is None:
        for key in ("retention.ms", "retention.bytes", "cleanup.policy"):
            if config[key] != declared[key]:
                reasons[key] = "it is the only source of truth and must keep its records for ever"
    else:
        for key in ("retention.ms", "retention.bytes"):
            if 0 <= int(config[key]) < (int(declared[key]) if int(declared[key]) > 0 else maxsize):
                reasons[key] = "records may be deleted before they are read"
        if config["message.timestamp.type"] != declared["message.timestamp.type"]:
            reasons["message.timestamp.type"] = (
                "retention goes by the clocks of publishers: a slow one has records deleted before they are read, a "
                "fast one has them refused"
            )
    if reasons:
        wrong = "; ".join(f"{key}={config[key]}: {why}" for key, why in reasons.items())
        settings = ",".join(f"{key}={declared[key]}" for key in reasons)
        raise TopicsDiffer(
            f"topic {name} endangers acknowledged turns ({wrong}). Run `kafka-configs.sh --alter --entity-type topics "
            f"--entity-name {name} --add-config {settings}`, then start again."
        )


async def _configs(admin: Any, names: Collection[str]) -> dict[str, dict[str, str]]:
    if not names:
        return {}
    answers = await admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name) for name in names])
    configs = {}
    for code, message, _, name, entries in (resource for answer in answers for resource in answer.resources):
        if code != NoError.errno:
            raise for_code(code)(f"settings of {name}: {message}")
        configs[name] = {entry[0]: entry[1] for entry in entries}
    return configs
