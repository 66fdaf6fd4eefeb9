"""What whoever runs it does to topics and tables; errors of the drivers become this package's."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from aiokafka.errors import KafkaError  # type: ignore[import-untyped] # aiokafka ships no types
from sqlalchemy.exc import OperationalError

from mnemolog.errors import ServerUnavailableError
from mnemolog.reading import Reader
from mnemolog.settings import Settings
from projections import audit as books
from projections import migrate
from streams.admin import TopicState, describe_topics, ensure_topics


async def create_topics(settings: Settings) -> list[str]:
    """Create what is missing; the names. Raises `StartRefused` where what is there differs from what is declared."""
    with _kafka(settings):
        return await ensure_topics(
            settings.kafka or "",
            partitions=settings.partitions,
            replication_factor=settings.replication_factor,
            prefix=settings.topic_prefix,
        )


async def look_at_topics(settings: Settings) -> list[TopicState]:
    with _kafka(settings):
        return await describe_topics(settings.kafka or "", prefix=settings.topic_prefix)


async def migrate_tables(settings: Settings) -> None:
    try:
        await migrate.migrate(settings.postgres or "")
    except OperationalError as error:
        raise ServerUnavailableError(
            f"Postgres cannot be reached ({error.orig}): start it, or correct MNEMOLOG_POSTGRES"
        ) from error


async def audit(settings: Settings) -> books.Audit:
    """Balance the books of all tenants."""
    reader = Reader(settings.postgres or "", size=1, statement_timeout=settings.postgres_statement_timeout)
    try:
        async with reader.connection() as connection:
            return await books.audit(connection, now=datetime.now(UTC))
    finally:
        await reader.close()


@contextmanager
def _kafka(settings: Settings) -> Iterator[None]:
    try:
        yield
    except KafkaError as error:
        raise ServerUnavailableError(
            f"Kafka at {settings.kafka} cannot be reached ({error!r}): start it, or correct MNEMOLOG_KAFKA"
        ) from error
