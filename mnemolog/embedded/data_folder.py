"""The data folder: its lock, its ports and password, and the servers that were started over it.

folder/lock                 names its owner while it is locked
folder/state.json           ports, Kafka's cluster id, running children
folder/postgres.password    made once
folder/kafka, folder/postgres, folder/logs
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from pydantic import BaseModel, ValidationError

from mnemolog.common.logs import get_logger
from mnemolog.errors import DataFolderError, DataFolderInUse, UnusableFolderError

LOOPBACK = "127.0.0.1"
# Below Linux's range for outgoing connections (32768 and up), so that a port is still free after a restart.
PORTS = range(20_000, 32_000)
STALE_CHILD_SECONDS = 20
SAME_START_SECONDS = 1
MIN_FREE_BYTES = 256 * 1024 * 1024

if TYPE_CHECKING:
    import psutil

log = get_logger(__name__)


class LockOwner(BaseModel, frozen=True):
    """Who has locked a folder; the content of its lock file."""

    pid: int
    since: datetime


class RunningChild(BaseModel, frozen=True):
    """A server process, with its start time: a process id alone may belong to another one later."""

    pid: int
    started: float


class FolderState(BaseModel, frozen=True):
    """What is kept between two starts besides the servers' own data."""

    ports: dict[str, int] = {}
    children: dict[str, RunningChild] = {}


class DataFolder:
    """A folder that this process has locked. Make it with `locked_data_folder`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path / "state.json"
        try:
            content = self._file.read_bytes() if self._file.exists() else b"{}"
            self.state = FolderState.model_validate_json(content)
        except ValidationError as error:
            raise DataFolderError(f"{self._file} cannot be read: delete it, ports are then chosen anew") from error

    def log_file(self, server: str) -> Path:
        """The log file of a server, empty for this start; the one of the start before is kept beside it."""
        logs = self.path / "logs"
        logs.mkdir(mode=0o700, exist_ok=True)
        current = logs / f"{server}.log"
        if current.exists():
            current.replace(logs / f"{server}.previous.log")
        return current

    def port(self, name: str, rng: Random, *, choose_new: bool = False) -> int:
        """The port of the last start if it is free, else another one; remembered."""
        known = self.state.ports.get(name)
        if known is not None and not choose_new and is_free(known):
            return known
        taken = self.state.ports.values()
        chosen = next(port for port in rng.sample(PORTS, len(PORTS)) if port not in taken and is_free(port))
        self._save_state(ports={**self.state.ports, name: chosen})
        return chosen

    def password(self) -> str:
        """Postgres's password, made once and readable to the owner of the folder alone."""
        path = self.path / "postgres.password"
        if not path.exists():
            _write_privately(path, secrets.token_urlsafe(24))
        return path.read_text().strip()

    def remember_child(self, server: str, pid: int) -> None:
        import psutil  # noqa: PLC0415 - an optional extra

        child = RunningChild(pid=pid, started=psutil.Process(pid).create_time())
        self._save_state(children={**self.state.children, server: child})

    def forget_child(self, server: str) -> None:
        self._save_state(children={name: child for name, child in self.state.children.items() if name != server})

    def stop_stale_children(self) -> None:
        """Stop servers of an earlier start, after checking that these processes are really them."""
        import psutil  # noqa: PLC0415 - an optional extra

        for server, child in self.state.children.items():
            with suppress(psutil.NoSuchProcess):
                process = psutil.Process(child.pid)
                if abs(process.create_time() - child.started) > SAME_START_SECONDS:
                    continue
                for request in (signal.SIGINT, signal.SIGKILL):  # the first is a fast shutdown for both servers
                    if not _is_running(process):
                        break
                    log.warning("stale_server_stopped", server=server, pid=process.pid, signal=request.name)
                    process.send_signal(request)
                    deadline = time.monotonic() + STALE_CHILD_SECONDS
                    while _is_running(process) and time.monotonic() < deadline:
                        time.sleep(0.05)
                if _is_running(process):
                    raise DataFolderError(f"{server} of an earlier start, process {process.pid}, cannot be ended")
        self._save_state(children={})

    def _save_state(self, **changes: dict[str, int] | dict[str, RunningChild]) -> None:
        self.state = self.state.model_copy(update=changes)
        _write_privately(self._file, self.state.model_dump_json())


@contextmanager
def locked_data_folder(path: Path, *, now: datetime | None = None) -> Iterator[DataFolder]:
    """Lock a data folder, making it when missing.

    Raises DataFolderInUse, naming the holder, when another process (or another stack of this one) holds it,
    and DataFolderError when it cannot be written or read. The kernel frees the lock of a killed process.
    """
    path = path.resolve()
    try:
        # Others may traverse it, not list it: Postgres runs under another user when we are root.
        path.mkdir(mode=0o711, parents=True, exist_ok=True)
        lock = (path / "lock").open("a+")
    except OSError as error:
        raise UnusableFolderError(path, error) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.seek(0)
            try:
                holder = LockOwner.model_validate_json(lock.read())
            except ValidationError:  # it has just taken the lock and is about to write its name
                raise DataFolderInUse(path, None, None) from error
            raise DataFolderInUse(path, holder.pid, holder.since) from error
        lock.seek(0)
        lock.truncate(0)
        lock.write(LockOwner(pid=os.getpid(), since=now or datetime.now(UTC)).model_dump_json())
        lock.flush()
        if (free := shutil.disk_usage(path).free) < MIN_FREE_BYTES:
            raise DataFolderError(
                f"{path} has {free // 2**20} MiB left on its disk, {MIN_FREE_BYTES // 2**20} MiB are needed: "
                "free some, or choose another folder"
            )
        yield DataFolder(path)
        lock.truncate(0)


def is_free(port: int) -> bool:
    """Whether a server could listen on this loopback port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # As servers do: connections of an earlier start that still fade out do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def _write_privately(path: Path, text: str) -> None:
    temporary = path.with_name(f"{path.name}.new")
    temporary.unlink(missing_ok=True)
    temporary.touch(mode=0o600, exist_ok=False)
    with temporary.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _is_running(process: psutil.Process) -> bool:
    """Whether a process still does something; a dead one whose parent does not ask for it stays a zombie for ever."""
    return process.is_running() and process.status() != "zombie"
