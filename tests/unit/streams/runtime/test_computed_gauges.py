"""Gauges that are computed from time to time say when that last succeeded, and not when it was last tried."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError  # type: ignore[import-untyped] # aiokafka ships no types
from prometheus_client import REGISTRY

from mnemolog.streams import metrics
from mnemolog.streams.kafka.lag import PartitionBacklog
from mnemolog.streams.runtime import background

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PLACE = {"stage": "extract", "partition": "0"}


class Reader:
    """Gives one answer."""

    def __init__(self, answer: list[PartitionBacklog] | Exception) -> None:
        self._answer = answer

    async def read(self) -> list[PartitionBacklog]:
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


def waiting(records: int, age: timedelta) -> list[PartitionBacklog]:
    oldest_at = NOW - age if records else None
    return [PartitionBacklog(stage="extract", partition=0, records=records, oldest_at=oldest_at)]


async def update(answer: list[PartitionBacklog] | Exception) -> None:
    reader: Any = Reader(answer)
    await background.update_backlog(reader, lambda: NOW)


def last_success() -> float | None:
    return REGISTRY.get_sample_value("mnemolog_figures_last_success_timestamp_seconds", {"figures": "backlog"})


@pytest.mark.parametrize("error", [KafkaConnectionError(), TimeoutError()], ids=repr)
async def test_a_failure_is_no_success(error: Exception) -> None:
    metrics.FIGURES_SUCCEEDED.clear()
    with pytest.raises(type(error)):
        await update(error)
    assert last_success() is None
    await update(waiting(1, timedelta(hours=3)))
    succeeded = last_success()
    assert succeeded
    with pytest.raises(type(error)):
        await update(error)
    assert last_success() == succeeded


async def test_the_age_is_that_of_the_oldest_record() -> None:
    await update(waiting(5_000_000, timedelta(hours=3)))
    shown = REGISTRY.get_sample_value
    assert shown("mnemolog_backlog_records", PLACE) == 5_000_000
    assert shown("mnemolog_backlog_oldest_seconds", PLACE) == 3 * 3600


@pytest.mark.parametrize("answer", [waiting(0, timedelta()), waiting(1, timedelta(seconds=-5))], ids=["none", "ahead"])
async def test_what_does_not_wait_and_a_broker_whose_clock_is_ahead_have_no_age(answer: list[PartitionBacklog]) -> None:
    await update(waiting(3, timedelta(hours=3)))
    await update(answer)
    assert REGISTRY.get_sample_value("mnemolog_backlog_oldest_seconds", PLACE) == 0
