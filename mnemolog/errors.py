"""Errors of the client, the command line and the embedded servers; each message says what to do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from mnemolog.projections.errors import (
    AmbiguousIdError,
    AmbiguousTurnError,
    QueryError,
    UnknownEntityError,
    UnknownEventError,
    UnknownFactError,
    UnknownTurnError,
)
from mnemolog.schemas.errors import InvalidArgumentError, MnemologError, SettingsError
from mnemolog.schemas.policy import LIMIT_ADVICE, LimitHit

__all__ = [
    "AmbiguousIdError",
    "AmbiguousTurnError",
    "InvalidArgumentError",
    "InvalidCommandError",
    "InvalidTurnError",
    "LimitExceededError",
    "MissingExtraError",
    "MnemologError",
    "NotConnectedError",
    "PartlyPublishedError",
    "PublishError",
    "QueryError",
    "ServerUnavailableError",
    "SettingsError",
    "UnknownArgumentError",
    "UnknownEntityError",
    "UnknownEventError",
    "UnknownFactError",
    "UnknownTurnError",
    "WaitTimeoutError",
]


class MissingExtraError(MnemologError):
    """Packages of an extra are not installed; the message says what to install."""

    def __init__(self, extras: Sequence[str], packages: Sequence[str]) -> None:
        wanted = ",".join(extras)
        super().__init__(f"not installed here: {', '.join(packages)}. Install them: pip install 'mnemolog[{wanted}]'")
        self.extras = tuple(extras)


class NotConnectedError(SettingsError):
    """Neither a setting nor a running `mnemolog up` says where Kafka or Postgres is."""


class InvalidTurnError(InvalidArgumentError):
    """The arguments are not a valid turn; the message names the field. Nothing was published."""


class InvalidCommandError(InvalidArgumentError):
    """The arguments are not a valid command; the message names the field. Nothing was published."""


class UnknownArgumentError(MnemologError, TypeError):
    """A method was called with an argument that it does not have, or without one that it needs."""


class ServerUnavailableError(MnemologError):
    """Kafka or Postgres cannot be reached or does not answer."""


class PublishError(MnemologError):
    """The broker has not confirmed a turn or a command. It may still arrive: publishing it again is safe.

    `turn_id` is the id of the turn or command: publish it with this id again.
    """

    def __init__(self, turn_id: str, message: str) -> None:
        super().__init__(message)
        self.turn_id = turn_id


class PartlyPublishedError(MnemologError):
    """Some turns or commands of a batch were not confirmed; `accepted` were, `failed` tells why by id."""

    def __init__(self, accepted: Sequence[str], failed: Mapping[str, str]) -> None:
        first = next(iter(failed.items()))
        super().__init__(
            f"{len(failed)} of {len(accepted) + len(failed)} were not acknowledged, the first is {first[0]} "
            f"({first[1]}): publish those again with the same ids"
        )
        self.accepted = tuple(accepted)
        self.failed = dict(failed)


class LimitExceededError(MnemologError):
    """A turn is over a limit that was set for its scope or tenant; `hit` has the count and the limit.

    It was not published: once there is room again, or the limit is higher, publish it with the same turn_id.
    """

    def __init__(self, turn_id: str, hit: LimitHit) -> None:
        advice = f"raise the limit of the policy, or {LIMIT_ADVICE[hit.name]}"
        super().__init__(f"turn {turn_id} was not published because a limit is reached: {hit}; {advice}")
        self.turn_id = turn_id
        self.hit = hit


class WaitTimeoutError(MnemologError, TimeoutError):
    """A turn or command did not finish in time; the message says how far it is. It goes on.

    `turn_ids` are the ids of those that have not finished (of commands their command ids): wait for them again.
    """

    def __init__(self, message: str, turn_ids: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.turn_ids = tuple(turn_ids)


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
