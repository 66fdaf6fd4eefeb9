"""Reading `dead_letters` as an operator's tool would."""

import asyncio

from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped] # aiokafka ships no types

from mnemolog.settings import Settings
from mnemolog.streams.kafka.dead_letters import DeadLetter
from mnemolog.streams.kafka.topics import DEAD_LETTERS, topic_name


async def first_dead_letter(settings: Settings, *, timeout_seconds: float) -> DeadLetter:
    """The first dead letter. Raises `TimeoutError` when none comes within `timeout_seconds`."""
    consumer = AIOKafkaConsumer(
        topic_name(DEAD_LETTERS, settings.topic_prefix),
        bootstrap_servers=settings.kafka,
        auto_offset_reset="earliest",
    )
    await consumer.start()
    try:
        async with asyncio.timeout(timeout_seconds):
            return DeadLetter.from_record(await consumer.getone())
    finally:
        await consumer.stop()
