"""Errors of the embedded servers; each message says what to do."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from mnemolog.schemas.errors import MnemologError


class EmbeddedError(MnemologError):
    """Base of every error of the embedded stack."""


class DataFolderError(EmbeddedError):
    """The data folder cannot be used: not writable, full, or with a state that cannot be read."""


class UnusableFolderError(DataFolderError):
    """The data folder cannot be made or written."""

    def __init__(self, folder: Path, error: OSError) -> None:
        why = error.strerror or str(error)
        where = f", at {error.filename}" if error.filename and Path(str(error.filename)) != folder else ""
        super().__init__(
            f"{folder} cannot be used as a data folder ({why}{where}): choose another by --data or MNEMOLOG_DATA_DIR"
        )


class DataFolderInUse(DataFolderError):  # noqa: N818 - the name states the fact that the caller handles
    """Another process works on the data folder."""

    def __init__(self, folder: Path, pid: int | None, since: datetime | None) -> None:
        holder = f"process {pid} since {since:%Y-%m-%d %H:%M:%S %Z}" if pid and since else "another process"
        super().__init__(
            f"{folder} is in use by {holder}: stop it first, or choose another by --data or MNEMOLOG_DATA_DIR"
        )
        self.folder = folder
        self.pid = pid
        self.since = since


class JarsUnavailableError(EmbeddedError):
    """A jar could not be fetched, or what came is not what the lock file names."""


# What servers say when somebody took their port between our look and their start.
PORT_TAKEN = ("Address already in use", "could not bind", "Failed to bind")


class ServerFailedError(EmbeddedError):
    """A server ended, or was not ready in time; the message ends with the last lines of its log."""

    def __init__(self, server: str, what: str, *, log: Path, tail: str, timed_out: bool = False) -> None:
        super().__init__(f"{server} {what}; the last lines of {log}:\n{tail or '(the log is empty)'}")
        self.server = server
        self.tail = tail
        self.timed_out = timed_out

    @property
    def port_taken(self) -> bool:
        return any(phrase in self.tail for phrase in PORT_TAKEN)


class WrongStateError(EmbeddedError):
    """A call in a wrong state, such as asking a stopped stack for its address."""
