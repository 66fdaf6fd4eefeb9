"""From an error to its message, the advice and the exit code."""

import os
import re
import traceback
from typing import Final, NamedTuple

from mnemolog.cli.output import print_labelled, stderr

FAILED: Final = 1
USAGE: Final = 2
UNAVAILABLE: Final = 3
INTERRUPTED: Final = 130

_SERVERS_ADVICE = "`mnemolog status` shows which servers are asked; MNEMOLOG_KAFKA and MNEMOLOG_POSTGRES name others"


class ExitStatus(NamedTuple):
    """The exit code of a class of errors, and the advice where the error carries none itself."""

    code: int
    advice: str | None = None


# An error has the status of its nearest base here. By qualified name, so that no command imports drivers to compare.
EXIT_STATUSES: Final[dict[str, ExitStatus]] = {
    "mnemolog.schemas.errors.SettingsError": ExitStatus(USAGE),
    "mnemolog.schemas.errors.InvalidArgumentError": ExitStatus(USAGE),
    "mnemolog.errors.UnknownArgumentError": ExitStatus(USAGE),
    "mnemolog.errors.ServerUnavailableError": ExitStatus(UNAVAILABLE),
    "mnemolog.errors.PublishError": ExitStatus(UNAVAILABLE),
    "mnemolog.schemas.errors.MnemologError": ExitStatus(FAILED),
    "mnemolog.errors.MissingExtraError": ExitStatus(USAGE),
    "mnemolog.errors.ServerFailedError": ExitStatus(UNAVAILABLE),
    "mnemolog.errors.JarsUnavailableError": ExitStatus(UNAVAILABLE),
    "mnemolog.projections.errors.LogUnreadableError": ExitStatus(UNAVAILABLE),
    "mnemolog.projections.errors.SchemaMissingError": ExitStatus(USAGE),
    "mnemolog.streams.errors.StartRefused": ExitStatus(USAGE),
    "mnemolog.streams.llm.ports.ProviderConfigurationError": ExitStatus(USAGE),
    "aiokafka.errors.KafkaError": ExitStatus(UNAVAILABLE, _SERVERS_ADVICE),
    "psycopg.errors.UndefinedTable": ExitStatus(USAGE, "run `mnemolog migrate` first"),
    "psycopg.errors.InsufficientPrivilege": ExitStatus(USAGE, "give the account of MNEMOLOG_POSTGRES these rights"),
    "psycopg.OperationalError": ExitStatus(UNAVAILABLE, _SERVERS_ADVICE),
    "builtins.FileNotFoundError": ExitStatus(USAGE, "check the path"),
    "builtins.OSError": ExitStatus(FAILED, "check the path, its rights and the space left"),
}
_ID: Final = re.compile(r"\b(?:an? )?(?<![.'\"])(user|agent|app|run)_id\b(?!['\"])")
"""An id as the client calls it, which is an option here; in quotes it is a field of a record."""
_UNEXPECTED = ExitStatus(FAILED, "this is a bug in Mnemolog; MNEMOLOG_LOG_LEVEL=debug shows the traceback")


def print_error(error: BaseException) -> int:
    """Write `error` to stderr; the exit code of the command."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    status = exit_status_of(error)
    text = str(error).strip() or type(error).__name__
    text = _ID.sub(r"--\1", text)
    print_labelled("error:", text if status is not _UNEXPECTED else f"{type(error).__name__}: {text}", style="bold red")
    if status.advice:
        print_labelled("try:", status.advice, style="bold")
    if os.environ.get("MNEMOLOG_LOG_LEVEL", "").lower() == "debug":
        stderr().print("".join(traceback.format_exception(error)), markup=False)
    return status.code


def exit_status_of(error: BaseException) -> ExitStatus:
    """The status of the first class that is known among the bases of an error."""
    for kind in type(error).__mro__:
        if status := EXIT_STATUSES.get(f"{kind.__module__}.{kind.__qualname__}"):
            return status
    return _UNEXPECTED
