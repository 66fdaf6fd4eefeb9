"""Errors of the client and the command line; each message says what to do."""

from collections.abc import Mapping, Sequence

from mnemolog.projections.queries.errors import (
    AmbiguousIdError,
    AmbiguousTurnError,
    QueryError,
    UnknownEntityError,
    UnknownEventError,
    UnknownFactError,
    UnknownTurnError,
)
from mnemolog.schemas.errors import InvalidArgumentError, MnemologError
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


class SettingsError(MnemologError):
    """A setting has a wrong value or does not exist; the message names it."""


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
        advice = f"raise the limit with set_policy, or {LIMIT_ADVICE[hit.name]}"
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
