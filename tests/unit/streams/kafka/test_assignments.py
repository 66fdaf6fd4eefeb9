"""What an assignment leaves behind has no effect on the next one."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

import pytest
from faust.tables.recovery import RebalanceAgain
from faust.types import TP, ConsumerMessage

from mnemolog.streams.kafka.app import StageApp, build_app
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS
from mnemolog.streams.kafka.window import Delivery, KeyedWindow, Window
from tests.support.polling import eventually

PLACE: Final = TP("conversation_turns", 0)


def record(offset: int) -> KafkaRecord:
    return KafkaRecord(topic=PLACE.topic, partition=0, offset=offset, key=b"t/ana", value=b"", timestamp=0.0)


def message(offset: int) -> ConsumerMessage:
    return ConsumerMessage(
        PLACE.topic, PLACE.partition, offset, 0.0, 1, {}, b"k", b"v", None, tp=PLACE, generation_id=1
    )


async def ignore(error: BaseException) -> None:
    raise AssertionError from error


class Stage:
    """An App that is never started, over any window."""

    def __init__(self) -> None:
        async def nothing(_: Sequence[KafkaRecord]) -> None:
            return

        self.window: Window = Window(nothing)
        self.app: StageApp = build_app("copy", CONVERSATION_TURNS, lambda _: self.window, bootstrap="localhost:9092")

    @property
    def consumer(self) -> Any:
        return self.app.consumer

    def assign(self) -> None:
        self.app._assignments += 1

    async def revoke(self) -> None:
        await self.app._consumer_wait_empty(self.consumer, None)


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    stage = Stage()
    yield stage
    stage.consumer._thread.thread_loop.close()


async def test_a_delivery_that_waited_for_capacity_does_not_survive_the_drain() -> None:
    started: list[int] = []

    async def process(one: KafkaRecord) -> None:
        started.append(one.offset)
        await asyncio.Event().wait()

    async def deliveries() -> AsyncIterator[Delivery]:
        for offset in range(3):
            yield Delivery(record=record(offset), epoch=window.epoch)

    window = KeyedWindow(process, max_in_flight=2, max_pending=2)
    running = asyncio.create_task(window.run(deliveries(), ignore))
    await eventually(lambda: window.progress.pending == 2)
    await window.drain(0)
    running.cancel()
    assert started == [0]
    assert window.progress.pending == 0


async def test_a_delivery_that_was_buffered_on_its_way_does_not_survive_the_drain() -> None:
    started: list[int] = []

    async def process(one: KafkaRecord) -> None:
        started.append(one.offset)

    window = KeyedWindow(process)
    buffered = Delivery(record=record(1024), epoch=window.epoch)
    await window.drain(0)

    async def deliveries() -> AsyncIterator[Delivery]:
        yield buffered

    await window.run(deliveries(), ignore)
    assert window.progress.pending == 0
    assert window.finished == {}
    assert started == []


@pytest.mark.parametrize(("committed", "stale"), [(None, 1024), (0, 1024), (500, 1524), (500, 501)])
async def test_what_faust_takes_for_acknowledged_is_not_committed(
    stage: Stage, committed: int | None, stale: int
) -> None:
    consumer = stage.consumer
    if committed is not None:
        consumer._committed_offset[PLACE] = committed
    consumer.app.topics._acking_topics.add(PLACE.topic)
    consumer.ack(message(stale))
    places = list(consumer._filter_tps_with_pending_acks())
    assert consumer._filter_committable_offsets(places) == {}


async def test_what_the_window_has_finished_is_committed_once(stage: Stage) -> None:
    async def nothing(_: KafkaRecord) -> None:
        return

    async def deliveries() -> AsyncIterator[Delivery]:
        yield Delivery(record=record(7), epoch=window.epoch)

    stage.app.window = window = KeyedWindow(nothing)
    await window.run(deliveries(), ignore)
    await eventually(lambda: window.finished)
    consumer = stage.consumer
    places = list(consumer._filter_tps_with_pending_acks())
    assert consumer._filter_committable_offsets(places) == {PLACE: 8}
    consumer._committed_offset[PLACE] = 8
    assert consumer._filter_committable_offsets(places) == {}


async def test_nothing_is_delivered_until_the_assignment_knows_where_it_begins_nor_from_before_that(
    stage: Stage,
) -> None:
    app = stage.app
    assert not app.delivers(message(3))
    app.begin_reading({PLACE: 3})
    assert [offset for offset in (2, 3, 4) if app.delivers(message(offset))] == [3, 4]
    await stage.revoke()
    assert not app.delivers(message(3))


async def test_a_seek_for_partitions_that_are_revoked_meanwhile_does_not_crash_the_stage(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = stage.consumer
    stage.assign()

    async def revoked_meanwhile(_: StageApp) -> None:
        await stage.revoke()
        raise RuntimeError("the partition is not assigned")

    monkeypatch.setattr(consumer, "_group_offsets", revoked_meanwhile)
    with pytest.raises(RebalanceAgain):  # Faust's word for: the next assignment seeks for itself
        await consumer.seek_to_committed()
    assert not stage.app.crashed
    assert await consumer.seek_to_committed() == {}


async def test_a_seek_that_ends_after_its_partitions_were_revoked_opens_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = stage.consumer
    stage.assign()

    async def revoked_meanwhile(_: StageApp) -> dict[TP, int]:
        await stage.revoke()
        return {PLACE: 0}

    monkeypatch.setattr(consumer, "_group_offsets", revoked_meanwhile)
    with pytest.raises(RebalanceAgain):
        await consumer.seek_to_committed()
    assert not stage.app.delivers(message(0))


async def test_a_seek_that_fails_in_its_own_assignment_crashes_the_stage(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = stage.consumer
    stage.assign()

    async def broken(_: StageApp) -> None:
        raise RuntimeError("no answer")

    monkeypatch.setattr(consumer, "_group_offsets", broken)
    with pytest.raises(RuntimeError):
        await consumer.seek_to_committed()
    assert stage.app.crashed


async def test_a_partition_of_which_nothing_is_committed_is_read_from_its_first_record(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was fetched before the seek was dropped: reading on behind it would lose it."""
    consumer, other, sought = stage.consumer, TP(PLACE.topic, 1), []
    stage.assign()

    async def committed() -> dict[TP, int | None]:
        return {PLACE: None, other: 7}

    async def bounds(_: object) -> tuple[dict[TP, int], dict[TP, int]]:
        return {PLACE: 2, other: 0}, {PLACE: 5, other: 9}

    async def seek_wait(offsets: dict[TP, int]) -> None:
        sought.append(offsets)

    monkeypatch.setattr(consumer._thread, "seek_to_committed", committed)
    monkeypatch.setattr(consumer._thread, "seek_wait", seek_wait)
    monkeypatch.setattr(consumer, "_offset_bounds", bounds)
    assert await consumer.seek_to_committed() == {PLACE: 2, other: 7}
    assert sought == [{PLACE: 2, other: 7}]
    assert not stage.app.delivers(message(1))
    assert stage.app.delivers(message(2))


async def test_only_what_the_app_reads_is_fetched_and_kept(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other partition was asked for when an earlier assignment still had it."""
    asked, other = [], TP(PLACE.topic, 1)

    async def fetch(active: set[TP], _: float) -> dict[TP, list[ConsumerMessage]]:
        asked.append(active)
        return {PLACE: [message(3)], other: [message(9)]}

    consumer = stage.consumer
    monkeypatch.setattr(consumer._thread, "getmany", fetch)
    monkeypatch.setattr(consumer, "sleep", lambda _: asyncio.sleep(0))
    stage.assign()
    assert await consumer._getmany({PLACE, other}, 1.0) == {}
    assert asked == []
    stage.app.begin_reading({PLACE: 3})
    assert list(await consumer._getmany({PLACE, other}, 1.0)) == [PLACE]
    assert asked == [{PLACE}]
    await stage.revoke()


async def test_no_assignment_begins_while_a_fetch_of_an_earlier_one_is_under_way(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer: asyncio.Future[dict[TP, list[ConsumerMessage]]] = asyncio.get_running_loop().create_future()
    sought: list[dict[TP, int]] = []

    async def fetch(*_: object) -> dict[TP, list[ConsumerMessage]]:
        return await answer

    async def offsets(_: StageApp) -> dict[TP, int]:
        return {PLACE: 3}

    async def seek_wait(offsets: dict[TP, int]) -> None:
        sought.append(offsets)

    consumer = stage.consumer
    monkeypatch.setattr(consumer._thread, "getmany", fetch)
    monkeypatch.setattr(consumer._thread, "seek_wait", seek_wait)
    monkeypatch.setattr(consumer, "_group_offsets", offsets)
    stage.assign()
    stage.app.begin_reading({PLACE: 3})
    fetching = asyncio.create_task(consumer._getmany({PLACE}, 1.0))
    await eventually(consumer._fetching.locked)
    await stage.revoke()
    stage.assign()
    seeking = asyncio.create_task(consumer.seek_to_committed())
    await asyncio.sleep(0.01)
    assert (sought, stage.app.reads(PLACE)) == ([], False)
    answer.set_result({PLACE: [message(3)]})
    assert await fetching == {}
    assert await seeking == {PLACE: 3}
    assert (sought, stage.app.reads(PLACE)) == ([{PLACE: 3}], True)
    await stage.revoke()
