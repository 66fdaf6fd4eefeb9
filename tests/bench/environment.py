"""Real servers to measure on, and for each measurement topics and a database of its own."""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, LiteralString

import psycopg
from psycopg import sql

from mnemolog.all_in_one import create_topics_and_tables
from mnemolog.embedded.stack import EmbeddedStack
from mnemolog.settings import Settings
from tests.support.polling import with_database

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
    with _folder() as folder:
        async with await EmbeddedStack.start(folder / "data", kafka=False) as stack:
            await _execute(stack.postgres_url, "ALTER SYSTEM SET track_commit_timestamp = on")
        async with await EmbeddedStack.start(folder / "data") as stack:
            yield Servers(kafka=stack.bootstrap, postgres=stack.postgres_url, pids=dict(stack.pids), folder=folder)


@asynccontextmanager
async def environment(servers: Servers, name: str) -> AsyncIterator[Environment]:
    """Topics with the prefix `name` and a migrated database `name`; the database is dropped in the end."""
    database = sql.Identifier(f"bench_{name}")
    await _execute(servers.postgres, sql.SQL("CREATE DATABASE {}").format(database))
    settings = Settings(
        kafka=servers.kafka,
        postgres=with_database(servers.postgres, f"bench_{name}"),
        topic_prefix=f"{name}-",
        partitions=PARTITIONS,
        metrics_port=0,
        log_level="warning",
    )
    try:
        await create_topics_and_tables(settings)
        yield Environment(servers=servers, settings=settings)
    finally:
        await _execute(servers.postgres, sql.SQL("DROP DATABASE {} WITH (FORCE)").format(database))


async def _execute(url: str, statement: LiteralString | sql.Composed) -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute(statement)


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder that another user may pass through: as root, Postgres runs as one."""
    folder = Path(tempfile.mkdtemp(prefix="mnemolog-bench-", dir=os.environ.get("BENCH_FOLDER")))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)
