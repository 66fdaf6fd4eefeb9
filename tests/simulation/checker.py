"""Judges a run by what the broker has seen. Shares no code with the product: it reads JSON, offsets and times."""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tests.simulation.broker import Broker
from tests.simulation.workload import ENDS_FAILED, Workload

BUDGET = 20
"""So many healthy records of a kind may end as failed in a process while all of their kind fail (docs/policy.md)."""
ORDINARY_SECONDS = 30.0
"""In a crowd, what an ordinary record may take: it waits for those before it of its owner, each for about a second."""


@dataclass(frozen=True)
class Effect:
    """The first output of a record."""

    at: float
    end: str
    place: int


class Checker:
    """`problems` tells what is wrong, the worst first."""

    def __init__(self, broker: Broker, load: Workload, *, output: str) -> None:
        self._broker = broker
        self._load = load
        self._sources = {
            (record.partition, record.offset): json.loads(record.value or b"{}") | {"at": record.timestamp - 1.7e9}
            for partition in range(broker.partitions)
            for record in broker.lane(partition)
        }
        self._effects: dict[tuple[int, int], Effect] = {}
        for place, appended in enumerate(broker.appends):
            if appended.record.topic == output:
                told = json.loads(appended.record.value or b"{}")
                source = (told["partition"], told["offset"])
                self._effects.setdefault(source, Effect(appended.at, told["end"], place))

    def problems(self) -> list[str]:
        return [
            *self._committed_unprocessed(),
            *self._out_of_order(),
            *self._wrong_ends(),
            *self._without_end(),
            *self._late(),
        ]

    def _committed_unprocessed(self) -> Iterator[str]:
        for commit in self._broker.commits:
            for offset in range(commit.offset):
                effect = self._effects.get((commit.partition, offset))
                if effect is None or effect.at > commit.at:
                    yield f"{commit.member} committed {commit.partition}/{commit.offset}; {offset} had no output yet"
                    return

    def _out_of_order(self) -> Iterator[str]:
        last: dict[str, tuple[int, int]] = {}
        for source in sorted(self._effects):
            owner, place = self._sources[source]["owner"], self._effects[source].place
            if owner in last and last[owner][0] > place:
                yield f"the output of {source} of {owner} came before that of offset {last[owner][1]}"
                return
            last[owner] = (place, source[1])

    def _wrong_ends(self) -> Iterator[str]:
        refused: dict[str, int] = defaultdict(int)
        useless = any(one.useless for one in self._load.models)
        for source, effect in self._effects.items():
            kind = self._sources[source]["kind"]
            if kind in ENDS_FAILED and effect.end != "failed":
                yield f"{source} ({kind}) did not end as failed"
            elif kind not in ENDS_FAILED and effect.end == "failed":
                refused[kind] += 1
        for kind, count in refused.items():
            if count > (BUDGET * self._lives() if useless else 0):
                yield f"{count} healthy {kind} records ended as failed"

    def _lives(self) -> int:
        return self._load.workers + sum(mishap.what != "freeze" for mishap in self._load.mishaps)

    def _without_end(self) -> Iterator[str]:
        missing = sorted(set(self._sources) - set(self._effects))
        if missing:
            yield f"stuck: {len(missing)} records have no end, the first is {missing[0]}"
        for partition in range(self._broker.partitions):
            written, committed = len(self._broker.lane(partition)), self._broker.committed.get(partition, 0)
            if committed < written and not missing:
                yield f"stuck: partition {partition} is committed up to {committed} of {written}"

    def _late(self) -> Iterator[str]:
        if self._load.weather != "crowd":
            return
        waits = [
            effect.at - self._sources[source]["at"]
            for source, effect in self._effects.items()
            if self._sources[source]["owner"] != "t/hot"
        ]
        if max(waits, default=0.0) > ORDINARY_SECONDS:
            yield f"beside a hot owner an ordinary record took {max(waits):.0f} s"
