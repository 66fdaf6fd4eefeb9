"""What a seed stands for: the records of some owners, and when processes, the broker and the models misbehave."""

import random
from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["plain", "raw", "command", "slow", "poison_prompt", "poison_text"]
Weather = Literal["calm", "crowd", "nonsense", "processes", "models", "everything"]
WEATHERS: Final[tuple[Weather, ...]] = ("calm", "crowd", "nonsense", "processes", "models", "everything")
"""A hot owner; a chat model that has no useful reply for a while; processes that die; models that fail; all of that."""
ENDS_FAILED: Final = frozenset({"poison_prompt", "poison_text"})
PARTITIONS: Final = 3
QUIET_AFTER: Final = 60.0


@dataclass(frozen=True, kw_only=True)
class Publication:
    """One record of the first topic, and when it is published."""

    at: float
    number: int
    owner: str
    kind: Kind


@dataclass(frozen=True, kw_only=True)
class Mishap:
    """What happens to a process: `kill`, `freeze` or `stop`, for so many seconds; or `join` of another worker."""

    at: float
    what: Literal["kill", "freeze", "stop", "join"]
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
    commit_failures: float
    max_in_flight: int
    max_pending: int


_BUSY: Final = frozenset({"crowd", "nonsense"})
_NONSENSE: Final = (ModelWeather(begins=0.0, ends=45.0, failing=0.0, useless=1.0),)


def workload(seed: int) -> Workload:
    """The workload of a seed."""
    chance = random.Random(seed)
    weather = WEATHERS[seed % len(WEATHERS)]
    owners = [f"t/owner-{number}" for number in range(chance.randint(3, 9))]
    processes, models = weather in {"processes", "everything"}, weather in {"models", "everything"}
    return Workload(
        seed=seed,
        weather=weather,
        workers=1 if weather == "nonsense" else chance.randint(1, 3 if processes else 2),
        publications=tuple(_publications(chance, owners, weather)),
        mishaps=tuple(_mishaps(chance)) if processes else (),
        models=_NONSENSE if weather == "nonsense" else tuple(_models(chance)) if models else (),
        commit_failures=chance.choice((0.0, 0.0, 0.1)) if processes else 0.0,
        max_in_flight=chance.choice((2, 4, 16)) if weather not in _BUSY else 16,
        max_pending=chance.choice((4, 16, 48)) if weather not in _BUSY else 32,
    )


def _publications(chance: random.Random, owners: list[str], weather: Weather) -> list[Publication]:
    kinds: list[Kind] = [*(("plain",) * 12), *(("raw",) * 3), "command", "command"]
    if weather in {"processes", "everything"}:
        kinds.append("slow")
    if weather in {"models", "everything"}:
        kinds.extend(("poison_prompt", "poison_text"))
    times = sorted(chance.choice((0.0, chance.uniform(0, 40.0))) for _ in range(chance.randint(30, 60)))
    if weather == "nonsense":
        owners = [f"{owner}-{part}" for owner in owners for part in range(3)]
        times = sorted(chance.uniform(0, 40.0) for _ in range(120))
    one_by_one = [(at, chance.choice(owners), chance.choice(kinds)) for at in times]
    if weather == "crowd":  # one owner has far more waiting than the window takes
        backlog: list[tuple[float, str, Kind]] = [(0.0, "t/hot", "plain")] * 150
        one_by_one = sorted([*backlog, *one_by_one], key=lambda one: one[0])
    return [
        Publication(at=at, number=number, owner=owner, kind=kind) for number, (at, owner, kind) in enumerate(one_by_one)
    ]


def _mishaps(chance: random.Random) -> list[Mishap]:
    return [
        Mishap(
            at=chance.uniform(1.0, QUIET_AFTER - 20.0),
            what=chance.choice(("kill", "freeze", "stop", "join")),
            seconds=chance.choice((0.5, 4.0, 15.0)),
        )
        for _ in range(chance.randint(1, 6))
    ]


def _models(chance: random.Random) -> list[ModelWeather]:
    found = []
    for _ in range(chance.randint(1, 2)):
        begins = chance.uniform(0.0, QUIET_AFTER / 2)
        failing, useless = chance.choice(((1.0, 0.0), (0.3, 0.0), (0.5, 0.0), (0.0, 1.0)))
        ends = begins + chance.uniform(5.0, QUIET_AFTER / 2)
        found.append(ModelWeather(begins=begins, ends=ends, failing=failing, useless=useless))
    return found
