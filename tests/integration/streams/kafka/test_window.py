"""The window inside real Apps on a real Kafka: nothing lost, order kept, everything committed."""

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition  # type: ignore[import-untyped] # aiokafka ships no types

from mnemolog.streams import metrics
from mnemolog.streams.kafka.admin import ensure_topics
from mnemolog.streams.kafka.app import StageApp, build_app
from mnemolog.streams.kafka.readers import KafkaRereader
from mnemolog.streams.kafka.record import KafkaRecord, Partition, StartOffsetLookup
from mnemolog.streams.kafka.sender import Sender
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS, EXTRACTED_FACTS, group_id, topic_name
from mnemolog.streams.kafka.window import KeyedWindow, Window
from mnemolog.streams.kafka_address import KafkaAddress
from mnemolog.streams.runtime import supervisor
from mnemolog.streams.runtime.supervisor import run_stages
from tests.support.polling import eventually
from tests.support.servers.kafka_client import (
    PARTITIONS,
    committed_offset,
    publish,
    quick_settings,
    read_all,
    wait_until,
)

pytestmark = pytest.mark.kafka

Process = Callable[[KafkaRecord, Sender], Awaitable[None]]
RECORDS = 300
KEYS = 30
QUIET_SECONDS = 2.5
"""An idle partition is fetched every 1.5 s."""


@pytest.fixture(autouse=True)
def quick_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "FIRST_RESTART_SECONDS", 0.1)
    monkeypatch.setattr(supervisor, "CHECK_SECONDS", 0.1)


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

    def over(
        self, window: Callable[[Sender], Window], name: str = "copy", start: StartOffsetLookup | None = None
    ) -> Callable[[], StageApp]:
        settings = quick_settings(self.bootstrap, self.prefix)
        return lambda: build_app(name, CONVERSATION_TURNS, window, settings, start_offsets=start)

    def builder(self, process: Process | None = None, name: str = "copy") -> Callable[[], StageApp]:
        def window(sender: Sender) -> Window:
            async def one(record: KafkaRecord) -> None:
                await (process or self.copy)(record, sender)

            return KeyedWindow(one)

        return self.over(window, name)

    async def fill(self, count: int = RECORDS, first: int = 0) -> None:
        numbers = range(first, first + count)
        await publish(self.bootstrap, self.source, [(b"key-%d" % (n % KEYS), b"%d" % n) for n in numbers])

    async def committed(self) -> int:
        return await committed_offset(self.bootstrap, group_id("copy", self.prefix), self.source)

    async def all_committed(self, count: int = RECORDS) -> None:
        async def done() -> bool:
            return await self.committed() == count

        await wait_until(done)

    async def check_output(self) -> None:
        """Every record is copied once, those of a key in their order."""
        output = await read_all(self.bootstrap, self.target)
        by_key: dict[bytes | None, dict[int, None]] = defaultdict(dict)
        for record in output:
            by_key[record.key].setdefault(int(record.value or b"-1"))
        assert sorted(n for numbers in by_key.values() for n in numbers) == list(range(RECORDS))
        assert all(list(numbers) == sorted(numbers) for numbers in by_key.values())
        assert len(output) == RECORDS


@pytest.fixture
async def harness(bootstrap: str, topic_suffix: str) -> CopyStageHarness:
    prefix = f"{topic_suffix}-"
    await ensure_topics(KafkaAddress(bootstrap), partitions=PARTITIONS, prefix=prefix)
    return CopyStageHarness(bootstrap, prefix)


@asynccontextmanager
async def running_apps(
    *builders: Callable[[], StageApp], ready: dict[str, bool] | None = None, stall_timeout: float = 600
) -> AsyncIterator[None]:
    stop = asyncio.Event()
    task = asyncio.create_task(run_stages(builders, stop, ready=ready, stall_timeout=stall_timeout))
    try:
        yield
    finally:
        stop.set()
        with suppress(asyncio.CancelledError):
            await asyncio.wait_for(task, 30)


async def test_members_come_and_go(harness: CopyStageHarness) -> None:
    handled: set[str] = set()
    joined: dict[str, bool] = {}
    third = RECORDS // 3

    async def by_second(record: KafkaRecord, sender: Sender) -> None:
        await harness.copy(record, sender)
        handled.add(record.position)

    async with running_apps(harness.builder()):
        await harness.fill(third)
        await wait_until(harness.committed)
        async with running_apps(harness.builder(by_second), ready=joined):
            await harness.fill(third, first=third)
            await eventually(lambda: joined.get("copy"))
            await harness.fill(third, first=2 * third)
            await eventually(lambda: handled)
        await harness.all_committed()
    await harness.check_output()


async def test_a_stage_can_keep_its_offsets_elsewhere(harness: CopyStageHarness) -> None:
    """What it did before it was killed counts as read, and where it goes back the group's offsets do not matter."""
    seen: list[int] = []
    await harness.fill()
    offsets = dict(Counter(record.partition for record in await read_all(harness.bootstrap, harness.source)))

    async def fold(records: Sequence[KafkaRecord]) -> None:
        for record in records:
            assert record.offset == offsets.get(record.partition, 0)
            offsets[record.partition] = record.offset + 1
            seen.append(int(record.value or b"-1"))

    async def start(partitions: frozenset[Partition]) -> dict[Partition, int]:
        return {place: offsets.get(place[1], 0) for place in partitions}

    build = harness.over(lambda _: Window(fold), start=start)
    async with running_apps(build):
        await harness.all_committed()
    assert seen == []
    offsets.clear()
    await harness.fill(20, first=RECORDS)
    async with running_apps(build):
        await harness.all_committed(RECORDS + 20)
    assert sorted(seen) == list(range(RECORDS + 20))


async def test_a_stuck_stage_is_started_anew(harness: CopyStageHarness) -> None:
    tries = 0

    async def stuck_once(record: KafkaRecord, sender: Sender) -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            await asyncio.Event().wait()
        await harness.copy(record, sender)

    await harness.fill(1)
    async with running_apps(harness.builder(stuck_once), stall_timeout=2):
        await harness.all_committed(1)
    assert tries >= 2  # a slow machine may need another start


async def test_a_partition_that_its_worker_does_not_fetch_is_shown(harness: CopyStageHarness) -> None:
    apps, build, place = list[StageApp](), harness.builder(), TopicPartition(harness.source, 1)

    def built() -> StageApp:
        apps.append(build())
        return apps[-1]

    def shown() -> dict[int, float]:
        samples = next(iter(metrics.UNFETCHED.collect())).samples
        return {int(one.labels["partition"]): one.value for one in samples if one.labels["stage"] == "copy"}

    def is_alone() -> bool:
        values = shown()
        return (
            values.pop(1, 0) > QUIET_SECONDS and len(values) == PARTITIONS - 1 and max(values.values()) < QUIET_SECONDS
        )

    def is_quiet() -> bool:
        return len(shown()) == PARTITIONS and max(shown().values()) < QUIET_SECONDS

    async with running_apps(built):
        await eventually(is_quiet)
        consumer: Any = apps[0].consumer
        consumer._thread._consumer.pause(place)
        await eventually(is_alone)
        consumer._thread._consumer.resume(place)
        await eventually(is_quiet)
        await harness.fill(KEYS)
        await harness.all_committed(KEYS)
    assert not shown()


async def test_a_group_that_stands_beyond_the_end_of_a_cut_topic_reads_what_is_written_now(
    harness: CopyStageHarness,
) -> None:
    await harness.fill(20)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=harness.bootstrap, group_id=group_id("copy", harness.prefix), enable_auto_commit=False
    )
    await consumer.start()
    try:
        places = [TopicPartition(harness.source, number) for number in range(PARTITIONS)]
        consumer.assign(places)
        await consumer.commit(dict.fromkeys(places, 1000))
    finally:
        await consumer.stop()
    ready: dict[str, bool] = {}
    async with running_apps(harness.builder(), ready=ready):
        await eventually(lambda: ready.get("copy"))
        await harness.fill(20, first=20)

        async def copied() -> bool:
            output = await read_all(harness.bootstrap, harness.target)
            return {int(record.value or b"-1") for record in output} >= set(range(20, 40))

        await wait_until(copied)


async def test_stages_that_start_do_not_wait_behind_their_own_fetches(harness: CopyStageHarness) -> None:
    """On one connection Kafka answers in order, and a fetch of an empty topic takes 1.5 s; a start asks twice."""
    loop, names = asyncio.get_running_loop(), [f"copy-{number}" for number in range(6)]
    seconds: list[float] = []
    while len(seconds) < 3 and min(seconds, default=9.0) >= 2.5:  # a busy machine may be slow twice
        ready: dict[str, bool] = {}
        began = loop.time()
        async with running_apps(*(harness.builder(name=name) for name in names), ready=ready):
            await eventually(lambda: all(ready.get(name) for name in names))  # noqa: B023 -- awaited in the loop
            seconds.append(loop.time() - began)
    assert min(seconds) < 2.5


async def test_records_are_read_again_by_offset(harness: CopyStageHarness) -> None:
    sent = await publish(harness.bootstrap, harness.source, [(b"hot", b"%d" % number) for number in range(300)])
    rereader, partition = KafkaRereader(KafkaAddress(harness.bootstrap)), (harness.source, int(sent[0].split("/")[1]))
    try:
        found: list[int] = []
        offset = 10
        while offset < 290:
            records, offset = await rereader.reread(partition, offset, 290)
            found += [int(record.value or b"-1") for record in records]
        assert found == list(range(10, 290))
        records, _ = await rereader.reread(partition, 5, 6)
        assert [record.offset for record in records] == [5]
    finally:
        await rereader.close()
