"""The machine of a run, and what it does at this moment without the pipeline: yardsticks for the other figures."""

import asyncio
import os
import platform
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

import psutil
from aiokafka import AIOKafkaConsumer  # type: ignore[import-untyped] # aiokafka ships no types
from psycopg import AsyncConnection

from mnemolog.streams.kafka.topics import DEAD_LETTERS, topic_name
from tests.bench.environment import PARTITIONS, Environment
from tests.bench.figures import Percentiles
from tests.support.servers.kafka_client import producer

PACKAGES: Final = ("faust-streaming", "aiokafka", "psycopg", "pydantic", "openai", "uvloop")
ADDITIONS: Final = 1_000_000
RECORDS: Final = 20_000
RECORD: Final = b"x" * 1000
ROUND_TRIPS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """`load` is the average of running and waiting processes over the minute before."""

    at: datetime
    processor: str
    cores: int
    memory_gib: float
    system: str
    python: str
    packages: dict[str, str]
    load: float

    @classmethod
    def describe(cls) -> "Machine":
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
        return cls(
            at=datetime.now(UTC),
            processor=next(named, platform.processor() or "unknown"),
            cores=len(os.sched_getaffinity(0)),
            memory_gib=psutil.virtual_memory().total / 2**30,
            system=f"{platform.system()} {platform.release()}",
            python=platform.python_version(),
            packages={name: version(name) for name in PACKAGES},
            load=os.getloadavg()[0],
        )

    @property
    def hardware(self) -> str:
        return f"{self.processor}, {self.cores} cores, {self.memory_gib:.0f} GiB"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineBaseline:
    """`python` is milliseconds of a loop of a million additions, `kafka` records of 1 kB a second in and out through
    plain aiokafka, `sql` milliseconds of `SELECT 1`.
    """

    python: float
    kafka: float
    sql: Percentiles


async def measure_machine(arena: Environment) -> MachineBaseline:
    topic = topic_name(DEAD_LETTERS, arena.settings.topic_prefix)
    loops = []
    for _ in range(5):
        started = time.perf_counter()
        total = 0
        for number in range(ADDITIONS):
            total += number
        loops.append((time.perf_counter() - started) * 1000)

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
    kafka = RECORDS / (time.perf_counter() - started)

    trips = []
    async with await AsyncConnection.connect(arena.database, autocommit=True) as connection:
        for _ in range(ROUND_TRIPS):
            started = time.perf_counter()
            await connection.execute("SELECT 1")
            trips.append((time.perf_counter() - started) * 1000)
    return MachineBaseline(python=min(loops), kafka=kafka, sql=Percentiles.of(trips))
