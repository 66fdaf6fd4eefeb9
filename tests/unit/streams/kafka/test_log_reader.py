"""The reader of the log while Kafka is away: nobody waits longer than one timeout."""

import asyncio

import pytest
from aiokafka.errors import KafkaConnectionError  # type: ignore[import-untyped] # aiokafka ships no types

from mnemolog.projections.errors import LogUnreadableError
from mnemolog.streams.kafka import readers as log_reader
from mnemolog.streams.kafka.readers import KafkaLogReader

CALLERS = 12


class AbsentKafka:
    """A consumer that finds no broker until `is_back`."""

    started = 0
    is_back = False

    def __init__(self, **_: object) -> None: ...

    async def start(self) -> None:
        type(self).started += 1
        if not self.is_back:
            raise KafkaConnectionError("nobody there")

    async def stop(self) -> None: ...

    async def end_offsets(self, places: list[object]) -> dict[object, int]:
        return dict.fromkeys(places, 7)


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> type[AbsentKafka]:
    kind = type("Kafka", (AbsentKafka,), {})
    monkeypatch.setattr(log_reader, "AIOKafkaConsumer", kind)
    monkeypatch.setattr(log_reader, "RETRY_SECONDS", 60.0)  # one attempt within the timeout
    return kind


async def test_all_who_ask_share_one_attempt_and_the_next_one_tries_again(kafka: type[AbsentKafka]) -> None:
    reader = KafkaLogReader("nowhere:1", timeout=0.05)
    answers = await asyncio.gather(*(reader.end_offset(number) for number in range(CALLERS)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [LogUnreadableError] * CALLERS
    assert kafka.started == 1, "they waited one after another"
    kafka.is_back = True
    assert await reader.end_offset(0) == 7
    assert kafka.started == 2
    await reader.close()


async def test_a_caller_that_gives_up_leaves_the_attempt_to_the_others(kafka: type[AbsentKafka]) -> None:
    kafka.is_back = True
    reader = KafkaLogReader("nowhere:1", timeout=5)
    first, second = (asyncio.create_task(reader.end_offset(number)) for number in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert await second == 7
    await reader.close()
    await reader.close()
