"""Readers while Kafka is away or not ready: each waits for one timeout, and takes no error for an answer."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition  # type: ignore[import-untyped] # aiokafka ships no types
from aiokafka.consumer.group_coordinator import GroupCoordinator  # type: ignore[import-untyped] # as above
from aiokafka.errors import (  # type: ignore[import-untyped] # as above
    GroupAuthorizationFailedError,
    GroupCoordinatorNotAvailableError,
    GroupLoadInProgressError,
    KafkaConnectionError,
    NotCoordinatorForGroupError,
)
from aiokafka.protocol.commit import (  # type: ignore[import-untyped] # as above
    OffsetFetchResponse_v1,
    OffsetFetchResponse_v3,
)

from mnemolog.projections.errors import LogUnreadableError
from mnemolog.streams.kafka import readers
from mnemolog.streams.kafka.readers import KafkaLogReader, raise_fetch_errors
from mnemolog.streams.kafka_address import KafkaAddress

CALLERS = 12
PLACE = TopicPartition("conversation_turns", 0)
TOPICS = [(PLACE.topic, [(PLACE.partition, 9, "", 0)])]


class Coordinator(GroupCoordinator):  # type: ignore[misc] # as above
    """aiokafka's own, with scripted answers instead of a broker."""

    def __init__(self, *answers: Any) -> None:
        self.group_id = "mnemolog-extract"
        self.coordinator_id: int | None = 1
        self._retry_backoff_ms = 0
        self._client = SimpleNamespace(send=self._answer)
        self.answers = list(answers)

    async def ensure_coordinator_known(self) -> None:
        self.coordinator_id = 1

    def coordinator_dead(self) -> None:
        self.coordinator_id = None

    async def _answer(self, *_: Any, **__: Any) -> Any:
        return self.answers.pop(0)


async def committed(*answers: Any) -> int | None:
    coordinator = Coordinator(*answers)
    raise_fetch_errors(SimpleNamespace(_coordinator=coordinator))
    found = await coordinator.fetch_committed_offsets([PLACE])
    assert not coordinator.answers
    return found[PLACE].offset if PLACE in found else None


@pytest.mark.parametrize(
    "error", [GroupLoadInProgressError, GroupCoordinatorNotAvailableError, NotCoordinatorForGroupError]
)
async def test_a_coordinator_that_is_not_ready_is_asked_again(error: Any) -> None:
    not_ready = OffsetFetchResponse_v3(0, [], error.errno)
    assert await committed(not_ready, not_ready, OffsetFetchResponse_v3(0, TOPICS, 0)) == 9


async def test_an_error_that_stays_is_raised() -> None:
    with pytest.raises(GroupAuthorizationFailedError):
        await committed(OffsetFetchResponse_v3(0, [], GroupAuthorizationFailedError.errno))


async def test_an_answer_without_an_error_is_taken_as_it_is() -> None:
    assert await committed(OffsetFetchResponse_v1(TOPICS)) == 9
    nothing = [(PLACE.topic, [(PLACE.partition, -1, "", 0)])]
    assert await committed(OffsetFetchResponse_v3(0, nothing, 0)) is None


class AbsentKafka:
    """A consumer that finds no broker until `is_back`."""

    started = 0
    is_back = False

    def __init__(self, *_: object, **__: object) -> None: ...

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
    monkeypatch.setattr(readers, "new_consumer", kind)
    monkeypatch.setattr(readers, "RETRY_SECONDS", 60.0)  # one attempt within the timeout
    return kind


async def test_all_who_ask_share_one_attempt_and_the_next_one_tries_again(kafka: type[AbsentKafka]) -> None:
    reader = KafkaLogReader(KafkaAddress("nowhere:1"), timeout=0.05)
    answers = await asyncio.gather(*(reader.end_offset(number) for number in range(CALLERS)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [LogUnreadableError] * CALLERS
    assert kafka.started == 1, "they waited one after another"
    kafka.is_back = True
    assert await reader.end_offset(0) == 7
    assert kafka.started == 2
    await reader.close()


async def test_a_caller_that_gives_up_leaves_the_attempt_to_the_others(kafka: type[AbsentKafka]) -> None:
    kafka.is_back = True
    reader = KafkaLogReader(KafkaAddress("nowhere:1"), timeout=5)
    first, second = (asyncio.create_task(reader.end_offset(number)) for number in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert await second == 7
    await reader.close()
    await reader.close()
