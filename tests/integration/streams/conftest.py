"""What tests of the stages' Kafka side share."""

import pytest

from mnemolog.streams.kafka.admin import ensure_topics
from mnemolog.streams.kafka_address import KafkaAddress
from tests.support.servers.kafka_client import PARTITIONS


@pytest.fixture
async def prefix(bootstrap: str, topic_suffix: str) -> str:
    """The prefix of topics of the test's own; they exist."""
    await ensure_topics(KafkaAddress(bootstrap), partitions=PARTITIONS, prefix=f"{topic_suffix}-")
    return f"{topic_suffix}-"
