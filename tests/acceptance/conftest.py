"""One running `mnemolog up` for all tests of this folder that only use it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.databases import fresh_database
from tests.support.harnesses.command_line import CommandLine, InProcessCommandLine, server_settings


@pytest.fixture
def database_without_tables(postgres_admin_url: str) -> Iterator[str]:
    """The URL of a database without any table."""
    with fresh_database(postgres_admin_url) as url:
        yield url


@pytest.fixture(scope="package")
def shell(bootstrap: str, postgres_admin_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandLine]:
    """A shell beside a `mnemolog up` on the servers of the tests, with topics and a database of its own."""
    with fresh_database(postgres_admin_url) as database:
        shell = InProcessCommandLine(
            folder=tmp_path_factory.mktemp("shell"), settings=server_settings(bootstrap, database)
        )
        with shell.start("up") as up:
            up.ready_message()
            yield shell
            assert up.terminate() == 0, up.log.read_text()


@pytest.fixture
def empty_shell(tmp_path: Path) -> CommandLine:
    """A shell where nothing is set and nothing runs."""
    return CommandLine(folder=tmp_path)
