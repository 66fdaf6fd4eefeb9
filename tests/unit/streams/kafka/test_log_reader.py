"""Reading the log while no broker answers; reading it from a real one is an integration test."""

import asyncio

import pytest
from aiokafka.errors import KafkaConnectionError  # type: ignore[import-untyped] # aiokafka ships no types

from mnemolog.projections.rebuild.errors import LogUnreadableError
from mnemolog.streams.kafka import log_reader
from mnemolog.streams.kafka.log_reader import KafkaLogReader


async def test_all_who_ask_while_kafka_is_away_wait_together(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []

    class Unreachable:
        def __init__(self, **_: object) -> None:
            made.append(self)

        async def start(self) -> None:
            raise KafkaConnectionError("nobody listens")

        async def stop(self) -> None:
            pass

    monkeypatch.setattr(log_reader, "AIOKafkaConsumer", Unreachable)
    reader = KafkaLogReader("localhost:1", timeout=0.01)
    ends = await asyncio.gather(*(reader.end_offset(partition) for partition in range(20)), return_exceptions=True)
    assert [type(end) for end in ends] == [LogUnreadableError] * 20
    assert len(made) == 1
    with pytest.raises(LogUnreadableError):
        await reader.end_offset(0)
    assert len(made) == 2
    await reader.close()
