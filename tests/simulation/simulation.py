"""Runs one seed: publishes, starts workers, lets things happen to them, waits until all is quiet, has it checked."""

import asyncio
import gc
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final
from unittest.mock import patch
from zlib import crc32

import structlog
from mode import Service

from mnemolog.projections.write import projector as projector_module
from mnemolog.projections.write.rows import Changes
from mnemolog.streams.kafka import app as app_module
from mnemolog.streams.runtime import worker as windows_module
from mnemolog.streams.runtime.read_your_writes import ReadYourWrites
from tests.simulation.checker import Checker
from tests.simulation.loop import EndlessLoop, SimulatedLoop, run_simulated
from tests.simulation.servers.broker import Broker
from tests.simulation.servers.faust_driver import SimulatedTransport
from tests.simulation.servers.models import ModelServer, StoredReplies
from tests.simulation.servers.postgres import Connection, Postgres
from tests.simulation.stages import DRAIN_SECONDS, SESSION_SECONDS, SimulatedWorker, World
from tests.simulation.workload import LOG, PARTITIONS, SOURCE, CommitWriter, Mishap, Workload, source_record, workload

PATIENCE_SECONDS: Final = 400.0
"""After the last fault; the longest pause of a restart is 60 s, and a hot owner has 150 records of a second each."""
BATCH_RECORDS: Final = 4  # so few that a seed has batches that are full


@dataclass(frozen=True)
class Result:
    """What a seed came to; `trace` is equal for equal runs."""

    seed: int
    problems: tuple[str, ...]
    trace: int
    seconds: float


def simulate(seed: int) -> Result:
    """Run one seed."""
    with _simulated_surroundings(seed):
        try:
            return run_simulated(seed, lambda loop: _Simulation(loop, workload(seed)).run())
        except EndlessLoop:
            return Result(seed, ("stuck: callback follows callback, and time does not go on",), 0, 0.0)


@contextmanager
def _simulated_surroundings(seed: int) -> Iterator[None]:
    """Faust over the simulated broker, its timers by the simulated clock, no log lines, no garbage collection."""
    random.seed(seed)
    gc.collect()
    gc.disable()  # it would close forgotten generators when memory says so, which no seed decides
    timers: dict[str, Any] = Service.itertimer.__kwdefaults__ or {}
    clock, logging = timers["clock"], structlog.get_config()
    timers["clock"] = _now
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50), cache_logger_on_first_use=False)
    try:
        with ExitStack() as patches:
            patches.enter_context(patch.object(app_module, "PatchedTransport", SimulatedTransport))
            patches.enter_context(patch.object(windows_module, "BATCH_RECORDS", BATCH_RECORDS))
            patches.enter_context(patch.dict(ReadYourWrites.__init__.__kwdefaults__ or {}, clock=_now))
            for name, simulated in _ROW_WRITERS.items():
                patches.enter_context(patch.object(projector_module, name, simulated))
            yield
    finally:
        timers["clock"] = clock
        structlog.configure(**logging)
        gc.enable()


def _now() -> float:
    return asyncio.get_running_loop().time()


async def _write_rows(connection: Connection, changes: Changes) -> None:
    await connection.write(changes)


async def _write_nothing(_connection: Connection, *_what: object) -> None:
    """The simulated tables have all of it from the changes."""


async def _none(_connection: Connection, _changes: Changes) -> list[Any]:
    return []


_ROW_WRITERS: Final = {
    "copy_rows": _write_rows,
    "update_rows": _write_nothing,
    "refresh_profiles": _write_nothing,
    "refresh_entities": _write_nothing,
    "hide_facts": _none,
    "read_overwrites": _none,
}


class _Simulation:
    def __init__(self, loop: SimulatedLoop, load: Workload) -> None:
        self._loop = loop
        self._load = load
        self._broker = Broker(
            loop,
            partitions=PARTITIONS,
            session=SESSION_SECONDS,
            rebalance=DRAIN_SECONDS + app_module.REBALANCE_SECONDS,
        )
        self._postgres = Postgres(loop)
        self._world = World(
            loop=loop,
            load=load,
            broker=self._broker,
            postgres=self._postgres,
            server=ModelServer(loop, load),
            replies=StoredReplies(),
        )
        self._workers: list[SimulatedWorker] = []
        self._lives = 0

    async def run(self) -> Result:
        """Let the seed happen, and judge it."""
        await self._live()
        return self._result()

    async def _live(self) -> None:
        publishing = asyncio.create_task(self._publish())
        for _ in range(self._load.workers):
            self._start_worker()
        self._broker.set_failures(commits=self._load.commit_failures, sends=self._load.send_failures)
        self._postgres.failures = self._load.database_failures
        self._postgres.statement_seconds = self._load.statement_seconds
        for mishap in sorted(self._load.mishaps, key=lambda one: one.at):
            await self._until(mishap.at)
            self._happen(mishap)
        await self._until(self._load.quiet_after)
        self._broker.set_failures(commits=0.0, sends=0.0)
        self._postgres.failures = 0.0
        if not self._workers:
            self._start_worker()
        await publishing
        while not self._is_done() and self._loop.time() < self._load.quiet_after + PATIENCE_SECONDS:  # noqa: ASYNC110 -- simulated
            await asyncio.sleep(1.0)

    def _result(self) -> Result:
        problems = Checker(self._broker, self._load, self._postgres.tables).problems()
        # Without the bytes: the records say how many real milliseconds a step took.
        history = [(one.at, one.member, one.record.position, one.record.key) for one in self._broker.appends]
        commits = {name: group.commits for name, group in self._broker.groups.items()}
        trace = crc32(repr((history, commits, self._postgres.tables.moves)).encode())
        return Result(self._load.seed, tuple(problems), trace, self._loop.time())

    async def _publish(self) -> None:
        writer = CommitWriter(self._load.seed)
        for one in self._load.publications:
            await self._until(one.at)
            key, value = source_record(one)
            sent = self._broker.append(SOURCE, key, value, (), "publisher")
            if "project" in self._load.stages and "resolve" not in self._load.stages:
                for record in writer.records_of(one, sent.partition, sent.offset):
                    self._broker.append(LOG, key, record, (), "publisher")

    async def _until(self, at: float) -> None:
        if at > self._loop.time():
            await asyncio.sleep(at - self._loop.time())

    def _start_worker(self) -> None:
        self._lives += 1
        worker = SimulatedWorker(f"worker-{self._lives}", self._world)
        self._workers.append(worker)
        self._loop.start_process(worker.name, worker.run())

    def _happen(self, mishap: Mishap) -> None:
        if mishap.what == "join" or not self._workers:
            self._start_worker()
            return
        worker = self._loop.random.choice(self._workers)
        if mishap.what == "freeze":
            self._loop.freeze(worker.name)
            self._loop.call_later(mishap.seconds, self._loop.thaw, worker.name)
            return
        if mishap.what == "kill":
            self._loop.kill(worker.name)
            self._postgres.disconnect(worker.name)
        else:
            worker.stop.set()
        self._workers.remove(worker)
        self._loop.call_later(mishap.seconds, self._start_worker)

    def _is_done(self) -> bool:
        groups = self._broker.groups.values()
        return self._loop.time() > self._load.publications[-1].at and all(
            group.committed.get(partition, 0) >= len(self._broker.lane(group.topic, partition))
            for group in groups
            for partition in range(PARTITIONS)
        )
