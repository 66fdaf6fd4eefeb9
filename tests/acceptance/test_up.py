"""`mnemolog up` with servers of its own: found by other commands, drained by a signal, started again after a kill."""

import signal
from pathlib import Path
from urllib.request import urlopen

import psutil
import pytest

from tests.support.harnesses.command_line import CommandLine, server_settings, turn_json

pytestmark = [pytest.mark.kafka, pytest.mark.postgres, pytest.mark.timeout(400)]
QUICK = {"SESSION_TIMEOUT": "3", "HEARTBEAT_INTERVAL": "0.5"}


@pytest.fixture
def home_shell(data_folder: Path) -> CommandLine:
    """A folder where Postgres may live too when the tests run as root."""
    data_folder.mkdir(mode=0o711)
    return CommandLine(folder=data_folder, settings=QUICK)


def test_up_serves_other_commands_and_state_survives(home_shell: CommandLine) -> None:
    with home_shell.start("up") as up:
        connection = up.ready_message()
        assert (home_shell.folder / ".mnemolog" / "connection.json").stat().st_mode & 0o077 == 0
        with urlopen(f"{connection['metrics_url']}/metrics") as metrics:  # noqa: S310 - our own address
            assert b"mnemolog_" in metrics.read()
        assert home_shell.json("publish", "-", "--wait", stdin=turn_json("up-1", "I live in Bern."))["ends"] == {
            "facts": 1
        }
        assert {topic["partitions"] for topic in home_shell.json("topics")} == {4}
        second = home_shell.run("up")
        assert second.code == 1
        assert f"is in use by process {up.process.pid} since" in second.stderr
        assert up.terminate() == 0
    gone = home_shell.run("facts", "--user", "mira")
    assert gone.code == 2
    assert "start `mnemolog up` here, or set MNEMOLOG_KAFKA" in gone.stderr
    with home_shell.start("up") as up:
        assert up.ready_message()["kafka"] == connection["kafka"]
        assert [fact["text"] for fact in home_shell.json("facts", "--user", "mira")] == ["Mira lives in Bern."]
        assert up.terminate() == 0


def test_a_killed_up_leaves_nothing_that_blocks_the_next(home_shell: CommandLine) -> None:
    with home_shell.start("up") as up:
        up.ready_message()
        children = psutil.Process(up.process.pid).children(recursive=True)
        assert children
        home_shell.json("publish", "-", "--wait", stdin=turn_json("up-1", "I live in Bern."))
        up.process.send_signal(signal.SIGKILL)
        up.process.wait()
        psutil.wait_procs(children, timeout=30)
    stale = home_shell.run("facts", "--user", "mira")
    assert stale.code == 2
    assert "has ended" in stale.stderr
    with home_shell.start("up") as up:
        up.ready_message()
        tally = home_shell.json("publish", "-", "--wait", stdin=turn_json("up-2", "I moved to Graz."))
        assert tally["ends"] == {"facts": 1}
        assert [fact["text"] for fact in home_shell.json("facts", "--user", "mira")] == ["Mira lives in Graz."]
        assert home_shell.json("audit")["ok"]
        assert up.terminate() == 0


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
        books = shell.json("audit")
        assert (books["ok"], books["audit"]["accepted"], books["audit"]["in_flight"]) == (True, 200, 0)
        assert worker.terminate() == 0


def test_a_stop_during_the_start_ends_it(home_shell: CommandLine) -> None:
    with home_shell.start("up") as up:
        while not (home_shell.folder / ".mnemolog" / "state.json").exists():
            assert up.process.poll() is None, up.log.read_text()
        assert up.terminate() == 0
    with home_shell.start("up") as up:
        up.ready_message()
        assert up.terminate() == 0
