"""Publishing on a real Kafka: what the broker does not take is not accepted."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from aiokafka.admin import AIOKafkaAdminClient, NewTopic  # type: ignore[import-untyped] # aiokafka ships no types

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.client.producer import OutgoingRecord, RecordProducer
from mnemolog.errors import PublishError
from mnemolog.settings import Settings
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS, topic_name
from mnemolog.streams.kafka_address import KafkaAddress
from tests.support.servers.kafka_client import PARTITIONS, read_all, wait_until

pytestmark = pytest.mark.kafka

SMALL, LARGE = b"small", bytes(range(256)) * 100


def outgoing_record(name: str, value: bytes) -> OutgoingRecord:
    return OutgoingRecord(name=name, key=b"default/mira", value=value)


@pytest.fixture
async def small_topic_prefix(bootstrap: str, topic_suffix: str) -> str:
    """The prefix of a topic that takes nothing large, which only the broker knows."""
    prefix = f"{topic_suffix}-"
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    limit = {"max.message.bytes": "1000"}
    await admin.create_topics([NewTopic(topic_name(CONVERSATION_TURNS, prefix), PARTITIONS, 1, topic_configs=limit)])
    await admin.close()
    return prefix


@pytest_asyncio.fixture
async def publisher(bootstrap: str, small_topic_prefix: str) -> AsyncIterator[RecordProducer]:
    publisher = await RecordProducer.connect(KafkaAddress(bootstrap), prefix=small_topic_prefix, compression="none")
    yield publisher
    await publisher.close()


async def test_what_the_broker_refuses_is_told_and_not_accepted(
    publisher: RecordProducer, bootstrap: str, small_topic_prefix: str
) -> None:
    with pytest.raises(PublishError, match=r"t1 was refused .*publish again with the same turn_id"):
        await publisher.publish(outgoing_record("t1", LARGE))
    receipt = await publisher.publish(outgoing_record("t2", SMALL))
    topic = topic_name(CONVERSATION_TURNS, small_topic_prefix)

    async def stored() -> list[tuple[str, bytes | None]]:
        return [(record.position, record.value) for record in await read_all(bootstrap, topic)]

    assert await wait_until(stored) == [(receipt.position, SMALL)]


async def test_a_refusal_spoils_no_later_turn_of_the_same_client(bootstrap: str, small_topic_prefix: str) -> None:
    settings = Settings(kafka=bootstrap, topic_prefix=small_topic_prefix, compression="none")
    async with AsyncMemoryClient(settings=settings) as client:
        await client.add("I live in Bern.", user_id="mira")
        with pytest.raises(PublishError, match="was refused"):
            await client.add("Long. " * 1000, user_id="mira")
        for text in ("I live in Rome.", "I live in Oslo."):
            await client.add(text, user_id="mira")
    assert len(await read_all(bootstrap, topic_name(CONVERSATION_TURNS, small_topic_prefix))) == 3
