"""What a worker does beside its stages outlives every error, counts it and shows it."""

import ast
import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY

from mnemolog.streams.runtime import background
from mnemolog.streams.runtime.background import BackgroundLoop, background_loops, run_loop
from mnemolog.streams.runtime.metrics_server import Health
from mnemolog.streams.runtime.worker import ALL_STAGES
from mnemolog.streams.settings import StreamsSettings
from tests.support.paths import ROOT

LOOPS = ("purge", "lag", "backlog", "quality", "position", "notices", "timer")

# Every task that the packages start and do not await at once, and what an error in it leads to.
STARTED_TASKS = {
    "projections/rebuild/connections.py asyncio.to_thread": "raised where it is waited for, even if that is cancelled",
    "projections/rebuild/connections.py self._stop": "raised where it is waited for",
    "projections/rebuild/connections.py work": "raised where they are waited for; the others are cancelled",
    "projections/rebuild/fill.py run_together": "raised where it is waited for",
    "streams/kafka/__init__.py stopping": "raised where its end is waited for",
    "streams/kafka/readers.py self._connect": "those who wait get it, and the next one tries again",
    "streams/kafka/window.py self._run_entries": "the window stops and its stage is started again",
    "streams/kafka/window.py self._refill": "the window stops and its stage is started again",
    "streams/micro_batcher.py self._dispatch_batches": "those who wait for a batch get the error",
    "streams/micro_batcher.py run": "those who wait for the batch get the error",
    "streams/runtime/dry_run.py self._report": "raised when the turn is decided",
    "streams/runtime/background.py run_loop": "the next round comes after a pause; counted and shown in /health",
    "streams/runtime/read_your_writes.py self._end_offset": "those who wait get it, and the next one asks again",
    "streams/runtime/read_your_writes.py self._poll": "the offsets are read again after a pause",
    "streams/runtime/supervisor.py supervisor.run": "the task group of the supervisor ends the worker",
    "streams/runtime/supervisor.py wait": "it is raised where it is waited for",
    "streams/runtime/worker.py announce": "it reads a mapping, and what it calls prints",
    "streams/runtime/worker.py stop.wait": "an event that is waited for has no errors",
    "streams/runtime/worker.py work": "raised where the start waits for it",
}


class Broken:
    """Whatever is asked of it fails in a way that nobody has foreseen."""

    def __getattr__(self, name: str) -> Any:
        raise KeyError(name)


async def broken_check() -> None:
    raise KeyError("next_offsets")


class IdleProducer:
    def __init__(self, **_: object) -> None: ...
    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    async def send(self, *_: object, **__: object) -> None: ...


class Ended(Exception):  # noqa: N818 -- how a test leaves an endless loop
    pass


def broken_loops() -> list[BackgroundLoop]:
    broken: Any = Broken()
    return list(
        background_loops(
            StreamsSettings(kafka="nowhere:1", postgres="postgresql://nowhere"),
            ALL_STAGES,
            pool=broken,
            projector=broken,
            log_reader=broken,
            partitions=frozenset,
            check_position=broken_check,
            on_projected=lambda: None,
            clock=lambda: datetime(2026, 3, 2, tzinfo=UTC),
        )
    )


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
    monkeypatch.setattr(background, "AIOKafkaProducer", IdleProducer)
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


def test_a_failing_loop_is_shown_and_does_not_make_a_worker_unready() -> None:
    assert Health(stages={"project": True}, failing={"lag": "KeyError()"}).ready
    assert not Health(stages={"project": True}, waiting_for={"Kafka": "no broker"}).ready
    assert not Health(stages={"project": False}).ready
    assert not Health().ready


def test_no_task_is_started_that_this_page_does_not_know() -> None:
    """Who starts another one says here what becomes of an error in it."""
    started = {found for folder in ("streams", "projections") for found in started_tasks(ROOT / folder)}
    assert started == set(STARTED_TASKS)


def started_tasks(folder: Path) -> Iterator[str]:
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("create_task", "ensure_future")):
                first = node.args[0]
                what = ast.unparse(first.func if isinstance(first, ast.Call) else first)
                yield f"{path.relative_to(ROOT)} {what}"
