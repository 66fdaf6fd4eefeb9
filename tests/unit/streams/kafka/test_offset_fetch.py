"""Committed offsets are known only when the broker has said so: an error of the whole answer is no answer."""

from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition  # type: ignore[import-untyped] # aiokafka ships no types
from aiokafka.consumer.group_coordinator import GroupCoordinator  # type: ignore[import-untyped] # as above
from aiokafka.errors import (  # type: ignore[import-untyped] # as above
    GroupAuthorizationFailedError,
    GroupCoordinatorNotAvailableError,
    GroupLoadInProgressError,
    NotCoordinatorForGroupError,
)
from aiokafka.protocol.commit import (  # type: ignore[import-untyped] # as above
    OffsetFetchResponse_v1,
    OffsetFetchResponse_v3,
)

from mnemolog.streams.kafka.readers import raise_fetch_errors

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
