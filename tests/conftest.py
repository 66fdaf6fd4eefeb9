"""Real servers for the tests: one Kafka and one Postgres per process, each started when the first test asks for it.

MNEMOLOG_KAFKA and MNEMOLOG_POSTGRES name running servers to use instead. The Postgres URL has to be a superuser's.
"""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import psutil
import psycopg
import pytest
import pytest_asyncio
import structlog

from mnemolog.embedded.stack import EmbeddedStack
from tests.support.databases import database_name, fresh_database, server_folder
from tests.support.programs import missing_programs

if TYPE_CHECKING:
    from tests.support.scheduling import FolderScheduling

# A deadline for each example would measure how busy the machine is; pytest-timeout ends what hangs.
_TOO_SLOW = [hypothesis.HealthCheck.too_slow]
hypothesis.settings.register_profile("tests", deadline=None, suppress_health_check=_TOO_SLOW)
hypothesis.settings.load_profile("tests")


@pytest.fixture(autouse=True)
def logs_not_set_up() -> Iterator[None]:
    """What a test sets up of structlog, `capture_logs` among it, ends with the test."""
    yield
    structlog.reset_defaults()


@pytest.fixture
def data_folder() -> Iterator[Path]:
    """A folder for a stack of a test's own, removed afterwards."""
    with server_folder() as folder:
        yield folder / "data"


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def bootstrap() -> AsyncIterator[str]:
    """The address of the process's Kafka, `host:port`."""
    if given := os.environ.get("MNEMOLOG_KAFKA"):
        yield given
        return
    with server_folder() as folder:
        async with await EmbeddedStack.start(folder / "data", postgres=False, test=True) as stack:
            yield stack.bootstrap


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def postgres_admin_url() -> AsyncIterator[str]:
    """The URL of a superuser of the process's Postgres."""
    if given := os.environ.get("MNEMOLOG_POSTGRES"):
        yield given
        return
    with server_folder() as folder:
        async with await EmbeddedStack.start(folder / "data", kafka=False, test=True) as stack:
            yield stack.postgres_url


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def template_database(postgres_admin_url: str) -> AsyncIterator[str]:
    """The name of a database with all migrations, for others to be copied from; nobody connects to it."""
    from mnemolog.projections.migrations.upgrade import migrate  # noqa: PLC0415 - tests without a database do without it

    with fresh_database(postgres_admin_url) as url:
        await migrate(url)
        yield database_name(url)


@pytest.fixture
def database(postgres_admin_url: str, template_database: str) -> Iterator[str]:
    """The URL of a migrated database of the test's own."""
    with fresh_database(postgres_admin_url, template=template_database) as url:
        yield url


@pytest.fixture
def second_database(postgres_admin_url: str, template_database: str) -> Iterator[str]:
    """The URL of a migrated database besides `database`."""
    with fresh_database(postgres_admin_url, template=template_database) as url:
        yield url


@pytest.fixture
def empty_database(postgres_admin_url: str) -> Iterator[str]:
    """The URL of a database of the test's own that has nothing but pgvector."""
    with fresh_database(postgres_admin_url) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        yield url


@pytest.fixture
def topic_suffix() -> str:
    """Something to end the names of topics and groups with: all tests of a process share one Kafka."""
    return uuid.uuid4().hex[:8]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With MNEMOLOG_CI set, a test that has nothing to run on has failed: there everything has to be there.

    Only the dialogues, which may not be distributed, are missing on most machines; where their folder is named they
    have to be in it.
    """
    report = yield
    has_its_data = item.get_closest_marker("dialogues") is None or "MNEMOLOG_TEST_DIALOGUES" in os.environ
    if report.skipped and os.environ.get("MNEMOLOG_CI") and has_its_data and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, and must run here: {report.longrepr}"
    return report


def pytest_sessionstart() -> None:
    # A script's shell has its jobs in the background ignore Ctrl-C, and what the tests start would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header() -> str | None:
    return missing_programs()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> FolderScheduling:
    """With `-n`, which tests stay together in one process."""
    from tests.support.scheduling import FolderScheduling  # noqa: PLC0415 - needed only with several processes

    return FolderScheduling(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """With `-n auto`."""
    from tests.support.scheduling import process_count  # noqa: PLC0415 - as above

    return process_count(len(os.sched_getaffinity(0)), psutil.virtual_memory().available)
