"""The faults of a chaos run, each as a machine has it."""

import asyncio
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg

from tests.chaos.brokers import Brokers
from tests.chaos.cluster import MODEL_SECONDS, MODEL_TIMEOUT_SECONDS, SESSION_SECONDS, Cluster
from tests.chaos.machines import Server, Worker

FAULTS: Final = {
    "worker SIGKILL": 7,
    "worker SIGSTOP beyond its session, then SIGCONT": 4,
    "worker SIGTERM": 3,
    "Kafka SIGKILL and restart": 2,
    "Postgres immediate shutdown and restart": 3,
    "worker SIGKILL while Kafka is away": 1,
    "worker SIGKILL while Postgres is away": 1,
    "worker start while Kafka is away: it says what it waits for": 1,
    "worker start while Postgres is away: it says what it waits for": 1,
    "Postgres disk full (SQLSTATE 53100), then space again": 1,
    "Postgres read-only, then not": 1,
    "model server answers after its time limit": 2,
    "model server sends its replies byte by byte": 2,
    "brownout: 30 % of model calls fail, and a worker SIGKILL": 2,
}
"""How often each comes among as many as there are in all."""
FAULTS_OF_THREE_BROKERS: Final = {
    "Kafka leader SIGKILL, its newest records cut off, and restart": 4,
    "worker SIGKILL while Kafka has lost a leader": 2,
    "worker SIGSTOP beyond its session, then SIGCONT": 1,
    "worker SIGTERM": 1,
    "Postgres immediate shutdown and restart": 1,
}
BROWNOUTS: Final[tuple[dict[str, Any], ...]] = (
    {"mode": "status", "status": 500},
    {"mode": "status", "status": 429, "retry_after": "1"},
    {"mode": "cut"},
)
BROWNOUT_SHARE: Final = 0.3
FULL_TABLES: Final = ("commits", "turns", "facts")
START_SECONDS: Final = 120.0
ATTEMPTS_SAID: Final = 2


class Faults:
    """Draws faults and does them; those that last end by themselves, at the latest with `end`."""

    def __init__(self, cluster: Cluster, chance: random.Random, say: Callable[[str], None]) -> None:
        self.done: Counter[str] = Counter()
        self._cluster = cluster
        self._chance = chance
        self._say = say
        self._coming: list[str] = []
        self._frozen: set[Worker] = set()
        self._lasting: list[asyncio.Task[None]] = []
        self._model_is_bad = False
        self.spoilt_model_calls = 0

    def draw(self) -> str:
        """Every fault comes as often as it should before any of them comes more often."""
        if not self._coming:
            faults = FAULTS if self._cluster.kafka.copies == 1 else FAULTS_OF_THREE_BROKERS
            self._coming = [kind for kind, times in faults.items() for _ in range(times)]
            self._chance.shuffle(self._coming)
        return self._coming.pop()

    async def end(self) -> None:
        await asyncio.gather(*self._lasting)
        self._lasting.clear()

    def count(self, kind: str) -> None:
        self.done[kind] += 1
        self._say(kind)

    async def happen(self, kind: str) -> None:
        self.count(kind)
        workers = self._cluster.workers
        worker = self._chance.choice([one for one in workers if one not in self._frozen] or workers[:1])
        match kind.split():
            case ["worker", "SIGKILL"]:
                await worker.kill_and_start()
            case ["worker", "SIGSTOP", *_]:
                self._freeze(worker)
            case ["worker", "SIGTERM"]:
                code = await worker.terminate()
                # A worker that was still loading its packages has no handler for signals yet.
                assert code in (0, -signal.SIGTERM), (code, worker.log[-3000:])
                await worker.start()
            case ["worker", "SIGKILL", "while", server, *_]:
                await self._restart(self._server(server), worker)
            case ["worker", "start", "while", server, *_]:
                await self._start_before(server, worker)
            case ["Postgres", "disk", *_]:
                await self._fill_disk()
            case ["Postgres", "read-only,", *_]:
                await self._make_read_only()
            case ["model", *_] | ["brownout:", *_]:
                await self._spoil_model(kind, worker)
            case [server, *_]:
                await self._restart(self._server(server))

    def _server(self, name: str) -> Server | Brokers:
        return {"Kafka": self._cluster.kafka, "Postgres": self._cluster.postgres}[name]

    def _freeze(self, worker: Worker) -> None:
        if worker in self._frozen:
            return
        self._frozen.add(worker)
        worker.send(signal.SIGSTOP)

        def thaw() -> None:
            worker.send(signal.SIGCONT)
            self._frozen.discard(worker)

        self._after(SESSION_SECONDS + self._chance.uniform(1, 4), thaw)

    def _after(self, seconds: float, end: Callable[[], None]) -> None:
        async def wait() -> None:
            await asyncio.sleep(seconds)
            end()

        self._lasting.append(asyncio.create_task(wait()))

    async def _restart(self, server: Server | Brokers, victim: Worker | None = None) -> None:
        await server.kill()
        if victim is not None:
            await victim.kill_and_start()
        await asyncio.sleep(self._chance.uniform(0, 2))
        await server.start()

    async def _start_before(self, name: str, worker: Worker) -> None:
        """The server comes back once the log of the worker has said twice that it waits for it."""
        server = self._server(name)
        await server.kill()
        worker.assert_running()
        await worker.kill()
        said = len(worker.log)
        await worker.start()
        deadline = time.monotonic() + START_SECONDS
        while _waits_said(worker.log[said:], name) < ATTEMPTS_SAID:
            worker.assert_running()
            assert time.monotonic() < deadline, worker.log[said:][-3000:]
            await asyncio.sleep(0.1)
        await server.start()

    async def _fill_disk(self) -> None:
        table = self._chance.choice(FULL_TABLES)
        with self._as_administrator() as connection:
            connection.execute(
                "CREATE OR REPLACE FUNCTION public.chaos_disk_full() RETURNS trigger LANGUAGE plpgsql AS "
                "$$BEGIN RAISE 'No space left on device' USING ERRCODE = '53100'; END$$"
            )
            connection.execute(
                f"CREATE TRIGGER chaos_disk_full BEFORE INSERT ON mnemolog.{table} "
                "EXECUTE FUNCTION public.chaos_disk_full()"
            )
            try:
                await asyncio.sleep(self._chance.uniform(1, 4))
            finally:
                connection.execute(f"DROP TRIGGER chaos_disk_full ON mnemolog.{table}")

    async def _make_read_only(self) -> None:
        with self._as_administrator() as connection:
            connection.execute("ALTER SYSTEM SET default_transaction_read_only = on")
            connection.execute("SELECT pg_reload_conf()")
            try:
                await asyncio.sleep(self._chance.uniform(1, 4))
            finally:
                connection.execute("ALTER SYSTEM RESET default_transaction_read_only")
                connection.execute("SELECT pg_reload_conf()")

    @contextmanager
    def _as_administrator(self) -> Iterator[psycopg.Connection]:
        """A session that may write, whatever the server's default is."""
        options = "-c default_transaction_read_only=off"
        with psycopg.connect(self._cluster.database, autocommit=True, options=options) as connection:
            yield connection

    async def _spoil_model(self, kind: str, victim: Worker) -> None:
        if not self._model_is_bad:
            self._model_is_bad = True
            model = self._cluster.model
            before = model.requests.total()
            if kind.startswith("model server answers"):
                model.latency = model.embedding_latency = MODEL_TIMEOUT_SECONDS + 3
            elif kind.startswith("model server sends"):
                model.fail(mode="trickle", times=None)
            else:
                model.fail(**self._chance.choice(BROWNOUTS), times=None, share=BROWNOUT_SHARE)
            self._after(self._chance.uniform(4, 12), lambda: self._mend_model(before))
        if kind.startswith("brownout"):
            await victim.kill_and_start()

    def _mend_model(self, calls_before: int) -> None:
        model, self._model_is_bad = self._cluster.model, False
        self.spoilt_model_calls += model.requests.total() - calls_before
        model.latency = model.embedding_latency = MODEL_SECONDS
        model.failures.clear()


def _waits_said(log: str, server: str) -> int:
    return sum("waiting_for_server" in line and server in line for line in log.splitlines())
