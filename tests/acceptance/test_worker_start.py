"""`mnemolog worker` while a server is away: it waits and says what for; what waiting cannot change ends it."""

import json
import re
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest

from mnemolog.errors import SettingsError
from mnemolog.server_waits import wait_for_servers
from mnemolog.settings import Settings
from tests.support.harnesses.command_line import CommandLine, RunningCommand, server_settings

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]
DEADLINE_SECONDS = 60


@contextmanager
def reserved_port() -> Iterator[int]:
    """A port where nobody listens, and that nobody else takes."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


def said(worker: RunningCommand, words: str) -> str:
    """The log once it has these words."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not re.search(words, log := worker.log.read_text()):
        assert worker.process.poll() is None, log
        assert time.monotonic() < deadline, log
        time.sleep(0.05)
    return log


def health(log: str) -> tuple[int, Any]:
    (url,) = set(re.findall(r"http://127\.0\.0\.1:\d+", log))
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=10) as reply:  # noqa: S310 -- our own worker
            return reply.status, json.loads(reply.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


def test_a_worker_waits_for_postgres_and_other_commands_say_so(bootstrap: str, tmp_path: Path) -> None:
    """`tests/chaos` has servers come back."""
    with reserved_port() as port:
        database = f"postgresql://mnemolog:x@127.0.0.1:{port}/x"
        shell = CommandLine(folder=tmp_path, settings=server_settings(bootstrap, database))
        with shell.start("worker") as worker:
            assert f"Postgres at 127.0.0.1:{port} cannot be reached" in said(worker, r"waiting_for_server.*attempts=2")
            state = shell.run("status")
            assert (state.code, "workers wait for a server" in state.stdout) == (3, True)
            assert worker.terminate(seconds=20) == 0


def test_a_worker_waits_for_kafka_shows_it_and_ends_at_once_when_told_to(database: str, tmp_path: Path) -> None:
    with reserved_port() as port:
        kafka = f"127.0.0.1:{port},no-such-host.invalid:9092"
        shell = CommandLine(folder=tmp_path, settings=server_settings(kafka, database))
        with shell.start("worker") as worker:
            log = said(worker, r"waiting_for_server.*attempts=2")
            assert f"Kafka at {kafka} cannot be reached" in log
            assert len(re.findall(r"unknown name: no-such-host\.invalid", log)) >= 2
            code, shown = health(said(worker, "metrics_url"))
            assert code == 503
            assert "cannot be reached" in shown["waiting_for"]["Kafka"]
            assert "Postgres" not in shown["waiting_for"]
            assert worker.terminate(seconds=20) == 0


async def test_what_waiting_cannot_change_is_not_waited_for(bootstrap: str, database: str) -> None:
    parts = urlsplit(database)
    wrong_password = parts._replace(netloc=f"{parts.username}:wrong@{parts.hostname}:{parts.port}")
    for wrong in (wrong_password, parts._replace(path="/no_such_database")):
        given = server_settings(bootstrap, database) | {"POSTGRES": urlunsplit(wrong)}
        settings = Settings.model_validate({name.lower(): value for name, value in given.items()})
        with pytest.raises(ExceptionGroup) as refused:
            await wait_for_servers(settings, {})
        (error,) = refused.value.exceptions
        assert isinstance(error, SettingsError)
        assert "Postgres refuses this account" in str(error)
