"""`mnemolog up` with servers of its own: found by other commands, drained by a signal, started again after a kill.

The README's commands run in its folder too.
"""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.request import urlopen

import psutil
import pytest

from tests.support.databases import temporary_folder
from tests.support.harnesses.command_line import (
    TIMEOUT_SECONDS,
    CommandLine,
    RunningCommand,
    server_settings,
    turn_json,
)
from tests.support.paths import ROOT
from tests.support.polling import eventually
from tests.support.programs import required_program

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.timeout(400)]
QUICK = {"SESSION_TIMEOUT": "3", "HEARTBEAT_INTERVAL": "0.5", "METRICS_PORT": "0"}


@pytest.fixture(scope="module")
def home_shell() -> Iterator[CommandLine]:
    """A folder like a clone of the project, with `.venv`."""
    with temporary_folder() as folder:
        (folder / ".venv").symlink_to(sys.prefix)
        yield CommandLine(folder=folder, settings=QUICK)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningUp:
    """An `up` that serves, and what it has printed about its servers."""

    command: RunningCommand
    servers: dict[str, str]


@pytest.fixture(scope="module")
def up(home_shell: CommandLine) -> Iterator[RunningUp]:
    """An `up` in that folder, with servers of its own."""
    with home_shell.start("up") as running:
        yield RunningUp(command=running, servers=running.ready_message())
        assert running.terminate() == 0, running.log.read_text()


def test_a_stop_during_the_start_ends_it(home_shell: CommandLine) -> None:
    """And the next start, for the tests below, is in the same folder."""
    with home_shell.start("up") as starting:
        while not (home_shell.folder / ".mnemolog" / "state.json").exists():
            assert starting.process.poll() is None, starting.log.read_text()
            time.sleep(0.01)
        assert starting.terminate() == 0


def test_other_commands_find_up(home_shell: CommandLine, up: RunningUp) -> None:
    connection = home_shell.folder / ".mnemolog" / "connection.json"
    assert connection.stat().st_mode & 0o077 == 0
    with urlopen(f"{up.servers['metrics_url']}/metrics") as metrics:  # noqa: S310 - our own address
        assert b"mnemolog_" in metrics.read()
    tally = home_shell.json("publish", "-", "--wait", stdin=turn_json("up-1", "I live in Bern."))
    assert tally["ends"] == {"facts": 1}
    assert {topic["partitions"] for topic in home_shell.json("topics", "--create")} == {4}


def test_a_second_up_is_refused(home_shell: CommandLine, up: RunningUp) -> None:
    second = home_shell.run("up")
    assert second.code == 1
    assert f"is in use by process {up.command.process.pid} since" in second.stderr


def readme_block(language: str, words: str) -> str:
    """The README's block of code that has these words."""
    blocks = re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (found,) = (code for code in blocks if words in code)
    return str(found)


def output_of(shell: CommandLine, *command: str, stdin: str) -> str:
    done = subprocess.run(
        command,
        input=stdin,
        cwd=shell.folder,
        env=shell.environ,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


async def test_the_readme_as_it_stands(home_shell: CommandLine, up: RunningUp) -> None:
    """What it shows works as it is printed there, without any setting where it names none."""
    without_settings = CommandLine(folder=home_shell.folder)
    shown = output_of(without_settings, "bash", "-euo", "pipefail", stdin=readme_block("bash", "publish -"))
    assert "1 lines read, 1 acknowledged" in shown
    assert "Alice lives in Bern." in shown
    python = readme_block("python", "MemoryClient")
    assert "Alice lives in Bern." in output_of(without_settings, sys.executable, "-", stdin=python)
    required_program("kcat")
    required_program("psql")
    servers = {name.upper(): up.servers[name] for name in ("kafka", "postgres")}
    with_servers = CommandLine(folder=home_shell.folder, settings=servers)
    output_of(with_servers, "bash", "-euo", "pipefail", stdin=readme_block("bash", "kcat -P"))
    query = readme_block("sql", "FROM facts")

    def table() -> str:
        return output_of(with_servers, "psql", "--no-psqlrc", servers["POSTGRES"], stdin=query)

    answer = await eventually(lambda: "Alice lives in Munich." in table() and table())
    assert "superseded" in str(answer)
    assert "fact_replaced" in str(answer)


def test_state_survives_a_stop_and_a_kill(home_shell: CommandLine, up: RunningUp) -> None:
    """The last test here: it ends `up`."""
    home_shell.json("publish", "-", "--wait", stdin=turn_json("up-1", "I live in Bern."))
    assert up.command.terminate() == 0
    gone = home_shell.run("facts", "--user", "mira")
    assert gone.code == 2
    assert "start `mnemolog up` here, or set MNEMOLOG_KAFKA" in gone.stderr
    with home_shell.start("up") as again:
        assert again.ready_message()["kafka"] == up.servers["kafka"]
        assert [fact["text"] for fact in home_shell.json("facts", "--user", "mira")] == ["Mira lives in Bern."]
        children = psutil.Process(again.process.pid).children(recursive=True)
        assert children
        again.process.send_signal(signal.SIGKILL)
        again.process.wait()
        psutil.wait_procs(children, timeout=30)
    stale = home_shell.run("facts", "--user", "mira")
    assert stale.code == 2
    assert "has ended" in stale.stderr
    with home_shell.start("up") as after_kill:
        after_kill.ready_message()
        tally = home_shell.json("publish", "-", "--wait", stdin=turn_json("up-2", "I relocated to Graz."))
        assert tally["ends"] == {"facts": 1}
        assert [fact["text"] for fact in home_shell.json("facts", "--user", "mira")] == ["Mira lives in Graz."]
        assert home_shell.json("audit")["ok"]
        assert after_kill.terminate() == 0


def test_work_under_way_is_finished_when_told_to_stop(
    bootstrap: str, database_without_tables: str, tmp_path: Path
) -> None:
    shell = CommandLine(folder=tmp_path, settings=server_settings(bootstrap, database_without_tables))
    lines = "\n".join(turn_json(f"stop-{number}", "I live in Bern.", user=f"user{number % 7}") for number in range(200))
    with shell.start("up") as up:
        up.ready_message()
        assert shell.json("publish", "-", stdin=lines)["acknowledged"] == 200
        assert up.terminate() == 0
    with shell.start("worker") as worker:
        assert len(worker.ready_message()["stages"]) == 6
        assert shell.json("publish", "-", "--wait", stdin=lines)["ends"] == {"facts": 200}
        audited = shell.json("audit")
        assert (audited["ok"], audited["audit"]["accepted"], audited["audit"]["in_flight"]) == (True, 200, 0)
        assert worker.terminate() == 0
