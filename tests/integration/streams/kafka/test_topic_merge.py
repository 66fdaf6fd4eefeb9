"""Turns and commands of a real Kafka: each owner's are handled in the order in which they were published."""

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mnemolog.projections.rebuild.errors import LogUnreadableError
from mnemolog.streams.kafka.admin import ensure_topics
from mnemolog.streams.kafka.app import StageApp, StageSpec, build_app
from mnemolog.streams.kafka.keyed_window import KeyedWindow, Window
from mnemolog.streams.kafka.log_reader import KafkaLogReader
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.sender import Sender
from mnemolog.streams.kafka.topic_merge import EndOf
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS, MEMORY_COMMANDS, Topic, topic_name
from mnemolog.streams.runtime.supervisor import SupervisorSettings, run_stages
from tests.support.polling import eventually
from tests.support.servers.kafka_client import PARTITIONS, QUICK_TUNING, producer

pytestmark = pytest.mark.kafka

OWNERS = 6
SPEC = StageSpec(name="merge", inputs=(CONVERSATION_TURNS, MEMORY_COMMANDS))
# Kafka's clock has milliseconds: what is published within one has no order.
PUBLISH_GAP_SECONDS = 0.003


class MergeHarness:
    """One test's topics, and what was handled of them."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self.bootstrap = bootstrap
        self.prefix = prefix
        self.handled: list[KafkaRecord] = []
        self.turns = KafkaLogReader(bootstrap, topic=CONVERSATION_TURNS, prefix=prefix)
        self.end_of_turns: EndOf = self.turns.end_offset

    def build(self) -> StageApp:
        async def handle(record: KafkaRecord) -> None:
            await asyncio.sleep(random.uniform(0, 0.01))
            self.handled.append(record)

        def window(_: Sender) -> Window:
            return KeyedWindow(handle)

        return build_app(
            SPEC,
            window,
            bootstrap=self.bootstrap,
            prefix=self.prefix,
            tuning=QUICK_TUNING,
            end_of_first=self.end_of_turns,
        )

    async def publish(self, client: Any, topic: Topic, number: int) -> None:
        """One record, and the next one only after its acknowledgement."""
        name = topic_name(topic, self.prefix)
        await client.send_and_wait(name, key=b"key-%d" % (number % OWNERS), value=b"%d" % number)
        await asyncio.sleep(PUBLISH_GAP_SECONDS)

    def by_owner(self) -> dict[bytes | None, list[int]]:
        numbers = defaultdict(list)
        for record in self.handled:
            numbers[record.key].append(int(record.value or b"-1"))
        return numbers


@pytest.fixture
async def harness(bootstrap: str, topic_suffix: str) -> AsyncIterator[MergeHarness]:
    prefix = f"{topic_suffix}-"
    await ensure_topics(bootstrap, partitions=PARTITIONS, prefix=prefix)
    bench = MergeHarness(bootstrap, prefix)
    yield bench
    await bench.turns.close()


@asynccontextmanager
async def running_app(build: Callable[[], StageApp]) -> AsyncIterator[None]:
    stop, ready = asyncio.Event(), dict[str, bool]()
    task = asyncio.create_task(
        run_stages(
            [build], stop, ready=ready, settings=SupervisorSettings(initial_restart_delay=0.1, check_interval=0.1)
        )
    )
    try:
        await eventually(lambda: ready.get("merge"))
        yield
    finally:
        stop.set()
        await asyncio.wait_for(task, 30)


def some_topic(number: int) -> Topic:
    return MEMORY_COMMANDS if random.Random(number).random() < 0.3 else CONVERSATION_TURNS


async def test_a_backlog_is_handled_in_the_order_in_which_it_was_published(harness: MergeHarness) -> None:
    async with producer(harness.bootstrap) as client:
        for number in range(300):
            await harness.publish(client, some_topic(number), number)
    async with running_app(harness.build):
        await eventually(lambda: len(harness.handled) == 300)
    assert all(numbers == sorted(numbers) for numbers in harness.by_owner().values())


async def test_a_command_waits_for_the_turns_that_were_published_before_it(harness: MergeHarness) -> None:
    count = 200
    async with running_app(harness.build), producer(harness.bootstrap) as client:
        for number in range(0, count * OWNERS, OWNERS):  # all of one owner
            await harness.publish(client, CONVERSATION_TURNS, number)
            await harness.publish(client, MEMORY_COMMANDS, number)
        await eventually(lambda: len(harness.handled) == 2 * count)
    kinds: dict[int, list[str]] = defaultdict(list)
    for record in harness.handled:
        kinds[int(record.value or b"-1")].append(record.topic.removeprefix(harness.prefix))
    assert all(topics == ["conversation_turns", "memory_commands"] for topics in kinds.values())


async def test_a_restart_in_the_middle_keeps_the_order(harness: MergeHarness) -> None:
    async with producer(harness.bootstrap) as client:
        for number in range(200):
            await harness.publish(client, some_topic(number), number)
    async with running_app(harness.build):
        await eventually(lambda: len(harness.handled) > 40)
    async with running_app(harness.build):
        await eventually(lambda: len({record.position for record in harness.handled}) == 200)
    first = {key: list(dict.fromkeys(numbers)) for key, numbers in harness.by_owner().items()}
    assert all(numbers == sorted(numbers) for numbers in first.values())


async def test_where_the_turns_end_cannot_be_asked_the_stage_starts_anew_and_loses_nothing(
    harness: MergeHarness,
) -> None:
    failures = [LogUnreadableError("the broker is away")]

    async def fails_once(partition: int) -> int:
        if failures:
            raise failures.pop()
        return await harness.turns.end_offset(partition)

    harness.end_of_turns = fails_once
    async with producer(harness.bootstrap) as client:
        for number, topic in enumerate((CONVERSATION_TURNS, MEMORY_COMMANDS, CONVERSATION_TURNS)):
            await harness.publish(client, topic, number * OWNERS)
    async with running_app(harness.build):
        await eventually(lambda: len(set(harness.by_owner()[b"key-0"])) == 3)
    assert not failures
    assert list(dict.fromkeys(harness.by_owner()[b"key-0"])) == [0, OWNERS, 2 * OWNERS]
