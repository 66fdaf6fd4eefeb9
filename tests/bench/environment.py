"""Real servers to measure on, and for each measurement topics and a database of its own."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psycopg

from mnemolog.admin import create_topics, migrate_tables
from mnemolog.embedded.stack import EmbeddedStack
from mnemolog.settings import Settings
from tests.support.databases import fresh_database, temporary_folder

PARTITIONS: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Servers:
    """Running servers: Kafka's address, the URL of Postgres, process ids, a folder for logs."""

    kafka: str
    postgres: str
    pids: dict[str, int]
    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Topics and a database of one measurement."""

    servers: Servers
    settings: Settings

    @property
    def database(self) -> str:
        return self.settings.postgres or ""

    def with_model(self, base_url: str, **more: Any) -> "Environment":
        """The same, with models asked at `base_url`."""
        update = {"provider": "openai", "base_url": base_url, **more}
        return Environment(servers=self.servers, settings=self.settings.model_copy(update=update))


@asynccontextmanager
async def servers() -> AsyncIterator[Servers]:
    """Kafka and Postgres with the settings of `mnemolog up`; Postgres also keeps the time of each commit."""
    with temporary_folder("mnemolog-bench-", os.environ.get("BENCH_FOLDER")) as folder:
        async with (
            await EmbeddedStack.start(folder / "data", kafka=False) as stack,
            await psycopg.AsyncConnection.connect(stack.postgres_url, autocommit=True) as connection,
        ):
            await connection.execute("ALTER SYSTEM SET track_commit_timestamp = on")
        async with await EmbeddedStack.start(folder / "data") as stack:
            yield Servers(kafka=stack.bootstrap, postgres=stack.postgres_url, pids=dict(stack.pids), folder=folder)


@asynccontextmanager
async def environment(servers: Servers, name: str, *, partitions: int = PARTITIONS) -> AsyncIterator[Environment]:
    """Topics with the prefix `name` and a migrated database `name`; the database is dropped in the end."""
    with fresh_database(servers.postgres, name=f"bench_{name}") as database:
        settings = Settings(
            kafka=servers.kafka,
            postgres=database,
            topic_prefix=f"{name}-",
            partitions=partitions,
            metrics_port=0,
            log_level="warning",
        )
        await create_topics(settings)
        await migrate_tables(settings)
        yield Environment(servers=servers, settings=settings)
