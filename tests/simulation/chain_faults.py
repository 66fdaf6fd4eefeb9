"""Faults of what reads batches and of what holds the chain together: each can be put back."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

from faust.types import TP

from mnemolog.projections.sql import queries
from mnemolog.projections.stores.facts import SourceStatus
from mnemolog.projections.write import projector
from mnemolog.projections.write.fold import FoldState, _CommitFold
from mnemolog.projections.write.fold import fold as fold_commit
from mnemolog.projections.write.row_writer import load_state
from mnemolog.schemas.commit import Commit
from mnemolog.streams.kafka.app import _PatchedConsumer
from mnemolog.streams.kafka.record import KafkaRecord, RecordMetadata
from mnemolog.streams.kafka.sender import Sender
from mnemolog.streams.runtime.read_your_writes import ReadYourWrites
from mnemolog.streams.stages import resolve
from mnemolog.streams.stages.journal import JournalStage
from mnemolog.streams.stages.processor import StageProcessor
from mnemolog.streams.stages.shared_lookups import SharedCandidateFinder
from tests.simulation.fault import Fault
from tests.simulation.servers.postgres import Connection, Cursor
from tests.support.servers.memory_broker import SentRecord

SQL: Final = queries("projector")


def no_seek_without_a_commit() -> AbstractContextManager[object]:
    original = _PatchedConsumer.paused_fetching

    def seek_committed(self: _PatchedConsumer, offsets: Mapping[TP, int]) -> Any:
        return original(self, {tp: offset for tp, offset in offsets.items() if offset})

    return patch.object(_PatchedConsumer, "paused_fetching", seek_committed)


def start_is_not_committed() -> AbstractContextManager[object]:
    original = _PatchedConsumer._start_offsets

    async def start_offsets(self: _PatchedConsumer, app: Any) -> Mapping[TP, int]:
        if app.start_offsets is None:
            return await original(self, app)
        assigned = frozenset((tp.topic, tp.partition) for tp in self.assignment())
        return {TP(*partition): offset for partition, offset in (await app.start_offsets(assigned)).items()}

    return patch.object(_PatchedConsumer, "_start_offsets", start_offsets)


def offset_before_the_rows() -> AbstractContextManager[object]:
    async def in_two(connection: Any, readings: Sequence[Any], write_rows: Any) -> projector.BatchResult:
        async with connection.transaction():
            next_offsets = await projector._locked_offsets(await projector._lock(connection, readings))
            fresh = projector._new_records(next_offsets, readings)
            if not fresh:
                return projector._all_applied_before(next_offsets, len(readings))
            moved = {one.position.partition: one.position.offset + 1 for one in fresh}
            await projector.move_partitions(connection, moved)
        async with connection.transaction():
            commits = [one.commit for one in fresh if isinstance(one.commit, Commit)]
            state = await load_state(connection, commits)
            changes = projector.fold_batch(state, fresh)
            return await projector._write(connection, next_offsets, fresh, changes, 0, write_rows=write_rows)

    return patch.object(projector, "_project_in_transaction", in_two)


def repeats_are_folded() -> AbstractContextManager[object]:
    return patch.object(projector, "_new_records", lambda _next_offsets, readings: list(readings))


def partition_is_not_locked() -> AbstractContextManager[object]:
    async def look(connection: Connection, readings: Sequence[Any]) -> Cursor:
        offsets: dict[int, int] = dict(await (await connection.execute(SQL["next_offsets"])).fetchall())
        return Cursor(
            [(place, offsets.get(place, 0)) for place in dict.fromkeys(one.position.partition for one in readings)]
        )

    return patch.object(projector, "_lock", look)


def a_batch_is_its_first_partition() -> AbstractContextManager[object]:
    original = JournalStage.__call__

    async def call(self: JournalStage, records: Sequence[KafkaRecord]) -> None:
        await original(self, [record for record in records if record.partition == records[0].partition])

    return patch.object(JournalStage, "__call__", call)


def journal_does_not_wait() -> AbstractContextManager[object]:
    original = JournalStage.__call__

    async def begin(self: JournalStage, records: Sequence[KafkaRecord]) -> None:
        writing = asyncio.ensure_future(original(self, records))
        self.__dict__.setdefault("writing", []).append(writing)

    return patch.object(JournalStage, "__call__", begin)


def duplicates_are_applied() -> AbstractContextManager[object]:
    original = fold_commit

    def fold(state: FoldState, *more: Any) -> Any:
        return original(replace(state, applied={}), *more)

    return patch.object(projector, "fold", fold)


def passed_states_are_not_marked() -> AbstractContextManager[object]:
    return patch.object(_CommitFold, "_target_faults", lambda _self, _event: iter(()))


def resolve_does_not_wait() -> AbstractContextManager[object]:
    async def wait(_self: ReadYourWrites, _owner: str, _partition: int) -> None:
        return

    return patch.object(ReadYourWrites, "wait_until_projected", wait)


def resolve_waits_for_its_own_commits() -> AbstractContextManager[object]:
    async def wait(self: ReadYourWrites, owner: str, partition: int) -> None:
        place, committed = self._committed.get(owner, (partition, 0))
        await self._watermark.wait_for_offset(place, committed)

    return patch.object(ReadYourWrites, "wait_until_projected", wait)


def resolve_does_not_ask_for_an_end() -> AbstractContextManager[object]:
    original = SharedCandidateFinder.source_status

    async def status(self: SharedCandidateFinder, *asked: Any) -> SourceStatus:
        return replace(await original(self, *asked), attempt=0, retryable=False, origin=None)

    return patch.object(SharedCandidateFinder, "source_status", status)


def a_repeat_is_another_attempt() -> AbstractContextManager[object]:
    return patch.object(resolve, "_may_retry", lambda status, _envelope: status.retryable)


def sends_are_not_awaited() -> AbstractContextManager[object]:
    original = Sender.send

    async def send(self: Sender, topic: str, **more: Any) -> RecordMetadata:
        if topic == "memory_events":  # the resolver has to know the offset
            return await original(self, topic, **more)
        await self._enqueue(topic, headers=more.pop("headers", ()), **more)
        return SentRecord(topic=topic, partition=0, offset=0)

    return patch.object(Sender, "send", send)


def seen_before_it_is_durable() -> AbstractContextManager[object]:
    original = StageProcessor.__call__

    async def process(self: Any, record: KafkaRecord) -> KafkaRecord | None:
        position = self._definition.read(record).envelope.origin.position
        if position in self._seen and record.content is None:
            return None
        seen, self._seen = self._seen, set()
        seen.add(position)
        try:
            return await original(self, record)
        finally:
            self._seen = seen

    return patch.object(StageProcessor, "__call__", process)


CHAIN_FAULTS: Final = (
    Fault(
        "fetch_before_seek",
        "a partition without a committed offset is not sought: what was fetched too early is lost",
        no_seek_without_a_commit,
    ),
    Fault(
        "start_not_committed",
        "the projection starts where the tables are and leaves its group behind: what is done counts as unread",
        start_is_not_committed,
    ),
    Fault(
        "offset_first",
        "the projection writes its offset in a transaction before that of the rows",
        offset_before_the_rows,
    ),
    Fault("repeats_folded", "the projection folds a batch again that it folded before", repeats_are_folded),
    Fault("no_lock", "the projection does not lock its partition against another projector", partition_is_not_locked),
    Fault(
        "first_partition",
        "a batch of the journal counts as done when what it has of one partition is written",
        a_batch_is_its_first_partition,
    ),
    Fault("journal_waits_not", "a batch counts as done before the journal has written it", journal_does_not_wait),
    Fault("duplicates_applied", "the second commit of a source is applied as well", duplicates_are_applied),
    Fault(
        "stale_unmarked",
        "a commit that was decided on a state that had passed is applied as it is",
        passed_states_are_not_marked,
    ),
    Fault(
        "no_wait", "a decision does not wait for the projection of the owner's commit before it", resolve_does_not_wait
    ),
    Fault(
        "own_commits_only",
        "after a rebalance a decision waits for the commits of its own process only",
        resolve_waits_for_its_own_commits,
    ),
    Fault("decided_again", "a source that has its commit is decided again", resolve_does_not_ask_for_an_end),
    Fault("another_attempt", "a failed source that is delivered again gets another end", a_repeat_is_another_attempt),
    Fault("no_acknowledgement", "a record counts as sent before the broker has acknowledged it", sends_are_not_awaited),
    Fault("seen_early", "an origin counts as seen before its output is durable", seen_before_it_is_durable),
)
