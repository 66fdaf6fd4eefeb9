"""What whoever runs it does to topics and tables; errors of the drivers become this package's."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final, Literal

import structlog
from aiokafka.admin import AIOKafkaAdminClient  # type: ignore[import-untyped] # aiokafka ships no types
from aiokafka.errors import KafkaError  # type: ignore[import-untyped] # aiokafka ships no types
from sqlalchemy.exc import OperationalError

from mnemolog.client.read_pool import ReadPool
from mnemolog.errors import ServerUnavailableError
from mnemolog.projections.db.pools import open_pool
from mnemolog.projections.migrations import upgrade
from mnemolog.projections.queries import audit as books
from mnemolog.projections.rebuild import rebuild as tables
from mnemolog.projections.rebuild.log_source import TableLogSource
from mnemolog.projections.rebuild.rebuild import Progress, RebuildReport
from mnemolog.projections.retry import retry_while
from mnemolog.projections.sql import queries
from mnemolog.settings import Settings
from mnemolog.streams.kafka.admin import TopicState, describe_topics, ensure_topics
from mnemolog.streams.kafka.log_reader import KafkaLogReader
from mnemolog.streams.kafka.old_commands import drain_old_commands
from mnemolog.streams.kafka.topics import command_headers

log = structlog.get_logger(__name__)

Source = Literal["kafka", "table"]
COORDINATOR_SECONDS: Final = 30.0
COORDINATOR_POLL_SECONDS: Final = 0.1


async def create_topics(settings: Settings, *, forward_commands: bool = False) -> list[str]:
    """Create what is missing; the names. Raises `StartRefused` where what is there differs from what is declared.

    Unread commands of the topic `memory_commands` of version 0.1 are refused as well, or forwarded.
    """
    with _translated_kafka_errors(settings):
        created = await ensure_topics(
            settings.kafka or "",
            partitions=settings.partitions,
            replication_factor=settings.replication_factor,
            prefix=settings.topic_prefix,
        )
        await _wait_for_coordinator(settings)
        await drain_old_commands(
            settings.kafka or "",
            prefix=settings.topic_prefix,
            forward=forward_commands,
            headers=command_headers(settings.command_token),
        )
    return created


async def _wait_for_coordinator(settings: Settings) -> None:
    """Wait until Kafka can coordinate groups: a new one makes what it needs for that at the first request."""
    admin = AIOKafkaAdminClient(bootstrap_servers=settings.kafka)
    await admin.start()
    try:
        async with asyncio.timeout(COORDINATOR_SECONDS):
            await retry_while(
                lambda error: isinstance(error, KafkaError) and error.retriable,
                lambda: admin.find_coordinator("mnemolog"),
                delay=lambda _: COORDINATOR_POLL_SECONDS,
            )
    except TimeoutError as error:
        raise ServerUnavailableError(
            f"Kafka at {settings.kafka} had no group coordinator within {COORDINATOR_SECONDS:g} s: look at its log"
        ) from error
    finally:
        await admin.close()


async def topic_states(settings: Settings) -> list[TopicState]:
    with _translated_kafka_errors(settings):
        return await describe_topics(settings.kafka or "", prefix=settings.topic_prefix)


async def migrate_tables(settings: Settings) -> None:
    try:
        await upgrade.migrate(settings.postgres or "")
    except OperationalError as error:
        raise ServerUnavailableError(
            f"Postgres cannot be reached ({error.orig}): start it, or correct MNEMOLOG_POSTGRES"
        ) from error


async def require_tables(settings: Settings) -> None:
    """Raise `SettingsError` where a database has no tables; one that is away is waited for by the stages."""
    reader = ReadPool(settings.postgres or "", size=1, statement_timeout=settings.postgres_statement_timeout)
    try:
        async with reader.connection() as connection:
            await connection.execute(queries("projector")["next_offsets"])
    except ServerUnavailableError as error:
        log.warning("postgres_away", error=str(error))
    finally:
        await reader.close()


async def audit(settings: Settings) -> books.Audit:
    """Balance the books of all tenants."""
    reader = ReadPool(settings.postgres or "", size=1, statement_timeout=settings.postgres_statement_timeout)
    try:
        async with reader.connection() as connection:
            return await books.audit(connection, now=datetime.now(UTC))
    finally:
        await reader.close()


async def rebuild(
    settings: Settings, source: Source, *, verify_only: bool, on_progress: Callable[[str, int, int], None]
) -> RebuildReport:
    """Make all tables anew from the log, compare, and swap unless `verify_only`.

    Raises `RebuildError` where that cannot be done; the live tables are then as they were.
    """

    def told(progress: Progress) -> None:
        on_progress(progress.step, progress.done, progress.total)

    url = settings.postgres or ""
    if source == "table":
        async with open_pool(url, min_size=1, max_size=2, application_name="mnemolog-rebuild") as pool:
            return await tables.rebuild(url, TableLogSource(pool), verify_only=verify_only, progress=told)
    log = KafkaLogReader(settings.kafka or "", prefix=settings.topic_prefix)
    try:
        return await tables.rebuild(url, log, verify_only=verify_only, progress=told)
    finally:
        await log.close()


@contextmanager
def _translated_kafka_errors(settings: Settings) -> Iterator[None]:
    try:
        yield
    except KafkaError as error:
        raise ServerUnavailableError(
            f"Kafka at {settings.kafka} cannot be reached ({error!r}): start it, or correct MNEMOLOG_KAFKA"
        ) from error
