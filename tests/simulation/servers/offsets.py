"""In the place of aiokafka's consumer and admin where a process, as no member of a group, asks what lies in topics."""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from aiokafka import TopicPartition  # type: ignore[import-untyped] # aiokafka ships no types
from aiokafka.errors import KafkaConnectionError  # type: ignore[import-untyped] # as above

from mnemolog.streams.runtime import later_topics
from tests.simulation.servers.broker import Broker
from tests.simulation.servers.consumer_group import travel


class OffsetConsumer:
    """A consumer without a group, as far as it is asked for offsets."""

    def __init__(self, broker: Broker, **_: object) -> None:
        self._broker = broker

    async def start(self) -> None:
        await travel(self._broker.loop)

    async def stop(self) -> None: ...

    async def beginning_offsets(self, places: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        await travel(self._broker.loop)
        return dict.fromkeys(places, 0)

    async def end_offsets(self, places: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        await travel(self._broker.loop)
        ends = {place: len(self._broker.lane(*place)) for place in places}
        await travel(self._broker.loop)
        return ends


class GroupAdmin:
    """An admin, as far as it is asked what groups have committed."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def list_consumer_group_offsets(self, group: str, *, partitions: Iterable[TopicPartition]) -> Any:
        await travel(self._broker.loop)
        if self._broker.loop.random.random() < self._broker.commit_failures:
            raise KafkaConnectionError("the coordinator does not answer")
        known = self._broker.groups[group].committed if group in self._broker.groups else {}
        committed = {place: SimpleNamespace(offset=known.get(place.partition, -1)) for place in partitions}
        await travel(self._broker.loop)
        return committed


@asynccontextmanager
async def _connected_admin(broker: Broker, _bootstrap: str) -> AsyncIterator[GroupAdmin]:
    yield GroupAdmin(broker)


@contextmanager
def asking(broker: Broker) -> Iterator[None]:
    """Whoever looks for records between the stages asks `broker`."""
    with ExitStack() as patches:
        patches.enter_context(patch.object(later_topics, "AIOKafkaConsumer", partial(OffsetConsumer, broker)))
        patches.enter_context(patch.object(later_topics, "connected_admin", partial(_connected_admin, broker)))
        yield
