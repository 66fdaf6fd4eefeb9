"""Judges a run by what the broker has seen, by the log and by the tables.

It reads JSON, offsets, rows, times and texts of facts, and shares no code with the product or the simulated models.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mnemolog.schemas.envelopes import split_envelope
from mnemolog.streams.kafka.topics import CHAINED_BEHIND
from tests.simulation.servers.broker import START_TIME, Broker
from tests.simulation.servers.tables import StatusRead, Tables
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
LOG: Final = "memory_events"
OUTCOMES: Final = "memory_outcomes"

Place = tuple[int, int]


@dataclass(frozen=True)
class Effect:
    """The first output of a source in a topic."""

    at: float
    failed: bool
    place: int


@dataclass(frozen=True, kw_only=True)
class Logged:
    """A record of the log: when and by which process it was appended, what it says, and its bytes."""

    at: float
    process: str
    partition: int
    offset: int
    told: dict[str, Any]
    value: bytes | None

    @property
    def owner(self) -> str:
        scope = self.told["scope"]
        return f"{scope['tenant']}/{scope['user_id']}"

    @property
    def source_id(self) -> str:
        return str(self.told["source_id"])


def logged(broker: Broker) -> list[Logged]:
    """The log, in the order in which it was appended."""
    return [
        Logged(
            at=one.at,
            process=one.member,
            partition=one.record.partition,
            offset=one.record.offset,
            told=json.loads(one.record.value or b"{}"),
            value=one.record.value,
        )
        for one in broker.appends
        if one.record.topic == LOG
    ]


class Checker:
    """`problems` tells what is wrong, the worst first."""

    def __init__(self, broker: Broker, load: Workload, tables: Tables) -> None:
        self._broker = broker
        self._load = load
        self._tables = tables
        self._sources: dict[Place, dict[str, Any]] = {}
        self._first_places: dict[Place, Place] = {}
        self._log = logged(broker)
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
        found = [
            *self._committed_unprocessed(),
            *self._out_of_order(),
            *self._wrong_ends(),
            *self._without_end(),
            *self._late(),
        ]
        if "project" in self._load.stages:
            found += [*self._not_the_log(), *self._not_one_end(), *self._wrong_facts(), *self._not_in_the_journal()]
            if "resolve" in self._load.stages:
                found += [*self._blind_decisions(), *self._decided_again(), *self._decided_late()]
                found += self._repeats_without_a_reason()
        if "resolve" in self._load.stages:
            found += [*wrong_decisions(self._log), *self._untold_outcomes()]
        return found

    def _untold_outcomes(self) -> Iterator[str]:
        """Before a commit that failed or was rejected stands in the log, who does not wait can read of it."""
        told: set[tuple[str, str]] = set()
        for one in self._broker.appends:
            value = json.loads(one.record.value or b"{}") if one.record.topic in (OUTCOMES, LOG) else {}
            if one.record.topic == OUTCOMES:
                told.add(((one.record.key or b"").decode(), value["status"]))
            elif value and value["outcome"] in ("failed", "rejected"):
                scope = value["scope"]
                if (f"{scope['tenant']}/{scope['user_id']}/{value['source_id']}", value["outcome"]) not in told:
                    yield f"{value['source_id']} is {value['outcome']} and {OUTCOMES} does not tell it"
                    return

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

    def _not_the_log(self) -> Iterator[str]:
        """Every record of the log is in the tables once, as a commit or as a rejection."""
        counts = self._tables.places()
        for one in self._log:
            place = (one.partition, one.offset)
            if counts[place] != 1 or self._tables.records[place] != one.value:
                yield f"record {place} of the log is in the tables {counts[place]} times"
                return

    def _not_one_end(self) -> Iterator[str]:
        """Every source that was published has exactly one end."""
        ends = Counter(row.commit.source_id for row in self._tables.commits)
        published = {f"s{one.number}" for one in self._load.publications}
        wrong = sorted((published | set(ends)) - {source for source, count in ends.items() if count == 1})
        if wrong:
            yield f"{len(wrong)} sources do not have one end: {wrong[0]} has {ends[wrong[0]]}"

    def _wrong_facts(self) -> Iterator[str]:
        """Which facts are active, and which were decided on a state that had passed, follows from the log alone."""
        active, stale = self._fold()
        states = self._tables.state.facts
        stored = {
            str(row.fact.fact_id) for row in self._tables.facts if states[row.fact.fact_id].state.status == "active"
        }
        marked = {str(row.fact.fact_id) for row in self._tables.facts if row.stale}
        if stored != active:
            yield f"{len(stored ^ active)} facts are active in the tables or by the log, and not in both"
        if marked != stale:
            yield f"{len(marked ^ stale)} facts are marked stale, or are stale, and not both"

    def _fold(self) -> tuple[set[str], set[str]]:
        active, stale, ended = set[str](), set[str](), set[str]()
        for one in sorted(self._log, key=lambda one: (one.partition, one.offset)):
            if one.source_id in ended:
                continue
            ended.add(one.source_id)
            for event in one.told["events"]:
                targets = set(event.get("targets") or ())
                if not targets <= active:
                    stale.add(event["fact"]["fact_id"])
                active -= targets
                active.add(event["fact"]["fact_id"])
        return active, stale

    def _not_in_the_journal(self) -> Iterator[str]:
        kept = {source_id for _, source_id in self._tables.journal}
        missing = [one for one in self._load.publications if one.kind != "command" and f"s{one.number}" not in kept]
        if missing:
            yield f"{len(missing)} turns are not in the journal, the first is s{missing[0].number}"

    def _blind_decisions(self) -> Iterator[str]:
        """A decision sees what its process committed for the owner, and what the log held when it got the partition.

        This holds for the first commit of each source: a repeat is rejected, and counts for nothing.
        """
        first = list({(one.owner, one.source_id): one for one in reversed(self._log)}.values())
        for one in first:
            read = self._read_of(one)
            if read is None:
                yield f"{one.source_id} was decided without a look at the tables"
                return
            seen, since = read.next_offsets.get(one.partition, 0), self._assigned_at(one, read)
            for other in first:
                is_between = other.partition == one.partition and seen <= other.offset < one.offset
                if not is_between or other.owner != one.owner:
                    continue
                if other.process == one.process or other.at < since:
                    yield f"the decision on {one.source_id} did not see the commit of {other.source_id}"
                    return

    def _read_of(self, one: Logged) -> StatusRead | None:
        """The last time that the process looked before it decided."""
        reads = (
            read
            for read in self._tables.status_reads
            if read.process == one.process and read.source_id == one.source_id and read.at <= one.at
        )
        return max(reads, key=lambda read: read.at, default=None)

    def _assigned_at(self, one: Logged, read: StatusRead) -> float:
        """When the process got the partition: of the topic that the source came by."""
        stage = "extract" if self._load.is_chained else "resolve"
        times = (
            each.at
            for each in self._broker.groups[f"mnemolog-{stage}"].assignments
            if each.process == one.process and each.partition == one.partition and each.at <= read.at
        )
        return max(times, default=0.0)

    def _decided_again(self) -> Iterator[str]:
        for one in self._log:
            read = self._read_of(one)
            if read is not None and read.is_committed:
                yield f"{one.source_id} was decided again although its end was in the tables"
                return

    def _decided_late(self) -> Iterator[str]:
        """Each source of an owner is decided after the one before, by every process: so no decision comes too late."""
        _, stale = self._fold()
        if stale:
            yield f"{len(stale)} facts were decided on a state that had passed"

    def _repeats_without_a_reason(self) -> Iterator[str]:
        """While no process and no server fails, nothing is written twice."""
        repeated = [source for source, count in Counter(one.source_id for one in self._log).items() if count > 1]
        if repeated and self._load.weather == "chain":
            yield f"{len(repeated)} sources were committed twice, the first is {repeated[0]}"


def _source(told: dict[str, Any], timestamp: float) -> dict[str, Any]:
    kind = "command" if told["kind"] == "command" else told["metadata"]["kind"]
    source_id = told["command_id"] if kind == "command" else told["turn_id"]
    owner = f"{told['scope']['tenant']}/{told['scope']['user_id']}"
    return {"owner": owner, "id": source_id, "kind": kind, "at": timestamp - START_TIME}


def _has_failed(told: dict[str, Any]) -> bool:
    return "failed" in (told.get("outcome"), (told.get("end") or {}).get("outcome"))


PLACES: Final = 12
BESIDE: Final = 4
"""Of the sums of the numbers of all facts that are asked about, one in so many ends none, where these are few."""
MANY: Final = 3
"""Of so many all are ended, of fewer the oldest."""
_TEXT: Final = re.compile(r"\w+ number (\d+) at place (\d+)")


@dataclass(frozen=True)
class _Told:
    """A fact that a turn told."""

    fact_id: str
    number: int
    place: int

    @classmethod
    def of(cls, event: dict[str, Any]) -> "_Told":
        found = _TEXT.fullmatch(event["fact"]["text"])
        assert found is not None
        return cls(event["fact"]["fact_id"], int(found[1]), int(found[2]))


def wrong_decisions(log: Sequence[Logged]) -> Iterator[str]:
    """What is wrong with the decisions in the log of all owners; of each turn its first commit counts."""
    by_source = {(one.owner, one.source_id): one for one in sorted(log, key=_place, reverse=True)}
    turns = [one.told for one in sorted(by_source.values(), key=_place) if one.told["source_kind"] == "turn"]
    active: dict[str, list[_Told]] = {}
    for told in turns:
        scope = str(told["scope"])
        known = active.setdefault(scope, [])
        if told["events"]:
            yield from _wrong_decision(told, known)
            event = told["events"][0]
            ended = event.get("targets") or ()
            active[scope] = [*(one for one in known if one.fact_id not in ended), _Told.of(event)]


def _wrong_decision(told: dict[str, Any], known: Sequence[_Told]) -> Iterator[str]:
    """Where the decision is not about the facts that are known by then, or is another one than the model's on these."""
    event, *others = told["events"]
    own, decision, ended = _Told.of(event), event["decision"], set(event.get("targets") or ())
    near = {one.fact_id: one.number for one in known if _are_near(one.place, own.place)}
    asked, answered = _asked(own.number, near.values()), _asked(own.number, ())
    if decision["by"] == "model":
        answered = decision["reason"]
    if answered != asked:
        yield f"{told['source_id']} was decided as {answered!r}, and alone it would be {asked!r}"
    ends = len(near) if len(near) >= MANY else int((own.number + sum(near.values())) % BESIDE > 0)
    expected = set(sorted(near, key=lambda one: near[one])[:ends])
    if ended != expected or others:
        yield f"{told['source_id']} ended {len(ended)} facts, and alone it would end {len(expected)}"


def _asked(number: int, near: Iterable[int]) -> str:
    return f"{number} beside {', '.join(map(str, sorted(near)))}"


def _are_near(one: int, other: int) -> bool:
    return (one - other + 1) % PLACES in (0, 1, 2)


def _place(one: Logged) -> tuple[int, int]:
    return one.partition, one.offset
