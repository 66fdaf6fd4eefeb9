"""`mnemolog up` with servers of its own: found by other commands, drained by a signal, started again after a kill."""

import signal
from pathlib import Path
from urllib.request import urlopen

import psutil
import pytest

from tests.acceptance.commands import Shell, turn
from tests.acceptance.conftest import given

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.timeout(400)]
QUICK = {"SESSION_TIMEOUT": "3", "HEARTBEAT_INTERVAL": "0.5"}


@pytest.fixture
def home(data_folder: Path) -> Shell:
    """A folder where Postgres may live too when the tests run as root."""
    data_folder.mkdir(mode=0o711)
    return Shell(folder=data_folder, settings=QUICK)


def test_up_serves_other_commands_and_state_survives(home: Shell) -> None:
    with home.serving("up") as up:
        connection = up.announced()
        assert (home.folder / ".mnemolog" / "connection.json").stat().st_mode & 0o077 == 0
        with urlopen(f"{connection['metrics_url']}/metrics") as metrics:  # noqa: S310 - our own address
            assert b"mnemolog_" in metrics.read()
        assert home.json("publish", "-", "--wait", stdin=turn("up-1", "I live in Bern."))["ends"] == {"facts": 1}
        assert {topic["partitions"] for topic in home.json("topics")} == {4}
        second = home.run("up")
        assert second.code == 1
        assert f"is in use by process {up.process.pid} since" in second.err
        assert up.terminated() == 0
    gone = home.run("facts", "--user", "mira")
    assert gone.code == 2
    assert "start `mnemolog up` here, or set MNEMOLOG_KAFKA" in gone.err
    with home.serving("up") as up:
        assert up.announced()["kafka"] == connection["kafka"]
        assert [fact["text"] for fact in home.json("facts", "--user", "mira")] == ["Mira lives in Bern."]
        assert up.terminated() == 0


def test_a_killed_up_leaves_nothing_that_blocks_the_next(home: Shell) -> None:
    with home.serving("up") as up:
        up.announced()
        children = psutil.Process(up.process.pid).children(recursive=True)
        assert children
        home.json("publish", "-", "--wait", stdin=turn("up-1", "I live in Bern."))
        up.process.send_signal(signal.SIGKILL)
        up.process.wait()
        psutil.wait_procs(children, timeout=30)
    stale = home.run("facts", "--user", "mira")
    assert stale.code == 2
    assert "has ended" in stale.err
    with home.serving("up") as up:
        up.announced()
        tally = home.json("publish", "-", "--wait", stdin=turn("up-2", "I moved to Graz."))
        assert tally["ends"] == {"facts": 1}
        assert [fact["text"] for fact in home.json("facts", "--user", "mira")] == ["Mira lives in Graz."]
        assert home.json("audit")["ok"]
        assert up.terminated() == 0


def test_work_under_way_is_finished_when_told_to_stop(bootstrap: str, new_database: str, tmp_path: Path) -> None:
    shell = Shell(folder=tmp_path, settings=given(bootstrap, new_database))
    lines = "\n".join(turn(f"stop-{number}", "I live in Bern.", user=f"user{number % 7}") for number in range(200))
    with shell.serving("up") as up:
        up.announced()
        assert shell.json("publish", "-", stdin=lines)["acknowledged"] == 200
        assert up.terminated() == 0
    with shell.serving("worker") as worker:
        assert len(worker.announced()["stages"]) == 6
        assert shell.json("publish", "-", "--wait", stdin=lines)["ends"] == {"facts": 200}
        books = shell.json("audit")
        assert (books["ok"], books["audit"]["accepted"], books["audit"]["in_flight"]) == (True, 200, 0)
        assert worker.terminated() == 0


def test_a_stop_during_the_start_ends_it(home: Shell) -> None:
    with home.serving("up") as up:
        while not (home.folder / ".mnemolog" / "state.json").exists():
            assert up.process.poll() is None, up.log.read_text()
        assert up.terminated() == 0
    with home.serving("up") as up:
        up.announced()
        assert up.terminated() == 0
