"""Faults that the product once had, or nearly: each can be put back, and the simulation has to find it."""

import asyncio
from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, TypeVar
from unittest.mock import patch

from faust.transport.consumer import Consumer

from mnemolog.common.suspicion import Suspicion
from mnemolog.streams import micro_batcher
from mnemolog.streams.kafka.app import StageApp, _PatchedConsumer
from mnemolog.streams.kafka.record import KafkaRecord
from mnemolog.streams.kafka.window import Delivery, FailureHandler, KeyedWindow, PartitionProgress, Window, WindowEntry
from mnemolog.streams.llm.calls import CallFailure, CallRetrier
from mnemolog.streams.llm.ports import PromptRefusedError
from mnemolog.streams.micro_batcher import MicroBatcher
from mnemolog.streams.stages.processor import FailureBudget
from tests.simulation.chain_faults import CHAIN_FAULTS
from tests.simulation.fault import Fault, all_of
from tests.simulation.shared_call_faults import SHARED_CALL_FAULTS
from tests.simulation.window_faults import WINDOW_FAULTS

T = TypeVar("T")
OLD_STRIKES: Final = 3


def no_epoch() -> AbstractContextManager[object]:
    async def run(self: Window, deliveries: AsyncIterable[Delivery], fail: FailureHandler) -> None:
        self.fail = fail
        async for delivery in deliveries:
            while self._is_full(delivery.record):
                self._has_capacity.clear()
                await self._has_capacity.wait()
            if self._horizon is None:
                await self._admit(delivery.record)

    return patch.object(Window, "run", run)


def fausts_account() -> AbstractContextManager[object]:
    delivers, finish = StageApp.delivers, Window._finish

    def remembering(self: StageApp, message: Any) -> bool:
        place = (message.tp.topic, message.tp.partition, message.offset)
        self.window.__dict__.setdefault("messages", {})[place] = (message, self.consumer)
        return delivers(self, message)

    def acknowledging(self: Window, entries: Sequence[WindowEntry]) -> None:
        for entry in entries:
            place = (*entry.record.topic_partition, entry.record.offset)
            message, consumer = self.__dict__.get("messages", {}).pop(place, (None, None))
            if message is not None:  # the first window of a chain has it
                message.ack(consumer)
        finish(self, entries)

    names = ("ack", "_filter_tps_with_pending_acks", "_new_offset")
    return all_of(
        patch.object(StageApp, "delivers", remembering),
        patch.object(Window, "_finish", acknowledging),
        patch.object(Window, "_overflows", lambda *_: False),
        *(patch.object(_PatchedConsumer, name, getattr(Consumer, name)) for name in names),
    )


def commits_what_is_finished_somewhere() -> AbstractContextManager[object]:
    def advance(self: PartitionProgress) -> None:
        self._overflows = [overflow for overflow in self._overflows if not overflow.is_over]
        self._finished_to = max(self._finished_to, self._newest_started + 1)

    return patch.object(PartitionProgress, "advance", advance)


def commands_have_a_lane() -> AbstractContextManager[object]:
    original = KeyedWindow.__init__

    def init(self: KeyedWindow, process: Callable[[KafkaRecord], Awaitable[None]], **more: Any) -> None:
        original(self, process, **more)
        self._key_of = lambda record: (record.key, b'"command"' in (record.value or b""))

    return patch.object(KeyedWindow, "__init__", init)


def abandoned_calls_keep_slots() -> AbstractContextManager[object]:
    init, call = MicroBatcher.__init__, CallRetrier.call

    def undivided(self: Any, run: Any, **more: Any) -> None:
        init(self, run, **(more | {"run_alone": None, "isolate_on": ()}))

    async def without_end(self: CallRetrier, attempt: Callable[[], Awaitable[Any]], **more: Any) -> Any:
        if self._endpoint._name != "embed":
            return await call(self, attempt, **more)
        while isinstance(outcome := await attempt(), CallFailure):  # noqa: ASYNC110 -- no event
            await asyncio.sleep(1.0)  # the server may come back
        return outcome

    return all_of(
        patch.object(MicroBatcher, "__init__", undivided),
        patch.object(micro_batcher._Call, "cancel_if_abandoned", lambda _: None),
        patch.object(CallRetrier, "call", without_end),
    )


def retries_without_limit() -> AbstractContextManager[object]:
    return patch.object(Suspicion, "is_conclusive", property(lambda _: False))


def failures_are_never_held() -> AbstractContextManager[object]:
    async def spend(_: FailureBudget) -> bool:
        return True

    return patch.object(FailureBudget, "spend", spend)


def a_brownout_counts_against_the_prompt() -> AbstractContextManager[object]:
    original = CallRetrier.call

    async def call(self: CallRetrier, attempt: Callable[[], Awaitable[Any]], **more: Any) -> Any:
        if self._endpoint._name != "chat":
            return await original(self, attempt, **more)
        strikes = failures = 0
        while True:
            outcome, others = await self._run(attempt, repeats=failures > 0, apart=False)
            if not isinstance(outcome, CallFailure):
                return outcome
            failures += 1
            await self._endpoint.probe_unless(others)
            strikes += others.successes > 0
            if strikes >= OLD_STRIKES:
                raise PromptRefusedError(outcome.code, outcome.detail)
            await asyncio.sleep(self._growing_delay(1 if outcome.kind == "refused" else failures, outcome))

    return patch.object(CallRetrier, "call", call)


def a_hot_owner_fills_the_window() -> AbstractContextManager[object]:
    return patch.object(Window, "_overflows", lambda *_: False)


FAULTS: Final = (
    Fault(
        "no_epoch",
        "a delivery that waited for capacity while its partition was revoked is processed all the same",
        no_epoch,
    ),
    Fault("fausts_account", "Faust's own account of acknowledged messages decides what is committed", fausts_account),
    Fault(
        "newest_committed",
        "the newest started record is committed, not the finished prefix",
        commits_what_is_finished_somewhere,
    ),
    Fault(
        "abandoned_calls",
        "embedding calls that nobody waits for keep their slots, and a failing batch is not divided",
        abandoned_calls_keep_slots,
    ),
    Fault("endless_retries", "a prompt that always fails is repeated without limit", retries_without_limit),
    Fault("forgotten_failures", "failures of all records of a kind are never held back", failures_are_never_held),
    Fault("command_lane", "commands have a lane of their own beside the turns of their owner", commands_have_a_lane),
    Fault(
        "brownout_strikes",
        "three failures refuse a prompt where others succeed meanwhile",
        a_brownout_counts_against_the_prompt,
    ),
    Fault("hot_owner", "the records of one owner fill the window", a_hot_owner_fills_the_window),
    *CHAIN_FAULTS,
    *SHARED_CALL_FAULTS,
    *WINDOW_FAULTS,
)
