"""A simulated broker: topics, and consumer groups with eager rebalances, sessions and fenced commits."""

import asyncio
from collections.abc import Sequence
from contextvars import Context
from dataclasses import dataclass, field
from typing import Final
from zlib import crc32

from mnemolog.streams.kafka.record import KafkaRecord, Partition, RecordMetadata
from tests.simulation.loop import SimulatedLoop
from tests.support.servers.memory_broker import SentRecord

NETWORK_SECONDS: Final = 0.004


@dataclass(frozen=True, kw_only=True)
class Committed:
    """A commit that the broker has accepted: when, by whom, in which generation."""

    at: float
    member: str
    generation: int
    partition: int
    offset: int


@dataclass(frozen=True, kw_only=True)
class Appended:
    """A record that the broker has appended: when, by whom, and the process's own view of it."""

    at: float
    member: str
    record: KafkaRecord


@dataclass(eq=False)
class Member:
    """One life of a consumer in the group."""

    name: str
    generation: int = 0
    partitions: tuple[int, ...] = ()
    joining: "asyncio.Future[tuple[int, tuple[int, ...]]] | None" = None
    has_to_rejoin: asyncio.Event = field(default_factory=asyncio.Event)
    seen_at: float = 0.0


class Broker:
    """Topics of equal numbers of partitions, and one consumer group that reads the first."""

    def __init__(self, loop: SimulatedLoop, *, source: str, partitions: int, session: float, rebalance: float) -> None:
        self.loop = loop
        self.source = source
        self.partitions = partitions
        self.session = session
        self.rebalance = rebalance
        self.topics: dict[str, list[list[KafkaRecord]]] = {}
        self.appends: list[Appended] = []
        self.commits: list[Committed] = []
        self.committed: dict[int, int] = {}
        self.generation = 0
        self.members: dict[str, Member] = {}
        self.commit_failures = 0.0
        self._context = Context()
        self._rebalancing: asyncio.Task[None] | None = None
        self._watching = loop.create_task(self._watch_sessions(), context=self._context)

    # topics

    async def _travel(self) -> None:
        await asyncio.sleep(self.loop.random.random() * NETWORK_SECONDS)

    def append(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes]], by: str
    ) -> RecordMetadata:
        lanes = self.topics.setdefault(topic, [[] for _ in range(self.partitions)])
        partition = crc32(key or b"") % self.partitions
        record = KafkaRecord(
            topic=topic,
            partition=partition,
            offset=len(lanes[partition]),
            key=key,
            value=value,
            headers=tuple(headers),
            timestamp=1.7e9 + self.loop.time(),
        )
        lanes[partition].append(record)
        self.appends.append(Appended(at=self.loop.time(), member=by, record=record))
        return SentRecord(topic=topic, partition=partition, offset=record.offset)

    async def send(
        self, topic: str, key: bytes | None, value: bytes | None, headers: Sequence[tuple[str, bytes]], by: str
    ) -> RecordMetadata:
        await self._travel()
        answer = self.append(topic, key, value, headers, by)
        await self._travel()
        return answer

    def lane(self, partition: int) -> list[KafkaRecord]:
        return self.topics.get(self.source, [[] for _ in range(self.partitions)])[partition]

    async def reread(self, partition: Partition, start: int, stop: int) -> tuple[Sequence[KafkaRecord], int]:
        """As `KafkaRereader.reread`."""
        await self._travel()
        records = self.lane(partition[1])[start : min(stop, start + 5)]
        return records, start + len(records)

    # the group

    async def join(self, member: Member) -> tuple[int, tuple[int, ...]]:
        """Wait for the next generation; gives it and the member's partitions."""
        await self._travel()
        self.members[member.name] = member
        member.seen_at = self.loop.time()
        member.joining = self.loop.create_future()
        self._begin_rebalance()
        return await member.joining

    def leave(self, name: str) -> None:
        if self.members.pop(name, None) is not None:
            self._begin_rebalance()

    def heartbeat(self, member: Member) -> bool:
        """Whether the member is still one."""
        member.seen_at = self.loop.time()
        return self.members.get(member.name) is member

    async def _watch_sessions(self) -> None:
        while True:
            await asyncio.sleep(self.session / 5)
            for name, member in list(self.members.items()):
                if member.seen_at < self.loop.time() - self.session:
                    self.leave(name)

    async def commit(self, member: Member, offsets: dict[int, int]) -> bool:
        """Whether the broker accepts the commit: not from a member of an older generation."""
        await self._travel()
        if self.loop.random.random() < self.commit_failures:
            raise ConnectionError("the coordinator does not answer")
        if self.members.get(member.name) is not member or member.generation != self.generation:
            return False
        for partition, offset in offsets.items():
            self.committed[partition] = offset
            self.commits.append(
                Committed(
                    at=self.loop.time(),
                    member=member.name,
                    generation=self.generation,
                    partition=partition,
                    offset=offset,
                )
            )
        await self._travel()
        return True

    def _begin_rebalance(self) -> None:
        if self._rebalancing is None or self._rebalancing.done():
            self._rebalancing = self.loop.create_task(self._run_rebalance(), context=self._context)

    async def _run_rebalance(self) -> None:
        """Everybody has to rejoin; who does not in time is no member any more."""
        for member in self.members.values():
            if member.joining is None:
                self._in_a_heartbeat(member)
        deadline = self.loop.time() + self.rebalance
        while any(one.joining is None for one in self.members.values()):
            if self.loop.time() >= deadline:
                break
            await asyncio.sleep(0.05)
        self.members = {name: member for name, member in self.members.items() if member.joining is not None}
        self.generation += 1
        names = sorted(self.members)
        self.loop.random.shuffle(names)
        for place, name in enumerate(names):
            member = self.members[name]
            own = tuple(number for number in range(self.partitions) if number % len(names) == place)
            joining, member.joining = member.joining, None
            member.generation, member.partitions = self.generation, own
            member.has_to_rejoin.clear()
            assert joining is not None
            if not joining.done():
                joining.set_result((self.generation, own))

    def _in_a_heartbeat(self, member: Member) -> None:
        delay = self.loop.random.random() * self.session / 4
        self.loop.call_later(delay, member.has_to_rejoin.set, context=self._context)
