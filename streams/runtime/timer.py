"""Runs the expiry sweep, with a producer of its own: it runs beside the stages and outlives their restarts."""

import asyncio
from collections.abc import Callable
from datetime import datetime
from typing import Final

import structlog
from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped] # aiokafka ships no types
from aiokafka.errors import KafkaError  # type: ignore[import-untyped] # as above
from aiokafka.partitioner import murmur2  # type: ignore[import-untyped] # as above

from mnemolog.schemas.command import Command
from mnemolog.schemas.scope import Scope
from mnemolog.streams.commands.expiry import ExpirySweep
from mnemolog.streams.commands.ports import ExpiryReader
from mnemolog.streams.errors import StreamsError
from mnemolog.streams.kafka.sender import Sender
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS, command_headers, max_record_bytes, topic_name
from mnemolog.streams.settings import StreamsSettings

RETRY_SECONDS: Final = 5.0

log = structlog.get_logger(__name__)


async def run_expiry_timer(
    settings: StreamsSettings,
    facts: ExpiryReader,
    *,
    partitions: Callable[[], frozenset[int]],
    clock: Callable[[], datetime],
) -> None:
    """Publish expire commands for facts that have ended, for the owners whose `partitions` are this worker's.

    Waits while Kafka is unavailable.
    """
    topic, headers = topic_name(CONVERSATION_TURNS, settings.topic_prefix), command_headers(settings.command_token)
    while True:
        # Not idempotent: a repeated command has the same id, and a plain producer outlives every refusal.
        producer = AIOKafkaProducer(bootstrap_servers=settings.kafka, acks="all")
        sender = Sender(producer.send, limits=max_record_bytes(settings.topic_prefix))

        async def publish(command: Command, sender: Sender = sender) -> None:
            await sender.send(topic, key=command.scope.key, value=command.to_bytes(), headers=headers)

        sweep = ExpirySweep(
            facts,
            publish=publish,
            owns_scope=lambda scope: partition_of(scope, settings.partitions) in partitions(),
        )
        try:
            await producer.start()
            while True:
                await run_sweep(sweep, clock())
                await asyncio.sleep(settings.expiry_interval)
        except KafkaError as error:
            log.warning("timer_waits_for_kafka", error=repr(error))
        finally:
            await producer.stop()
        await asyncio.sleep(RETRY_SECONDS)


async def run_sweep(sweep: ExpirySweep, now: datetime) -> None:
    """Sweep all that is due; a command that was not sent is sent by a later sweep."""
    count, is_first = 0, True
    try:
        while is_first or sweep.has_more:
            is_first = False
            count += await sweep.sweep(now)
    except StreamsError as error:
        log.warning("expire_command_not_sent", error=str(error))
    if count:
        log.info("expire_commands_sent", facts=count)


def partition_of(scope: Scope, partitions: int) -> int:
    """The partition of an owner's records, as Kafka's own partitioner chooses it."""
    return int(murmur2(scope.key) & 0x7FFFFFFF) % partitions
