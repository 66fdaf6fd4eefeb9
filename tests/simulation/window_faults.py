"""Faults of stages that hand records on in memory: each can be put back."""

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import Final
from unittest.mock import patch

from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.window import Window
from mnemolog.streams.kafka.windows.state import DrainResult, KeyQueue, WindowEntry
from mnemolog.streams.runtime.later_topics import LaterTopics
from tests.simulation.fault import Fault, all_of


def finished_when_handed_on() -> AbstractContextManager[object]:
    def hand_on(self: Window, entries: Sequence[WindowEntry], output: KafkaRecord, next_window: Window) -> None:
        next_window.take_over(output, lambda: None)
        self._finish(entries)
        self._free_key(entries)

    return patch.object(Window, "_hand_on", hand_on)


def later_windows_go_on_after_a_drain() -> AbstractContextManager[object]:
    original, finish = Window._cancel_and_reset, Window._finish_handed_on

    async def alone(self: Window) -> DrainResult:
        following, self._next = self._next, None
        try:
            return await original(self)
        finally:
            self._next = following

    def finish_unless_forgotten(self: Window, entries: Sequence[WindowEntry], queue: KeyQueue) -> None:
        if self._queues.get(self._key_of(entries[0].record)) is queue:
            finish(self, entries, queue)

    return all_of(
        patch.object(Window, "_cancel_and_reset", alone),
        patch.object(Window, "_finish_handed_on", finish_unless_forgotten),
    )


def chain_begins_at_once() -> AbstractContextManager[object]:
    async def are_empty(_self: LaterTopics, _partitions: Collection[int]) -> bool:
        return True

    return patch.object(LaterTopics, "are_empty", are_empty)


WINDOW_FAULTS: Final = (
    Fault(
        "finished_at_hand_on",
        "a record counts as finished when it is handed on, not when the chain has its end",
        finished_when_handed_on,
    ),
    Fault(
        "later_windows_go_on",
        "a drain forgets what the first window of a chain has, and not what the others have",
        later_windows_go_on_after_a_drain,
    ),
    Fault(
        "chain_waits_not",
        "a chain begins with a partition while earlier records of it lie in the topics between",
        chain_begins_at_once,
    ),
)
