"""Rebuilds all tables from the log beside the live ones, compares them, and swaps them in. No model is called."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import chain, repeat
from time import perf_counter
from typing import Final

from psycopg import IsolationLevel
from psycopg.sql import SQL, Composed, Identifier

from mnemolog.common.logs import get_logger
from mnemolog.projections.database import LIVE_SCHEMA, RowConnection
from mnemolog.projections.errors import LogCopyDamagedError, SwapRefusedError
from mnemolog.projections.rebuild import swap
from mnemolog.projections.rebuild.connections import NEXT_SCHEMA, OLD_SCHEMA, Job, RowReader, open_connection, run_jobs
from mnemolog.projections.rebuild.digest import TableComparison, compare_schemas, tables_of
from mnemolog.projections.rebuild.fill import fill_tables
from mnemolog.projections.rebuild.log_copy import compare_kept_tables, open_live_copy
from mnemolog.projections.rebuild.replay import BATCH, LogSource, Replayer
from mnemolog.projections.rebuild.scope_indexes import copy_scope_indexes
from mnemolog.projections.write import entity_writer
from mnemolog.projections.write.row_writer import profile_batches, refresh_profiles

MAX_CATCH_UPS: Final = 20
"""Live commits go on meanwhile: so often they are caught up with before the projectors are paused for the rest."""

log = get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a step of a rebuild is, in records or tables."""

    step: str
    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildReport:
    """What a rebuild found: every table live and rebuilt, at the same offsets of the log.

    `objects` are those of the live schema (columns, indexes, triggers, functions, views ...) that were missing or
    defined otherwise. `records` counts the folded records of the log, `seconds` the duration of the rebuild.
    """

    tables: tuple[TableComparison, ...]
    objects: tuple[str, ...]
    offsets: dict[int, int]
    records: int
    swapped: bool
    seconds: float

    @property
    def equal(self) -> bool:
        return not self.objects and all(table.equal for table in self.tables)


ProgressCallback = Callable[[Progress], None]


async def rebuild(
    url: str,
    source: LogSource,
    *,
    verify_only: bool = False,
    full: bool = False,
    progress: ProgressCallback | None = None,
) -> RebuildReport:
    """Fold the whole log into a new schema, compare every row with the live tables, and swap.

    Tables that differ are swapped as well: repairing them is what a rebuild is for. With `verify_only` nothing is.
    Projectors pause for moments, readers never. Commits that arrive meanwhile are in the new tables. Interrupted,
    it leaves the live tables as they were. `progress` is called after every batch; what it raises ends the rebuild.

    The copy of the log in the live tables is verified against the log and kept. Where it is damaged the rebuild begins
    anew and writes it too, as it does at once if it is to be `full`.

    Raises `mnemolog.projections.errors.RebuildError` and `LogGapError`, each of which says what to do.
    """
    started = perf_counter()
    async with (
        open_connection(url, "rebuild") as connection,
        open_connection(url, "rebuild-compare") as reader,
        open_live_copy(url) as live_copy,
        swap.only_rebuild(connection),
    ):
        making = _Rebuild(url, source, connection, reader, live_copy, progress or (lambda _: None))
        try:
            replayer, tables, objects = await making.run(verify_only=verify_only, full=full)
        except LogCopyDamagedError as error:
            log.warning("log_copy_damaged", error=str(error))
            replayer, tables, objects = await making.run(verify_only=verify_only, full=True)
        return RebuildReport(
            tables=tuple(tables),
            objects=tuple(objects),
            offsets=replayer.offsets,
            records=replayer.records,
            swapped=not verify_only,
            seconds=perf_counter() - started,
        )


@dataclass(frozen=True, slots=True)
class _Rebuild:
    """The steps of a rebuild and what all of them use."""

    url: str
    source: LogSource
    connection: RowConnection
    reader: RowConnection
    live_copy: RowReader
    progress: ProgressCallback

    async def run(self, *, verify_only: bool, full: bool) -> tuple[Replayer, list[TableComparison], list[str]]:
        replayer = await self.open_next_schema(full=full)
        if not verify_only:
            await swap.refuse_foreign_objects(self.connection)
        targets = await swap.live_offsets(self.connection)
        expected = replayer.records + replayer.missing_records(targets)
        replayer.on_progress = lambda records: self.progress(
            Progress(step="folding", done=records, total=max(records, expected))
        )
        replayer.on_progress(replayer.records)
        await fill_tables(self.url, self.source, replayer, targets)
        await self.finish_tables()
        tables = await self.compare(replayer)
        objects = await swap.differing_objects(self.connection)
        if verify_only:
            await swap.drop_schema(self.connection, NEXT_SCHEMA)
        else:
            await copy_scope_indexes(self.connection, NEXT_SCHEMA, on_progress=self.report("scope indexes"))
            await self.take_over(replayer)
        return replayer, tables, objects

    async def open_next_schema(self, *, full: bool) -> Replayer:
        """Go on with the tables of an interrupted rebuild if they are what this one would make, else make new ones."""
        connection, source = self.connection, self.source
        # A live schema that was dropped as a whole is mended too.
        await connection.execute(SQL("CREATE SCHEMA IF NOT EXISTS {}").format(Identifier(LIVE_SCHEMA)))
        await swap.drop_schema(connection, OLD_SCHEMA)
        keeps = await swap.keeps_live_tables(connection)
        if keeps is not None and not (full and keeps) and await swap.was_made_by_this_program(connection):
            replayer = Replayer(connection, self.live_copy, source, keeps=keeps)
            await replayer.resume()
            if await replayer.is_the_same_log():
                log.info("rebuild_resumed", records=replayer.records)
                return replayer
        await swap.drop_schema(connection, NEXT_SCHEMA)
        is_lost = not await swap.live_offsets(connection)
        keeps = await swap.make_next_schema(connection, full=full or is_lost)
        return Replayer(connection, self.live_copy, source, keeps=keeps)

    async def finish_tables(self) -> None:
        """Make what readers need of filled tables: indexes, statistics, the state of entities and profiles."""
        url, connection = self.url, self.connection
        await run_jobs(url, map(_statement_job, await swap.missing_indexes(connection)), self.report("indexing"))
        tables = [Identifier(NEXT_SCHEMA, table.name) for table in await tables_of(connection, NEXT_SCHEMA)]
        await run_jobs(url, (_statement_job(SQL("ANALYZE {}").format(table)) for table in tables), lambda *_: None)
        for entity_ids in await entity_writer.all_derived_entities(connection):
            await entity_writer.derive_entities(connection, entity_ids)
        shown = [
            partial(entity_writer.show_entities, entity_ids=batch)
            for batch in await entity_writer.all_shown_entities(connection)
        ]
        await run_jobs(url, shown, lambda *_: None)
        batches = await profile_batches(connection)
        await run_jobs(url, (partial(refresh_profiles, scopes=batch) for batch in batches), self.report("profiles"))

    async def compare(self, replayer: Replayer) -> list[TableComparison]:
        """Compare in a snapshot that sees both schemas at the same offsets: projectors need not wait for it."""
        await self.catch_up(replayer)
        await self.reader.set_isolation_level(IsolationLevel.REPEATABLE_READ)
        async with self.reader.transaction():
            async with swap.projectors_paused(self.connection):
                await replayer.replay_as_projector(await swap.live_offsets(self.connection))
                await self.reader.execute("SELECT pg_current_snapshot()")  # fixes what the transaction sees
            kept = await compare_kept_tables(self.reader) if replayer.keeps else []
            written = await compare_schemas(
                self.url, self.reader, LIVE_SCHEMA, NEXT_SCHEMA, on_progress=self.report("comparing")
            )
        return sorted([*kept, *written], key=lambda one: one.table)

    async def take_over(self, replayer: Replayer) -> None:
        """Swap at the live offsets, or at the end that the log had: tables that lag or were lost become complete.

        Tables that are kept can only be swapped at the live offsets; what they lag is projected after that.
        """
        connection, source = self.connection, self.source
        ends = {partition: await source.end_offset(partition) for partition in await source.partitions()}
        if not replayer.keeps:
            await replayer.replay_as_projector(ends)

        waits = chain([swap.FIRST_LOCK_MILLISECONDS], repeat(swap.LOCK_MILLISECONDS))

        async def attempt() -> None:
            await self.catch_up(replayer)
            async with swap.projectors_paused(connection):
                await replayer.replay_as_projector(await swap.live_offsets(connection))
                await swap.swap_schemas(connection, keeps=replayer.keeps, wait_milliseconds=next(waits))

        await swap.retry_lock(attempt)
        try:
            await swap.drop_schema(connection, OLD_SCHEMA)
        except SwapRefusedError:
            log.warning("old_tables_kept", schema=OLD_SCHEMA)  # a reader is still in them; the next rebuild drops them
        if replayer.keeps:
            async with open_connection(self.url, "rebuild-lag", schema=LIVE_SCHEMA) as live:
                await replayer.replay_as_projector(ends, live=live)

    async def catch_up(self, replayer: Replayer) -> None:
        for _ in range(MAX_CATCH_UPS):
            targets = await swap.live_offsets(self.connection)
            if replayer.missing_records(targets) <= BATCH:
                return
            await replayer.replay_as_projector(targets)

    def report(self, step: str) -> Callable[[int, int], None]:
        return lambda done, total: self.progress(Progress(step=step, done=done, total=total))


def _statement_job(statement: SQL | Composed) -> Job:
    async def run(connection: RowConnection) -> None:
        await connection.execute(statement)

    return run
