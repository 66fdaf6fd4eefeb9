"""Folds the log from its first record into the tables of a rebuild.

And verifies the live copy of the log on the way.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Final, Protocol, cast

import psycopg

from mnemolog.projections.database import LIVE_SCHEMA, Pool, RowConnection, open_pool
from mnemolog.projections.errors import LogGapError, LogTooShortError
from mnemolog.projections.faults import fault_of
from mnemolog.projections.rebuild.connections import RowReader, open_row_reader
from mnemolog.projections.rebuild.log_copy import LogCopyVerifier
from mnemolog.projections.sql import queries
from mnemolog.projections.write import projector
from mnemolog.projections.write.row_writer import copy_rows, load_state, update_rows
from mnemolog.schemas.commit import Commit

PAGE_RECORDS: Final = 100
_SQL: Final = queries("projector")


class LogSource(Protocol):
    """The log of commits, by partition and offset."""

    async def partitions(self) -> list[int]: ...

    async def end_offset(self, partition: int) -> int:
        """The offset that the next record will get."""
        ...

    def read(self, partition: int, start: int, stop: int) -> AsyncIterator[projector.LogRecord]:
        """The records from offset `start` on and before `stop`, in order.

        Raises `mnemolog.projections.errors.LogUnreadableError` where they cannot be had in time.
        """
        ...

    @property
    def opener(self) -> "LogOpener":
        """Opens the same log once more; can be pickled, so that another process can do so."""
        ...


LogOpener = Callable[[], AbstractAsyncContextManager[LogSource]]


class TableLogSource:
    """The log as the live tables keep it: the exact bytes of every record, applied or rejected.

    With a `reader` it is read in a third of the time.
    """

    def __init__(self, pool: Pool, reader: RowReader | None = None) -> None:
        self._pool = pool
        self._reader = reader

    @property
    def opener(self) -> LogOpener:
        return partial(open_table_log, cast("str", self._pool.conninfo))

    async def partitions(self) -> list[int]:
        return list(await self._ends())

    async def end_offset(self, partition: int) -> int:
        return (await self._ends()).get(partition, 0)

    async def read(self, partition: int, start: int, stop: int) -> AsyncIterator[projector.LogRecord]:
        query = queries("rebuild")["log_page"]
        while start < stop:
            parameters = {"partition": partition, "start": start, "stop": stop, "page": PAGE_RECORDS}
            if self._reader:
                rows = await self._reader.fetch(query, parameters)
            else:
                async with self._pool.connection() as conn:
                    rows = await (await conn.execute(query, parameters, binary=True)).fetchall()
            if not rows:
                return
            for offset, record in rows:
                yield projector.LogRecord(offset=offset, value=bytes(record))
            start = rows[-1][0] + 1

    async def _ends(self) -> dict[int, int]:
        async with self._pool.connection() as conn:
            return dict(await (await conn.execute(_SQL["next_offsets"])).fetchall())


@asynccontextmanager
async def open_table_log(url: str) -> AsyncIterator[TableLogSource]:
    """The log in the live tables, read over connections of its own."""
    async with (
        open_pool(url, min_size=1, max_size=1, application_name="mnemolog-rebuild-log") as pool,
        open_row_reader(url, "rebuild-log", schema=LIVE_SCHEMA) as reader,
    ):
        yield TableLogSource(pool, reader)


BATCH: Final = 400


class Replayer:
    """Folds the log again through `connection`; `offsets` say how far.

    Where it `keeps` the live copy of the log, it verifies that, read through `live_copy`, instead of writing it again,
    and raises `mnemolog.projections.errors.LogCopyDamagedError`. Holds one batch of records at a time, however
    long the log is. `on_progress` is called after each.
    """

    def __init__(self, connection: RowConnection, live_copy: RowReader, source: LogSource, *, keeps: bool) -> None:
        self._connection = connection
        self._source = source
        self.keeps = keeps
        verifier = LogCopyVerifier(live_copy, with_records=not isinstance(source, TableLogSource))
        self._write_rows: projector.WriteRows = verifier.write_rows if keeps else copy_rows
        self.on_progress: Callable[[int], None] = lambda _: None
        self.offsets: dict[int, int] = {}

    @property
    def records(self) -> int:
        """How many records are folded: every partition begins at offset 0."""
        return sum(self.offsets.values())

    async def resume(self) -> None:
        """Be where the tables are: they were filled by others, or by a rebuild that was interrupted."""
        self.offsets = dict(await (await self._connection.execute(_SQL["next_offsets"])).fetchall())
        self.on_progress(self.records)

    async def is_the_same_log(self) -> bool:
        """Whether the log has the last record of each partition as it was folded."""
        for partition, offset in self.offsets.items():
            if await self._source.end_offset(partition) < offset:
                return False
            async for record in self._source.read(partition, offset - 1, offset):
                asked = {"partition": partition, "offsets": [record.offset], "records": [record.value]}
                if await (await self._connection.execute(_SQL["changed_records"], asked)).fetchone():
                    return False
        return True

    def missing_records(self, targets: Mapping[int, int]) -> int:
        """How many records are missing up to `targets`, the next offset of each partition."""
        return sum(max(0, target - self.offsets.get(partition, 0)) for partition, target in targets.items())

    async def replay_in_bulk(self, targets: Mapping[int, int]) -> None:
        """Fold up to `targets` in bulk; the profiles are left to the caller.

        Raises `LogTooShortError` or `mnemolog.projections.errors.LogGapError` where the log lacks records.
        """
        for partition, target in targets.items():
            await self._connection.execute(_SQL["open_partitions"], {"partitions": [partition]})
            async for batch in self._batches(partition, target):
                try:
                    await self._fold(partition, batch)
                except (psycopg.Error, OverflowError) as error:
                    if fault_of(error) not in ("record", "slow"):
                        raise
                    # It finds the record that cannot be stored.
                    await projector.project_batch(self._connection, {partition: batch}, write_rows=self._write_rows)
                self._advance(partition, batch)

    async def replay_as_projector(self, targets: Mapping[int, int], *, live: RowConnection | None = None) -> None:
        """Fold up to `targets` as a projector does, each profile kept up to date. Raises as `replay_in_bulk` does.

        A connection that works in the `live` schema writes the copy of the log there too.
        """
        for partition, target in targets.items():
            async for batch in self._batches(partition, target):
                write_rows = copy_rows if live else self._write_rows
                await projector.project_batch(live or self._connection, {partition: batch}, write_rows=write_rows)
                self._advance(partition, batch)

    async def _fold(self, partition: int, batch: list[projector.LogRecord]) -> None:
        readings = projector.parse_records(partition, batch)
        commits = [reading.commit for reading in readings if isinstance(reading.commit, Commit)]
        async with self._connection.transaction():
            state = await load_state(self._connection, commits)
            changes = projector.fold_batch(state, readings)
            await self._write_rows(self._connection, changes)
            async with self._connection.pipeline():
                await projector.move_partitions(self._connection, {partition: readings[-1].position.offset + 1})
                await update_rows(self._connection, changes)

    async def _batches(self, partition: int, target: int) -> AsyncIterator[list[projector.LogRecord]]:
        expected = self.offsets.get(partition, 0)
        if expected >= target:
            return
        end = await self._source.end_offset(partition)
        if end < target:
            raise LogTooShortError(partition, end, target)
        batch: list[projector.LogRecord] = []
        async for record in self._source.read(partition, expected, target):
            if record.offset != expected:
                raise LogGapError(partition, expected, record.offset)
            expected += 1
            batch.append(record)
            if len(batch) == BATCH:
                yield batch
                batch = []
        if batch:
            yield batch
        if expected < target:
            raise LogTooShortError(partition, expected, target)

    def _advance(self, partition: int, batch: list[projector.LogRecord]) -> None:
        self.offsets[partition] = batch[-1].offset + 1
        self.on_progress(self.records)
