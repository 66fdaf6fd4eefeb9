"""Judges a run by what the broker has seen. Shares no code with the product: it reads JSON, offsets and times."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from mnemolog.schemas.envelopes import split_envelope
from mnemolog.streams.kafka.topics import CHAINED_BEHIND
from tests.simulation.servers.broker import START_TIME, Broker
from tests.simulation.servers.tables import Tables
from tests.simulation.workload import ENDS_FAILED, Weather, Workload

BUDGET = 20
"""So many healthy records of a kind may end as failed in a process while all of their kind fail (docs/policy.md)."""
ORDINARY_SECONDS: Final[Mapping[Weather, float]] = {"crowd": 30.0, "crowded": 10.0}
"""In a crowd, what an ordinary record may take: it waits for those before it of its owner, in `crowd` each for about a
second. In `crowded` it took 8 s at most in 100 seeds, and 25 to 39 s with the faults that this is to find."""
SOURCE: Final = "conversation_turns"
OUTPUTS: Final = {
    "extract": "extracted_facts",
    "embed": "embedded_facts",
    "match": "matched_facts",
    "resolve": "memory_events",
}
NEVER: Final = float("inf")

Place = tuple[int, int]


@dataclass(frozen=True)
class Effect:
    """The first output of a source in a topic."""

    at: float
    failed: bool
    place: int


class Checker:
    """`problems` tells what is wrong, the worst first."""

    def __init__(self, broker: Broker, load: Workload, tables: Tables) -> None:
        self._broker = broker
        self._load = load
        self._tables = tables
        self._sources: dict[Place, dict[str, Any]] = {}
        self._first_places: dict[Place, Place] = {}
        self._read_sources()
        self._origins: dict[tuple[str, int, int], Place] = {
            (SOURCE, *place): first for place, first in self._first_places.items()
        }
        self._effects: dict[str, dict[Place, Effect]] = {OUTPUTS[one]: {} for one in load.stages if one in OUTPUTS}
        for place, appended in enumerate(broker.appends):
            record = appended.record
            if record.topic in self._effects:
                value = record.value or b"{}"
                told = json.loads(value if record.topic == OUTPUTS["resolve"] else split_envelope(value)[0])
                origin = self._first_places[told["origin"]["partition"], told["origin"]["offset"]]
                self._origins[record.topic, record.partition, record.offset] = origin
                effect = Effect(appended.at, _has_failed(told), place)
                self._effects[record.topic].setdefault(origin, effect)

    def _read_sources(self) -> None:
        """The sources by their places. What follows from one may be published twice: it counts at its first place."""
        known: dict[tuple[str, str], Place] = {}
        for partition in range(self._broker.partitions):
            for record in self._broker.lane(SOURCE, partition):
                source = _source(json.loads(record.value or b"{}"), record.timestamp)
                place = (record.partition, record.offset)
                first = known.setdefault((source["owner"], source["id"]), place)
                self._first_places[place] = first
                if first == place:
                    self._sources[place] = source

    def problems(self) -> list[str]:
        return [
            *self._committed_unprocessed(),
            *self._out_of_order(),
            *self._wrong_ends(),
            *self._without_end(),
            *self._late(),
        ]

    def _committed_unprocessed(self) -> Iterator[str]:
        """An offset is committed only when everything below it has had its effect."""
        behind = CHAINED_BEHIND if self._load.is_chained else ()
        for stage in (one for one in self._load.stages if one not in behind):
            group = self._broker.groups[f"mnemolog-{stage}"]
            done = {
                partition: list(self._done_times(stage, group.topic, partition))
                for partition in range(self._broker.partitions)
            }
            for commit in group.commits:
                times = done[commit.partition][: commit.offset]
                late = next((offset for offset, at in enumerate(times) if at > commit.at), None)
                if late is not None:
                    place = f"{commit.partition}/{commit.offset}"
                    yield f"{commit.member} committed {place}; {late} had no output yet"
                    break

    def _done_times(self, stage: str, topic: str, partition: int) -> Iterator[float]:
        """When each record of the partition had its effect."""
        done_at = {"journal": self._journalled_at, "project": self._projected_at}.get(stage)
        for offset in range(len(self._broker.lane(topic, partition))):
            if done_at is not None:
                yield done_at((partition, offset))
            else:
                yield self._output_at(stage, self._origins[topic, partition, offset])

    def _output_at(self, stage: str, source: Place) -> float:
        """When the stage, or with a chain one behind it, had the output of this source in its topic."""
        begins_chain = stage == "extract" and self._load.is_chained
        outputs = self._effects.values() if begins_chain else [self._effects[OUTPUTS[stage]]]
        return min((effects[source].at for effects in outputs if source in effects), default=NEVER)

    def _journalled_at(self, place: Place) -> float:
        source = self._sources[self._first_places[place]]
        if source["kind"] == "command":
            return 0.0
        row = self._tables.journal.get((source["owner"], source["id"]))
        return NEVER if row is None else row.at

    def _projected_at(self, place: Place) -> float:
        moves = (at for at, partition, offset in self._tables.moves if partition == place[0] and offset > place[1])
        return min(moves, default=NEVER)

    def _out_of_order(self) -> Iterator[str]:
        for topic, effects in self._in_full().items():
            last: dict[str, Place] = {}
            for source in sorted(effects):
                owner, place = self._sources[source]["owner"], effects[source].place
                if owner in last and last[owner][0] > place:
                    yield f"the output of {source} of {owner} in {topic} came before that of offset {last[owner][1]}"
                    return
                last[owner] = (place, source[1])

    def _in_full(self) -> dict[str, dict[Place, Effect]]:
        """The outputs of each topic that has one of every source: a chain puts none into those between its stages."""
        last = list(self._effects)[-1:]
        return {topic: self._effects[topic] for topic in (last if self._load.is_chained else self._effects)}

    def _wrong_ends(self) -> Iterator[str]:
        for effects in list(self._effects.values())[-1:]:
            refused: dict[str, int] = defaultdict(int)
            for source, effect in effects.items():
                kind = self._sources[source]["kind"]
                if kind in ENDS_FAILED and not effect.failed:
                    yield f"{source} ({kind}) did not end as failed"
                elif kind not in ENDS_FAILED and effect.failed:
                    refused[kind] += 1
            useless = any(one.useless for one in self._load.models)
            for kind, count in refused.items():
                if count > (BUDGET * self._lives() if useless else 0):
                    yield f"{count} healthy {kind} records ended as failed"

    def _lives(self) -> int:
        return self._load.workers + sum(mishap.what != "freeze" for mishap in self._load.mishaps)

    def _without_end(self) -> Iterator[str]:
        stuck = False
        for topic, effects in self._in_full().items():
            missing = sorted(set(self._sources) - set(effects))
            if missing and not stuck:
                stuck = True
                yield f"stuck: {len(missing)} records have no end in {topic}, the first is {missing[0]}"
        for name, group in self._broker.groups.items():
            for partition in range(self._broker.partitions):
                written, committed = len(self._broker.lane(group.topic, partition)), group.committed.get(partition, 0)
                if committed < written and not stuck:
                    yield f"stuck: {name} has committed partition {partition} up to {committed} of {written}"

    def _late(self) -> Iterator[str]:
        limit = ORDINARY_SECONDS.get(self._load.weather, NEVER)
        waits = [
            effect.at - self._sources[source]["at"]
            for effects in self._effects.values()
            for source, effect in effects.items()
            if self._sources[source]["owner"] != "t/hot"
        ]
        if max(waits, default=0.0) > limit:
            yield f"beside a hot owner an ordinary record took {max(waits):.0f} s"


def _source(told: dict[str, Any], timestamp: float) -> dict[str, Any]:
    kind = "command" if told["kind"] == "command" else told["metadata"]["kind"]
    source_id = told["command_id"] if kind == "command" else told["turn_id"]
    owner = f"{told['scope']['tenant']}/{told['scope']['user_id']}"
    return {"owner": owner, "id": source_id, "kind": kind, "at": timestamp - START_TIME}


def _has_failed(told: dict[str, Any]) -> bool:
    return "failed" in (told.get("outcome"), (told.get("end") or {}).get("outcome"))
