"""Looks at the log with a foreign client and at the tables with SQL, and says what is wrong.

It shares no code with the product.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from aiokafka import AIOKafkaConsumer, TopicPartition  # type: ignore[import-untyped] # aiokafka ships no types


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedCommit:
    """A commit of the log, as far as the check needs it."""

    partition: int
    offset: int
    owner: str
    source_id: str
    outcome: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What was found: sources, further commits of a source that were only counted, and everything that is wrong."""

    sources: int
    commits: int
    repeats: int
    lost: list[str]
    doubled: list[str]
    unknown: list[str]
    misordered: list[str]
    wrong_ends: list[str]
    wrong_states: list[str]

    @property
    def faults(self) -> list[str]:
        kinds = ("lost", "doubled", "unknown", "misordered", "wrong_ends", "wrong_states")
        return [f"{kind}: {one}" for kind in kinds for one in getattr(self, kind)]


async def read_log(bootstrap: str, topic: str, partitions: int) -> list[LoggedCommit]:
    """The whole topic, each partition in its order."""
    return [_logged(message) for message in await _read_topic(bootstrap, topic, partitions)]


async def find_records(
    bootstrap: str, topics: Sequence[str], partitions: int, sources: set[str]
) -> dict[str, list[str]]:
    """By source the positions of the records that have its id as a word of their JSON, over these topics."""
    found: dict[str, list[str]] = {source: [] for source in sources}
    for topic in topics:
        for message in await _read_topic(bootstrap, topic, partitions):
            for source in sources:
                if f'"{source}"'.encode() in (message.value or b""):
                    found[source].append(f"{topic}/{message.partition}/{message.offset}")
    return found


async def _read_topic(bootstrap: str, topic: str, partitions: int) -> list[Any]:
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap)
    await consumer.start()
    try:
        places = [TopicPartition(topic, number) for number in range(partitions)]
        consumer.assign(places)
        await consumer.seek_to_beginning(*places)
        ends = await consumer.end_offsets(places)
        found: list[Any] = []
        while any([await consumer.position(place) < end for place, end in ends.items()]):
            for messages in (await consumer.getmany(timeout_ms=500)).values():
                found.extend(messages)
        return found
    finally:
        await consumer.stop()


def _logged(message: Any) -> LoggedCommit:
    value = json.loads(message.value)
    return LoggedCommit(
        partition=message.partition,
        offset=message.offset,
        owner=message.key.decode(),
        source_id=value["source_id"],
        outcome=value["outcome"],
    )


def check(
    log: Sequence[LoggedCommit],
    database: str,
    published: Mapping[str, Sequence[str]],
    active: Mapping[str, set[str]],
    ends: Mapping[str, str],
) -> Verdict:
    """Compare with what was published per owner, in order, with the facts that have to be active, and with the ends."""
    firsts = _firsts(log)
    with psycopg.connect(database) as connection:
        rows = connection.execute("SELECT owner, source_id, outcome FROM mnemolog.commits").fetchall()
        facts = connection.execute("SELECT user_id, text, stale FROM mnemolog.facts WHERE status = 'active'").fetchall()
    counts = Counter(source_id for _, source_id, _ in rows)
    wanted = [source_id for ids in published.values() for source_id in ids]
    in_log = {source_id for of_owner in firsts.values() for source_id in of_owner}
    return Verdict(
        sources=len(wanted),
        commits=len(log),
        repeats=len(log) - len(in_log),
        lost=[one for one in wanted if one not in in_log or one not in counts],
        doubled=[one for one, count in counts.items() if count > 1],
        unknown=sorted((in_log | counts.keys()) - set(wanted)),
        misordered=[owner for owner, ids in published.items() if list(firsts.get(owner, ())) != list(ids)],
        wrong_ends=sorted(
            f"{one} ended as {outcome}, not {ends[one]}"
            for _, one, outcome in rows
            if ends.get(one, outcome) != outcome
        ),
        wrong_states=list(_wrong_states(facts, active)),
    )


def _firsts(log: Sequence[LoggedCommit]) -> dict[str, dict[str, LoggedCommit]]:
    """By owner its sources in the order of their first commits."""
    firsts: dict[str, dict[str, LoggedCommit]] = defaultdict(dict)
    for commit in sorted(log, key=lambda one: (one.partition, one.offset)):
        firsts[commit.owner].setdefault(commit.source_id, commit)
    return firsts


def _wrong_states(facts: Sequence[tuple[str, str, bool]], active: Mapping[str, set[str]]) -> Iterator[str]:
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for user, text, stale in facts:
        found[user][text] += 1
        if stale:
            yield f"{user}: a decision on {text!r} met a stale fact"
    for user in sorted({*found, *active}):
        wanted = Counter(active.get(user, set()))
        if found[user] != wanted:
            yield f"{user}: missing {list(wanted - found[user])}, too much {list(found[user] - wanted)}"
