"""Three brokers of Kafka on loopback with three copies of everything, of which leaders can be lost."""

import asyncio
import os
import random
import signal
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

from aiokafka.errors import KafkaError  # type: ignore[import-untyped] # ships no types

from mnemolog.embedded import kafka
from mnemolog.embedded.child import Child
from mnemolog.embedded.data_folder import LOOPBACK, PORTS
from mnemolog.embedded.jars import cache_folder, ensure_jars, read_lock
from mnemolog.streams.kafka import connected_admin
from mnemolog.streams.kafka_address import KafkaAddress
from tests.support.servers.power_cut import cut_log

COPIES: Final = 3
IN_SYNC_SECONDS: Final = 120.0
INTERNAL: Final = {
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "3",
    "min.insync.replicas": "2",
    # Otherwise one that was restarted leads nothing for minutes, and its loss is no loss.
    "leader.imbalance.check.interval.seconds": "2",
}
single_properties = kafka.server_properties


class Brokers:
    """The brokers, started and lost like one `Server`: always a leader of something, and one at a time."""

    kind = "kafka"
    copies = COPIES

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder = folder
        self._chance = chance
        self._plans: dict[int, kafka.KafkaPlan] = {}
        self._running: dict[int, Child] = {}

    @property
    def _bootstrap(self) -> str:
        return ",".join(plan.bootstrap for plan in self._plans.values())

    async def start(self) -> str:
        """Start those that do not run; returns when all copies of all partitions are in sync."""
        if not self._plans:
            self._plans = await asyncio.to_thread(self._new_plans)
            await asyncio.gather(*map(self._format, self._plans))
        with patch.object(kafka, "server_properties", self._properties):
            await asyncio.gather(*(self._start_one(node) for node in self._plans.keys() - self._running.keys()))
        async with asyncio.timeout(IN_SYNC_SECONDS):
            while not await self._are_in_sync():  # noqa: ASYNC110 -- Kafka sets no event
                await asyncio.sleep(0.2)
        return self._bootstrap

    async def kill(self) -> None:
        """SIGKILL for the leader of some partition, and the newest records of its files are gone, as in a power cut."""
        leader = self._chance.choice([one["leader"] for _, one in await self._partitions()])
        await self._kill_one(leader)
        for place in (self._plans[leader].folder / kafka.DATA_FOLDER).glob("*-[0-9]*"):
            name, _, number = place.name.rpartition("-")
            if not name.startswith("__"):
                cut_log(self._plans[leader].folder, name, int(number), share=self._chance.uniform(0, 0.5))

    async def stop(self) -> None:
        for node in [*self._running]:
            await self._kill_one(node)

    def _new_plans(self) -> dict[int, kafka.KafkaPlan]:
        jars, ports = ensure_jars(cache_folder(self.folder), jars=read_lock()), random.sample(PORTS, 2 * COPIES)
        plans = {}
        for node in range(1, COPIES + 1):
            folder = self.folder / str(node)
            (folder / "tmp").mkdir(parents=True)
            plans[node] = kafka.KafkaPlan(
                folder=folder, jars=jars, port=ports.pop(), controller_port=ports.pop(), log=folder / "log"
            )
        return plans

    def _properties(self, plan: kafka.KafkaPlan) -> dict[str, str]:
        (node,) = (node for node, one in self._plans.items() if one is plan)
        voters = ",".join(f"{number}@{LOOPBACK}:{one.controller_port}" for number, one in self._plans.items())
        return single_properties(plan) | {"node.id": str(node), "controller.quorum.voters": voters} | INTERNAL

    async def _format(self, node: int) -> None:
        plan = self._plans[node]
        lines = "".join(f"{name}={value}\n" for name, value in self._properties(plan).items())
        (plan.folder / kafka.PROPERTIES).write_text(lines)
        format_storage = ("kafka.tools.StorageTool", "format", "--cluster-id=three", "-c", kafka.PROPERTIES)
        await Child(kafka._command(plan, format_storage)).wait_until_finished(timeout=kafka.FORMAT_SECONDS)

    async def _start_one(self, node: int) -> None:
        await kafka.start_kafka(self._plans[node], lambda child: self._running.update({node: child}))

    async def _kill_one(self, node: int) -> None:
        child = self._running.pop(node)
        os.kill(child.pid, signal.SIGKILL)
        await child.stop(timeout=10)

    async def _are_in_sync(self) -> bool:
        try:
            return all(len(one["isr"]) == len(one["replicas"]) for _, one in await self._partitions())
        except KafkaError:
            return False

    async def _partitions(self) -> list[tuple[str, dict[str, Any]]]:
        async with connected_admin(KafkaAddress(self._bootstrap)) as admin:
            rows = await admin.describe_topics()
        return [(row["topic"], one) for row in rows for one in row["partitions"]]
