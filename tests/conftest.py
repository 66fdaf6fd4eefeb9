"""Real servers for the tests: one Kafka and one Postgres per run, each started when the first test asks for it.

MNEMOLOG_KAFKA and MNEMOLOG_POSTGRES name running servers to use instead. The Postgres URL has to be a superuser's.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import uuid
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
import pytest_asyncio
from psycopg import sql

from mnemolog.embedded.stack import EmbeddedStack
from tests.support.polling import with_database


@contextmanager
def _temporary_folder() -> Iterator[Path]:
    # Not pytest's own folder: another run of pytest closes that to other users, and Postgres may be one.
    folder = Path(tempfile.mkdtemp(prefix="mnemolog-tests-"))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def data_folder() -> Iterator[Path]:
    """A folder for a stack of a test's own, removed afterwards."""
    with _temporary_folder() as folder:
        yield folder / "data"


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def bootstrap() -> AsyncIterator[str]:
    """The address of the run's Kafka, `host:port`."""
    if given := os.environ.get("MNEMOLOG_KAFKA"):
        yield given
        return
    with _temporary_folder() as folder:
        async with await EmbeddedStack.start(folder / "data", postgres=False, test=True) as stack:
            yield stack.bootstrap


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def postgres_admin_url() -> AsyncIterator[str]:
    """The URL of a superuser of the run's Postgres."""
    if given := os.environ.get("MNEMOLOG_POSTGRES"):
        yield given
        return
    with _temporary_folder() as folder:
        async with await EmbeddedStack.start(folder / "data", kafka=False, test=True) as stack:
            yield stack.postgres_url


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def template_database(postgres_admin_url: str) -> AsyncIterator[str]:
    """The name of a database with all migrations, for others to be copied from; nobody connects to it."""
    from mnemolog.projections.migrations.upgrade import migrate  # noqa: PLC0415 - tests without a database do without it

    with _fresh_database(postgres_admin_url) as url:
        await migrate(url)
        yield _name_of(url)


@pytest.fixture
def database(postgres_admin_url: str, template_database: str) -> Iterator[str]:
    """The URL of a migrated database of the test's own."""
    with _fresh_database(postgres_admin_url, template=template_database) as url:
        yield url


@pytest.fixture
def empty_database(postgres_admin_url: str) -> Iterator[str]:
    """The URL of a database of the test's own that has nothing but pgvector."""
    with _fresh_database(postgres_admin_url) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        yield url


@pytest.fixture
def topic_suffix() -> str:
    """Something to end the names of topics and groups with: all tests share one Kafka."""
    return uuid.uuid4().hex[:8]


@contextmanager
def _fresh_database(admin_url: str, *, template: str = "template1") -> Iterator[str]:
    name = f"test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(admin_url, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(template)))
    try:
        yield with_database(admin_url, name)
    finally:
        with psycopg.connect(admin_url, autocommit=True) as admin:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _name_of(url: str) -> str:
    return url.rsplit("/", 1)[1]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With MNEMOLOG_CI set, a test that has nothing to run on has failed: there everything has to be there."""
    report = yield
    if report.skipped and os.environ.get("MNEMOLOG_CI") and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, and must run here: {report.longrepr}"
    return report
