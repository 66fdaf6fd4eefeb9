"""Gauges that are computed from time to time say when that last succeeded, and not when it was last tried."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError  # type: ignore[import-untyped] # aiokafka ships no types
from prometheus_client import REGISTRY

from mnemolog.streams import metrics
from mnemolog.streams.kafka.backlog import PartitionBacklog
from mnemolog.streams.runtime import background
from mnemolog.streams.runtime.loops import BackgroundLoop, run_loop

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PLACE = {"stage": "extract", "partition": "0"}


class Reader:
    """Gives these answers, then waits for ever."""

    def __init__(self, *answers: list[PartitionBacklog] | Exception) -> None:
        self._answers: Iterator[list[PartitionBacklog] | Exception] = iter(answers)
        self.is_done = asyncio.Event()

    async def read(self) -> list[PartitionBacklog]:
        answer = next(self._answers, None)
        if answer is None:
            self.is_done.set()
            await asyncio.Event().wait()
        if isinstance(answer, Exception):
            raise answer
        return answer or []


def waiting(records: int, age: timedelta) -> list[PartitionBacklog]:
    oldest_at = NOW - age if records else None
    return [PartitionBacklog(stage="extract", partition=0, records=records, oldest_at=oldest_at)]


async def export(reader: Reader) -> float | None:
    """Export until the reader's answers have ended; gives the time of the last success."""
    metrics.FIGURES_SUCCEEDED.clear()
    part: Any = reader
    loop = BackgroundLoop(name="backlog", interval=0, run_round=lambda: background.update_backlog(part, lambda: NOW))
    task = asyncio.create_task(run_loop(loop, {}, sleep=lambda _: asyncio.sleep(0)))
    await reader.is_done.wait()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    return REGISTRY.get_sample_value("mnemolog_figures_last_success_timestamp_seconds", {"figures": "backlog"})


@pytest.mark.parametrize("error", [KafkaConnectionError(), TimeoutError()], ids=repr)
async def test_a_failure_is_no_success_and_ends_nothing(error: Exception) -> None:
    assert not await export(Reader(error, error))
    assert await export(Reader(error, waiting(1, timedelta(hours=3)), error))


async def test_the_age_is_that_of_the_oldest_record() -> None:
    await export(Reader(waiting(5_000_000, timedelta(hours=3))))
    shown = REGISTRY.get_sample_value
    assert shown("mnemolog_backlog_records", PLACE) == 5_000_000
    assert shown("mnemolog_backlog_oldest_seconds", PLACE) == 3 * 3600


async def test_nothing_that_waits_has_no_age() -> None:
    await export(Reader(waiting(3, timedelta(hours=3)), waiting(0, timedelta())))
    assert REGISTRY.get_sample_value("mnemolog_backlog_oldest_seconds", PLACE) == 0


async def test_a_broker_clock_that_is_ahead_gives_no_negative_age() -> None:
    await export(Reader(waiting(1, timedelta(seconds=-5))))
    assert REGISTRY.get_sample_value("mnemolog_backlog_oldest_seconds", PLACE) == 0
