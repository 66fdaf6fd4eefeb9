"""What a worker does beside its stages outlives every error, counts it and shows it."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError  # type: ignore[import-untyped] # aiokafka ships no types
from prometheus_client import REGISTRY

from mnemolog.common import cancellation
from mnemolog.streams import metrics
from mnemolog.streams.errors import StaleProjection
from mnemolog.streams.kafka.lag import PartitionBacklog
from mnemolog.streams.runtime import loops
from mnemolog.streams.runtime.loops import (
    BackgroundLoop,
    check_projected_offsets,
    run_loop,
    running_loops,
    update_backlog,
)
from mnemolog.streams.runtime.metrics_server import Health
from mnemolog.streams.runtime.read_your_writes import Watermark
from mnemolog.streams.runtime.worker import ALL_STAGES, StageFactory, background_loops
from mnemolog.streams.settings import StreamsSettings

LOOPS = ("problems", "purge", "lag", "backlog", "quality", "position", "notices", "timer")


class Broken:
    """Whatever is asked of it fails in a way that nobody has foreseen."""

    def __getattr__(self, name: str) -> Any:
        raise KeyError(name)


class IdleProducer:
    def __init__(self, _: object) -> None: ...
    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    async def send(self, *_: object, **__: object) -> None: ...


class Ended(Exception):  # noqa: N818 -- how a test leaves an endless loop
    pass


def broken_loops() -> list[BackgroundLoop]:
    broken: Any = Broken()
    settings = StreamsSettings(kafka="nowhere:1", postgres="postgresql://nowhere")
    shared: Any = SimpleNamespace(projector=broken, kafka_log=broken, watermark=Watermark(broken))
    factory: Any = StageFactory(settings, shared, ())
    factory.written_offsets = lambda: {0: 1}
    return list(background_loops(factory, ALL_STAGES, broken, {"chat": "no server answers"}))


async def run_rounds(loop: BackgroundLoop, health: Health, rounds: int) -> list[float]:
    """The pauses after so many rounds."""
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == rounds:
            raise Ended

    with pytest.raises(Ended):
        await run_loop(loop, health.failing, sleep=sleep)
    return pauses


def failures_of(name: str) -> float:
    return REGISTRY.get_sample_value("mnemolog_background_failures_total", {"operation": name}) or 0.0


def test_these_are_all_loops() -> None:
    assert tuple(loop.name for loop in broken_loops()) == LOOPS


@pytest.mark.parametrize("number", range(len(LOOPS)), ids=LOOPS)
async def test_a_loop_survives_every_error(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "new_producer", IdleProducer)
    loop, health, before = broken_loops()[number], Health(), failures_of(LOOPS[number])
    pauses = await run_rounds(loop, health, rounds=4)
    assert failures_of(loop.name) - before == 4
    assert health.failing[loop.name]
    assert pauses == sorted(pauses)
    assert pauses[-1] > pauses[0]


@pytest.mark.parametrize("error", [KeyError("x"), asyncio.CancelledError(), TimeoutError(), RecursionError()], ids=repr)
async def test_after_a_success_nothing_is_shown_and_the_usual_pause_is_kept(error: BaseException) -> None:
    errors, health = [error, None], Health()

    async def run_round() -> None:
        if (coming := errors.pop(0)) is not None:
            assert not health.failing
            raise coming
        assert "sample" in health.failing

    pauses = await run_rounds(BackgroundLoop(name="sample", interval=7, run_round=run_round), health, rounds=2)
    assert not health.failing
    assert pauses[1] == 7


async def test_a_loop_that_is_cancelled_ends_and_is_closed() -> None:
    closed, began = asyncio.Event(), asyncio.Event()

    async def run_round() -> None:
        began.set()
        await asyncio.Event().wait()

    async def close() -> None:
        closed.set()

    task = asyncio.create_task(run_loop(BackgroundLoop(name="x", interval=1, run_round=run_round, close=close), {}))
    await began.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert closed.is_set()


async def test_a_loop_that_loses_its_cancellation_is_cancelled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As psycopg's pool does on Python 3.11 where the connection comes at the same moment."""
    monkeypatch.setattr(cancellation, "CANCEL_AGAIN_SECONDS", 0.01)
    began = asyncio.Event()

    async def run_round() -> None:
        with suppress(asyncio.CancelledError):
            began.set()
            await asyncio.Event().wait()

    async with asyncio.timeout(5):
        async with running_loops([BackgroundLoop(name="x", interval=1000, run_round=run_round)], {}):
            await began.wait()


def test_a_failing_loop_is_shown_and_does_not_make_a_worker_unready() -> None:
    assert Health(stages={"project": True}, failing={"lag": "KeyError()"}).ready
    assert not Health(stages={"project": True}, waiting_for={"Kafka": "no broker"}).ready
    assert not Health(stages={"project": False}).ready
    assert not Health().ready


NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PLACE = {"stage": "extract", "partition": "0"}


async def update(records: int = 0, *, age: timedelta = timedelta(), error: Exception | None = None) -> None:
    """Show a backlog of so many records, or what reading it raises."""

    async def read() -> list[PartitionBacklog]:
        if error is not None:
            raise error
        return [
            PartitionBacklog(stage="extract", partition=0, records=records, oldest_at=NOW - age if records else None)
        ]

    reader: Any = SimpleNamespace(read=read)
    await update_backlog(reader, lambda: NOW)


def last_success() -> float | None:
    return REGISTRY.get_sample_value("mnemolog_figures_last_success_timestamp_seconds", {"figures": "backlog"})


@pytest.mark.parametrize("error", [KafkaConnectionError(), TimeoutError()], ids=repr)
async def test_gauges_say_when_they_were_last_computed_and_not_when_that_was_tried(error: Exception) -> None:
    metrics.FIGURES_SUCCEEDED.clear()
    with pytest.raises(type(error)):
        await update(error=error)
    assert last_success() is None
    await update(1, age=timedelta(hours=3))
    succeeded = last_success()
    assert succeeded
    with pytest.raises(type(error)):
        await update(error=error)
    assert last_success() == succeeded


async def test_the_age_of_a_backlog_is_that_of_its_oldest_record() -> None:
    for records, age, shown in (
        (5_000_000, timedelta(hours=3), 3 * 3600),
        (0, timedelta(), 0),
        (1, timedelta(hours=3), 3 * 3600),
        (1, timedelta(seconds=-5), 0),  # the broker's clock is ahead
    ):
        await update(records, age=age)
        assert REGISTRY.get_sample_value("mnemolog_backlog_records", PLACE) == records
        assert REGISTRY.get_sample_value("mnemolog_backlog_oldest_seconds", PLACE) == shown


@pytest.mark.parametrize(
    ("written", "tables", "restarts", "is_stale"),
    [
        ({}, {}, False, False),
        ({0: 5, 1: 7}, {0: 5, 1: 9}, False, False),
        ({0: 100}, {0: 40}, False, True),
        ({0: 100}, {0: 40}, True, False),
    ],
    ids=["nothing written", "there or further", "moved back", "the stage started over meanwhile"],
)
async def test_a_stage_whose_tables_moved_back_starts_over(
    written: dict[int, int], tables: dict[int, int], *, restarts: bool, is_stale: bool
) -> None:
    crashes: list[str] = []

    async def next_offsets() -> dict[int, int]:
        if restarts:
            written.clear()
        return tables

    async def crash(error: StaleProjection) -> None:
        crashes.append(str(error))

    projector: Any = SimpleNamespace(next_offsets=next_offsets)
    await check_projected_offsets(projector, lambda: dict(written), crash)
    assert ["up to offset 100 and the tables are at 40" in crash for crash in crashes] == [True] * is_stale
