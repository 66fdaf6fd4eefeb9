"""Writes batches of commits to the tables, rows and offset in one transaction, and counts what changed."""

from collections import Counter as CounterOf
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from time import perf_counter
from typing import Any, Final

import psycopg
from prometheus_client import Counter
from psycopg import AsyncCursor
from psycopg.rows import TupleRow

from mnemolog.common.logs import get_logger
from mnemolog.projections import metrics
from mnemolog.projections.database import Pool, RowConnection, Store, fetch_rows
from mnemolog.projections.errors import CommitTimeoutError, LogChangedError, LogGapError, ProjectionError
from mnemolog.projections.faults import fault_of, without_rows
from mnemolog.projections.sql import queries
from mnemolog.projections.write.entity_writer import count_entities, hide_facts, refresh_entities
from mnemolog.projections.write.fold import FoldState, fold, reject_record
from mnemolog.projections.write.row_writer import copy_rows, load_state, refresh_profiles, update_rows
from mnemolog.projections.write.rows import Changes, LogPosition, merge_changes
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.errors import InvalidRecordError
from mnemolog.schemas.events import EVENT_CLASSES, ConflictResolved, FactCorrected, FactPending
from mnemolog.schemas.scope import scope_columns

# No text of a library goes into a row: rows have to be the same under its next version.
NOT_A_COMMIT: Final = "these bytes are no commit of a version that this program knows"
NOT_STORABLE: Final = "the tables cannot hold a value of this commit, or an id in it belongs to another"
SWAP_LOCK: Final = 0x6D6E656D_0002
"""Advisory lock: shared by every transaction of a projector, exclusive for the swap at the end of a rebuild."""

NOTICE_CHANNEL: Final = "mnemolog_projected"
"""The channel on which projectors announce each batch; a notice says only that it is worth reading the offsets."""

# So many commits in a row are not all unstorable: then the fault is this program's.
MAX_UNSTORABLE_IN_A_ROW: Final = 20

_SQL: Final = queries("projector")
log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRecord:
    """One record of a partition of `memory_events`."""

    offset: int
    value: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedRecord:
    """A record of the log with the commit in it, or what is wrong with its bytes."""

    position: LogPosition
    value: bytes
    commit: Commit | InvalidRecordError


Records = Mapping[int, Sequence[LogRecord]]
"""Per partition of the log some consecutive records."""


OverwriteCounts = list[tuple[Counter, dict[str, Any], int]]
"""Of a batch the overwrites carried out or taken back, by the view `overwrites`: metric, labels, number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """The changes of a batch, its overwrites, and how many of its records were applied before.

    `next_offsets` has the next offset of each partition of the batch.
    """

    next_offsets: Mapping[int, int]
    changes: Changes
    skipped: int
    overwrites: OverwriteCounts


class Projector(Store):
    """Folds the log into the live tables. Several at once are safe, of the same partitions too."""

    QUERIES = _SQL

    def __init__(self, pool: Pool, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        super().__init__(pool)
        self._clock = clock

    async def apply(self, records: Records) -> BatchResult:
        """Fold records of some partitions in one transaction; all of them are in the tables when this returns.

        Records that were folded before are skipped. Raises `LogGapError` where
        records are missing before or between these, `LogChangedError` where one had other bytes when it was
        folded, and `mnemolog.schemas.errors.UnsupportedVersionError` for a commit of a newer program: each stops the
        projection, and nothing of the batch is written. Raises `CommitTimeoutError` for a commit that exceeds the
        statement timeout alone; what stands before it is written.
        """

        async def project_and_announce(connection: RowConnection) -> BatchResult:
            applied = await project_batch(connection, records)
            # Not in the batch's transaction: any listener of the server can let the queue of notices fill.
            with suppress(psycopg.Error):
                await connection.execute(_SQL["announce"], {"channel": NOTICE_CHANNEL})
            return applied

        started = perf_counter()
        applied = await self._run("project", project_and_announce)
        metrics.BATCH_SECONDS.observe(perf_counter() - started)
        metrics.BATCH_RECORDS.observe(sum(map(len, records.values())))
        metrics.REPEATED_RECORDS.inc(applied.skipped)
        count_changes(applied.changes, applied.overwrites, self._clock())
        return applied

    async def next_offsets(self) -> dict[int, int]:
        """Per partition the offset of the next commit to fold; a partition that is not there is at 0."""
        return dict(await self._rows("next_offsets", {}))


WriteRows = Callable[[RowConnection, Changes], Awaitable[None]]
"""Writes the rows that are new."""


async def project_batch(
    connection: RowConnection, records: Records, *, write_rows: WriteRows | None = None
) -> BatchResult:
    """Fold one batch through `connection`, in transactions of its own, as `Projector.apply` says.

    `write_rows` takes the place of `mnemolog.projections.write.row_writer.copy_rows`.
    """
    parsed = [one for partition in sorted(records) for one in parse_records(partition, records[partition])]
    return await _BatchWriter(connection, write_rows).write(parsed)


def parse_records(partition: int, records: Sequence[LogRecord]) -> list[ParsedRecord]:
    """Records of a partition with their commits. Raises UnsupportedVersionError."""
    return [
        ParsedRecord(
            position=LogPosition(partition=partition, offset=record.offset),
            value=record.value,
            commit=parse_commit(record.value),
        )
        for record in records
    ]


def parse_commit(value: bytes) -> Commit | InvalidRecordError:
    """The commit in a record's bytes, or what is wrong with them. Raises UnsupportedVersionError."""
    try:
        return Commit.from_bytes(value)
    except InvalidRecordError as error:
        return error


@dataclass(slots=True)
class _BatchWriter:
    """Writes a batch; where that fails, its halves, until a record that cannot be written is alone.

    Such a record becomes a rejection, so that it blocks no other. One that only takes too long is not skipped.
    """

    connection: RowConnection
    write_rows: WriteRows | None
    unstorable_in_a_row: int = 0

    async def write(self, readings: Sequence[ParsedRecord]) -> BatchResult:
        try:
            result = await _project_in_transaction(self.connection, readings, self.write_rows)
        except (psycopg.Error, OverflowError) as error:
            if fault_of(error) not in ("record", "slow"):  # then no part of the batch succeeds either
                raise
            if len(readings) == 1:
                return await self._end_single(readings[0], error)
            log.warning("batch_halved", records=len(readings), error=without_rows(error))
        else:
            self.unstorable_in_a_row = 0
            return result
        middle = len(readings) // 2
        first, second = await self.write(readings[:middle]), await self.write(readings[middle:])
        return BatchResult(
            next_offsets={**first.next_offsets, **second.next_offsets},
            changes=merge_changes([first.changes, second.changes]),
            skipped=first.skipped + second.skipped,
            overwrites=first.overwrites + second.overwrites,
        )

    async def _end_single(self, reading: ParsedRecord, error: Exception) -> BatchResult:
        commit, partition, offset = reading.commit, reading.position.partition, reading.position.offset
        if fault_of(error) == "slow":
            source_id = commit.source_id if isinstance(commit, Commit) else "unknown"
            raise CommitTimeoutError(partition, offset, source_id) from error
        self.unstorable_in_a_row += 1
        log.error("commit_not_storable", partition=partition, offset=offset, error=without_rows(error))
        if self.unstorable_in_a_row > MAX_UNSTORABLE_IN_A_ROW:
            raise error
        changes = reject_record(reading.position, reading.value, reason="not_storable", detail=NOT_STORABLE)
        async with self.connection.transaction():
            next_offsets = await _locked_offsets(await _lock(self.connection, [reading]))
            if not _new_records(next_offsets, [reading]):
                return BatchResult(next_offsets=next_offsets, changes=Changes(), skipped=1, overwrites=[])
            return await _write(self.connection, next_offsets, [reading], changes, 0, write_rows=self.write_rows)


async def _project_in_transaction(
    connection: RowConnection, readings: Sequence[ParsedRecord], write_rows: WriteRows | None = None
) -> BatchResult:
    commits = [reading.commit for reading in readings if isinstance(reading.commit, Commit)]
    async with connection.transaction():
        async with connection.pipeline():
            locked = await _lock(connection, readings)
            state = await load_state(connection, commits)
            next_offsets = await _locked_offsets(locked)
        fresh = _new_records(next_offsets, readings)
        repeats = [one for one in readings if one.position.offset < next_offsets[one.position.partition]]
        await _check_repeats(connection, repeats)
        if not fresh:
            return BatchResult(next_offsets=next_offsets, changes=Changes(), skipped=len(readings), overwrites=[])
        changes = fold_batch(state, fresh)
        return await _write(connection, next_offsets, fresh, changes, len(repeats), write_rows=write_rows)


def fold_batch(state: FoldState, records: Sequence[ParsedRecord]) -> Changes:
    """What a batch changes: its records folded one after another. `state` is advanced past them."""
    parts = []
    for record in records:
        position, commit = record.position, record.commit
        if isinstance(commit, Commit):
            changes = fold(state, commit, position, record.value)
        else:
            log.warning("not_a_commit", partition=position.partition, offset=position.offset, error=commit.detail)
            changes = reject_record(position, record.value, reason="not_a_commit", detail=NOT_A_COMMIT)
        state.advance(changes)
        parts.append(changes)
    return merge_changes(parts)


async def _write(
    connection: RowConnection,
    next_offsets: Mapping[int, int],
    fresh: Sequence[ParsedRecord],
    changes: Changes,
    repeated: int,
    *,
    write_rows: WriteRows | None,
) -> BatchResult:
    moved = {one.position.partition: one.position.offset + 1 for one in fresh}
    await (write_rows or copy_rows)(connection, changes)
    async with connection.pipeline():
        await move_partitions(connection, moved)
        await update_rows(connection, changes)
    hidden = await hide_facts(connection, changes)
    changed = dict.fromkeys(scope_columns(row.commit.scope) for row in changes.events)
    await refresh_profiles(connection, list(changed))
    await refresh_entities(connection, changes, hidden)
    overwrites = await read_overwrites(connection, changes)
    return BatchResult(next_offsets={**next_offsets, **moved}, changes=changes, skipped=repeated, overwrites=overwrites)


async def move_partitions(connection: RowConnection, next_offsets: Mapping[int, int]) -> None:
    """Advance the offsets of partitions, in the transaction of the rows."""
    moved = {"partitions": list(next_offsets), "next_offsets": list(next_offsets.values())}
    await connection.execute(_SQL["move_partitions"], moved)


async def _lock(connection: RowConnection, readings: Sequence[ParsedRecord]) -> AsyncCursor[TupleRow]:
    """Lock out a rebuild's swap and every other projector of these partitions; gives the offsets to continue at."""
    partitions = {"partitions": sorted({one.position.partition for one in readings})}
    await connection.execute(_SQL["share_swap_lock"], {"lock": SWAP_LOCK})
    await connection.execute(_SQL["open_partitions"], partitions)
    return await connection.execute(_SQL["lock_partitions"], partitions)


async def _locked_offsets(locked: AsyncCursor[TupleRow]) -> dict[int, int]:
    return dict(await locked.fetchall())


def _new_records(next_offsets: Mapping[int, int], readings: Sequence[ParsedRecord]) -> list[ParsedRecord]:
    """The records that are not folded yet. Raises `LogGapError` for a gap before or in them."""
    expected = dict(next_offsets)
    fresh = []
    for reading in readings:
        partition, offset = reading.position.partition, reading.position.offset
        if partition not in expected:
            raise ProjectionError("the row of a partition in projection_offsets is gone: try again")
        if offset >= next_offsets[partition]:
            if offset != expected[partition]:
                raise LogGapError(partition, expected[partition], offset)
            expected[partition] += 1
            fresh.append(reading)
    return fresh


async def _check_repeats(connection: RowConnection, readings: Sequence[ParsedRecord]) -> None:
    """Raise `LogChangedError` for a skipped record that is not the folded one: a truncated log reuses offsets."""
    for partition, found in groupby(readings, lambda reading: reading.position.partition):
        records = list(found)
        asked = {
            "partition": partition,
            "offsets": [record.position.offset for record in records],
            "records": [record.value for record in records],
        }
        changed = await (await connection.execute(_SQL["changed_records"], asked)).fetchone()
        if changed is not None:
            raise LogChangedError(partition, changed[0])


OVERWRITE_EVENTS: Final = frozenset(
    name
    for name, event in EVENT_CLASSES.items()
    if event.fixed_overwrite or event in (FactPending, FactCorrected, ConflictResolved)
)
"""The names of the events in the view `overwrites`: ends of known facts, carried out or held back."""
_COUNTED_EVENTS: Final = OVERWRITE_EVENTS | {"pending_confirmed", "pending_rejected", "decision_undone"}
_OVERWRITES_SQL: Final = queries("overwrites")


async def read_overwrites(connection: RowConnection, changes: Changes) -> OverwriteCounts:
    """The overwrites of `changes`, which are in the tables already; most batches have none and ask nothing."""
    event_ids = [row.event.event_id for row in changes.events if row.event.event in _COUNTED_EVENTS]
    if not event_ids:
        return []
    counters = {"carried_out": metrics.OVERWRITES, "taken_back": metrics.OVERWRITES_TAKEN_BACK}
    return [
        (counter, row, row.pop("overwrites"))
        for query, counter in counters.items()
        for row in await fetch_rows(connection, dict, _OVERWRITES_SQL[query], {"event_ids": event_ids})
    ]


def count_changes(changes: Changes, overwrites: OverwriteCounts, now: datetime) -> None:
    """Count what has been committed to the tables; `now` is when it was seen there."""
    for outcome, number in CounterOf(row.commit.outcome for row in changes.commits).items():
        metrics.COMMITS.labels(outcome=outcome).inc(number)
    for (event, by), number in CounterOf((row.event.event, row.event.decision.by) for row in changes.events).items():
        metrics.EVENTS.labels(event=event, by=by).inc(number)
    for reason, number in CounterOf(row.reason for row in changes.rejections).items():
        metrics.REJECTIONS.labels(reason=reason).inc(number)
    for counter, labels, number in overwrites:
        counter.labels(**labels).inc(number)
    count_entities(changes)
    metrics.STALE.inc(sum(row.stale for row in changes.events))
    for commit in (row.commit for row in changes.commits):
        if commit.outcome == "stored":
            metrics.TURN_TO_FACT_SECONDS.observe(max(0.0, (now - commit.published_at).total_seconds()))
