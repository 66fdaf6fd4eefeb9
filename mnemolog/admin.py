"""Operators' work on topics and tables; errors of the drivers become this package's."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, Literal

from aiokafka.errors import KafkaError  # type: ignore[import-untyped] # aiokafka ships no types
from psycopg import AsyncConnection, OperationalError
from psycopg.rows import TupleRow

from mnemolog.client.connections import ReadPool
from mnemolog.common.retry import retry_while
from mnemolog.errors import ServerUnavailableError
from mnemolog.extras import require_extras
from mnemolog.projections.migrations.upgrade import migrate
from mnemolog.projections.queries.audit import (
    OVERDUE,
    Audit,
    FailedTurn,
    Finding,
    TableCounts,
    WorkerProblem,
    table_counts,
    worker_problems,
)
from mnemolog.projections.queries.audit import audit as audit_tables
from mnemolog.projections.queries.audit import drop_turns as note_dropped_turns
from mnemolog.projections.queries.audit import unended_turns as find_unended_turns
from mnemolog.projections.queries.results import counted
from mnemolog.projections.rebuild.rebuild import Progress, RebuildReport
from mnemolog.projections.rebuild.rebuild import rebuild as rebuild_tables
from mnemolog.projections.rebuild.replay import open_table_log
from mnemolog.projections.rebuild.scope_indexes import LEAST_FACTS, IndexReport
from mnemolog.projections.rebuild.scope_indexes import index_scopes as make_scope_indexes
from mnemolog.projections.sql import queries
from mnemolog.schemas.turn import Turn
from mnemolog.settings import Settings
from mnemolog.streams.kafka import connected_admin
from mnemolog.streams.kafka.access import refuse_wrong_access
from mnemolog.streams.kafka.admin import TopicState, describe_topics, ensure_topics
from mnemolog.streams.kafka.dead_letters import DeadLetter, StoredDeadLetter, newest_dead_letters, read_dead_letter
from mnemolog.streams.kafka.lag import StageLag, stage_lags
from mnemolog.streams.kafka.readers import open_kafka_log
from mnemolog.streams.kafka.topics import CONVERSATION_TURNS

Source = Literal["kafka", "table"]
AUDIT_KAFKA_SECONDS: Final = 20.0
COORDINATOR_SECONDS: Final = 30.0
COORDINATOR_POLL_SECONDS: Final = 0.1


async def create_topics(settings: Settings) -> list[str]:
    """Create what is missing; the names. Raises `StartRefused` where what is there differs from what is declared."""
    async with translated_kafka_errors(settings):
        created = await ensure_topics(
            settings.kafka_address,
            partitions=settings.partitions,
            replication_factor=settings.replication_factor,
            prefix=settings.topic_prefix,
        )
        await _wait_for_coordinator(settings)
    return created


async def _wait_for_coordinator(settings: Settings) -> None:
    """Wait until Kafka can coordinate consumer groups: a new one prepares that at the first request."""
    try:
        async with connected_admin(settings.kafka_address) as admin, asyncio.timeout(COORDINATOR_SECONDS):
            await retry_while(
                lambda error: isinstance(error, KafkaError) and error.retriable,
                lambda: admin.find_coordinator("mnemolog"),
                delay=lambda _: COORDINATOR_POLL_SECONDS,
            )
    except TimeoutError as error:
        raise ServerUnavailableError(
            f"Kafka at {settings.kafka} had no group coordinator within {COORDINATOR_SECONDS:g} s: look at its log"
        ) from error


async def topic_states(settings: Settings) -> list[TopicState]:
    async with translated_kafka_errors(settings):
        return await describe_topics(settings.kafka_address, prefix=settings.topic_prefix)


async def dead_letters(
    settings: Settings, *, limit: int, wanted: Callable[[DeadLetter], bool] | None = None
) -> list[StoredDeadLetter]:
    """The newest dead letters that are `wanted`, of all tenants. With `wanted` the whole topic is read."""
    async with translated_kafka_errors(settings):
        return await newest_dead_letters(
            settings.kafka_address, prefix=settings.topic_prefix, limit=limit, wanted=wanted
        )


async def drop_turns(settings: Settings, turns: Sequence[FailedTurn], *, actor: str, why: str) -> None:
    """Note who gave up failed turns, and why: they are listed no more."""
    async with _connection(settings) as connection:
        await note_dropped_turns(connection, turns, actor=actor, why=why)


async def unended_turns(settings: Settings, tenant: str, user_id: str | None, *, limit: int) -> list[Turn]:
    """The oldest turns of the journal that have been in flight for longer than `OVERDUE`, the oldest first."""
    async with _connection(settings) as connection:
        before = datetime.now(UTC) - OVERDUE
        return await find_unended_turns(connection, tenant, user_id, before=before, limit=limit)


async def dead_letter(settings: Settings, partition: int, offset: int) -> StoredDeadLetter | None:
    """The dead letter at a position of its topic; None where there is none."""
    async with translated_kafka_errors(settings):
        return await read_dead_letter(settings.kafka_address, partition, offset, prefix=settings.topic_prefix)


async def lags(settings: Settings) -> list[StageLag]:
    """The workers and the lag of every stage."""
    async with translated_kafka_errors(settings):
        return await stage_lags(settings.kafka_address, prefix=settings.topic_prefix)


async def look_at_tables(settings: Settings) -> tuple[TableCounts, list[WorkerProblem]]:
    """What the tables hold, over all tenants, and what fails in workers at the moment."""
    async with _connection(settings) as connection:
        return await table_counts(connection), await worker_problems(connection)


async def migrate_tables(settings: Settings) -> None:
    """Bring the tables to the newest version. Raises `MissingExtraError` without the extra `server`."""
    require_extras("server")
    try:
        await migrate(settings.postgres or "")
    except OperationalError as error:
        raise ServerUnavailableError(
            f"Postgres cannot be reached ({error}): start it, or correct MNEMOLOG_POSTGRES"
        ) from error


async def require_tables(settings: Settings) -> None:
    """Raise `SettingsError` where a database has no tables, `ServerUnavailableError` where Postgres is away."""
    async with _connection(settings) as connection:
        await connection.execute(queries("projector")["next_offsets"])


async def audit(settings: Settings) -> Audit:
    """Compare what was accepted with what has ended, over all tenants, and look at what the topic still holds.

    Unread records are a warning: their turns are not accepted yet. Where Kafka is away, a warning says so.
    """
    async with _connection(settings) as connection:
        books = await audit_tables(connection, now=datetime.now(UTC))
    try:
        async with translated_kafka_errors(settings):
            async with asyncio.timeout(AUDIT_KAFKA_SECONDS):
                await _wait_for_coordinator(settings)
                lags = await stage_lags(settings.kafka_address, prefix=settings.topic_prefix)
    except ServerUnavailableError as error:
        blind = Finding(severity="warning", what="what the topic still holds was not looked at", advice=str(error))
        return replace(books, findings=(*books.findings, blind))
    unread = {one.stage: one.lag for one in lags if one.stage in CONVERSATION_TURNS.consumers}
    findings = [
        Finding(
            severity="warning",
            what=f"{counted(count, 'record')} of conversation_turns not read yet by {stage}, or not acknowledged",
            advice=f"look again in a while; if the number stays, check that the stage {stage} runs",
        )
        for stage, count in unread.items()
        if count
    ]
    return replace(books, unread=unread, findings=(*books.findings, *findings))


@asynccontextmanager
async def _connection(settings: Settings) -> AsyncIterator[AsyncConnection[TupleRow]]:
    pool = ReadPool(settings.postgres or "", size=1, statement_timeout=settings.postgres_statement_timeout)
    try:
        async with pool.connection() as connection:
            yield connection
    finally:
        await pool.close()


async def rebuild(
    settings: Settings,
    source: Source,
    *,
    verify_only: bool,
    on_progress: Callable[[str, int, int], None],
    full: bool = False,
) -> RebuildReport:
    """Rebuild all tables from the log, compare, and swap unless `verify_only`.

    The copy of the log in the tables is verified and kept where it is sound, unless the rebuild is to be `full`.

    Raises `RebuildError` where that cannot be done; the live tables are then as they were.
    """

    def report(progress: Progress) -> None:
        on_progress(progress.step, progress.done, progress.total)

    url = settings.postgres or ""
    kafka = open_kafka_log(settings.kafka_address, prefix=settings.topic_prefix)
    async with open_table_log(url) if source == "table" else kafka as log:
        return await rebuild_tables(url, log, verify_only=verify_only, full=full, progress=report)


async def index_scopes(
    settings: Settings, *, least: int = LEAST_FACTS, on_progress: Callable[[str, int, int], None] = lambda *_: None
) -> IndexReport:
    """Make the indexes of scopes of `least` facts and more, beside all other work, and drop those of smaller ones.

    Raises `RebuildRunningError` while a rebuild is at work.
    """
    await require_tables(settings)
    url = settings.postgres or ""
    return await make_scope_indexes(
        url, least=least, on_progress=lambda done, total: on_progress("indexing scopes", done, total)
    )


@asynccontextmanager
async def translated_kafka_errors(settings: Settings) -> AsyncIterator[None]:
    """Errors of Kafka in words. `SettingsError` for an account, a certificate or a right that waiting does not mend."""
    try:
        yield
    except (KafkaError, TimeoutError) as error:
        await refuse_wrong_access(settings.kafka_address, error)
        raise ServerUnavailableError(
            f"Kafka at {settings.kafka} cannot be reached ({error!r}): start it, or correct MNEMOLOG_KAFKA"
        ) from error
