"""What is measured, for how long, in which order."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final

from mnemolog.client.async_client import AsyncMemoryClient
from mnemolog.streams.runtime.worker import ALL_STAGES
from tests.bench.environment import LAYOUTS, PARTITIONS, Environment, environment, model_server, servers
from tests.bench.figures import Percentiles
from tests.bench.gateway import Gateway, measure_gateway
from tests.bench.machine import Machine, MachineBaseline, measure_machine
from tests.bench.query_speed import QueryFigures, measure_queries
from tests.bench.samples import turns
from tests.bench.scope_cost import ScopeCost, measure_scope_costs
from tests.bench.shared_calls import CALL_TURNS, LINGERS, BacklogCost, LingerCost, measure_backlog, measure_linger
from tests.bench.stores import (
    WARMING,
    Latency,
    Throughput,
    acknowledgements,
    added_by_second,
    command_latencies,
    idle_cost,
    latency,
    throughput,
)
from tests.bench.understanding_cost import Spent, measure_cousins, measure_understanding

SCALING_PARTITIONS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Times in seconds, sizes in facts; `seconds` is the length of each measurement.

    `loads` are shares of the rate at which a layout stores most. Of `workers` as many are measured as there are cores.
    """

    warm_up: float
    seconds: float
    layouts: tuple[str, ...]
    loads: tuple[float, ...]
    pairs: int
    idle_seconds: float
    sizes: tuple[int, ...]
    scopes: tuple[int, ...]
    questions: int
    acknowledgements: int
    commands: int
    named_rounds: int
    workers: tuple[int, ...]


FULL: Final = Plan(
    warm_up=20,
    seconds=60,
    layouts=tuple(LAYOUTS),
    loads=(0.1,),
    pairs=60,
    idle_seconds=30,
    sizes=(10_000, 100_000),
    scopes=(100, 1_000, 10_000, 50_000, 100_000),
    questions=500,
    acknowledgements=500,
    commands=100,
    named_rounds=6,
    workers=(1, 2, 4, 8),
)
QUICK: Final = replace(
    FULL,
    warm_up=5,
    seconds=10,
    layouts=("one process", "two processes"),
    pairs=20,
    idle_seconds=10,
    sizes=(1_000,),
    scopes=(100, 1_000),
    questions=50,
    acknowledgements=50,
    commands=20,
    named_rounds=2,
    workers=(1, 2),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Everything that one run measured, mostly by the name of the layout of workers."""

    plan: Plan
    machine: Machine
    machine_baseline: MachineBaseline
    publish_latency: Percentiles
    smart: Mapping[str, Throughput]
    raw: Mapping[str, Throughput]
    latencies: Mapping[str, tuple[Latency, ...]]
    added_by_second: Mapping[str, Percentiles]
    """By how many milliseconds the second of two raw turns of a user takes longer."""
    command_latencies: Mapping[str, Mapping[str, Percentiles]]
    idle: Mapping[str, float]
    queries: tuple[QueryFigures, ...]
    gateway: Gateway
    scope_costs: tuple[ScopeCost, ...]
    backlogs: tuple[BacklogCost, ...]
    lingers: tuple[LingerCost, ...]
    understanding: Mapping[str, Spent]
    cousins: Mapping[int, float]
    """Milliseconds of Postgres for a turn that names a new cousin of a user with so many."""
    scaling: Mapping[int, Throughput]
    """Smart stores by so many workers with all stages."""
    load_at_the_end: float

    @property
    def best_smart(self) -> tuple[str, Throughput]:
        """The layout that stored most, and its figures."""
        return max(self.smart.items(), key=lambda one: one[1].rate.per_second)

    @property
    def best_raw(self) -> tuple[str, Throughput]:
        return max(self.raw.items(), key=lambda one: one[1].rate.per_second)


async def measure(plan: Plan, tell: Callable[[str], None]) -> Results:  # noqa: C901 -- one after another
    """Start the servers, measure one thing after another, each with topics and a database of its own, and stop them."""
    machine = Machine.describe()
    tell("starting Kafka and Postgres")
    async with servers() as running, model_server(running.folder) as (base_url, model_pid):
        pids = {"model": model_pid}

        @asynccontextmanager
        async def arena(step: str, name: str, partitions: int = PARTITIONS) -> AsyncIterator[Environment]:
            tell(step)
            async with environment(running, name, partitions=partitions) as one:
                yield one.with_model(base_url)

        async with arena("yardsticks", "yardstick") as one:
            baseline = await measure_machine(one)

        async with (
            arena("publishing, one turn after another", "publish") as one,
            AsyncMemoryClient(settings=one.settings) as client,
        ):
            await acknowledgements(client, turns(prefix=WARMING), plan.acknowledgements // 10)
            publish_latency = Percentiles.of(await acknowledgements(client, turns(), plan.acknowledgements))

        window = {"warm_up": plan.warm_up, "seconds": plan.seconds}
        smart, raw, latencies, added, commands, idle = {}, {}, {}, {}, {}, {}
        for name in plan.layouts:
            async with arena(f"smart store, {name}", f"smart {name}") as one:
                smart[name] = await throughput(one, LAYOUTS[name], turns(), pids, **window)
        for name in plan.layouts:
            async with arena(f"raw store, {name}", f"raw {name}") as one:
                raw[name] = await throughput(one, LAYOUTS[name], turns(infer=False), pids, **window)
        for name, stored in smart.items():
            measured = []
            for share in plan.loads:
                rate = max(1, round(share * stored.rate.per_second))
                async with arena(f"{rate} turns a second, {name}", f"load{share * 100:.0f} {name}") as one:
                    measured.append(await latency(one, LAYOUTS[name], pids, rate=rate, **window))
            latencies[name] = tuple(measured)
        for name in plan.layouts:
            async with arena(f"two raw turns of one user at once, {name}", f"pairs {name}") as one:
                added[name] = await added_by_second(one, LAYOUTS[name], pairs=plan.pairs)
        for name in plan.layouts:
            async with arena(f"commands, one after another, {name}", f"commands {name}") as one:
                commands[name] = await command_latencies(one, LAYOUTS[name], count=plan.commands)
        for name in plan.layouts:
            async with arena(f"no turns, {name}", f"idle {name}") as one:
                idle[name] = await idle_cost(one, LAYOUTS[name], seconds=plan.idle_seconds)

        queries = []
        for facts in plan.sizes:
            async with arena(f"{facts} facts: projecting, searching, rebuilding", f"asked{facts}") as one:
                queries.append(await measure_queries(one, facts, questions=plan.questions))
                over_http = await measure_gateway(one, facts, questions=plan.questions)

        async with arena("scopes of growing size", "scopes") as one:
            scope_costs = await measure_scope_costs(one, plan.scopes, repeats=plan.questions)

        backlogs, lingers = [], []
        for call_turns in CALL_TURNS:
            async with arena(f"a backlog, {call_turns} turns in a call at most", f"backlog{call_turns}") as one:
                backlogs.append(await measure_backlog(one, call_turns=call_turns))
        for seconds in LINGERS:
            async with arena(f"turns that wait {seconds} s for each other", f"linger{seconds}") as one:
                lingers.append(await measure_linger(one, linger=seconds))

        tell("turns that name people, with each part of understanding and without")
        understanding = await measure_understanding(running, rounds=plan.named_rounds)
        cousins = await measure_cousins(running, rounds=plan.named_rounds)

        scaling = {}
        for count in plan.workers:
            if count <= machine.cores:
                step = f"smart store, {count} workers with all stages"
                async with arena(step, f"scaling{count}", SCALING_PARTITIONS) as one:
                    scaling[count] = await throughput(one, (ALL_STAGES,) * count, turns(), pids, **window)

        return Results(
            plan=plan,
            machine=machine,
            machine_baseline=baseline,
            publish_latency=publish_latency,
            smart=smart,
            raw=raw,
            latencies=latencies,
            added_by_second=added,
            command_latencies=commands,
            idle=idle,
            queries=tuple(queries),
            gateway=over_http,
            scope_costs=scope_costs,
            backlogs=tuple(backlogs),
            lingers=tuple(lingers),
            understanding=understanding,
            cousins=cousins,
            scaling=scaling,
            load_at_the_end=Machine.describe().load,
        )
