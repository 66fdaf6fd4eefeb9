"""Runs one seed: publishes, starts workers, lets things happen to them, waits until all is quiet, and has it checked."""

import asyncio
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import structlog
from mode import Service

from mnemolog.streams.kafka import app as app_module
from tests.simulation.broker import Broker
from tests.simulation.checker import Checker
from tests.simulation.faust_driver import SimulatedTransport
from tests.simulation.loop import SimulatedLoop, run_simulated
from tests.simulation.worker import OUTPUT, TUNING, ModelServer, SimulatedWorker, StoredReplies
from tests.simulation.workload import PARTITIONS, QUIET_AFTER, Mishap, Workload, workload

SOURCE: Final = "conversation_turns"
PATIENCE_SECONDS: Final = 400.0
"""After the last fault; the longest pause of a restart is 60 s, and a hot owner has 150 records of a second each."""


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
        return run_simulated(seed, lambda loop: _Simulation(loop, workload(seed)).run())


@contextmanager
def _simulated_surroundings(seed: int) -> Iterator[None]:
    """Faust over the simulated broker, its timers by the simulated clock, no log lines."""
    random.seed(seed)
    transport, timers = app_module.PatchedTransport, Service.itertimer.__kwdefaults__ or {}
    clock, logging = timers["clock"], structlog.get_config()
    app_module.PatchedTransport = SimulatedTransport  # type: ignore[misc]
    timers["clock"] = lambda: asyncio.get_running_loop().time()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50), cache_logger_on_first_use=False)
    try:
        yield
    finally:
        app_module.PatchedTransport = transport  # type: ignore[misc]
        timers["clock"] = clock
        structlog.configure(**logging)


class _Simulation:
    def __init__(self, loop: SimulatedLoop, load: Workload) -> None:
        self._loop = loop
        self._load = load
        self._broker = Broker(
            loop,
            source=SOURCE,
            partitions=PARTITIONS,
            session=TUNING.session_timeout,
            rebalance=TUNING.rebalance_timeout,
        )
        self._server = ModelServer(loop, load)
        self._replies = StoredReplies()
        self._workers: list[SimulatedWorker] = []
        self._lives = 0

    async def run(self) -> Result:
        publishing = asyncio.create_task(self._publish())
        for _ in range(self._load.workers):
            self._start_worker()
        self._broker.commit_failures = self._load.commit_failures
        for mishap in sorted(self._load.mishaps, key=lambda one: one.at):
            await self._until(mishap.at)
            self._happen(mishap)
        await self._until(QUIET_AFTER)
        self._broker.commit_failures = 0.0
        if not self._workers:
            self._start_worker()
        await publishing
        while not self._is_done() and self._loop.time() < QUIET_AFTER + PATIENCE_SECONDS:
            await asyncio.sleep(1.0)
        problems = Checker(self._broker, self._load, output=OUTPUT).problems()
        trace = hash(tuple((one.at, one.record.position, one.record.value) for one in self._broker.appends))
        return Result(self._load.seed, tuple(problems), trace, self._loop.time())

    async def _publish(self) -> None:
        for one in self._load.publications:
            await self._until(one.at)
            value = json.dumps({"number": one.number, "owner": one.owner, "kind": one.kind}).encode()
            self._broker.append(SOURCE, one.owner.encode(), value, (), "publisher")

    async def _until(self, at: float) -> None:
        if at > self._loop.time():
            await asyncio.sleep(at - self._loop.time())

    def _start_worker(self) -> None:
        self._lives += 1
        worker = SimulatedWorker(
            f"worker-{self._lives}", self._loop, self._broker, self._load, self._server, self._replies
        )
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
        else:
            worker.stop.set()
        self._workers.remove(worker)
        self._loop.call_later(mishap.seconds, self._start_worker)

    def _is_done(self) -> bool:
        return self._loop.time() >= QUIET_AFTER / 2 and all(
            self._broker.committed.get(partition, 0) >= len(self._broker.lane(partition))
            for partition in range(PARTITIONS)
        )
