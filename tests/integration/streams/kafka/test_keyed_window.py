"""The window inside real Apps on a real Kafka: nothing lost, order kept, everything committed."""

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition  # type: ignore[import-untyped] # aiokafka ships no types

from mnemolog.streams.kafka.admin import ensure_topics
from mnemolog.streams.kafka.app import StageApp, build_app
from mnemolog.streams.kafka.record import KafkaRecord, Partition
from mnemolog.streams.kafka.sender import Sender
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS, EXTRACTED_FACTS, group_id, topic_name
from mnemolog.streams.kafka.window import KeyedWindow, Window
from mnemolog.streams.runtime.supervisor import SupervisorSettings, run_stages
from tests.support.polling import eventually
from tests.support.servers.kafka_client import PARTITIONS, QUICK_TUNING, committed_offset, publish, read_all, wait_until

pytestmark = pytest.mark.kafka

Process = Callable[[KafkaRecord, Sender], Awaitable[None]]
RECORDS = 300
KEYS = 30
RESTARTS = SupervisorSettings(initial_restart_delay=0.1, check_interval=0.1)


class CopyStageHarness:
    """One test's topics and the stage that copies its input to its output."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self.bootstrap = bootstrap
        self.prefix = prefix
        self.source = topic_name(CONVERSATION_TURNS, prefix)
        self.target = topic_name(EXTRACTED_FACTS, prefix)

    async def copy(self, record: KafkaRecord, sender: Sender) -> None:
        await asyncio.sleep(random.uniform(0, 0.05))
        origin = (("origin", record.position.encode()),)
        await sender.send(self.target, key=record.key, value=record.value, headers=origin)

    def builder(self, process: Process, name: str = "copy") -> Callable[[], StageApp]:
        def window(sender: Sender) -> Window:
            async def one(record: KafkaRecord) -> None:
                await process(record, sender)

            return KeyedWindow(one)

        return lambda: build_app(
            name, CONVERSATION_TURNS, window, bootstrap=self.bootstrap, prefix=self.prefix, tuning=QUICK_TUNING
        )

    async def fill(self, count: int = RECORDS, first: int = 0) -> None:
        numbers = range(first, first + count)
        await publish(self.bootstrap, self.source, [(b"key-%d" % (n % KEYS), b"%d" % n) for n in numbers])

    async def committed(self) -> int:
        return await committed_offset(self.bootstrap, group_id("copy", self.prefix), self.source)

    async def output(self) -> list[KafkaRecord]:
        return await read_all(self.bootstrap, self.target)

    async def all_committed(self, count: int = RECORDS) -> None:
        async def done() -> bool:
            return await self.committed() == count

        await wait_until(done)


@pytest.fixture
async def harness(bootstrap: str, topic_suffix: str) -> CopyStageHarness:
    prefix = f"{topic_suffix}-"
    await ensure_topics(bootstrap, partitions=PARTITIONS, prefix=prefix)
    return CopyStageHarness(bootstrap, prefix)


@asynccontextmanager
async def running_apps(*builders: Callable[[], StageApp], ready: dict[str, bool] | None = None) -> AsyncIterator[None]:
    stop = asyncio.Event()
    task = asyncio.create_task(run_stages(builders, stop, ready=ready, settings=RESTARTS))
    try:
        yield
    finally:
        stop.set()
        await asyncio.wait_for(task, 30)


def first_numbers_by_key(output: list[KafkaRecord]) -> dict[bytes | None, list[int]]:
    """Each key's numbers in the order in which they came first."""
    by_key: dict[bytes | None, dict[int, None]] = defaultdict(dict)
    for record in output:
        by_key[record.key].setdefault(int(record.value or b"-1"))
    return {key: list(numbers) for key, numbers in by_key.items()}


def assert_complete_and_in_order(output: list[KafkaRecord], count: int = RECORDS) -> None:
    by_key = first_numbers_by_key(output)
    assert sorted(n for numbers in by_key.values() for n in numbers) == list(range(count))
    assert all(numbers == sorted(numbers) for numbers in by_key.values())


async def test_every_record_goes_through_once_and_in_order(harness: CopyStageHarness) -> None:
    await harness.fill()
    async with running_apps(harness.builder(harness.copy)):
        await harness.all_committed()
    output = await harness.output()
    assert len(output) == RECORDS
    assert_complete_and_in_order(output)


async def test_a_stop_in_the_middle_repeats_nothing(harness: CopyStageHarness) -> None:
    await harness.fill()
    async with running_apps(harness.builder(harness.copy)):
        await wait_until(harness.committed)
    async with running_apps(harness.builder(harness.copy)):
        await harness.all_committed()
    output = await harness.output()
    assert len(output) == RECORDS
    assert_complete_and_in_order(output)


async def test_members_come_and_go(harness: CopyStageHarness) -> None:
    handled: set[str] = set()
    joined: dict[str, bool] = {}
    third = RECORDS // 3

    async def by_second(record: KafkaRecord, sender: Sender) -> None:
        await harness.copy(record, sender)
        handled.add(record.position)

    async with running_apps(harness.builder(harness.copy)):
        await harness.fill(third)
        await wait_until(harness.committed)
        async with running_apps(harness.builder(by_second), ready=joined):
            await harness.fill(third, first=third)
            await eventually(lambda: joined.get("copy"))
            await harness.fill(third, first=2 * third)
            await eventually(lambda: handled)
        await harness.all_committed()
    output = await harness.output()
    assert len(output) == RECORDS
    assert_complete_and_in_order(output)


async def test_a_crash_restarts_the_stage_and_loses_nothing(harness: CopyStageHarness) -> None:
    crashes = 0

    async def now_and_then(record: KafkaRecord, sender: Sender) -> None:
        nonlocal crashes
        if record.value in {b"70", b"150"} and crashes < 3:
            crashes += 1
            raise RuntimeError("a bug")
        await harness.copy(record, sender)

    await harness.fill()
    async with running_apps(harness.builder(now_and_then)):
        await harness.all_committed()
    assert crashes == 3
    assert_complete_and_in_order(await harness.output())


async def test_bytes_that_are_no_record_are_acknowledged_in_their_turn(harness: CopyStageHarness) -> None:
    release = asyncio.Event()

    async def slow_first(record: KafkaRecord, sender: Sender) -> None:
        if record.value == b"0":
            await release.wait()
        await sender.send(harness.target, key=record.key, value=record.value)

    await publish(harness.bootstrap, harness.source, [(b"a", b"0"), (b"a", b"\xff{no json"), (b"a", b"2")])
    others = [(b"key-%d" % n, b"{broken") for n in range(40)]
    await publish(harness.bootstrap, harness.source, others)
    async with running_apps(harness.builder(slow_first)):

        async def others_are_out() -> bool:
            return len(await harness.output()) == len(others)

        await wait_until(others_are_out)
        held = await harness.committed()
        release.set()
        await harness.all_committed(len(others) + 3)
    assert held < len(others)
    assert sorted(r.value or b"" for r in await harness.output() if r.key == b"a") == [b"0", b"2", b"\xff{no json"]


def keeping_offsets(bench: CopyStageHarness, offsets: dict[int, int], seen: list[int]) -> Callable[[], StageApp]:
    """Builds a stage that keeps its offsets itself, and notes the numbers that it sees."""

    def window(_: Sender) -> Window:
        async def fold(records: Sequence[KafkaRecord]) -> None:
            for record in records:
                assert record.offset == offsets.get(record.partition, 0)
                offsets[record.partition] = record.offset + 1
                seen.append(int(record.value or b"-1"))

        return Window(fold)

    async def start(partitions: frozenset[Partition]) -> dict[Partition, int]:
        return {place: offsets.get(place[1], 0) for place in partitions}

    return lambda: build_app(
        "copy",
        CONVERSATION_TURNS,
        window,
        bootstrap=bench.bootstrap,
        prefix=bench.prefix,
        tuning=QUICK_TUNING,
        start_offsets=start,
    )


async def test_a_stage_can_keep_its_offsets_elsewhere(harness: CopyStageHarness) -> None:
    offsets: dict[int, int] = {}
    seen: list[int] = []
    build = keeping_offsets(harness, offsets, seen)
    await harness.fill()
    async with running_apps(build):
        await harness.all_committed()
    assert sorted(seen) == list(range(RECORDS))
    offsets.clear()
    async with running_apps(build):
        await eventually(lambda: len(seen) == 2 * RECORDS)


async def test_what_a_stage_did_before_it_was_killed_does_not_count_as_unread(harness: CopyStageHarness) -> None:
    await harness.fill()
    ends = Counter(record.partition for record in await read_all(harness.bootstrap, harness.source))
    seen: list[int] = []
    async with running_apps(keeping_offsets(harness, dict(ends), seen)):
        await harness.all_committed()
    assert seen == []


async def test_readiness_follows_the_group(harness: CopyStageHarness) -> None:
    ready: dict[str, bool] = {}
    async with running_apps(harness.builder(harness.copy), ready=ready):
        await eventually(lambda: ready.get("copy"))
    assert ready == {"copy": False}


async def test_a_stuck_stage_is_started_anew(harness: CopyStageHarness) -> None:
    tries = 0

    async def stuck_once(record: KafkaRecord, sender: Sender) -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            await asyncio.Event().wait()
        await harness.copy(record, sender)

    await harness.fill(1)
    stop = asyncio.Event()
    impatient = SupervisorSettings(initial_restart_delay=0.1, check_interval=0.1, stall_timeout=2)
    task = asyncio.create_task(run_stages([harness.builder(stuck_once)], stop, settings=impatient))
    try:
        await harness.all_committed(1)
    finally:
        stop.set()
        with suppress(asyncio.CancelledError):
            await task
    assert tries >= 2  # a slow machine may need another start


async def commit_group(bench: CopyStageHarness, offset: int) -> None:
    """Set the stage's group to `offset` in every partition, whatever the topic holds."""
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


async def test_a_group_that_stands_beyond_the_end_of_a_cut_topic_reads_what_is_written_now(
    harness: CopyStageHarness,
) -> None:
    await harness.fill(20)
    await commit_group(harness, 1000)
    ready: dict[str, bool] = {}
    async with running_apps(harness.builder(harness.copy), ready=ready):
        await eventually(lambda: ready.get("copy"))
        await harness.fill(20, first=20)

        async def copied() -> bool:
            return {int(record.value or b"-1") for record in await harness.output()} >= set(range(20, 40))

        await wait_until(copied)


async def test_stages_that_start_do_not_wait_behind_their_own_fetches(harness: CopyStageHarness) -> None:
    """On one connection Kafka answers in order, and a fetch of an empty topic takes 1.5 s; a start asks twice."""
    loop, names = asyncio.get_running_loop(), [f"copy-{number}" for number in range(6)]

    async def seconds_until_ready() -> float:
        ready: dict[str, bool] = {}
        began = loop.time()
        async with running_apps(*(harness.builder(harness.copy, name) for name in names), ready=ready):
            await eventually(lambda: all(ready.get(name) for name in names))
            return loop.time() - began

    assert min([await seconds_until_ready() for _ in range(3)]) < 2.5  # a busy machine may be slow twice
