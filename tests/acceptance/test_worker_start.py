"""`mnemolog worker` while a server is away: it waits, says what for and goes on; what waiting cannot change ends it."""

import json
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pytest

from mnemolog.errors import SettingsError
from mnemolog.server_waits import wait_for_servers
from mnemolog.settings import Settings
from tests.support.harnesses.command_line import CommandLine, RunningCommand, server_settings, turn_json

pytestmark = [pytest.mark.kafka, pytest.mark.postgres]
DEADLINE_SECONDS = 60


@contextmanager
def reserved_port() -> Iterator[int]:
    """A port where nobody listens, and that nobody else takes."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


@contextmanager
def detour(target: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """An address that leads to a server once it is opened; before, nobody is there."""
    with reserved_port() as port:
        pass
    forwarder: list[subprocess.Popen[bytes]] = []
    command = [sys.executable, "-c", FORWARDER, str(port), *target.rsplit(":", 1)]
    try:
        yield f"127.0.0.1:{port}", lambda: forwarder.append(subprocess.Popen(command))
    finally:
        for started in forwarder:
            started.kill()
            started.wait()


FORWARDER = """
import asyncio, sys
async def pipe(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data); await writer.drain()
    finally:
        writer.close()
async def serve(reader, writer):
    far_reader, far_writer = await asyncio.open_connection(sys.argv[2], int(sys.argv[3]))
    await asyncio.gather(pipe(reader, far_writer), pipe(far_reader, writer), return_exceptions=True)
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]))
    await server.serve_forever()
asyncio.run(main())
"""


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


def away(url: str, address: str) -> str:
    """The URL of a database with another address."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=f"{parts.username}:{parts.password}@{address}"))


def test_a_worker_waits_for_postgres_and_finishes_what_up_has_left(
    bootstrap: str, database_without_tables: str, tmp_path: Path
) -> None:
    """`up` is told to stop while turns are under way; none is lost, and none counts twice."""
    shell = CommandLine(folder=tmp_path, settings=server_settings(bootstrap, database_without_tables))
    lines = "\n".join(turn_json(f"stop-{number}", "I live in Bern.", user=f"user{number % 7}") for number in range(100))
    with shell.start("up") as up:
        up.ready_message()
        assert shell.json("publish", "-", stdin=lines)["acknowledged"] == 100
        assert up.terminate() == 0
    real = urlsplit(database_without_tables)
    with detour(f"{real.hostname}:{real.port}") as (address, open_way):
        waiting = CommandLine(
            folder=tmp_path, settings={**shell.settings, "POSTGRES": away(database_without_tables, address)}
        )
        with waiting.start("worker") as worker:
            log = said(worker, r"waiting_for_server.*attempts=2")
            assert f"Postgres at {address} cannot be reached" in log
            state = waiting.run("status")
            assert (state.code, "workers wait for a server" in state.stdout) == (3, True)
            open_way()
            assert len(worker.ready_message()["stages"]) == 6
            assert "server_is_back" in worker.log.read_text()
            assert shell.json("publish", "-", "--wait", stdin=lines)["ends"] == {"facts": 100}
            audited = shell.json("audit")
            assert (audited["ok"], audited["audit"]["accepted"], audited["audit"]["in_flight"]) == (True, 100, 0)
            assert worker.terminate() == 0


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
