"""Power cuts: the log loses its end once all is in the tables, and an operator restores it."""

import asyncio
import random
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, TopicPartition  # type: ignore[import-untyped] # ships no types

from tests.chaos.cluster import LOG, PARTITIONS, Cluster
from tests.chaos.machines import mnemolog
from tests.support.servers.power_cut import cut_log

ALL: Final = "power cut of all, log cut short"
KAFKA_ALONE: Final = "power cut of Kafka alone, log cut short"
CUT_PARTITIONS: Final = 2
NOTICE_SECONDS: Final = 240.0


@dataclass(slots=True)
class PowerCuts:
    """What they took, and what came back. `publish_more` publishes the next turns."""

    cluster: Cluster
    chance: random.Random
    publish_more: Callable[[], Awaitable[None]]
    lost_commits: int = 0
    restored_commits: int = 0
    other_offsets: int = 0

    async def happen(self, kind: str) -> None:
        cluster, before = self.cluster, await self._log_ends()
        if kind == ALL:
            await asyncio.gather(*(worker.kill() for worker in cluster.workers))
        await cluster.kafka.kill()
        for partition in self.chance.sample(range(PARTITIONS), CUT_PARTITIONS):
            cut_log(cluster.kafka.folder / "kafka", LOG, partition, share=self.chance.uniform(0.05, 0.6))
        await cluster.kafka.start()
        self.lost_commits += sum(before.values()) - sum((await self._log_ends()).values())
        if kind == KAFKA_ALONE:
            await self._workers_notice()
        report = await self._restore_log()
        self.restored_commits += sum(loss["missing"] for loss in report["losses"])
        self.other_offsets += sum(loss["differs_at"] is not None for loss in report["losses"])
        await cluster.start_workers()

    async def _workers_notice(self) -> None:
        """The next turns come; a worker that would write over the lost offsets ends instead. The others are stopped."""
        workers = self.cluster.workers
        await self.publish_more()
        deadline = time.monotonic() + NOTICE_SECONDS
        while all(worker.is_running for worker in workers):
            assert time.monotonic() < deadline, "no worker noticed that the log is shorter than the tables"
            await asyncio.sleep(0.3)
        for worker in workers:
            code = await worker.terminate() if worker.is_running else worker.process.returncode
            # A signal while it already ends because of the log is taken for a second one.
            assert code in (0, 2, 130, -signal.SIGTERM), (code, worker.log[-3000:])

    async def _restore_log(self) -> Any:
        deadline = time.monotonic() + NOTICE_SECONDS
        while True:
            code, said = await mnemolog(self.cluster.environ, "restore-log")
            if code == 0:
                return said
            assert "workers still run" in said, said
            assert time.monotonic() < deadline, said

    async def _log_ends(self) -> dict[int, int]:
        consumer = AIOKafkaConsumer(bootstrap_servers=self.cluster.bootstrap)
        await consumer.start()
        try:
            places = [TopicPartition(LOG, number) for number in range(PARTITIONS)]
            return {place.partition: end for place, end in (await consumer.end_offsets(places)).items()}
        finally:
            await consumer.stop()
