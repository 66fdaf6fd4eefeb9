"""Judges a run by the log and the tables. Shares no code with the product: it reads JSON, rows and times."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from tests.simulation.servers.broker import Broker
from tests.simulation.servers.tables import StatusRead, Tables
from tests.simulation.workload import Workload

LOG: Final = "memory_events"
BEFORE_LOG: Final = "matched_facts"


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


class TableChecker:
    """`problems` tells what is wrong, the worst first."""

    def __init__(self, broker: Broker, load: Workload, tables: Tables) -> None:
        self._broker = broker
        self._load = load
        self._tables = tables
        self._log = logged(broker)

    def problems(self) -> list[str]:
        if "project" not in self._load.stages:
            return []
        found = [*self._not_the_log(), *self._not_one_end(), *self._wrong_facts(), *self._not_in_the_journal()]
        if "resolve" in self._load.stages:
            found += [*self._blind_decisions(), *self._decided_again(), *self._decided_late()]
            found += self._repeats_without_a_reason()
        return found

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
