"""Turns and commands of a real Kafka: each owner's are handled in the order in which they were acknowledged."""

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from mnemolog.schemas.admission import source_kind
from mnemolog.streams.kafka.admin import ensure_topics
from mnemolog.streams.kafka.app import StageApp, build_app
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS, topic_name
from mnemolog.streams.kafka.window import KeyedWindow
from mnemolog.streams.runtime.supervisor import SupervisorSettings, run_stages
from tests.support.polling import eventually
from tests.support.servers.kafka_client import PARTITIONS, QUICK_TUNING, producer

pytestmark = pytest.mark.kafka

OWNERS = 6


class OrderHarness:
    """One test's topic, and what was handled of it."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self.bootstrap = bootstrap
        self.prefix = prefix
        self.topic = topic_name(CONVERSATION_TURNS, prefix)
        self.acknowledged: dict[bytes, list[bytes]] = defaultdict(list)
        self.handled: list[KafkaRecord] = []

    def build(self) -> StageApp:
        async def handle(record: KafkaRecord) -> None:
            await asyncio.sleep(random.uniform(0, 0.01))
            self.handled.append(record)

        return build_app(
            "order",
            CONVERSATION_TURNS,
            lambda _: KeyedWindow(handle),
            bootstrap=self.bootstrap,
            prefix=self.prefix,
            tuning=QUICK_TUNING,
        )

    async def publish(self, client: Any, owner: int, kind: str, number: int) -> None:
        """Publish one record; return once it is acknowledged."""
        key, value = b"owner-%d" % owner, b'{"kind": "%s", "number": %d}' % (kind.encode(), number)
        await client.send_and_wait(self.topic, key=key, value=value)
        self.acknowledged[key].append(value)

    def handled_by_owner(self) -> dict[bytes, list[bytes]]:
        """What was handled for the first time, in order."""
        values: dict[bytes, dict[bytes, None]] = defaultdict(dict)
        for record in self.handled:
            values[record.key or b""].setdefault(record.value or b"")
        return {key: list(found) for key, found in values.items()}

    async def wait_until_all_handled(self) -> None:
        count = sum(map(len, self.acknowledged.values()))
        await eventually(lambda: len({record.position for record in self.handled}) == count)


@pytest.fixture
async def harness(bootstrap: str, topic_suffix: str) -> OrderHarness:
    prefix = f"{topic_suffix}-"
    await ensure_topics(bootstrap, partitions=PARTITIONS, prefix=prefix)
    return OrderHarness(bootstrap, prefix)


@asynccontextmanager
async def running_app(build: Callable[[], StageApp]) -> AsyncIterator[None]:
    stop, ready = asyncio.Event(), dict[str, bool]()
    settings = SupervisorSettings(initial_restart_delay=0.1, check_interval=0.1)
    task = asyncio.create_task(run_stages([build], stop, ready=ready, settings=settings))
    try:
        await eventually(lambda: ready.get("order"))
        yield
    finally:
        stop.set()
        await asyncio.wait_for(task, 30)


def some_kind(number: int) -> str:
    return "command" if random.Random(number).random() < 0.3 else "turn"


async def test_a_backlog_is_handled_in_the_order_in_which_it_was_published(harness: OrderHarness) -> None:
    async with producer(harness.bootstrap) as client:
        for number in range(300):
            await harness.publish(client, number % OWNERS, some_kind(number), number)
    async with running_app(harness.build):
        await harness.wait_until_all_handled()
    assert harness.handled_by_owner() == harness.acknowledged


async def test_a_restart_in_the_middle_keeps_the_order(harness: OrderHarness) -> None:
    async with producer(harness.bootstrap) as client:
        for number in range(200):
            await harness.publish(client, number % OWNERS, some_kind(number), number)
    async with running_app(harness.build):
        await eventually(lambda: len(harness.handled) > 40)
    async with running_app(harness.build):
        await harness.wait_until_all_handled()
    assert harness.handled_by_owner() == harness.acknowledged


async def test_what_is_published_at_once_after_an_acknowledgement_is_handled_after_it(harness: OrderHarness) -> None:
    """Command, then turn, then command, each right after the acknowledgement, under load and during a rebalance."""

    async def publish_alternately(owner: int) -> None:
        async with producer(harness.bootstrap) as client:
            for number in range(100):
                await harness.publish(client, owner, "command", number)
                await harness.publish(client, owner, "turn", number)

    async with AsyncExitStack() as workers:
        await workers.enter_async_context(running_app(harness.build))
        publishing = [asyncio.create_task(publish_alternately(owner)) for owner in range(OWNERS)]
        await workers.enter_async_context(running_app(harness.build))
        await asyncio.gather(*publishing)
        await harness.wait_until_all_handled()
    assert harness.handled_by_owner() == harness.acknowledged
    kinds = [source_kind(value) for value in harness.handled_by_owner()[b"owner-0"]]
    assert kinds == ["command", "turn"] * 100
