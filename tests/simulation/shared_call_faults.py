"""Faults of calls that turns share: each can be put back."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Final
from unittest.mock import patch

from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.window import WaitingRecords
from mnemolog.streams.llm.ports import ExtractionTask, Reply
from mnemolog.streams.llm.shared_prompt import divide_reply
from mnemolog.streams.stages import shared_calls as call_sharer
from tests.simulation.fault import Fault


def turns_of_a_call_end_with_its_first() -> AbstractContextManager[object]:
    original = WaitingRecords.records_behind

    async def take(
        self: WaitingRecords, record: KafkaRecord, *, enough: int, most: int, seconds: float
    ) -> Sequence[KafkaRecord]:
        found = await original(self, record, enough=enough, most=most, seconds=seconds)
        queue = self._queue_of(record)
        for _ in found if queue else ():
            entry = queue.waiting.popleft()  # type: ignore[union-attr] # there is one
            self._partitions[record.topic_partition].finish([entry])
        return found

    return patch.object(WaitingRecords, "records_behind", take)


def parts_are_mixed_up() -> AbstractContextManager[object]:
    def divide(reply: Reply, tasks: Sequence[ExtractionTask]) -> list[Reply | None]:
        first, *others = divide_reply(reply, tasks)
        return [*others, first]

    return patch.object(call_sharer, "divide_reply", divide)


SHARED_CALL_FAULTS: Final = (
    Fault(
        "shared_call_ends",
        "the turns that are asked about together with one count as finished with it",
        turns_of_a_call_end_with_its_first,
    ),
    Fault("mixed_parts", "a turn gets the part of a reply that is another turn's", parts_are_mixed_up),
)
