"""Faults that the product once had, or nearly: each can be put back, and the simulation has to find it."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final
from unittest.mock import patch

from faust.transport.consumer import Consumer
from faust.types import TP

from mnemolog.common.suspicion import Suspicion
from mnemolog.projections.sql import queries
from mnemolog.projections.stores.facts import SourceStatus
from mnemolog.projections.write import projector
from mnemolog.projections.write.fold import FoldState, _CommitFold
from mnemolog.projections.write.fold import fold as fold_commit
from mnemolog.projections.write.row_writer import load_state
from mnemolog.projections.write.rows import Changes
from mnemolog.schemas.commit import Commit
from mnemolog.streams import micro_batcher
from mnemolog.streams.kafka import window
from mnemolog.streams.kafka.app import StageApp, _PatchedConsumer
from mnemolog.streams.kafka.record import KafkaRecord, RecordMetadata
from mnemolog.streams.kafka.sender import Sender
from mnemolog.streams.kafka.window import (
    Delivery,
    DrainResult,
    FailureHandler,
    KeyedWindow,
    KeyQueue,
    PartitionProgress,
    Window,
    WindowEntry,
)
from mnemolog.streams.llm.calls import CallFailure, CallRetrier
from mnemolog.streams.llm.ports import ExtractionTask, PromptRefusedError, Reply
from mnemolog.streams.llm.shared_prompt import divide_reply
from mnemolog.streams.micro_batcher import MicroBatcher
from mnemolog.streams.runtime.read_your_writes import ReadYourWrites
from mnemolog.streams.stages import resolve
from mnemolog.streams.stages import shared_calls as call_sharer
from mnemolog.streams.stages.journal import JournalStage
from mnemolog.streams.stages.processor import FailureBudget, StageProcessor
from mnemolog.streams.stages.shared_lookups import SharedCandidateFinder
from tests.simulation.servers.postgres import Connection, Cursor
from tests.simulation.workload import Weather
from tests.support.servers.memory_broker import SentRecord

OLD_STRIKES: Final = 3
SQL: Final = queries("projector")
Patches = AbstractContextManager[object]


@dataclass(frozen=True)
class Fault:
    """A fault in words, and a way to put it back for as long as the context is open.

    What `make test` looks for as well has a rule that it breaks, in the words of the checker, and the situation in
    which it is found soonest.
    """

    words: str
    put_back: Callable[[], Patches]
    rule: str
    situation: Weather | None

    @property
    def name(self) -> str:
        return self.put_back.__name__


FAULTS: Final[list[Fault]] = []


def fault(words: str, rule: str = "", situation: Weather | None = None) -> Callable[[Callable[[], Patches]], object]:
    """Register a way to put a fault back, by its name."""

    def register(put_back: Callable[[], Patches]) -> object:
        FAULTS.append(Fault(words, put_back, rule, situation))
        return put_back

    return register


@contextmanager
def all_of(*patches: Any) -> Iterator[None]:
    """Several patches as one."""
    for one in patches:
        one.start()
    try:
        yield
    finally:
        for one in patches:
            one.stop()


@fault("a delivery that waited for capacity while its partition was revoked is processed all the same")
def no_epoch() -> Patches:
    async def run(self: Window, deliveries: AsyncIterable[Delivery], fail: FailureHandler) -> None:
        self.fail = fail
        async for delivery in deliveries:
            while self._pending >= self.max_pending and not self._overflows(delivery.record):
                self._has_capacity.clear()
                await self._has_capacity.wait()
            if self._horizon is None:
                await self._admit(delivery.record)

    return patch.object(Window, "run", run)


@fault("Faust's own account of acknowledged messages decides what is committed", "had no output yet", "models")
def fausts_account() -> Patches:
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


@fault("the newest started record is committed, not the finished prefix", "had no output yet", "models")
def newest_committed() -> Patches:
    def advance(self: PartitionProgress) -> None:
        self._overflows = [overflow for overflow in self._overflows if not overflow.is_over]
        self._finished_to = max(self._finished_to, self._newest_started + 1)

    return patch.object(PartitionProgress, "advance", advance)


@fault("commands have a lane of their own beside the turns of their owner", "came before", "nonsense")
def command_lane() -> Patches:
    original = KeyedWindow.__init__

    def init(self: KeyedWindow, process: Callable[[KafkaRecord], Awaitable[None]], **more: Any) -> None:
        original(self, process, **more)
        self._key_of = lambda record: (record.key, b'"command"' in (record.value or b""))

    return patch.object(KeyedWindow, "__init__", init)


@fault("embedding calls that nobody waits for keep their slots, and a failing batch is not divided", "stuck", "models")
def abandoned_calls() -> Patches:
    init, call = MicroBatcher.__init__, CallRetrier.call

    def undivided(self: Any, run: Any, **more: Any) -> None:
        init(self, run, **(more | {"run_alone": None, "isolate_on": ()}))

    async def without_end(self: CallRetrier, attempt: Callable[[], Awaitable[Any]], **more: Any) -> Any:
        if self.name != "embed":
            return await call(self, attempt, **more)
        while isinstance(outcome := await attempt(), CallFailure):  # noqa: ASYNC110 -- no event
            await asyncio.sleep(1.0)  # the server may come back
        return outcome

    return all_of(
        patch.object(MicroBatcher, "__init__", undivided),
        patch.object(micro_batcher._Call, "cancel_if_abandoned", lambda _: None),
        patch.object(CallRetrier, "call", without_end),
    )


@fault("a prompt that always fails is repeated without limit", "stuck", "models")
def endless_retries() -> Patches:
    return patch.object(Suspicion, "is_conclusive", property(lambda _: False))


@fault("failures of all records of a kind are never held back", "ended as failed", "nonsense")
def forgotten_failures() -> Patches:
    async def spend(_: FailureBudget) -> bool:
        return True

    return patch.object(FailureBudget, "spend", spend)


@fault("three failures refuse a prompt where others succeed meanwhile")
def brownout_strikes() -> Patches:
    original = CallRetrier.call

    async def call(self: CallRetrier, attempt: Callable[[], Awaitable[Any]], **more: Any) -> Any:
        if self.name != "chat":
            return await original(self, attempt, **more)
        strikes = failures = 0
        while True:
            outcome, before = await self._run(attempt, repeats=failures > 0, apart=False)
            if not isinstance(outcome, CallFailure):
                return outcome
            failures += 1
            await self.probe_unless_others_succeed(before)
            strikes += self.outcomes[0] > before[0]
            if strikes >= OLD_STRIKES:
                raise PromptRefusedError(outcome.code, outcome.detail)
            await asyncio.sleep(self._growing_delay(1 if outcome.kind == "refused" else failures, outcome))

    return patch.object(CallRetrier, "call", call)


@fault("the records of one owner fill the window", "beside a hot owner", "crowd")
def hot_owner() -> Patches:
    return patch.object(Window, "_overflows", lambda *_: False)


@fault("a partition without a committed offset is not sought: what was fetched too early is lost")
def fetch_before_seek() -> Patches:
    original = _PatchedConsumer.paused_fetching

    def seek_committed(self: _PatchedConsumer, offsets: Mapping[TP, int]) -> Any:
        return original(self, {tp: offset for tp, offset in offsets.items() if offset})

    return patch.object(_PatchedConsumer, "paused_fetching", seek_committed)


@fault("the projection starts where the tables are and leaves its group behind: what is done counts as unread")
def start_not_committed() -> Patches:
    original = _PatchedConsumer._start_offsets

    async def start_offsets(self: _PatchedConsumer, app: Any) -> Mapping[TP, int]:
        if app.start_offsets is None:
            return await original(self, app)
        assigned = frozenset((tp.topic, tp.partition) for tp in self.assignment())
        return {TP(*partition): offset for partition, offset in (await app.start_offsets(assigned)).items()}

    return patch.object(_PatchedConsumer, "_start_offsets", start_offsets)


@fault(
    "the projection writes its offset in a transaction before that of the rows", "stuck: mnemolog-project", "batches"
)
def offset_first() -> Patches:
    async def in_two(connection: Any, readings: Sequence[Any], write_rows: Any) -> projector.BatchResult:
        async with connection.transaction():
            next_offsets = await projector._locked_offsets(await projector._lock(connection, readings))
            fresh = projector._new_records(next_offsets, readings)
            if not fresh:
                return projector.BatchResult(
                    next_offsets=next_offsets, changes=Changes(), skipped=len(readings), overwrites=[]
                )
            moved = {one.position.partition: one.position.offset + 1 for one in fresh}
            await projector.move_partitions(connection, moved)
        async with connection.transaction():
            commits = [one.commit for one in fresh if isinstance(one.commit, Commit)]
            state = await load_state(connection, commits)
            changes = projector.fold_batch(state, fresh)
            return await projector._write(connection, next_offsets, fresh, changes, 0, write_rows=write_rows)

    return patch.object(projector, "_project_in_transaction", in_two)


@fault("the projection folds a batch again that it folded before")
def repeats_folded() -> Patches:
    return patch.object(projector, "_new_records", lambda _next_offsets, readings: list(readings))


@fault("the projection does not lock its partition against another projector")
def no_lock() -> Patches:
    async def look(connection: Connection, readings: Sequence[Any]) -> Cursor:
        offsets: dict[int, int] = dict(await (await connection.execute(SQL["next_offsets"])).fetchall())
        return Cursor(
            [(place, offsets.get(place, 0)) for place in dict.fromkeys(one.position.partition for one in readings)]
        )

    return patch.object(projector, "_lock", look)


@fault(
    "a batch of the journal counts as done when what it has of one partition is written", "had no output yet", "batches"
)
def first_partition() -> Patches:
    original = JournalStage.__call__

    async def call(self: JournalStage, records: Sequence[KafkaRecord]) -> None:
        await original(self, [record for record in records if record.partition == records[0].partition])

    return patch.object(JournalStage, "__call__", call)


@fault("a batch counts as done before the journal has written it", "had no output yet", "batches")
def journal_waits_not() -> Patches:
    original = JournalStage.__call__

    async def begin(self: JournalStage, records: Sequence[KafkaRecord]) -> None:
        writing = asyncio.ensure_future(original(self, records))
        self.__dict__.setdefault("writing", []).append(writing)

    return patch.object(JournalStage, "__call__", begin)


@fault("the second commit of a source is applied as well", "do not have one end", "batches")
def duplicates_applied() -> Patches:
    original = fold_commit

    def fold(state: FoldState, *more: Any) -> Any:
        return original(replace(state, applied={}), *more)

    return patch.object(projector, "fold", fold)


@fault("a commit that was decided on a state that had passed is applied as it is", "marked stale", "batches")
def stale_unmarked() -> Patches:
    return patch.object(_CommitFold, "_target_faults", lambda _self, _event: iter(()))


@fault("a decision does not wait for the projection of the owner's commit before it", "did not see", "chain")
def no_wait() -> Patches:
    async def wait(_self: ReadYourWrites, _owner: str, _partition: int) -> None:
        return

    return patch.object(ReadYourWrites, "wait_until_projected", wait)


@fault("after a rebalance a decision waits for the commits of its own process only")
def own_commits_only() -> Patches:
    async def wait(self: ReadYourWrites, owner: str, partition: int) -> None:
        place, committed = self._committed.get(owner, (partition, 0))
        await self._watermark.wait_for_offset(place, committed)

    return patch.object(ReadYourWrites, "wait_until_projected", wait)


@fault("a source that has its commit is decided again", "decided again", "servers")
def decided_again() -> Patches:
    original = SharedCandidateFinder.source_status

    async def status(self: SharedCandidateFinder, *asked: Any) -> SourceStatus:
        return replace(await original(self, *asked), attempt=0, retryable=False, origin=None)

    return patch.object(SharedCandidateFinder, "source_status", status)


@fault("a failed source that is delivered again gets another end")
def another_attempt() -> Patches:
    return patch.object(resolve, "_may_retry", lambda status, _envelope: status.retryable)


@fault("a record counts as sent before the broker has acknowledged it", "came before", "models")
def no_acknowledgement() -> Patches:
    original = Sender.send

    async def send(self: Sender, topic: str, **more: Any) -> RecordMetadata:
        if topic == "memory_events":  # the resolver has to know the offset
            return await original(self, topic, **more)
        await self._enqueue(topic, headers=more.pop("headers", ()), **more)
        return SentRecord(topic=topic, partition=0, offset=0)

    return patch.object(Sender, "send", send)


@fault("an origin counts as seen before its output is durable", "had no output yet", "everything")
def seen_early() -> Patches:
    original = StageProcessor.__call__

    async def process(self: Any, record: KafkaRecord) -> KafkaRecord | None:
        position = self.definition.read(record).envelope.origin.position
        if position in self.seen and record.content is None:
            return None
        seen, self.seen = self.seen, set()
        seen.add(position)
        try:
            return await original(self, record)
        finally:
            self.seen = seen

    return patch.object(StageProcessor, "__call__", process)


@fault(
    "an outcome is told behind the commit that says so: a process that dies between tells none",
    "does not tell",
    "models",
)
def outcome_behind() -> Patches:
    async def send(self: StageProcessor[Any, Any], topic: str, output: Any) -> RecordMetadata:
        sent = await self.sender.send(topic, key=output.key, value=output.to_bytes())
        if self.definition.before_send is not None:
            await self.definition.before_send(output)
        return sent

    return patch.object(StageProcessor, "_send", send)


@fault("the turns that are asked about together with one count as finished with it", "had no output yet", "crowd")
def shared_call_ends() -> Patches:
    original = Window.next_records

    async def take(self: Window, record: KafkaRecord, **more: Any) -> Sequence[KafkaRecord]:
        found = await original(self, record, **more)
        queue = self._queues.get(self._key_of(record))
        for _ in found if queue else ():
            entry = queue.waiting.popleft()  # type: ignore[union-attr] # there is one
            self._partitions[record.topic_partition].finish([entry])
        return found

    return patch.object(Window, "next_records", take)


@fault("a turn gets the part of a reply that is another turn's", "ended as failed", "crowd")
def mixed_parts() -> Patches:
    def divide(reply: Reply, tasks: Sequence[ExtractionTask]) -> list[Reply | None]:
        first, *others = divide_reply(reply, tasks)
        return [*others, first]

    return patch.object(call_sharer, "divide_reply", divide)


@fault("a record counts as finished when it is handed on, not when the chain has its end", "had no output yet", "chain")
def finished_at_hand_on() -> Patches:
    def hand_on(self: Window, entries: Sequence[WindowEntry], output: KafkaRecord, next_window: Window) -> None:
        next_window.take_over(output, lambda: None)
        self._finish(entries)
        self._free_keys(entries)

    return patch.object(Window, "_hand_on", hand_on)


@fault("a drain forgets what the first window of a chain has, and not what the others have", "stuck", "servers")
def later_windows_go_on() -> Patches:
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


@fault("a chain hands on as many records of an owner as there are", "beside a hot owner", "crowded")
def lane_without_limit() -> Patches:
    return patch.object(window, "MAX_HANDED_ON_PER_KEY", 10**6)


@fault("a stage begins with a partition where a fetch of an earlier assignment has left it")
def early_fetch() -> Patches:
    @asynccontextmanager
    async def begin_at_once(_self: _PatchedConsumer, _offsets: Mapping[TP, int]) -> AsyncIterator[None]:
        yield

    return patch.object(_PatchedConsumer, "paused_fetching", begin_at_once)
