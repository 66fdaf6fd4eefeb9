"""What is measured, for how long, in which order."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from mnemolog.client.async_client import AsyncMemoryClient
from tests.bench.command_latency import CommandLatency, measure_command_latency
from tests.bench.environment import Environment, Servers, environment, servers
from tests.bench.idle_cost import measure_idle
from tests.bench.machine import Machine, describe
from tests.bench.machine_baseline import MachineBaseline, measure_machine
from tests.bench.named_turns import named_model_server
from tests.bench.processes import model_server
from tests.bench.query_speed import QueryFigures, measure_queries
from tests.bench.sample_turns import turns
from tests.bench.scaling import PARTITIONS, Scaling
from tests.bench.scope_cost import ScopeCost, measure_scope_costs
from tests.bench.shared_calls import CALL_TURNS, LINGERS, BacklogCost, LingerCost, measure_backlog, measure_linger
from tests.bench.statistics import Percentiles
from tests.bench.turn_pairs import TurnPairs, measure_pairs
from tests.bench.turn_throughput import MEASURED, WARMING, Latency, Throughput, acknowledgements, latency, throughput
from tests.bench.understanding_cost import PROVIDERS, UnderstandingCost, measure_provider
from tests.bench.worker_layouts import ALL_STAGES, LAYOUTS, Layout

MODEL_SECONDS: Final = 0.3
Tell = Callable[[str], None]


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
QUICK: Final = Plan(
    warm_up=5,
    seconds=10,
    layouts=("one process", "two processes"),
    loads=(0.1,),
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
    """Everything that one run measured."""

    plan: Plan
    machine: Machine
    machine_baseline: MachineBaseline
    publish_latency: Percentiles
    smart: Mapping[str, Throughput]
    raw: Mapping[str, Throughput]
    latencies: Mapping[str, tuple[Latency, ...]]
    pairs: Mapping[str, tuple[TurnPairs, ...]]
    command_latencies: Mapping[str, tuple[CommandLatency, ...]]
    idle: Mapping[str, float]
    queries: tuple[QueryFigures, ...]
    scope_costs: tuple[ScopeCost, ...]
    backlogs: tuple[BacklogCost, ...]
    lingers: tuple[LingerCost, ...]
    understanding: tuple[UnderstandingCost, ...]
    scaling: tuple[Scaling, ...]
    load_at_the_end: float

    @property
    def best_smart(self) -> tuple[str, Throughput]:
        """The layout that stored most, and its figures."""
        return max(self.smart.items(), key=lambda one: one[1].rate.per_second)

    @property
    def best_raw(self) -> tuple[str, Throughput]:
        return max(self.raw.items(), key=lambda one: one[1].rate.per_second)


async def measure(plan: Plan, tell: Tell) -> Results:
    """Start the servers, measure one thing after another, and stop them."""
    machine = describe()
    tell("starting Kafka and Postgres")
    async with servers() as running, model_server(MODEL_SECONDS, running.folder) as (base_url, pid):
        bench = _Benchmark(plan, running, base_url, {"model": pid}, tell)
        baseline, publish_latency = await bench.yardstick(), await bench.acknowledged()
        smart = {name: await bench.throughput(name, infer=True) for name in plan.layouts}
        return Results(
            plan=plan,
            machine=machine,
            machine_baseline=baseline,
            publish_latency=publish_latency,
            smart=smart,
            raw={name: await bench.throughput(name, infer=False) for name in plan.layouts},
            latencies={name: await bench.latencies(name, stored.rate.per_second) for name, stored in smart.items()},
            pairs={name: await bench.pairs(name) for name in plan.layouts},
            command_latencies={name: await bench.command_latency(name) for name in plan.layouts},
            idle={name: await bench.idle(name) for name in plan.layouts},
            queries=tuple([await bench.queries(size) for size in plan.sizes]),
            scope_costs=await bench.scope_costs(),
            backlogs=tuple([await bench.backlog(call_turns) for call_turns in CALL_TURNS]),
            lingers=tuple([await bench.linger(seconds) for seconds in LINGERS]),
            understanding=await bench.understanding(),
            scaling=tuple([await bench.scaling(count) for count in plan.workers if count <= machine.cores]),
            load_at_the_end=describe().load,
        )


class _Benchmark:
    """Measures on running servers, each thing in an arena of its own."""

    def __init__(self, plan: Plan, running: Servers, base_url: str, pids: dict[str, int], tell: Tell) -> None:
        self._plan = plan
        self._servers = running
        self._base_url = base_url
        self._pids = pids
        self._tell = tell

    async def yardstick(self) -> MachineBaseline:
        self._tell("yardsticks")
        async with environment(self._servers, "yardstick") as one:
            return await measure_machine(one)

    async def acknowledged(self) -> Percentiles:
        self._tell("publishing, one turn after another")
        async with (
            environment(self._servers, "publish") as one,
            AsyncMemoryClient.from_settings(one.settings) as client,
        ):
            await acknowledgements(client, turns(prefix=WARMING), self._plan.acknowledgements // 10)
            return Percentiles.of(await acknowledgements(client, turns(), self._plan.acknowledgements))

    async def throughput(self, layout: str, *, infer: bool) -> Throughput:
        kind = "smart" if infer else "raw"
        self._tell(f"{kind} store, {layout}")
        async with environment(self._servers, _name(kind, layout)) as one:
            return await self._store(one, LAYOUTS[layout], infer=infer)

    async def scaling(self, count: int) -> Scaling:
        self._tell(f"smart store, {count} workers with all stages")
        async with environment(self._servers, f"scaling{count}", partitions=PARTITIONS) as one:
            return Scaling(workers=count, stored=await self._store(one, (ALL_STAGES,) * count, infer=True))

    async def _store(self, one: Environment, layout: Layout, *, infer: bool) -> Throughput:
        return await throughput(
            self._with_model(one),
            layout,
            turns(infer=infer),
            self._pids,
            warm_up=self._plan.warm_up,
            seconds=self._plan.seconds,
        )

    async def latencies(self, layout: str, highest: float) -> tuple[Latency, ...]:
        """At shares of the rate at which this layout stores most."""
        return tuple([await self._latency(layout, share, max(1, round(share * highest))) for share in self._plan.loads])

    async def _latency(self, layout: str, share: float, rate: int) -> Latency:
        self._tell(f"{rate} turns a second, {layout}")
        async with environment(self._servers, _name(f"load{share * 100:.0f}", layout)) as one:
            return await latency(
                self._with_model(one),
                LAYOUTS[layout],
                (turns(prefix=WARMING), turns(prefix=MEASURED)),
                self._pids,
                rate=rate,
                warm_up=self._plan.warm_up,
                seconds=self._plan.seconds,
                model_seconds=MODEL_SECONDS,
            )

    async def pairs(self, layout: str) -> tuple[TurnPairs, ...]:
        return tuple([await self._pairs(layout, infer=infer) for infer in (True, False)])

    async def _pairs(self, layout: str, *, infer: bool) -> TurnPairs:
        kind = "smart" if infer else "raw"
        self._tell(f"two {kind} turns of one user at once, {layout}")
        async with environment(self._servers, _name(f"pairs_{kind}", layout)) as one:
            return await measure_pairs(
                self._with_model(one), LAYOUTS[layout], count=self._plan.pairs, infer=infer, model_seconds=MODEL_SECONDS
            )

    async def idle(self, layout: str) -> float:
        self._tell(f"no turns, {layout}")
        async with environment(self._servers, _name("idle", layout)) as one:
            return await measure_idle(self._with_model(one), LAYOUTS[layout], seconds=self._plan.idle_seconds)

    async def command_latency(self, layout: str) -> tuple[CommandLatency, ...]:
        self._tell(f"commands, one after another, {layout}")
        async with environment(self._servers, _name("commands", layout)) as one:
            return await measure_command_latency(self._with_model(one), LAYOUTS[layout], count=self._plan.commands)

    async def queries(self, facts: int) -> QueryFigures:
        self._tell(f"{facts} facts: projecting, searching, rebuilding")
        async with environment(self._servers, f"asked{facts}") as one:
            return await measure_queries(self._with_model(one), facts, questions=self._plan.questions)

    async def scope_costs(self) -> tuple[ScopeCost, ...]:
        self._tell("scopes of growing size")
        async with environment(self._servers, "scopes") as one:
            return await measure_scope_costs(one, self._plan.scopes, repeats=self._plan.questions)

    async def backlog(self, call_turns: int) -> BacklogCost:
        self._tell(f"a backlog, {call_turns} turns in a call at most")
        async with environment(self._servers, f"backlog{call_turns}") as one:
            return await measure_backlog(self._with_model(one), call_turns=call_turns)

    async def linger(self, seconds: int) -> LingerCost:
        self._tell(f"turns that wait {seconds} s for each other")
        async with environment(self._servers, f"linger{seconds}") as one:
            return await measure_linger(self._with_model(one), linger=seconds)

    async def understanding(self) -> tuple[UnderstandingCost, ...]:
        self._tell("turns that name people, with each part of understanding and without")
        rounds = self._plan.named_rounds
        async with named_model_server() as base_url:
            return tuple([await measure_provider(self._servers, one, base_url, rounds=rounds) for one in PROVIDERS])

    def _with_model(self, one: Environment) -> Environment:
        return one.with_model(self._base_url)


def _name(kind: str, layout: str) -> str:
    """Fit for a topic and a database."""
    return f"{kind}_{layout.replace(' ', '_')}"
