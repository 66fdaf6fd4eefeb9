"""Writes batches of commits to the tables, rows and offset in one transaction."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from time import perf_counter
from typing import Final

import psycopg
from psycopg import AsyncCursor
from psycopg.rows import TupleRow

from mnemolog.projections import metrics
from mnemolog.projections.db.faults import fault_of
from mnemolog.projections.db.pools import Pool
from mnemolog.projections.db.store import Store
from mnemolog.projections.errors import CommitTimeoutError, LogChangedError, LogGapError, ProjectionError
from mnemolog.projections.logs import get_logger
from mnemolog.projections.sql import queries
from mnemolog.projections.write.change_counts import BatchOverwrites, count_changes, read_overwrites
from mnemolog.projections.write.fold import fold, reject_record
from mnemolog.projections.write.row_writer import copy_rows, load_state, refresh_profiles, update_rows
from mnemolog.projections.write.rows import Changes, LogPosition, merge_changes
from mnemolog.projections.write.state import FoldState
from mnemolog.projections.write.table_writer import Connection
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.errors import InvalidRecordError
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
class BatchResult:
    """The changes of a batch, its overwrites, and how many of its records were applied before."""

    next_offset: int
    changes: Changes
    skipped: int
    overwrites: BatchOverwrites


class Projector(Store):
    """Folds the log into the live tables. Several at once are safe, of one partition too."""

    QUERIES = queries("projector")

    def __init__(self, pool: Pool, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        super().__init__(pool)
        self._clock = clock

    async def apply(self, partition: int, records: Sequence[LogRecord]) -> BatchResult:
        """Fold consecutive records of one partition; all of them are in the tables when this returns.

        Records that were folded before are skipped. Raises `LogGapError` where
        records are missing before or between these, `LogChangedError` where one had other bytes when it was
        folded, and `mnemolog.schemas.errors.UnsupportedVersionError` for a commit of a newer program: each stops the
        projection, and nothing of the batch is written. Raises `CommitTimeoutError` for a commit that exceeds the
        statement timeout alone; what stands before it is written.
        """
        started = perf_counter()
        applied = await self._run("project", project_batch, partition, records)
        metrics.BATCH_SECONDS.observe(perf_counter() - started)
        metrics.BATCH_RECORDS.observe(len(records))
        metrics.REPEATED_RECORDS.inc(applied.skipped)
        count_changes(applied.changes, applied.overwrites, self._clock())
        return applied

    async def next_offsets(self) -> dict[int, int]:
        """Per partition the offset of the next commit to fold; a partition that is not there is at 0."""
        return dict(await self._rows("next_offsets", {}))


WriteRows = Callable[[Connection, Changes], Awaitable[None]]
"""Writes the rows that are new."""


async def project_batch(
    connection: Connection, partition: int, records: Sequence[LogRecord], *, write_rows: WriteRows | None = None
) -> BatchResult:
    """Fold one batch through `connection`, in transactions of its own, as `Projector.apply` says.

    `write_rows` takes the place of `mnemolog.projections.write.row_writer.copy_rows`.
    """
    readings = [(record, parse_commit(record.value)) for record in records]
    return await _BatchWriter(connection, partition, write_rows).write(readings)


def may_be_one_records_fault(error: BaseException) -> bool:
    """Whether a part of the batch may succeed where the whole failed."""
    return fault_of(error) in ("record", "slow")


def parse_commit(value: bytes) -> Commit | InvalidRecordError:
    """The commit in a record's bytes, or what is wrong with them. Raises UnsupportedVersionError."""
    try:
        return Commit.from_bytes(value)
    except InvalidRecordError as error:
        return error


ParsedRecord = tuple[LogRecord, Commit | InvalidRecordError]


async def _project_in_transaction(
    connection: Connection, partition: int, readings: Sequence[ParsedRecord], write_rows: WriteRows | None = None
) -> BatchResult:
    commits = [commit for _, commit in readings if isinstance(commit, Commit)]
    async with connection.transaction():
        async with connection.pipeline():
            locked = await _lock(connection, partition)
            state = await load_state(connection, commits)
            next_offset = await _locked_offset(locked)
        fresh = _new_records(partition, next_offset, readings)
        await _check_repeats(connection, partition, readings[: len(readings) - len(fresh)])
        if not fresh:
            return _all_applied_before(next_offset, len(readings))
        changes = fold_batch(state, partition, fresh)
        next_offset = fresh[-1][0].offset + 1
        return await _write(
            connection, partition, next_offset, changes, len(readings) - len(fresh), write_rows=write_rows
        )


def fold_batch(state: FoldState, partition: int, records: Sequence[ParsedRecord]) -> Changes:
    """What a batch changes: its records folded one after another. `state` is advanced past them."""
    parts = []
    for record, commit in records:
        position = LogPosition(partition=partition, offset=record.offset)
        if isinstance(commit, Commit):
            changes = fold(state, commit, position, record.value)
        else:
            log.warning("not_a_commit", partition=partition, offset=record.offset, error=commit.detail)
            changes = reject_record(position, record.value, reason="not_a_commit", detail=NOT_A_COMMIT)
        state.advance(changes)
        parts.append(changes)
    return merge_changes(parts)


async def _write(
    connection: Connection,
    partition: int,
    next_offset: int,
    changes: Changes,
    repeated: int,
    *,
    write_rows: WriteRows | None = None,
) -> BatchResult:
    await (write_rows or copy_rows)(connection, changes)
    async with connection.pipeline():
        await connection.execute(_SQL["move_partition"], {"partition": partition, "next_offset": next_offset})
        if write_rows is None:  # a rebuild's tables are waited for by nobody
            await connection.execute(_SQL["announce"], {"channel": NOTICE_CHANNEL})
        await update_rows(connection, changes)
        changed = dict.fromkeys(scope_columns(row.commit.scope) for row in changes.events)
        await refresh_profiles(connection, list(changed))
    overwrites = await read_overwrites(connection, changes)
    return BatchResult(next_offset=next_offset, changes=changes, skipped=repeated, overwrites=overwrites)


def _all_applied_before(next_offset: int, records: int) -> BatchResult:
    return BatchResult(next_offset=next_offset, changes=Changes(), skipped=records, overwrites=BatchOverwrites())


async def _lock(connection: Connection, partition: int) -> AsyncCursor[TupleRow]:
    """Lock out a rebuild's swap and every other projector of the partition; gives the offset to continue at."""
    await connection.execute(_SQL["share_swap_lock"], {"lock": SWAP_LOCK})
    await connection.execute(_SQL["open_partition"], {"partition": partition})
    return await connection.execute(_SQL["lock_partition"], {"partition": partition})


async def _locked_offset(locked: AsyncCursor[TupleRow]) -> int:
    row = await locked.fetchone()
    if row is None:
        raise ProjectionError("the row of a partition in projection_offsets went away while it was locked: try again")
    next_offset: int = row[0]
    return next_offset


def _new_records(partition: int, next_offset: int, readings: Sequence[ParsedRecord]) -> list[ParsedRecord]:
    """The records that are not folded yet. Raises `LogGapError` for a gap before or in them."""
    fresh = [reading for reading in readings if reading[0].offset >= next_offset]
    for expected, (record, _) in enumerate(fresh, start=next_offset):
        if record.offset != expected:
            raise LogGapError(partition, expected, record.offset)
    return fresh


async def _check_repeats(connection: Connection, partition: int, readings: Sequence[ParsedRecord]) -> None:
    """Raise `LogChangedError` for a skipped record that is not the folded one: a truncated log reuses offsets."""
    if not readings:
        return
    asked = {
        "partition": partition,
        "offsets": [record.offset for record, _ in readings],
        "records": [record.value for record, _ in readings],
    }
    changed = await (await connection.execute(_SQL["changed_records"], asked)).fetchone()
    if changed is not None:
        raise LogChangedError(partition, changed[0])


class _BatchWriter:
    """Writes a batch; where that fails, its halves, until a record that cannot be written is alone.

    Such a record becomes a rejection, so that it blocks no other. One that only takes too long is not skipped.
    """

    def __init__(self, connection: Connection, partition: int, write_rows: WriteRows | None) -> None:
        self._connection = connection
        self._partition = partition
        self._options = {} if write_rows is None else {"write_rows": write_rows}
        self._unstorable_in_a_row = 0

    async def write(self, readings: Sequence[ParsedRecord]) -> BatchResult:
        try:
            result = await _project_in_transaction(self._connection, self._partition, readings, **self._options)
        except (psycopg.Error, OverflowError) as error:
            if not may_be_one_records_fault(error):
                raise
            if len(readings) == 1:
                return await self._end_single(readings[0], error)
            log.warning("batch_halved", partition=self._partition, records=len(readings), error=str(error).strip())
        else:
            self._unstorable_in_a_row = 0
            return result
        middle = len(readings) // 2
        parts = [await self.write(readings[:middle]), await self.write(readings[middle:])]
        return BatchResult(
            next_offset=parts[-1].next_offset,
            changes=merge_changes(part.changes for part in parts),
            skipped=sum(part.skipped for part in parts),
            overwrites=BatchOverwrites.joined(part.overwrites for part in parts),
        )

    async def _end_single(self, reading: ParsedRecord, error: Exception) -> BatchResult:
        record, commit = reading
        if fault_of(error) == "slow":
            source_id = commit.source_id if isinstance(commit, Commit) else "unknown"
            raise CommitTimeoutError(self._partition, record.offset, source_id) from error
        self._unstorable_in_a_row += 1
        log.error("commit_not_storable", partition=self._partition, offset=record.offset, error=str(error).strip())
        if self._unstorable_in_a_row > MAX_UNSTORABLE_IN_A_ROW:
            raise error
        return await self._reject_unstorable(reading)

    async def _reject_unstorable(self, reading: ParsedRecord) -> BatchResult:
        record, _ = reading
        connection, partition = self._connection, self._partition
        position = LogPosition(partition=partition, offset=record.offset)
        changes = reject_record(position, record.value, reason="not_storable", detail=NOT_STORABLE)
        async with connection.transaction():
            next_offset = await _locked_offset(await _lock(connection, partition))
            if not _new_records(partition, next_offset, [reading]):
                return _all_applied_before(next_offset, 1)
            return await _write(connection, partition, record.offset + 1, changes, 0, **self._options)
