"""One running `mnemolog up` for all tests of this folder that only use it."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from tests.support.harnesses.command_line import CommandLine
from tests.support.polling import with_database


@pytest.fixture
def database_without_tables(postgres_admin_url: str) -> Iterator[str]:
    """The URL of a database without any table."""
    yield from temporary_database(postgres_admin_url)


@pytest.fixture(scope="session")
def shell(bootstrap: str, postgres_admin_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """A shell beside a `mnemolog up` on the run's servers, with topics and a database of its own."""
    for database in temporary_database(postgres_admin_url):
        shell = CommandLine(folder=tmp_path_factory.mktemp("shell"), settings=server_settings(bootstrap, database))
        with shell.start("up") as up:
            up.ready_message()
            yield shell
            assert up.terminate() == 0, up.log.read_text()


@pytest.fixture
def empty_shell(tmp_path: Path) -> CommandLine:
    """A shell where nothing is set and nothing runs."""
    return CommandLine(folder=tmp_path)


def server_settings(bootstrap: str, database: str) -> dict[str, str]:
    """Settings over servers that are given: quick to notice a dead worker, with topics of their own."""
    return {
        "KAFKA": bootstrap,
        "POSTGRES": database,
        "TOPIC_PREFIX": f"accept-{uuid.uuid4().hex[:8]}.",
        "PARTITIONS": "2",
        "SESSION_TIMEOUT": "3",
        "HEARTBEAT_INTERVAL": "0.5",
        "METRICS_PORT": "0",
    }


def temporary_database(admin_url: str) -> Iterator[str]:
    name = f"accept_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(admin_url, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    try:
        yield with_database(admin_url, name)
    finally:
        with psycopg.connect(admin_url, autocommit=True) as admin:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
