"""What this machine does at this moment without the pipeline: figures to hold the others against."""

import asyncio
import time
from dataclasses import dataclass
from typing import Final

from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped] # aiokafka ships no types
from psycopg import AsyncConnection

from mnemolog.streams.kafka.topics import DEAD_LETTERS, topic_name
from tests.bench.environment import PARTITIONS, Environment
from tests.bench.statistics import Percentiles
from tests.support.servers.kafka_client import producer

LOOPS: Final = 1_000_000
RECORDS: Final = 20_000
RECORD: Final = b"x" * 1000
ROUND_TRIPS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineBaseline:
    """`python` is milliseconds of a loop of a million additions, `kafka` records of 1 kB a second in and out through
    plain aiokafka, `sql` milliseconds of `SELECT 1`.
    """

    python: float
    kafka: float
    sql: Percentiles


async def measure_machine(arena: Environment) -> MachineBaseline:
    return MachineBaseline(python=min(_loop() for _ in range(5)), kafka=await _kafka(arena), sql=await _sql(arena))


def _loop() -> float:
    started = time.perf_counter()
    total = 0
    for number in range(LOOPS):
        total += number
    return (time.perf_counter() - started) * 1000


async def _kafka(arena: Environment) -> float:
    topic = topic_name(DEAD_LETTERS, arena.settings.topic_prefix)
    started = time.perf_counter()
    async with producer(arena.servers.kafka) as client:
        sent = [await client.send(topic, value=RECORD, partition=number % PARTITIONS) for number in range(RECORDS)]
        await asyncio.gather(*sent)
    consumer = AIOKafkaConsumer(topic, bootstrap_servers=arena.servers.kafka, auto_offset_reset="earliest")
    await consumer.start()
    try:
        read = 0
        while read < RECORDS:
            read += sum(map(len, (await consumer.getmany(timeout_ms=1000)).values()))
    finally:
        await consumer.stop()
    return RECORDS / (time.perf_counter() - started)


async def _sql(arena: Environment) -> Percentiles:
    async with await AsyncConnection.connect(arena.database, autocommit=True) as connection:
        waits = []
        for _ in range(ROUND_TRIPS):
            started = time.perf_counter()
            await connection.execute("SELECT 1")
            waits.append((time.perf_counter() - started) * 1000)
    return Percentiles.of(waits)
