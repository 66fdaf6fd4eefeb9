from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import psutil
import pytest

from mnemolog.embedded import data_folder
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
        with socket.create_server(("127.0.0.1", first)):
            assert not is_free(first)
            taken = folder.port("kafka", Random(1))
        assert taken != first
        assert is_free(first)
    with locked_data_folder(tmp_path) as folder:
        assert folder.port("kafka", Random(2)) == taken in PORTS
        assert folder.port("postgres", Random(1)) != taken
        assert folder.port("kafka", Random(1), choose_new=True) != taken


def test_the_password_is_made_once_and_private(tmp_path: Path) -> None:
    passwords = set()
    for _ in range(2):
        with locked_data_folder(tmp_path) as folder:
            passwords.add(folder.password())
    (password,) = passwords
    assert (tmp_path / "postgres.password").stat().st_mode & 0o777 == 0o600
    assert len(password) >= 32


def test_a_folder_that_cannot_be_used_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(folder: Path, words: str) -> None:
        with pytest.raises(DataFolderError, match=words), locked_data_folder(folder):
            pass

    (tmp_path / "state.json").write_text("{")
    refuse(tmp_path, r"state\.json cannot be read: delete it")
    refuse(tmp_path / "state.json" / "data", "cannot be used as a data folder")
    (tmp_path / "state.json").unlink()
    monkeypatch.setattr(data_folder, "MIN_FREE_BYTES", 2**60)
    refuse(tmp_path, "MiB left on its disk")


@pytest.mark.parametrize("deaf", [False, True])
def test_stale_children_are_ended(tmp_path: Path, deaf: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data_folder, "STALE_CHILD_SECONDS", 0.2)
    hear = "signal.signal(2, signal.SIG_IGN); " if deaf else ""
    program = [sys.executable, "-c", f"import signal; {hear}print(flush=True); signal.pause()"]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(program, **pipes) as child, locked_data_folder(tmp_path) as folder:
        assert child.stdout is not None
        child.stdout.readline()
        folder.remember_child("kafka", child.pid)
        folder.stop_stale_children()
        assert folder.state.children == {}
        assert (child.wait(5) == -signal.SIGKILL) == deaf


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
