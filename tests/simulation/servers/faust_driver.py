"""Faust's consumer and producer over the simulated broker, in the place of aiokafka; the rest of Faust is real."""

import asyncio
from collections.abc import Awaitable, Iterable, Mapping
from types import SimpleNamespace
from typing import Any, ClassVar, Final

from aiokafka.errors import IllegalStateError  # type: ignore[import-untyped] # aiokafka ships no types
from faust.transport.producer import Producer
from faust.types import TP
from mode import Service

from mnemolog.streams.kafka.app import PatchedTransport, _PatchedConsumer
from tests.simulation.loop import PROCESS
from tests.simulation.servers.broker import Broker
from tests.simulation.servers.consumer_group import Group, Member, travel

FETCHED_RECORDS: Final = 20
RESUME_SECONDS: Final = 0.5  # so long a waiting fetch may overlook that a partition is resumed


class SimulatedThread(Service):
    """In the place of the thread in which aiokafka's consumer runs: membership, positions, fetches."""

    thread_loop = None
    _thread: Any = None

    def __init__(self, consumer: Any, broker: Broker, name: str, **kwargs: Any) -> None:
        self.consumer = consumer
        self.app = consumer.app
        self.broker = broker
        self.member = Member(name)
        self._group: Group | None = None
        self._assigned: set[TP] = set()
        self._positions: dict[TP, int | None] = {}
        self._subscribed = asyncio.Event()
        super().__init__(**kwargs)

    @property
    def group(self) -> Group:
        assert self._group is not None
        return self._group

    async def on_stop(self) -> None:
        if self._group is not None:
            self._group.leave(self.member.name)

    @Service.task
    async def _be_a_member(self) -> None:
        await self._subscribed.wait()
        while not self.should_stop:
            self.app.on_rebalance_start()
            await self.consumer.on_partitions_revoked(set(self._assigned))
            generation, partitions = await self.group.join(self.member)
            self._assigned = {TP(self.group.topic, number) for number in partitions}
            self._positions = dict.fromkeys(self._assigned)
            self.app.consumer_generation_id = generation
            finding = asyncio.ensure_future(self._find_positions(generation))
            await self.consumer.on_partitions_assigned(set(self._assigned), generation)
            await finding
            await self.member.has_to_rejoin.wait()

    async def _find_positions(self, generation: int) -> None:
        """The client begins by itself where the group has committed, or at the beginning, unless it is told to seek."""
        for tp in sorted(self._assigned):
            await travel(self.broker.loop)
            if self.member.generation == generation and self._positions.get(tp, 0) is None:
                self._positions[tp] = self.group.committed.get(tp.partition, 0)
                self.broker.wake_fetches(self.group.topic)

    @Service.task
    async def _heartbeat(self) -> None:
        await self._subscribed.wait()
        while not self.should_stop:
            if not self.group.heartbeat(self.member):
                self.member.has_to_rejoin.set()  # its session ended while its process was frozen
            await asyncio.sleep(self.group.session / 5)

    async def subscribe(self, topics: Iterable[str]) -> None:
        (topic,) = topics
        self._group = self.broker.group(self.app.conf.id, topic)
        self._subscribed.set()

    def fetched_at(self) -> dict[int, float]:
        return {}  # what is not fetched is no part of the simulation

    def assignment(self) -> set[TP]:
        return set(self._assigned)

    async def seek_to_committed(self) -> Mapping[TP, int | None]:
        """Seeks only where something was committed, as aiokafka does."""
        offsets: dict[TP, int | None] = {}
        for tp in sorted(self._assigned):
            await travel(self.broker.loop)
            offsets[tp] = self.group.committed.get(tp.partition)
            if offset := offsets[tp]:
                self.seek(tp, offset)
        return offsets

    async def seek_wait(self, partitions: Mapping[TP, int]) -> None:
        for tp, offset in partitions.items():
            self.seek(tp, offset)
        await travel(self.broker.loop)

    def seek(self, tp: TP, offset: int) -> None:
        if tp not in self._assigned:
            raise IllegalStateError(f"{tp} is not assigned")
        self._positions[tp] = offset
        self.broker.wake_fetches(self.group.topic)

    async def commit(self, offsets: Mapping[TP, int]) -> bool:
        own = {tp.partition: offset for tp, offset in offsets.items() if tp in self._assigned}
        try:
            return await self.group.commit(self.member, own)
        except ConnectionError as error:
            await self.crash(error)  # as Faust's thread does
            return False

    async def getmany(self, active_partitions: set[TP] | None, timeout: float) -> Any:  # noqa: ASYNC109 -- Faust's
        await travel(self.broker.loop)
        if not self.consumer.flow_active:
            return {}
        deadline = self.broker.loop.time() + timeout
        while True:
            found = self._fetch(active_partitions or set())
            if found or self.broker.loop.time() >= deadline:
                return found
            left = deadline - self.broker.loop.time()
            await self.broker.wait_for_records(self.group.topic, min(RESUME_SECONDS, left))

    def _fetch(self, active: set[TP]) -> dict[TP, Any]:
        found: dict[TP, Any] = {}
        for tp in sorted(active & self._assigned):
            start = self._positions[tp]
            if start is None:
                continue
            count = 1 + self.broker.loop.random.randrange(FETCHED_RECORDS)
            if records := self.broker.lane(*tp)[start : start + count]:
                self._positions[tp] = start + len(records)
                found[tp] = [_consumer_record(record) for record in records]
        return found

    def highwater(self, tp: TP) -> int:
        return len(self.broker.lane(*tp))

    def topic_partitions(self, topic: str) -> int:  # noqa: ARG002 -- Faust's signature
        return self.broker.partitions

    def verify_event_path(self, now: float, tp: TP) -> None: ...
    def close(self) -> None: ...


def _consumer_record(record: Any) -> Any:
    return SimpleNamespace(
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        key=record.key,
        value=record.value,
        headers=record.headers,
        timestamp=int(record.timestamp * 1000),
        timestamp_type=1,
        checksum=None,
        serialized_key_size=0,
        serialized_value_size=0,
    )


class SimulatedConsumer(_PatchedConsumer):
    def _new_consumer_thread(self) -> Any:
        app: Any = self.app
        return SimulatedThread(self, app.broker, app.member_name, loop=self.loop, beacon=self.beacon)

    async def _offset_bounds(self, partitions: Any) -> tuple[Mapping[TP, int], Mapping[TP, int]]:
        app: Any = self.app
        await travel(app.broker.loop)
        return dict.fromkeys(partitions, 0), {tp: len(app.broker.lane(*tp)) for tp in partitions}


class SimulatedProducer(Producer):
    """Sends to the broker; what a process has sent may still arrive after it is killed."""

    async def send(self, topic: str, key: bytes | None, value: bytes | None, *more: Any, **_: Any) -> Awaitable[Any]:
        app: Any = self.app
        headers = more[-1] or ()
        broker: Broker = app.broker
        return broker.send(topic, key, value, headers, PROCESS.get() or "")

    async def flush(self) -> None:
        app: Any = self.app
        await travel(app.broker.loop)


class SimulatedTransport(PatchedTransport):
    Consumer: ClassVar[Any] = SimulatedConsumer
    Producer: ClassVar[Any] = SimulatedProducer
