"""An App that is never started: what it sets of Faust, and that no assignment has an effect on the next one."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from types import SimpleNamespace
from typing import Any, Final

import pytest
from faust.tables.recovery import RebalanceAgain
from faust.types import TP, ConsumerMessage

from mnemolog.streams.kafka.app import StageApp, build_app
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS
from mnemolog.streams.kafka.window import Delivery, KeyedWindow, Window
from mnemolog.streams.settings import StreamsSettings
from tests.support.polling import eventually

PLACE: Final = TP("conversation_turns", 0)
OTHER: Final = TP(PLACE.topic, 1)


def message(offset: int) -> ConsumerMessage:
    return ConsumerMessage(
        PLACE.topic, PLACE.partition, offset, 0.0, 1, {}, b"k", b"v", None, tp=PLACE, generation_id=1
    )


class Stage:
    """An App that is never started, over any window."""

    def __init__(self, **settings: Any) -> None:
        async def nothing(_: Sequence[KafkaRecord]) -> None:
            return

        window = Window(nothing)
        nowhere = StreamsSettings(kafka="nowhere:1")
        self.app: StageApp = build_app("copy", CONVERSATION_TURNS, lambda _: window, nowhere, **settings)

    @property
    def consumer(self) -> Any:
        return self.app.consumer

    def assign(self) -> None:
        self.app._assignments += 1

    async def revoke(self) -> None:
        await self.app._consumer_wait_empty(self.consumer, None)

    def committable(self) -> dict[TP, int]:
        places = list(self.consumer._filter_tps_with_pending_acks())
        found: dict[TP, int] = self.consumer._filter_committable_offsets(places)
        return found


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    stage = Stage()
    yield stage
    stage.consumer._thread.thread_loop.close()


async def test_a_lost_answer_of_the_broker_repeats_no_record() -> None:
    producer: Any = Stage().app.producer
    settings = producer._settings_extra()
    assert settings == {"acks": "all", "enable_idempotence": True}


async def test_an_idle_app_has_no_timers_that_serve_nobody(stage: Stage) -> None:
    """Faust's monitor, its search for stuck commits (which takes idle minutes for one), and its waking of threads."""
    assert stage.app.monitor not in list(stage.app.on_init_dependencies())
    thread = stage.consumer._thread
    async with asyncio.timeout(1):  # each slept for at least as long
        await stage.consumer._commit_livelock_detector.fun(stage.consumer)
        await thread._keepalive2()
        await thread._thread_keepalive.fun(thread)


@pytest.mark.parametrize(("committed", "stale"), [(None, 1024), (500, 501)])
async def test_what_faust_takes_for_acknowledged_is_not_committed(
    stage: Stage, committed: int | None, stale: int
) -> None:
    if committed is not None:
        stage.consumer._committed_offset[PLACE] = committed
    stage.consumer.app.topics._acking_topics.add(PLACE.topic)
    stage.consumer.ack(message(stale))
    assert stage.committable() == {}


async def test_what_the_window_has_finished_is_committed_once(stage: Stage) -> None:
    async def nothing(_: KafkaRecord) -> None:
        return

    async def fail(error: BaseException) -> None:
        raise error

    async def deliveries() -> AsyncIterator[Delivery]:
        one = KafkaRecord(topic=PLACE.topic, partition=0, offset=7, key=b"k", value=b"", timestamp=0.0)
        yield Delivery(record=one, epoch=window.epoch)

    stage.app.window = window = KeyedWindow(nothing)
    await window.run(deliveries(), fail)
    await eventually(lambda: window.finished)
    assert stage.committable() == {PLACE: 8}
    stage.consumer._committed_offset[PLACE] = 8
    assert stage.committable() == {}


async def test_nothing_is_delivered_until_the_assignment_knows_where_it_begins_nor_from_before_that(
    stage: Stage,
) -> None:
    app = stage.app
    assert not app.delivers(message(3))
    app.reading_from = {PLACE: 3}
    assert [offset for offset in (2, 3, 4) if app.delivers(message(offset))] == [3, 4]
    await stage.revoke()
    assert not app.delivers(message(3))


@pytest.mark.parametrize(
    ("is_revoked", "fails", "error"),
    [(True, True, RebalanceAgain), (True, False, RebalanceAgain), (False, True, RuntimeError)],
    ids=["fails after a revocation", "ends after a revocation", "fails in its own assignment"],
)
async def test_only_a_seek_that_fails_in_its_own_assignment_crashes_the_stage(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, error: type[Exception], *, is_revoked: bool, fails: bool
) -> None:
    """Faust takes `RebalanceAgain` for: the next assignment seeks for itself."""

    async def offsets(_: StageApp) -> dict[TP, int]:
        if is_revoked:
            await stage.revoke()
        if fails:
            raise RuntimeError("no answer")
        return {PLACE: 0}

    monkeypatch.setattr(stage.consumer, "_group_offsets", offsets)
    stage.assign()
    with pytest.raises(error):
        await stage.consumer.seek_to_committed()
    assert stage.app.crashed == (not is_revoked)
    assert not stage.app.delivers(message(0))
    if is_revoked:
        assert await stage.consumer.seek_to_committed() == {}


async def test_a_partition_of_which_nothing_is_committed_is_read_from_its_first_record(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was fetched before the seek was dropped: reading on behind it would lose it."""
    sought = []

    async def committed() -> dict[TP, int | None]:
        return {PLACE: None, OTHER: 7}

    async def bounds(_: object) -> tuple[dict[TP, int], dict[TP, int]]:
        return {PLACE: 2, OTHER: 0}, {PLACE: 5, OTHER: 9}

    async def seek_wait(offsets: dict[TP, int]) -> None:
        sought.append(offsets)

    monkeypatch.setattr(stage.consumer._thread, "seek_to_committed", committed)
    monkeypatch.setattr(stage.consumer._thread, "seek_wait", seek_wait)
    monkeypatch.setattr(stage.consumer, "_offset_bounds", bounds)
    stage.assign()
    assert await stage.consumer.seek_to_committed() == {PLACE: 2, OTHER: 7}
    assert sought == [{PLACE: 2, OTHER: 7}]
    assert not stage.app.delivers(message(1))
    assert stage.app.delivers(message(2))


async def test_only_a_member_whose_window_has_room_leaves_a_partition_unfetched(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(at: float) -> dict[int, float]:
        monkeypatch.setattr(time, "time", lambda: at)
        return stage.app.unfetched_seconds()

    fetched = {PLACE: 1_000_000, OTHER: None}  # in ms
    states = SimpleNamespace(tps=set(fetched), state_value=lambda tp: SimpleNamespace(timestamp=fetched[tp]))
    subscription = SimpleNamespace(subscription=SimpleNamespace(assignment=states))
    stage.consumer._thread._consumer = SimpleNamespace(_subscription=subscription)
    stage.app.consumer_generation_id = 1
    stage.app._has_room_since = 990.0
    assert look(1060.0) == {0: 60.0, 1: 70.0}
    stage.app.window.max_pending = 0
    assert look(1060.0) == {0: 0.0, 1: 0.0}
    stage.app.window.max_pending = 1
    assert look(1070.0) == {0: 10.0, 1: 10.0}
    fetched[OTHER] = 1_071_000  # the client's clock is ahead
    assert look(1070.0) == {0: 10.0, 1: 0.0}
    stage.app.rebalancing = True
    assert look(1080.0) == {}
    stage.consumer._thread._consumer = None


async def test_only_what_the_app_reads_is_fetched_and_kept(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other partition was asked for when an earlier assignment still had it."""
    asked = []

    async def fetch(active: set[TP], _: float) -> dict[TP, list[ConsumerMessage]]:
        asked.append(active)
        return {PLACE: [message(3)], OTHER: [message(9)]}

    monkeypatch.setattr(stage.consumer._thread, "getmany", fetch)
    monkeypatch.setattr(stage.consumer, "sleep", lambda _: asyncio.sleep(0))
    stage.assign()
    assert await stage.consumer._getmany({PLACE, OTHER}, 1.0) == {}
    assert asked == []
    stage.app.reading_from = {PLACE: 3}
    assert list(await stage.consumer._getmany({PLACE, OTHER}, 1.0)) == [PLACE]
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
    stage.app.reading_from = {PLACE: 3}
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
