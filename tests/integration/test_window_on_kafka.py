"""The window inside real Apps on a real Kafka: nothing lost, order kept, everything committed."""

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition  # type: ignore[import-untyped] # aiokafka ships no types

from mnemolog.streams.admin import ensure_topics
from mnemolog.streams.app import StageApp, StageSpec, build_app, group_id
from mnemolog.streams.batches import BatchWindow
from mnemolog.streams.records import Record
from mnemolog.streams.runner import Supervision, run_apps
from mnemolog.streams.send import Sender
from mnemolog.streams.topics import CONVERSATION_TURNS, EXTRACTED_FACTS, topic_name
from mnemolog.streams.window import KeyedWindow, Partition, Window
from tests.kafka import PARTITIONS, QUICK, committed, publish, read_all, until
from tests.support import eventually

pytestmark = pytest.mark.kafka

Process = Callable[[Record, Sender], Awaitable[None]]
RECORDS = 300
KEYS = 30
SPEC = StageSpec(name="copy", inputs=(CONVERSATION_TURNS,))
RESTARTS = Supervision(first_delay=0.1, look_every=0.1)


class Bench:
    """One test's topics and the stage that copies its input to its output."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self.bootstrap = bootstrap
        self.prefix = prefix
        self.source = topic_name(CONVERSATION_TURNS, prefix)
        self.target = topic_name(EXTRACTED_FACTS, prefix)

    async def copy(self, record: Record, sender: Sender) -> None:
        await asyncio.sleep(random.uniform(0, 0.05))
        origin = (("origin", record.position.encode()),)
        await sender.send(self.target, key=record.key, value=record.value, headers=origin)

    def builder(self, process: Process) -> Callable[[], StageApp]:
        def window(sender: Sender) -> Window:
            async def one(record: Record) -> None:
                await process(record, sender)

            return KeyedWindow(one)

        return lambda: build_app(SPEC, window, bootstrap=self.bootstrap, prefix=self.prefix, tuning=QUICK)

    async def fill(self, count: int = RECORDS, first: int = 0) -> None:
        numbers = range(first, first + count)
        await publish(self.bootstrap, self.source, [(b"key-%d" % (n % KEYS), b"%d" % n) for n in numbers])

    async def committed(self) -> int:
        return await committed(self.bootstrap, group_id("copy", self.prefix), self.source)

    async def output(self) -> list[Record]:
        return await read_all(self.bootstrap, self.target)

    async def all_committed(self, count: int = RECORDS) -> None:
        async def done() -> bool:
            return await self.committed() == count

        await until(done)


@pytest.fixture
async def bench(bootstrap: str, topic_suffix: str) -> Bench:
    prefix = f"{topic_suffix}-"
    await ensure_topics(bootstrap, partitions=PARTITIONS, prefix=prefix)
    return Bench(bootstrap, prefix)


@asynccontextmanager
async def running(*builders: Callable[[], StageApp], ready: dict[str, bool] | None = None) -> AsyncIterator[None]:
    stop = asyncio.Event()
    task = asyncio.create_task(run_apps(builders, stop, ready=ready, supervision=RESTARTS))
    try:
        yield
    finally:
        stop.set()
        await asyncio.wait_for(task, 30)


def first_numbers_by_key(output: list[Record]) -> dict[bytes | None, list[int]]:
    """Each key's numbers in the order in which they came first."""
    by_key: dict[bytes | None, dict[int, None]] = defaultdict(dict)
    for record in output:
        by_key[record.key].setdefault(int(record.value or b"-1"))
    return {key: list(numbers) for key, numbers in by_key.items()}


def assert_complete_and_in_order(output: list[Record], count: int = RECORDS) -> None:
    by_key = first_numbers_by_key(output)
    assert sorted(n for numbers in by_key.values() for n in numbers) == list(range(count))
    assert all(numbers == sorted(numbers) for numbers in by_key.values())


async def test_every_record_goes_through_once_and_in_order(bench: Bench) -> None:
    await bench.fill()
    async with running(bench.builder(bench.copy)):
        await bench.all_committed()
    output = await bench.output()
    assert len(output) == RECORDS
    assert_complete_and_in_order(output)


async def test_a_stop_in_the_middle_repeats_nothing(bench: Bench) -> None:
    await bench.fill()
    async with running(bench.builder(bench.copy)):
        await until(bench.committed)
    async with running(bench.builder(bench.copy)):
        await bench.all_committed()
    output = await bench.output()
    assert len(output) == RECORDS
    assert_complete_and_in_order(output)


async def test_members_come_and_go(bench: Bench) -> None:
    handled: set[str] = set()
    joined: dict[str, bool] = {}
    third = RECORDS // 3

    async def by_second(record: Record, sender: Sender) -> None:
        await bench.copy(record, sender)
        handled.add(record.position)

    async with running(bench.builder(bench.copy)):
        await bench.fill(third)
        await until(bench.committed)
        async with running(bench.builder(by_second), ready=joined):
            await bench.fill(third, first=third)
            await eventually(lambda: joined.get("copy"))
            await bench.fill(third, first=2 * third)
            await eventually(lambda: handled)
        await bench.all_committed()
    output = await bench.output()
    assert len(output) == RECORDS
    assert_complete_and_in_order(output)


async def test_a_crash_restarts_the_stage_and_loses_nothing(bench: Bench) -> None:
    crashes = 0

    async def now_and_then(record: Record, sender: Sender) -> None:
        nonlocal crashes
        if record.value in {b"70", b"150"} and crashes < 3:
            crashes += 1
            raise RuntimeError("a bug")
        await bench.copy(record, sender)

    await bench.fill()
    async with running(bench.builder(now_and_then)):
        await bench.all_committed()
    assert crashes == 3
    assert_complete_and_in_order(await bench.output())


async def test_bytes_that_are_no_record_are_acknowledged_in_their_turn(bench: Bench) -> None:
    release = asyncio.Event()

    async def slow_first(record: Record, sender: Sender) -> None:
        if record.value == b"0":
            await release.wait()
        await sender.send(bench.target, key=record.key, value=record.value)

    await publish(bench.bootstrap, bench.source, [(b"a", b"0"), (b"a", b"\xff{no json"), (b"a", b"2")])
    others = [(b"key-%d" % n, b"{broken") for n in range(40)]
    await publish(bench.bootstrap, bench.source, others)
    async with running(bench.builder(slow_first)):

        async def others_are_out() -> bool:
            return len(await bench.output()) == len(others)

        await until(others_are_out)
        held = await bench.committed()
        release.set()
        await bench.all_committed(len(others) + 3)
    assert held < len(others)
    assert sorted(r.value or b"" for r in await bench.output() if r.key == b"a") == [b"0", b"2", b"\xff{no json"]


async def test_a_stage_can_keep_its_offsets_elsewhere(bench: Bench) -> None:
    offsets: dict[int, int] = {}
    seen: list[int] = []

    def window(_: Sender) -> Window:
        async def fold(records: list[Record]) -> None:
            for record in records:
                assert record.offset == offsets.get(record.partition, 0)
                offsets[record.partition] = record.offset + 1
                seen.append(int(record.value or b"-1"))

        return BatchWindow(fold)  # type: ignore[arg-type] # a list is what it gets

    async def start(partitions: frozenset[Partition]) -> dict[Partition, int]:
        return {(topic, number): offsets.get(number, 0) for topic, number in partitions}

    def build() -> StageApp:
        return build_app(
            SPEC, window, bootstrap=bench.bootstrap, prefix=bench.prefix, tuning=QUICK, start_offsets=start
        )

    await bench.fill()
    async with running(build):
        await bench.all_committed()
    assert sorted(seen) == list(range(RECORDS))
    offsets.clear()
    async with running(build):
        await eventually(lambda: len(seen) == 2 * RECORDS)


async def test_readiness_follows_the_group(bench: Bench) -> None:
    ready: dict[str, bool] = {}
    async with running(bench.builder(bench.copy), ready=ready):
        await eventually(lambda: ready.get("copy"))
    assert ready == {"copy": False}


async def test_a_stuck_stage_is_started_anew(bench: Bench) -> None:
    tries = 0

    async def stuck_once(record: Record, sender: Sender) -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            await asyncio.Event().wait()
        await bench.copy(record, sender)

    await bench.fill(1)
    stop = asyncio.Event()
    impatient = Supervision(first_delay=0.1, look_every=0.1, stalled_after=0.5)
    task = asyncio.create_task(run_apps([bench.builder(stuck_once)], stop, supervision=impatient))
    try:
        await bench.all_committed(1)
    finally:
        stop.set()
        with suppress(asyncio.CancelledError):
            await task
    assert tries == 2


async def commit_group(bench: Bench, offset: int) -> None:
    """Let the stage's group stand at `offset` in every partition, whatever the topic holds."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=bench.bootstrap, group_id=group_id("copy", bench.prefix), enable_auto_commit=False
    )
    await consumer.start()
    try:
        places = [TopicPartition(bench.source, number) for number in range(PARTITIONS)]
        consumer.assign(places)
        await consumer.commit(dict.fromkeys(places, offset))
    finally:
        await consumer.stop()


async def test_a_group_that_stands_beyond_the_end_of_a_cut_topic_reads_what_is_written_now(bench: Bench) -> None:
    await bench.fill(20)
    await commit_group(bench, 1000)
    ready: dict[str, bool] = {}
    async with running(bench.builder(bench.copy), ready=ready):
        await eventually(lambda: ready.get("copy"))
        await bench.fill(20, first=20)

        async def copied() -> bool:
            return {int(record.value or b"-1") for record in await bench.output()} >= set(range(20, 40))

        await until(copied)
