"""Faults of stages that hand records on in memory: each can be put back."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from typing import Final
from unittest.mock import patch

from faust.types import TP

from mnemolog.streams.kafka import window
from mnemolog.streams.kafka.app import _PatchedConsumer
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.window import DrainResult, KeyQueue, Window, WindowEntry
from tests.simulation.fault import Fault, all_of


def finished_when_handed_on() -> AbstractContextManager[object]:
    def hand_on(self: Window, entries: Sequence[WindowEntry], output: KafkaRecord, next_window: Window) -> None:
        next_window.take_over(output, lambda: None)
        self._finish(entries)
        self._free_keys(entries)

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


def a_key_is_handed_on_without_limit() -> AbstractContextManager[object]:
    return patch.object(window, "MAX_HANDED_ON_PER_KEY", 10**6)


def a_fetch_of_an_earlier_assignment_counts() -> AbstractContextManager[object]:
    @asynccontextmanager
    async def begin_at_once(_self: _PatchedConsumer, _offsets: Mapping[TP, int]) -> AsyncIterator[None]:
        yield

    return patch.object(_PatchedConsumer, "paused_fetching", begin_at_once)


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
        "early_fetch",
        "a stage begins with a partition where a fetch of an earlier assignment has left it",
        a_fetch_of_an_earlier_assignment_counts,
    ),
    Fault(
        "lane_without_limit",
        "a chain hands on as many records of an owner as there are",
        a_key_is_handed_on_without_limit,
    ),
)
