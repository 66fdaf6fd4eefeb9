"""The background task that publishes expire commands, through a producer of its own."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final

import structlog
from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped] # aiokafka ships no types
from aiokafka.errors import KafkaError  # type: ignore[import-untyped] # as above
from aiokafka.partitioner import murmur2  # type: ignore[import-untyped] # as above

from mnemolog.projections.stores.facts import FactStore
from mnemolog.schemas.command import Command
from mnemolog.schemas.scope import Scope
from mnemolog.streams.commands.expiry import ExpirySweep
from mnemolog.streams.kafka.sender import Sender
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS, command_headers, topic_name
from mnemolog.streams.settings import StreamsSettings

RETRY_SECONDS: Final = 5.0

log = structlog.get_logger(__name__)


async def run_expiry_timer(
    settings: StreamsSettings,
    known: FactStore,
    *,
    partitions: Callable[[], frozenset[int]],
    clock: Callable[[], datetime],
) -> None:
    """Publish expire commands for facts that have ended, for the owners whose `partitions` are this worker's.

    Waits while Kafka is unavailable.
    """
    topic = topic_name(CONVERSATION_TURNS, settings.topic_prefix)
    headers = command_headers(settings.command_token)
    while True:
        try:
            async with _sender(settings) as sender:

                async def publish(command: Command, sender: Sender = sender) -> None:
                    await sender.send(topic, key=command.scope.key, value=command.to_bytes(), headers=headers)

                expiry = ExpirySweep(
                    known,
                    publish=publish,
                    owns_scope=lambda scope: partition_of(scope, settings.partitions) in partitions(),
                )
                await expiry.run(asyncio.Event(), interval=settings.expiry_interval, clock=clock)
        except KafkaError as error:
            log.warning("timer_waits_for_kafka", error=repr(error))
        await asyncio.sleep(RETRY_SECONDS)


def partition_of(scope: Scope, partitions: int) -> int:
    """The partition of an owner's records: as every producer with Kafka's own partitioner has it."""
    return int(murmur2(scope.key) & 0x7FFFFFFF) % partitions


@asynccontextmanager
async def _sender(settings: StreamsSettings) -> AsyncIterator[Sender]:
    # Not idempotent: a repeated order has the same id, and a plain producer outlives every refusal.
    producer = AIOKafkaProducer(bootstrap_servers=settings.kafka, acks="all")

    try:
        await producer.start()
        yield Sender.for_producer(producer, settings.topic_prefix)
    finally:
        await producer.stop()
