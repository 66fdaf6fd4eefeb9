"""One chaos run: conversations go in while machines fail, in an order that a seed decides."""

import asyncio
import os
import random
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psycopg
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition  # type: ignore[import-untyped] # ships no types
from aiokafka.errors import KafkaError  # type: ignore[import-untyped] # as above

from tests.chaos.checker import find_records
from tests.chaos.conversations import Published, UserStory
from tests.chaos.machines import Server, Worker, mnemolog
from tests.support.servers.power_cut import cut_log

PREFIX: Final = "chaos-"
TURNS: Final = f"{PREFIX}conversation_turns"
LOG: Final = f"{PREFIX}memory_events"
PARTITIONS: Final = 4
USERS: Final = 24
WORKERS: Final = 3
SESSION_SECONDS: Final = 3.0
QUIET_SECONDS: Final = 240.0
COMMANDS_PER_ROUND: Final = 6
FAULTS_PER_ROUND: Final = 5
STAGE_TOPICS: Final = (
    "conversation_turns", "extracted_facts", "embedded_facts", "matched_facts", "memory_events", "dead_letters"
)  # fmt: skip
FAULTS: Final = {
    "worker SIGKILL": 7,
    "worker SIGSTOP beyond its session, then SIGCONT": 4,
    "worker SIGTERM": 3,
    "Kafka SIGKILL and restart": 2,
    "Postgres immediate shutdown and restart": 3,
    "worker SIGKILL while Kafka is away": 1,
    "worker SIGKILL while Postgres is away": 1,
}
POWER_CUTS: Final = ("power cut of all, log cut short", "power cut of Kafka alone, log cut short")
POWER_CUT_EVERY: Final = 4


@dataclass(slots=True)
class Tally:
    """What a run did."""

    seed: int
    faults: Counter[str] = field(default_factory=Counter)
    lost_commits: int = 0
    restored_commits: int = 0
    other_offsets: int = 0
    turns: int = 0
    commands: int = 0
    seconds: float = 0.0


class ChaosRun:
    """The machines, the stories that are told to them, and what was done."""

    def __init__(self, seed: int, folder: Path, environ: dict[str, str], say: Callable[[str], None]) -> None:
        self.chance = random.Random(seed)
        self.tally = Tally(seed)
        self.stories = [UserStory(number, seed) for number in range(USERS)]
        self.kafka = Server("kafka", folder / "k")
        self.postgres = Server("postgres", folder / "p")
        self.environ = environ
        self.bootstrap = self.database = ""
        self.workers = [Worker(f"worker{number}", environ, folder) for number in range(WORKERS)]
        self._say = say
        self._frozen: set[Worker] = set()
        self._thaws: list[asyncio.Task[None]] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Servers, topics, tables and workers; all stopped at the end."""
        try:
            self.bootstrap, self.database = await self.kafka.start(), await self.postgres.start()
            self.environ |= {"MNEMOLOG_KAFKA": self.bootstrap, "MNEMOLOG_POSTGRES": self.database}
            for command in (("migrate",), ("topics", "--create")):
                code, said = await mnemolog(self.environ, *command)
                assert code == 0, said
            await asyncio.gather(*(worker.start() for worker in self.workers))
            yield
        finally:
            self._keep_logs()
            for worker in self.workers:
                if worker._process is not None and worker.process.returncode is None:
                    worker.send(signal.SIGCONT)
                    await worker.kill()
            await self.kafka.stop()
            await self.postgres.stop()

    def _keep_logs(self) -> None:
        """Where a folder is named, the logs of the workers outlive the run."""
        if folder := os.environ.get("MNEMOLOG_CHAOS_LOGS"):
            for worker in self.workers:
                if worker.has_log:
                    (Path(folder) / f"{worker.name}.log").write_text(worker.log)

    async def round(self, number: int) -> None:
        """Publish the next turns and commands while faults happen."""
        await self._look_up_facts()
        said = [record for story in self.stories for record in story.say_more()]
        tellers = self.chance.sample(self.stories, COMMANDS_PER_ROUND)
        said += [one for story in tellers if (one := story.command(self.chance)) is not None]
        publishing = asyncio.create_task(self._publish(said))
        for kind in self.chance.choices(list(FAULTS), list(FAULTS.values()), k=FAULTS_PER_ROUND):
            await asyncio.sleep(self.chance.uniform(0, 1.5))
            await self._fault(kind)
        await publishing
        if number % POWER_CUT_EVERY == POWER_CUT_EVERY - 1:
            await self._thaw_all()
            await self._power_cut(POWER_CUTS[number // POWER_CUT_EVERY % len(POWER_CUTS)])

    async def settle(self) -> None:
        """Wait until every published source has its end, and stop the workers as an operator does."""
        await self._thaw_all()
        await self.wait_until_ended()
        codes = await asyncio.gather(*(worker.terminate() for worker in self.workers))
        assert set(codes) <= {0, -signal.SIGTERM}, codes

    async def wait_until_ended(self) -> None:
        wanted = sum(len(story.order) for story in self.stories)
        deadline = time.monotonic() + QUIET_SECONDS
        while (found := self._ended()) < wanted:
            for worker in self.workers:
                worker.assert_running()
            if time.monotonic() > deadline:
                raise AssertionError(f"{found} of {wanted} sources have ended, missing {await self._missing()}")
            await asyncio.sleep(0.3)

    async def _missing(self) -> dict[str, list[str]]:
        """The sources without an end, and the positions of all records that name them."""
        with psycopg.connect(self.database) as connection:
            ended = {row[0] for row in connection.execute("SELECT source_id FROM mnemolog.commits").fetchall()}
        missing = {one for story in self.stories for one in story.order} - ended
        return await find_records(self.bootstrap, [f"{PREFIX}{name}" for name in STAGE_TOPICS], PARTITIONS, missing)

    def _ended(self) -> int:
        with psycopg.connect(self.database) as connection:
            row = connection.execute("SELECT count(*) FROM mnemolog.commits").fetchone()
        assert row is not None
        return int(row[0])

    async def _publish(self, records: Sequence[Published]) -> None:
        """One user's records after another; each is sent again until the broker has confirmed it."""
        by_user: dict[str, list[Published]] = {}
        for record in records:
            by_user.setdefault(record.user, []).append(record)
            self.tally.commands += record.is_command
            self.tally.turns += not record.is_command
        producer = AIOKafkaProducer(bootstrap_servers=self.bootstrap, acks="all", enable_idempotence=True)
        await _until_kafka_answers(producer.start)

        async def tell(told: Sequence[Published]) -> None:
            for record in told:
                await _until_kafka_answers(lambda: producer.send_and_wait(TURNS, record.value, key=record.key))  # noqa: B023 -- called at once

        try:
            await asyncio.gather(*map(tell, by_user.values()))
        finally:
            await producer.stop()

    async def _look_up_facts(self) -> None:
        """The ids of the notes' facts, as far as the tables have them."""
        with psycopg.connect(self.database) as connection:
            rows = connection.execute("SELECT source_id, fact_id::text FROM mnemolog.facts").fetchall()
        known: dict[str, str] = dict(rows)
        for story in self.stories:
            for note in story.open_notes:
                note.fact_id = known.get(note.source_id)

    async def _fault(self, kind: str) -> None:
        self.tally.faults[kind] += 1
        self._say(kind)
        worker = self.chance.choice([one for one in self.workers if one not in self._frozen] or self.workers[:1])
        match kind.split():
            case ["worker", "SIGKILL"]:
                await self._kill_worker(worker)
            case ["worker", "SIGSTOP", *_]:
                self._freeze(worker)
            case ["worker", "SIGTERM"]:
                code = await worker.terminate()
                # A worker that was still loading its packages has no handler for signals yet.
                assert code in (0, -signal.SIGTERM), (code, worker.log[-3000:])
                await worker.start()
            case ["worker", "SIGKILL", "while", server, *_]:
                await self._restart(self.kafka if server == "Kafka" else self.postgres, worker)
            case [server, *_]:
                await self._restart(self.kafka if server == "Kafka" else self.postgres)

    async def _kill_worker(self, worker: Worker) -> None:
        worker.assert_running()
        await worker.kill()
        await worker.start()

    def _freeze(self, worker: Worker) -> None:
        if worker in self._frozen:
            return
        self._frozen.add(worker)
        worker.send(signal.SIGSTOP)

        async def thaw(seconds: float) -> None:
            await asyncio.sleep(seconds)
            worker.send(signal.SIGCONT)
            self._frozen.discard(worker)

        self._thaws.append(asyncio.create_task(thaw(SESSION_SECONDS + self.chance.uniform(1, 4))))

    async def _thaw_all(self) -> None:
        await asyncio.gather(*self._thaws)
        self._thaws.clear()

    async def _restart(self, server: Server, victim: Worker | None = None) -> None:
        await server.kill()
        if victim is not None:
            await self._kill_worker(victim)
        await asyncio.sleep(self.chance.uniform(0, 2))
        await server.start()

    async def _power_cut(self, kind: str) -> None:
        """Once all is in the tables, the log loses its end; an operator restores it."""
        await self.wait_until_ended()
        self.tally.faults[kind] += 1
        self._say(kind)
        before = await self._log_ends()
        if kind == POWER_CUTS[0]:
            await asyncio.gather(*(worker.kill() for worker in self.workers))
        await self.kafka.kill()
        for partition in self.chance.sample(range(PARTITIONS), 2):
            cut_log(self.kafka.folder / "kafka", LOG, partition, share=self.chance.uniform(0.05, 0.6))
        await self.kafka.start()
        lost = sum(before.values()) - sum((await self._log_ends()).values())
        if kind == POWER_CUTS[1]:
            await self._workers_notice()
        self.tally.lost_commits += lost
        report = await self._restore_log()
        self.tally.restored_commits += sum(loss["missing"] for loss in report["losses"])
        self.tally.other_offsets += sum(loss["differs_at"] is not None for loss in report["losses"])
        await asyncio.gather(*(worker.start() for worker in self.workers))

    async def _workers_notice(self) -> None:
        """The next turns come; a worker that would write over the lost offsets ends instead. The others are stopped."""
        await self._publish([record for story in self.stories for record in story.say_more()])
        deadline = time.monotonic() + QUIET_SECONDS
        while all(worker.process.returncode is None for worker in self.workers):
            assert time.monotonic() < deadline, "no worker noticed that the log is shorter than the tables"
            await asyncio.sleep(0.3)
        for worker in self.workers:
            code = worker.process.returncode
            code = await worker.terminate() if code is None else code
            # A signal while it already ends because of the log is taken for a second one.
            assert code in (0, 2, 130, -signal.SIGTERM), (code, worker.log[-3000:])

    async def _restore_log(self) -> Any:
        deadline = time.monotonic() + QUIET_SECONDS
        while True:
            code, said = await mnemolog(self.environ, "restore-log")
            if code == 0:
                return said
            assert "workers still run" in said, said
            assert time.monotonic() < deadline, said

    async def _log_ends(self) -> dict[int, int]:
        consumer = AIOKafkaConsumer(bootstrap_servers=self.bootstrap)
        await consumer.start()
        try:
            places = [TopicPartition(LOG, number) for number in range(PARTITIONS)]
            return {place.partition: end for place, end in (await consumer.end_offsets(places)).items()}
        finally:
            await consumer.stop()


def worker_environ() -> dict[str, str]:
    """Small windows, so that they are full at most rebalances, and sessions that end soon."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MNEMOLOG_")}
    settings = {
        "TOPIC_PREFIX": PREFIX,
        "PARTITIONS": PARTITIONS,
        "SESSION_TIMEOUT": SESSION_SECONDS,
        "HEARTBEAT_INTERVAL": 0.5,
        "MAX_PENDING": 12,
        "MAX_IN_FLIGHT": 4,
        "DRAIN_GRACE": 10,
        "METRICS_PORT": 0,
        "POSTGRES_POOL_SIZE": 8,
        "LOG_LEVEL": "warning",
    }
    threads = {"OMP_NUM_THREADS": "1"}
    return inherited | threads | {f"MNEMOLOG_{name}": str(value) for name, value in settings.items()}


async def _until_kafka_answers(call: Callable[[], Awaitable[object]]) -> None:
    while True:
        try:
            await call()
        except KafkaError:
            await asyncio.sleep(0.3)
        else:
            return
