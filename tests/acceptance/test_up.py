"""`mnemolog up` with servers of its own: found by other commands, drained by a signal, whole after a kill."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import urlopen

import psutil
import pytest

from tests.support.databases import server_folder
from tests.support.harnesses.command_line import TIMEOUT_SECONDS, CommandLine, RunningCommand, turn_json

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.timeout(600)]
QUICK = {"SESSION_TIMEOUT": "3", "METRICS_PORT": "0"}
PARTITIONS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """A folder like a clone of the project, with `.venv`; `shell` finds the stack by MNEMOLOG_DATA_DIR."""

    folder: Path
    starting: CommandLine
    shell: CommandLine

    @property
    def data(self) -> Path:
        return self.folder / "other data"

    def servers(self) -> Any:
        return json.loads((self.data / "connection.json").read_text())


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningUp:
    """An `up` that serves, and what it has printed for people about it."""

    command: RunningCommand
    printed: list[str]


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    with server_folder() as folder:
        (folder / ".venv").symlink_to(sys.prefix)
        found = CommandLine(folder=folder, settings={**QUICK, "DATA_DIR": str(folder / "other data")})
        yield Home(folder=folder, starting=CommandLine(folder=folder, settings=QUICK), shell=found)


@pytest.fixture(scope="module")
def up(home: Home) -> Iterator[RunningUp]:
    """An `up` over that folder, until the last test of this file ends it."""
    with home.starting.start("up", "--data", "other data", as_json=False) as running:
        yield RunningUp(command=running, printed=running.lines_until("facts --user"))


def test_a_stop_during_the_start_ends_it(home: Home) -> None:
    """And the next start, for the tests below, is over the same data."""
    with home.starting.start("up", "--data", "other data") as starting:
        while not (home.data / "state.json").exists():
            assert starting.process.poll() is None, starting.log.read_text()
            time.sleep(0.01)
        assert starting.terminate() == 0


def test_the_printed_commands_work_as_they_stand(home: Home, up: RunningUp) -> None:
    begin = next(number for number, line in enumerate(up.printed) if line.startswith("Try it in a second terminal"))
    commands = [line.strip() for line in up.printed[begin + 1 :]]
    assert commands[0] == f"export MNEMOLOG_DATA_DIR='{home.data}'"
    assert [command.split()[1] for command in commands[1:]] == ["add", "search", "facts"]
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(commands)],
        cwd=home.folder,
        env=home.starting.environ,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done
    assert done.stdout.count("Alice lives in Zurich.") == 3


def test_other_commands_find_up(home: Home, up: RunningUp) -> None:
    assert (home.data / "connection.json").stat().st_mode & 0o077 == 0
    assert home.servers()["pid"] == up.command.process.pid
    with urlopen(f"{home.servers()['metrics_url']}/metrics") as metrics:  # noqa: S310 - our own address
        assert b"mnemolog_" in metrics.read()
    assert f"  HTTP      {home.servers()['http_url']}/v1" in up.printed
    with urlopen(f"{home.servers()['http_url']}/health/ready") as ready:  # noqa: S310 - our own address
        assert ready.status == 200
    assert not any(urlsplit(home.servers()["postgres"]).password in line for line in up.printed)
    assert {topic["partitions"] for topic in home.shell.json("topics", "--create")} == {PARTITIONS}


def test_a_second_up_is_refused(home: Home, up: RunningUp) -> None:
    second = home.shell.run("up")
    assert second.code == 1
    assert f"is in use by process {up.command.process.pid} since" in " ".join(second.stderr.split())


def test_state_survives_a_kill(home: Home, up: RunningUp) -> None:
    """It ends `up`. `tests/chaos` cuts the power."""
    kafka = home.servers()["kafka"]
    servers = psutil.Process(up.command.process.pid).children(recursive=True)
    assert {"java", "postgres"} <= {server.name() for server in servers}
    # Ctrl-C in a terminal goes to a whole process group; the servers have to outlive what drains into them.
    groups = {os.getpgid(server.pid) for server in servers if server.name() in ("java", "postgres")}
    assert os.getpgid(up.command.process.pid) not in groups
    up.command.process.kill()
    up.command.process.wait()
    _, alive = psutil.wait_procs(servers, timeout=120)
    assert [server for server in alive if server.is_running() and server.status() != psutil.STATUS_ZOMBIE] == []
    stale = home.shell.run("facts", "--user", "alice")
    assert stale.code == 2
    assert "has ended" in " ".join(stale.stderr.split())

    with home.shell.start("up") as again:
        assert again.ready_message()["kafka"] == kafka
        assert home.shell.json("publish", "-", "--wait", stdin=turn_json("t1", "I own a dog."))["ends"] == {"stored": 1}
        assert [fact["text"] for fact in home.shell.json("facts", "--user", "alice")] == ["Alice lives in Zurich."]
        assert home.shell.json("audit")["ok"]
        assert again.terminate() == 0
        assert again.log.read_text().endswith("finishing work in progress ... (again to stop at once)\nstopped\n")
    gone = home.shell.run("facts", "--user", "alice")
    assert gone.code == 2
    assert f"no stack runs over {home.data}" in gone.stderr
