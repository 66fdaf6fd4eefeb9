"""A simulated consumer group: eager rebalances, sessions, and commits that are fenced by the generation."""

import asyncio
from contextvars import Context
from dataclasses import dataclass, field
from typing import Final

from tests.simulation.loop import SimulatedLoop

NETWORK_SECONDS: Final = 0.004


async def travel(loop: SimulatedLoop) -> None:
    """Wait as long as a message is on its way."""
    await asyncio.sleep(loop.random.random() * NETWORK_SECONDS)


@dataclass(frozen=True, kw_only=True)
class Committed:
    """A commit that the broker has accepted: when, by whom, in which generation."""

    at: float
    member: str
    generation: int
    partition: int
    offset: int


@dataclass(frozen=True, kw_only=True)
class Assigned:
    """A member got a partition: when, and of which process it is."""

    at: float
    process: str
    partition: int


@dataclass(eq=False)
class Member:
    """One life of a consumer in the group."""

    name: str
    generation: int = 0
    partitions: tuple[int, ...] = ()
    joining: "asyncio.Future[tuple[int, tuple[int, ...]]] | None" = None
    has_to_rejoin: asyncio.Event = field(default_factory=asyncio.Event)
    seen_at: float = 0.0

    @property
    def process(self) -> str:
        return self.name.split("/")[0]


class Group:
    """The members that read one topic, and what they have committed."""

    def __init__(self, loop: SimulatedLoop, *, topic: str, partitions: int, session: float, rebalance: float) -> None:
        self.topic = topic
        self.session = session
        self.commits: list[Committed] = []
        self.assignments: list[Assigned] = []
        self.committed: dict[int, int] = {}
        self.commit_failures = 0.0
        self._loop = loop
        self._partitions = partitions
        self._rebalance = rebalance
        self._generation = 0
        self._members: dict[str, Member] = {}
        self._context = Context()
        self._rebalancing: asyncio.Task[None] | None = None
        self._watching = loop.create_task(self._watch_sessions(), context=self._context)

    async def join(self, member: Member) -> tuple[int, tuple[int, ...]]:
        """Wait for the next generation; gives it and the member's partitions."""
        await travel(self._loop)
        self._members[member.name] = member
        member.seen_at = self._loop.time()
        member.joining = self._loop.create_future()
        self._begin_rebalance()
        return await member.joining

    def leave(self, name: str) -> None:
        if self._members.pop(name, None) is not None:
            self._begin_rebalance()

    def heartbeat(self, member: Member) -> bool:
        """Whether the member is still one."""
        member.seen_at = self._loop.time()
        return self._members.get(member.name) is member

    async def commit(self, member: Member, offsets: dict[int, int]) -> bool:
        """Whether the broker accepts the commit: not from a member of an older generation."""
        await travel(self._loop)
        if self._loop.random.random() < self.commit_failures:
            raise ConnectionError("the coordinator does not answer")
        if self._members.get(member.name) is not member or member.generation != self._generation:
            return False
        for partition, offset in offsets.items():
            self.committed[partition] = offset
            self.commits.append(
                Committed(
                    at=self._loop.time(),
                    member=member.name,
                    generation=self._generation,
                    partition=partition,
                    offset=offset,
                )
            )
        await travel(self._loop)
        return True

    async def _watch_sessions(self) -> None:
        while True:
            await asyncio.sleep(self.session / 5)
            for name, member in list(self._members.items()):
                # A real broker, too, keeps a member that waits for a rebalance to end.
                if member.joining is None and member.seen_at < self._loop.time() - self.session:
                    self.leave(name)

    def _begin_rebalance(self) -> None:
        if self._rebalancing is None or self._rebalancing.done():
            self._rebalancing = self._loop.create_task(self._run_rebalance(), context=self._context)

    async def _run_rebalance(self) -> None:
        """Everybody has to rejoin; who does not in time is no member any more."""
        for member in self._members.values():
            if member.joining is None:
                self._in_a_heartbeat(member)
        deadline = self._loop.time() + self._rebalance
        while any(one.joining is None for one in self._members.values()):
            if self._loop.time() >= deadline:
                break
            await asyncio.sleep(0.05)
        self._members = {name: member for name, member in self._members.items() if member.joining is not None}
        self._generation += 1
        names = sorted(self._members)
        self._loop.random.shuffle(names)
        for place, name in enumerate(names):
            own = tuple(number for number in range(self._partitions) if number % len(names) == place)
            self._assign(self._members[name], own)

    def _assign(self, member: Member, partitions: tuple[int, ...]) -> None:
        joining, member.joining = member.joining, None
        member.generation, member.partitions = self._generation, partitions
        member.has_to_rejoin.clear()
        self.assignments += [
            Assigned(at=self._loop.time(), process=member.process, partition=partition) for partition in partitions
        ]
        assert joining is not None
        if not joining.done():
            joining.set_result((self._generation, partitions))

    def _in_a_heartbeat(self, member: Member) -> None:
        delay = self._loop.random.random() * self.session / 4
        self._loop.call_later(delay, member.has_to_rejoin.set, context=self._context)
