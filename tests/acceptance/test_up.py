"""`mnemolog up` with servers of its own: found by other commands, drained by a signal, started again after a kill."""

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

from mnemolog.texts import OFFLINE_NOTICE
from tests.support.databases import server_folder
from tests.support.harnesses.command_line import (
    TIMEOUT_SECONDS,
    CommandLine,
    RunningCommand,
    server_settings,
    turn_json,
)
from tests.support.paths import ROOT
from tests.support.polling import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.timeout(400)]
QUICK = {"SESSION_TIMEOUT": "3", "HEARTBEAT_INTERVAL": "0.5", "METRICS_PORT": "0"}


@pytest.fixture(scope="module")
def home_shell() -> Iterator[CommandLine]:
    """A folder like a clone of the project, with `.venv`."""
    with server_folder() as folder:
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
    assert f"is in use by process {up.command.process.pid} since" in " ".join(second.stderr.split())


def test_the_printed_commands_work_as_they_stand(home_shell: CommandLine) -> None:
    with home_shell.start("up", "--data", "other data", as_json=False) as up:
        printed = up.lines_until("facts --user")
        begin = next(number for number, line in enumerate(printed) if line.startswith("Try it in a second terminal"))
        commands = [line.strip() for line in printed[begin + 1 :]]
        assert commands[0] == f"export MNEMOLOG_DATA_DIR='{home_shell.folder}/other data'"
        assert [command.split()[1] for command in commands[1:]] == ["add", "search", "facts"]
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", "\n".join(commands)],
            cwd=home_shell.folder,
            env=home_shell.environ,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        assert done.returncode == 0, done
        assert done.stdout.count("Alice lives in Zurich.") == 3
        text = "\n".join(printed)
        assert str(home_shell.folder / "other data") in text
        assert " ".join(OFFLINE_NOTICE.split()) in " ".join(text.split())
        steps = up.log.read_text()
        assert up.terminate() == 0
    for step in (
        "loading the model",
        "starting Kafka",
        "starting Postgres",
        "creating topics",
        "migrating tables",
        "starting the stages",
    ):
        assert f"{step} ...\n" in steps
        assert re.search(rf"^{step}: \d+\.\d s$", steps, re.MULTILINE)
    assert "\x1b" not in steps + text
    assert up.log.read_text().endswith("finishing work in progress ... (again to stop at once)\nstopped\n")


KILLED_OWNER = """
import sys
from pathlib import Path
from tests.support.harnesses.command_line import CommandLine

with CommandLine(folder=Path(sys.argv[1]), settings={"METRICS_PORT": "0"}).start("up", "--data", "owned") as up:
    up.ready_message()
    print(up.process.pid, flush=True)
    sys.stdin.read()
"""


async def test_nothing_outlives_a_killed_owner(home_shell: CommandLine) -> None:
    command = [sys.executable, "-c", KILLED_OWNER, str(home_shell.folder)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        up = psutil.Process(int(owner.stdout.readline()))
        processes = [up, *up.children(recursive=True)]
        assert {"java", "postgres"} <= {process.name() for process in processes}
        owner.kill()
        owner.wait()
        await eventually(lambda: not [one for one in processes if one.is_running() and one.status() != "zombie"])


def test_state_survives_a_stop_and_a_kill(home_shell: CommandLine, up: RunningUp) -> None:
    """The last test here: it ends `up`."""
    home_shell.json("publish", "-", "--wait", stdin=turn_json("up-1", "I live in Bern."))
    assert up.command.terminate() == 0
    gone = home_shell.run("facts", "--user", "mira")
    assert gone.code == 2
    assert f"no stack runs over {home_shell.folder / '.mnemolog'}" in gone.stderr
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
    assert "has ended" in " ".join(stale.stderr.split())
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
