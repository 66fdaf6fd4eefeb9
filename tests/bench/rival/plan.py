"""What is compared, for how long, in which order."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from tests.bench.environment import Environment, Servers, environment, servers
from tests.bench.machine import describe
from tests.bench.processes import model_server
from tests.bench.rival.comparison import Comparison, SearchFigures, Side, StoreFigures, Trial
from tests.bench.rival.mem0_process import mem0_version
from tests.bench.rival.searches import own_searches, rival_searches
from tests.bench.rival.stores import Arrangement, Window, own_stores, rival_stores
from tests.bench.sample_turns import USERS

MODEL_SECONDS: Final = 0.3
Kind = Literal["smart", "raw"]
Tell = Callable[[str], None]
Way = TypeVar("Way")


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonPlan:
    """`trial` chooses the arrangement of each side and kind, `window` measures it; `facts` are searched in."""

    trial: Window
    window: Window
    layouts: tuple[str, ...]
    arrangements: tuple[Arrangement, ...]
    facts: int
    questions: int


FULL: Final = ComparisonPlan(
    trial=Window(warm_up=5, seconds=10),
    window=Window(warm_up=20, seconds=60),
    layouts=("one process", "two processes"),
    arrangements=(
        Arrangement(at_once=32, tasks=True),
        Arrangement(at_once=8),
        Arrangement(at_once=16),
        Arrangement(at_once=32),
        Arrangement(at_once=32, pool=32),
        Arrangement(at_once=8, processes=2),
        Arrangement(at_once=16, processes=2),
    ),
    facts=10_000,
    questions=500,
)
QUICK: Final = ComparisonPlan(
    trial=Window(warm_up=2, seconds=4),
    window=Window(warm_up=3, seconds=6),
    layouts=("one process", "two processes"),
    arrangements=(Arrangement(at_once=32, tasks=True), Arrangement(at_once=16), Arrangement(at_once=8, processes=2)),
    facts=1_000,
    questions=50,
)


async def compare(plan: ComparisonPlan, tell: Tell) -> Comparison:
    """Start the servers, measure both sides one thing after another, and stop them."""
    machine, version = describe(), mem0_version()
    tell(f"starting Kafka and Postgres, to compare with mem0 {version}")
    async with servers() as running, model_server(MODEL_SECONDS, running.folder) as model:
        bench = _Comparing(plan, running, model, tell)
        theirs_smart, ours_smart = await bench.rival("smart"), await bench.own("smart")
        theirs_raw, ours_raw = await bench.rival("raw"), await bench.own("raw")
        theirs_search, ours_search = await bench.rival_search(), await bench.own_search()
        return Comparison(
            at=machine.at,
            machine=f"{machine.processor}, {machine.cores} cores, {machine.memory_gib:.0f} GiB",
            load=machine.load,
            rival=f"mem0ai {version}",
            seconds=plan.window.seconds,
            model_seconds=MODEL_SECONDS,
            users=USERS,
            facts=plan.facts,
            ours=Side(smart=ours_smart, raw=ours_raw, search=ours_search),
            theirs=Side(smart=theirs_smart, raw=theirs_raw, search=theirs_search),
            trials=tuple(bench.trials),
        )


class _Comparing:
    """Measures on running servers, each time in a database of its own."""

    def __init__(self, plan: ComparisonPlan, running: Servers, model: tuple[str, int], tell: Tell) -> None:
        self._plan = plan
        self._servers = running
        self._model = model
        self._tell = tell
        self._number = 0
        self.trials: list[Trial] = []

    async def own(self, kind: Kind) -> StoreFigures:
        ways = {layout: layout for layout in self._plan.layouts}
        return await self._best("Mnemolog", kind, ways, self._own)

    async def rival(self, kind: Kind) -> StoreFigures:
        ways = {each.name: each for each in self._plan.arrangements}
        return await self._best("mem0", kind, ways, self._rival)

    async def own_search(self) -> SearchFigures:
        self._tell(f"Mnemolog: searches in {self._plan.facts} facts")
        async with self._environment("search") as one:
            return await own_searches(one.with_model(self._model[0]), self._plan.facts, self._plan.questions)

    async def rival_search(self) -> SearchFigures:
        self._tell(f"mem0: searches in {self._plan.facts} memories")
        return await rival_searches(self._servers, self._model[0], self._plan.facts, self._plan.questions)

    async def _best(
        self, side: str, kind: Kind, ways: dict[str, Way], store: Callable[[Way, Kind, Window], Awaitable[StoreFigures]]
    ) -> StoreFigures:
        rates = {}
        for name, way in ways.items():
            figures = await store(way, kind, self._plan.trial)
            rates[name] = figures.per_second
            self._tell(f"{side}, {kind} stores, {name}: {figures.per_second:.1f}/s in a trial")
            self.trials.append(Trial(side=side, kind=kind, how=name, per_second=figures.per_second))
        best = max(rates, key=rates.__getitem__)
        figures = await store(ways[best], kind, self._plan.window)
        self._tell(f"{side}, {kind} stores, {best}: {figures.per_second:.1f}/s")
        return figures

    async def _own(self, layout: str, kind: Kind, window: Window) -> StoreFigures:
        async with self._environment(kind) as one:
            arena = one.with_model(self._model[0])
            return await own_stores(arena, layout, self._model[1], window, infer=kind == "smart")

    async def _rival(self, arrangement: Arrangement, kind: Kind, window: Window) -> StoreFigures:
        return await rival_stores(self._servers, arrangement, self._model, window, infer=kind == "smart")

    def _environment(self, name: str) -> AbstractAsyncContextManager[Environment]:
        self._number += 1
        return environment(self._servers, f"{name}{self._number}")
