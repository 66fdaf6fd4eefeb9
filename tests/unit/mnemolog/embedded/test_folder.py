from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import psutil
import pytest

from mnemolog.embedded import data_folder as data_folders
from mnemolog.embedded.data_folder import PORTS, FolderState, RunningChild, is_free, locked_data_folder
from mnemolog.errors import DataFolderError, DataFolderInUse

NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


def test_a_second_opener_is_told_who_holds_the_folder(tmp_path: Path) -> None:
    with (
        locked_data_folder(tmp_path, now=NOON),
        pytest.raises(DataFolderInUse) as refusal,
        locked_data_folder(tmp_path),
    ):
        pass
    assert (refusal.value.pid, refusal.value.since) == (os.getpid(), NOON)
    assert f"process {os.getpid()} since 2026-05-04 12:00:00 UTC" in str(refusal.value)


def test_the_folder_is_free_again_afterwards(tmp_path: Path) -> None:
    with locked_data_folder(tmp_path):
        pass
    with locked_data_folder(tmp_path):
        assert "pid" in (tmp_path / "lock").read_text()


def test_a_dead_holder_blocks_nobody(tmp_path: Path) -> None:
    code = (
        "import os; from pathlib import Path; from mnemolog.embedded.data_folder import locked_data_folder\n"
        f"with locked_data_folder(Path({str(tmp_path)!r})): os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 9
    with locked_data_folder(tmp_path):
        pass


def test_ports_are_kept_while_they_are_free(tmp_path: Path) -> None:
    with locked_data_folder(tmp_path) as folder:
        first = folder.port("kafka", Random(1))
    with locked_data_folder(tmp_path) as folder:
        assert folder.port("kafka", Random(2)) == first
        assert first in PORTS
        assert folder.port("postgres", Random(1)) != first


def test_a_port_that_was_taken_meanwhile_is_replaced(tmp_path: Path) -> None:
    with locked_data_folder(tmp_path) as folder:
        first = folder.port("kafka", Random(1))
        with socket.create_server(("127.0.0.1", first)):
            second = folder.port("kafka", Random(1))
        assert second != first
        assert folder.port("kafka", Random(1)) == second
        assert folder.port("kafka", Random(1), choose_new=True) != second


def test_a_listening_port_is_not_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        assert not is_free(port)
    assert is_free(port)


def test_the_password_is_made_once_and_private(tmp_path: Path) -> None:
    with locked_data_folder(tmp_path) as folder:
        password = folder.password()
    with locked_data_folder(tmp_path) as folder:
        assert folder.password() == password
    assert (tmp_path / "postgres.password").stat().st_mode & 0o777 == 0o600
    assert len(password) >= 32


def test_a_state_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text("{")
    with pytest.raises(DataFolderError, match=r"state\.json cannot be read: delete it"), locked_data_folder(tmp_path):
        pass


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(DataFolderError, match="cannot be used as a data folder"),
        locked_data_folder(tmp_path / "file" / "data"),
    ):
        pass


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_folders, "MIN_FREE_BYTES", 2**60)
    with pytest.raises(DataFolderError, match="MiB left on its disk"), locked_data_folder(tmp_path):
        pass


def test_stale_children_are_ended(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as sleeper:
        with locked_data_folder(tmp_path) as folder:
            folder.remember_child("kafka", sleeper.pid)
        with locked_data_folder(tmp_path) as folder:
            folder.stop_stale_children()
            assert folder.state.children == {}
        assert sleeper.wait(5) != 0


def test_a_stale_child_that_does_not_listen_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_folders, "STALE_CHILD_SECONDS", 0.2)
    deaf = [sys.executable, "-c", "import signal; signal.signal(2, signal.SIG_IGN); print(flush=True); signal.pause()"]
    with subprocess.Popen(deaf, stdout=subprocess.PIPE) as child, locked_data_folder(tmp_path) as folder:
        assert child.stdout is not None
        child.stdout.readline()
        folder.remember_child("kafka", child.pid)
        folder.stop_stale_children()
        assert child.wait(5) == -signal.SIGKILL


def test_a_stranger_with_a_stale_childs_number_is_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"]) as stranger:
        started = psutil.Process(stranger.pid).create_time() - 3600
        state = FolderState(children={"kafka": RunningChild(pid=stranger.pid, started=started)})
        (tmp_path / "state.json").write_text(state.model_dump_json())
        with locked_data_folder(tmp_path) as folder:
            folder.stop_stale_children()
        assert stranger.poll() is None
        stranger.kill()


def test_the_log_of_the_start_before_is_kept(tmp_path: Path) -> None:
    with locked_data_folder(tmp_path) as folder:
        folder.log_file("kafka").write_text("first")
        assert not folder.log_file("kafka").exists()
    assert (tmp_path / "logs" / "kafka.previous.log").read_text() == "first"
