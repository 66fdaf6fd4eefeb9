"""What a seed stands for: the records of some owners, and when processes, the broker and the models misbehave."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal, get_args
from uuid import UUID

from mnemolog.schemas.provenance import Origin, Stage
from mnemolog.schemas.scope import Scope
from tests.simulation.servers.broker import START_TIME
from tests.support.builders.commits import added, commit, replaced

Kind = Literal["plain", "raw", "command", "slow", "poison_prompt", "poison_text"]
OneStage = Literal["calm", "crowd", "nonsense", "processes", "models", "everything"]
ManyStages = Literal["batches", "chain", "crowded", "servers", "zombies"]
Weather = OneStage | ManyStages
WEATHERS: Final[tuple[Weather, ...]] = (*get_args(OneStage), *get_args(ManyStages))
"""One stage: nothing happens; a hot owner; a chat model that has no useful reply for a while; processes that die;
models that fail; all of that. The two stages that write batches. All stages: nothing happens; a hot owner; processes
die, and the broker and the database fail; processes freeze, and write when they wake up."""
Happening = Literal["kill", "freeze", "stop", "join"]
ENDS_FAILED: Final = frozenset({"poison_prompt", "poison_text"})
PARTITIONS: Final = 3
QUIET_AFTER: Final = 60.0
CHAIN_QUIET_AFTER: Final = 35.0


@dataclass(frozen=True, kw_only=True)
class Publication:
    """One record of the first topic, and when it is published."""

    at: float
    number: int
    owner: str
    kind: Kind

    @property
    def is_in_run(self) -> bool:
        """Whether it is a turn of a run: its owner has two scopes."""
        return self.number % 3 == 0 and self.kind != "command"


@dataclass(frozen=True, kw_only=True)
class Mishap:
    """What happens to a process: `kill`, `freeze` or `stop`, for so many seconds; or `join` of another worker."""

    at: float
    what: Happening
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class ModelWeather:
    """From `begins` to `ends`: the share of calls that fail, and of plain records that get a reply of no use."""

    begins: float
    ends: float
    failing: float
    useless: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Everything that is chosen by the seed before the simulation begins."""

    seed: int
    weather: Weather
    workers: int
    publications: tuple[Publication, ...]
    mishaps: tuple[Mishap, ...]
    models: tuple[ModelWeather, ...]
    stages: tuple[Stage, ...]
    is_chained: bool
    """Whether the workers chain their stages."""
    commit_failures: float
    send_failures: float
    database_failures: float
    statement_seconds: float
    quiet_after: float
    max_in_flight: int
    max_pending: int


_BUSY: Final = frozenset({"crowd", "crowded", "nonsense"})
_WITH_MISHAPS: Final = frozenset({"processes", "everything", "batches", "servers", "zombies"})
_MISHAPS: Final[Mapping[Weather, tuple[int, int]]] = {"servers": (1, 3), "zombies": (2, 4), "batches": (1, 4)}
_CHAINS: Final = frozenset({"chain", "crowded", "servers", "zombies"})
_BURSTS: Final = 0.5
_BURST_SECONDS: Final = 6.0
_CROWDS: Final = frozenset({"crowd", "crowded"})
_NONSENSE: Final = (ModelWeather(begins=0.0, ends=45.0, failing=0.0, useless=1.0),)
_CHAIN: Final[tuple[Stage, ...]] = ("journal", "extract", "embed", "match", "resolve", "project")


def weather_of(seed: int) -> Weather:
    """The situation of a seed."""
    return WEATHERS[seed % len(WEATHERS)]


def workload(seed: int) -> Workload:
    """The workload of a seed."""
    chance = random.Random(seed)
    weather = weather_of(seed)
    owners = [f"owner-{number}" for number in range(chance.randint(3, 9))]
    has_mishaps, models = weather in _WITH_MISHAPS, weather in {"models", "everything"}
    has_servers = weather in {"batches", "servers"}
    quiet_after = CHAIN_QUIET_AFTER if weather in _CHAINS else QUIET_AFTER
    is_chained = weather in _CHAINS and chance.choice((True, False))
    return Workload(
        seed=seed,
        quiet_after=quiet_after,
        weather=weather,
        stages=_stages(weather),
        is_chained=is_chained,
        workers=_workers(chance, weather),
        publications=tuple(_publications(chance, owners, weather, quiet_after - 20.0)),
        mishaps=tuple(_mishaps(chance, weather, quiet_after - 20.0)) if has_mishaps else (),
        models=_NONSENSE if weather == "nonsense" else tuple(_models(chance)) if models else (),
        commit_failures=chance.choice((0.0, 0.0, 0.1)) if has_mishaps else 0.0,
        send_failures=chance.choice((0.0, 0.02, 0.1)) if weather == "servers" else 0.0,
        database_failures=chance.choice((0.0, 0.02, 0.1)) if has_servers else 0.0,
        statement_seconds=chance.choice((0.004, 0.3)) if weather == "batches" else 0.004,
        max_in_flight=chance.choice((2, 4, 16)) if weather not in _BUSY else 16,
        max_pending=chance.choice((4, 16, 48)) if weather not in _BUSY else 32,
    )


def _stages(weather: Weather) -> tuple[Stage, ...]:
    if weather == "batches":
        return ("journal", "project")
    return _CHAIN if weather in _CHAINS else ("extract",)


def _workers(chance: random.Random, weather: Weather) -> int:
    if weather == "nonsense":
        return 1
    if weather == "zombies":
        return 2
    return chance.randint(1, 3 if weather in _WITH_MISHAPS - _CHAINS else 2)


def _publications(chance: random.Random, owners: list[str], weather: Weather, until: float) -> list[Publication]:
    kinds: list[Kind] = [*(("plain",) * 12), *(("raw",) * 3), "command", "command"]
    if weather in {"processes", "everything", "servers", "zombies"}:
        kinds.extend(["slow"] * (6 if weather == "zombies" else 1))
    if weather in {"models", "everything", "servers"}:
        kinds.extend(("poison_prompt", "poison_text"))
    times = sorted(chance.choice((0.0, chance.uniform(0, until))) for _ in range(chance.randint(30, 60)))
    if weather in _CHAINS:
        times = sorted(chance.sample(times, chance.randint(12, 24)))
        if weather != "crowded" and chance.random() < _BURSTS:  # few owners, each with some turns that wait
            owners = owners[: chance.randint(1, 2)]
            times = [at // _BURST_SECONDS * _BURST_SECONDS for at in times for _ in range(2)]
    if weather == "nonsense":
        owners = [f"{owner}-{part}" for owner in owners for part in range(3)]
        times = sorted(chance.uniform(0, 40.0) for _ in range(120))
    one_by_one = [(at, chance.choice(owners), chance.choice(kinds)) for at in times]
    if weather in _CROWDS:  # one owner has far more waiting than the window takes
        hot: tuple[float, str, Kind] = (0.0, "hot", "plain" if weather == "crowd" else "raw")
        backlog = [hot] * 150
        one_by_one = sorted([*backlog, *one_by_one], key=lambda one: one[0])
    return [
        Publication(at=at, number=number, owner=owner, kind=kind) for number, (at, owner, kind) in enumerate(one_by_one)
    ]


def _mishaps(chance: random.Random, weather: Weather, until: float) -> list[Mishap]:
    what: Sequence[Happening] = ("freeze",) if weather == "zombies" else ("kill", "freeze", "stop", "join")
    seconds = (8.0, 15.0) if weather == "zombies" else (0.5, 4.0, 15.0)
    return [
        Mishap(
            at=chance.uniform(1.0, until),
            what=chance.choice(what),
            seconds=chance.choice(seconds),
        )
        for _ in range(chance.randint(*_MISHAPS.get(weather, (1, 6))))
    ]


def _models(chance: random.Random) -> list[ModelWeather]:
    found = []
    for _ in range(chance.randint(1, 2)):
        begins = chance.uniform(0.0, QUIET_AFTER / 2)
        failing, useless = chance.choice(((1.0, 0.0), (0.3, 0.0), (0.5, 0.0), (0.0, 1.0)))
        ends = begins + chance.uniform(5.0, QUIET_AFTER / 2)
        found.append(ModelWeather(begins=begins, ends=ends, failing=failing, useless=useless))
    return found


SOURCE: Final = "conversation_turns"
LOG: Final = "memory_events"
TENANT: Final = "t"
RUN: Final = "run"
PASSED_STATES: Final = 0.2
REPEATS: Final = 0.1


def source_record(one: Publication) -> tuple[bytes, bytes]:
    """Key and value of a turn or a command."""
    source: dict[str, Any] = {"scope": {"tenant": TENANT, "user_id": one.owner}}
    if one.is_in_run:
        source["scope"]["run_id"] = RUN
    at = datetime.fromtimestamp(START_TIME + one.at, UTC).isoformat()
    if one.kind == "command":
        order = {"kind": "delete_all", "key": None, "category": "health"}
        source |= {"kind": "command", "command_id": f"s{one.number}", "issued_at": at, "order": order}
    else:
        source |= {"kind": "turn", "turn_id": f"s{one.number}", "occurred_at": at, "infer": one.kind != "raw"}
        source |= {"messages": [{"role": "user", "content": f"number {one.number}"}], "metadata": {"kind": one.kind}}
    return f"{TENANT}/{one.owner}".encode(), json.dumps({"schema_version": 1, **source}).encode()


class CommitWriter:
    """Writes the commits of sources, also such as a process writes that has lost its partition and does not know it.

    Some are repeated, and some end a fact that has ended before.
    """

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self._facts: dict[str, list[UUID]] = {}

    def records_of(self, one: Publication, partition: int, offset: int) -> list[bytes]:
        """The commit of a source, once or twice."""
        known = self._facts.setdefault(one.owner, [])
        draft = added(f"number {one.number}")
        if known:
            target = self._chance.choice(known) if self._chance.random() < PASSED_STATES else known[-1]
            draft = replaced(f"number {one.number}", target)
        record = commit(
            f"s{one.number}",
            draft,
            scope=Scope(tenant=TENANT, user_id=one.owner),
            at=datetime.fromtimestamp(START_TIME + one.at, UTC),
            origin=Origin(topic=SOURCE, partition=partition, offset=offset),
        )
        known.extend(event.new_fact.fact_id for event in record.events if event.new_fact)
        return [record.to_bytes()] * (2 if self._chance.random() < REPEATS else 1)
