"""Faults of calls that turns share: each can be put back."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Final
from unittest.mock import patch

from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.window import Window
from mnemolog.streams.llm.ports import ExtractionTask, Reply
from mnemolog.streams.llm.shared_prompt import divide_reply
from mnemolog.streams.stages import shared_calls as call_sharer
from tests.simulation.fault import Fault


def turns_of_a_call_end_with_its_first() -> AbstractContextManager[object]:
    original = Window.next_records

    async def take(self: Window, record: KafkaRecord, **more: Any) -> Sequence[KafkaRecord]:
        found = await original(self, record, **more)
        queue = self._queues.get(self._key_of(record))
        for _ in found if queue else ():
            entry = queue.waiting.popleft()  # type: ignore[union-attr] # there is one
            self._partitions[record.topic_partition].finish([entry])
        return found

    return patch.object(Window, "next_records", take)


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
