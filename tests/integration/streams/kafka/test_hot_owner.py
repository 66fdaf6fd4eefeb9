"""An owner with very many waiting records, on a real Kafka: the others go on, and nothing of it is lost."""

import asyncio
from collections import Counter

import pytest

from mnemolog.streams.kafka.admin import ensure_topics
from mnemolog.streams.kafka.app import StageApp, build_app
from mnemolog.streams.kafka.readers import KafkaRereader
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.sender import Sender
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS, group_id, topic_name
from mnemolog.streams.kafka.window import KeyedWindow, Window
from mnemolog.streams.runtime.supervisor import SupervisorSettings, run_stages
from tests.support.servers.kafka_client import PARTITIONS, QUICK_TUNING, committed_offset, publish, wait_until

pytestmark = pytest.mark.kafka

HOT, OTHERS, MAX_PENDING = 300, 20, 128


async def test_the_others_of_its_partition_do_not_wait_for_a_hot_owner(bootstrap: str, topic_suffix: str) -> None:
    prefix = f"{topic_suffix}-"
    await ensure_topics(bootstrap, partitions=PARTITIONS, prefix=prefix)
    topic = topic_name(CONVERSATION_TURNS, prefix)
    backlog = [(b"hot", b"%d" % number) for number in range(HOT)]
    await publish(bootstrap, topic, [*backlog, *((b"other-%d" % number, b"0") for number in range(OTHERS))])
    processed: list[tuple[bytes | None, int]] = []
    others_are_done = asyncio.Event()
    most_pending = 0

    def window(_: Sender) -> Window:
        async def process(record: KafkaRecord) -> None:
            nonlocal most_pending
            most_pending = max(most_pending, made.progress.pending)
            if record.key == b"hot":
                await others_are_done.wait()
            processed.append((record.key, int(record.value or b"-1")))
            if len({key for key, _ in processed}) == OTHERS:
                others_are_done.set()

        made = KeyedWindow(process, max_pending=MAX_PENDING)
        return made

    def build() -> StageApp:
        return build_app("copy", CONVERSATION_TURNS, window, bootstrap=bootstrap, prefix=prefix, tuning=QUICK_TUNING)

    async def all_committed() -> bool:
        return await committed_offset(bootstrap, group_id("copy", prefix), topic) == HOT + OTHERS

    stop = asyncio.Event()
    running = asyncio.create_task(run_stages([build], stop, settings=SupervisorSettings(check_interval=0.1)))
    await wait_until(all_committed)
    stop.set()
    await asyncio.wait_for(running, 30)
    assert [number for key, number in processed if key == b"hot"] == list(range(HOT))
    assert Counter(key for key, _ in processed) == {b"hot": HOT} | {b"other-%d" % one: 1 for one in range(OTHERS)}
    assert most_pending <= MAX_PENDING + MAX_PENDING // 16 * 8


async def test_records_are_read_again_by_offset(bootstrap: str, topic_suffix: str) -> None:
    prefix = f"{topic_suffix}-"
    await ensure_topics(bootstrap, partitions=PARTITIONS, prefix=prefix)
    topic = topic_name(CONVERSATION_TURNS, prefix)
    await publish(bootstrap, topic, [(b"hot", b"%d" % number) for number in range(300)])
    rereader = KafkaRereader(bootstrap)
    try:
        partition = await partition_of_the_key(rereader, topic)
        found: list[int] = []
        offset = 10
        while offset < 290:
            records, offset = await rereader.reread((topic, partition), offset, 290)
            found += [int(record.value or b"-1") for record in records]
        assert found == list(range(10, 290))
        records, _ = await rereader.reread((topic, partition), 5, 6)
        assert [record.offset for record in records] == [5]
    finally:
        await rereader.close()


async def partition_of_the_key(rereader: KafkaRereader, topic: str) -> int:
    for partition in range(PARTITIONS):
        try:
            async with asyncio.timeout(5):
                await rereader.reread((topic, partition), 0, 1)
        except Exception:  # noqa: BLE001, S112 -- an empty partition ends before that record
            continue
        return partition
    raise AssertionError
