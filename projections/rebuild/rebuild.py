"""Rebuilds all tables from the log beside the live ones, compares them, and swaps them in. No model is called."""

from collections.abc import Callable, Mapping
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
from mnemolog.projections.rebuild.connections import NEXT_SCHEMA, OLD_SCHEMA, Job, RowReader, open_connection, run_jobs
from mnemolog.projections.rebuild.digest import TableComparison, compare_schemas, tables_of
from mnemolog.projections.rebuild.fill import fill_tables
from mnemolog.projections.rebuild.log_copy import compare_kept_tables, open_live_copy
from mnemolog.projections.rebuild.replay import BATCH, LogSource, Replayer
from mnemolog.projections.rebuild.scope_indexes import copy_scope_indexes
from mnemolog.projections.rebuild.swap import (
    FIRST_LOCK_MILLISECONDS,
    LOCK_MILLISECONDS,
    drop_schema,
    ensure_live_schema,
    keeps_live_tables,
    live_offsets,
    make_next_schema,
    missing_indexes,
    only_rebuild,
    projectors_paused,
    refuse_dependent_views,
    retry_lock,
    swap_schemas,
    was_made_by_this_program,
)
from mnemolog.projections.sql import queries
from mnemolog.projections.write.entity_writer import (
    all_derived_entities,
    all_shown_entities,
    derive_entities,
    show_entities,
)
from mnemolog.projections.write.row_writer import profile_batches, refresh_profiles

MAX_CATCH_UPS: Final = 20
"""Live commits go on meanwhile: so often they are caught up with before the projectors are paused for the rest."""

_SQL: Final = queries("rebuild")
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

    `records` counts the folded records of the log, `seconds` the duration of the rebuild.
    """

    tables: tuple[TableComparison, ...]
    offsets: dict[int, int]
    records: int
    swapped: bool
    seconds: float

    @property
    def equal(self) -> bool:
        return all(table.equal for table in self.tables)


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
        only_rebuild(connection),
    ):
        if not verify_only:
            await refuse_dependent_views(connection)
        report = progress or (lambda _: None)
        context = _Context(
            url=url, source=source, connection=connection, reader=reader, live_copy=live_copy, report=report
        )
        try:
            replayer, tables = await _make(context, verify_only=verify_only, full=full)
        except LogCopyDamagedError as error:
            log.warning("log_copy_damaged", error=str(error))
            replayer, tables = await _make(context, verify_only=verify_only, full=True)
        return RebuildReport(
            tables=tuple(tables),
            offsets=replayer.offsets,
            records=replayer.records,
            swapped=not verify_only,
            seconds=perf_counter() - started,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Context:
    """What all steps of a rebuild use."""

    url: str
    source: LogSource
    connection: RowConnection
    reader: RowConnection
    live_copy: RowReader
    report: ProgressCallback


async def _make(context: _Context, *, verify_only: bool, full: bool) -> tuple[Replayer, list[TableComparison]]:
    replayer = await _open_next_schema(context, full=full)
    await _fill(context, replayer)
    tables = await _compare(context, replayer)
    if verify_only:
        await drop_schema(context.connection, NEXT_SCHEMA)
    else:
        await copy_scope_indexes(
            context.connection, NEXT_SCHEMA, on_progress=_reporter(context.report, "scope indexes")
        )
        ends = {
            partition: await context.source.end_offset(partition) for partition in await context.source.partitions()
        }
        await _swap(context, replayer, ends)
    return replayer, tables


async def _open_next_schema(context: _Context, *, full: bool) -> Replayer:
    """Go on with the tables of an interrupted rebuild if they are what this one would make, else make new ones."""
    connection, source = context.connection, context.source
    await ensure_live_schema(connection)
    await drop_schema(connection, OLD_SCHEMA)
    keeps = await keeps_live_tables(connection)
    if keeps is not None and not (full and keeps) and await was_made_by_this_program(connection):
        replayer = Replayer(connection, context.live_copy, source, keeps=keeps)
        await replayer.resume()
        if await replayer.is_the_same_log():
            log.info("rebuild_resumed", records=replayer.records)
            return replayer
    await drop_schema(connection, NEXT_SCHEMA)
    is_lost = not await live_offsets(connection)
    keeps = await make_next_schema(connection, full=full or is_lost)
    return Replayer(connection, context.live_copy, source, keeps=keeps)


async def _fill(context: _Context, replayer: Replayer) -> None:
    targets = await live_offsets(context.connection)
    expected = replayer.records + replayer.missing_records(targets)
    replayer.on_progress = lambda records: context.report(
        Progress(step="folding", done=records, total=max(records, expected))
    )
    replayer.on_progress(replayer.records)
    await fill_tables(context.url, context.source, replayer, targets)
    await _finish_tables(context.url, context.connection, context.report)


async def _finish_tables(url: str, connection: RowConnection, report: ProgressCallback) -> None:
    """Make what readers need of filled tables: indexes, statistics, the state of entities and profiles."""
    statements = await missing_indexes(connection)
    await run_jobs(url, map(_statement_job, statements), _reporter(report, "indexing"))
    tables = [Identifier(NEXT_SCHEMA, table.name) for table in await tables_of(connection, NEXT_SCHEMA)]
    await run_jobs(url, (_statement_job(_SQL["analyze"].format(table=table)) for table in tables), lambda *_: None)
    for entity_ids in await all_derived_entities(connection):
        await derive_entities(connection, entity_ids)
    shown = [partial(show_entities, entity_ids=batch) for batch in await all_shown_entities(connection)]
    await run_jobs(url, shown, lambda *_: None)
    batches = await profile_batches(connection)
    await run_jobs(url, (partial(refresh_profiles, scopes=batch) for batch in batches), _reporter(report, "profiles"))


def _reporter(report: ProgressCallback, step: str) -> Callable[[int, int], None]:
    return lambda done, total: report(Progress(step=step, done=done, total=total))


def _statement_job(statement: SQL | Composed) -> Job:
    async def run(connection: RowConnection) -> None:
        await connection.execute(statement)

    return run


async def _compare(context: _Context, replayer: Replayer) -> list[TableComparison]:
    """Compare in a snapshot that sees both schemas at the same offsets, so that the projectors need not wait for it."""
    connection, reader = context.connection, context.reader
    await _catch_up(connection, replayer)
    await reader.set_isolation_level(IsolationLevel.REPEATABLE_READ)
    async with reader.transaction():
        async with projectors_paused(connection):
            await replayer.replay_as_projector(await live_offsets(connection))
            await reader.execute(_SQL["take_snapshot"])
        kept = await compare_kept_tables(reader) if replayer.keeps else []
        written = await compare_schemas(
            context.url,
            reader,
            LIVE_SCHEMA,
            NEXT_SCHEMA,
            on_progress=_reporter(context.report, "comparing"),
        )
    return sorted([*kept, *written], key=lambda one: one.table)


async def _swap(context: _Context, replayer: Replayer, ends: Mapping[int, int]) -> None:
    """Swap at the live offsets, or at the end that the log had: tables that lag or were lost become complete.

    Tables that are kept can only be swapped at the live offsets; what they lag is projected after that.
    """
    connection = context.connection
    if not replayer.keeps:
        await replayer.replay_as_projector(ends)

    waits = chain([FIRST_LOCK_MILLISECONDS], repeat(LOCK_MILLISECONDS))

    async def swap() -> None:
        await _catch_up(connection, replayer)
        async with projectors_paused(connection):
            await replayer.replay_as_projector(await live_offsets(connection))
            await swap_schemas(connection, keeps=replayer.keeps, wait_milliseconds=next(waits))

    await retry_lock(swap)
    try:
        await drop_schema(connection, OLD_SCHEMA)
    except SwapRefusedError:
        log.warning("old_tables_kept", schema=OLD_SCHEMA)  # a reader is still in them; the next rebuild drops them
    if replayer.keeps:
        async with open_connection(context.url, "rebuild-lag", schema=LIVE_SCHEMA) as live:
            await replayer.continue_in_live_tables(live, ends)


async def _catch_up(connection: RowConnection, replayer: Replayer) -> None:
    for _ in range(MAX_CATCH_UPS):
        targets = await live_offsets(connection)
        if replayer.missing_records(targets) <= BATCH:
            return
        await replayer.replay_as_projector(targets)
