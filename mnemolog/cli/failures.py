"""From an error to what the user reads: what went wrong, what to do, and the exit code."""

import os
import traceback
from typing import Final, NamedTuple

from mnemolog.cli.output import clean, stderr

FAILED: Final = 1
USAGE: Final = 2
UNAVAILABLE: Final = 3
INTERRUPTED: Final = 130

_SERVERS = "`mnemolog up` starts Kafka and Postgres here; MNEMOLOG_KAFKA and MNEMOLOG_POSTGRES name others"


class Verdict(NamedTuple):
    """The exit code of a class of errors, and the advice where the error carries none itself."""

    code: int
    advice: str | None = None


# By qualified name, so that a command need not import every driver to tell their errors apart.
_VERDICTS: Final[dict[str, Verdict]] = {
    "mnemolog.errors.SettingsError": Verdict(USAGE),
    "mnemolog.errors.InvalidTurnError": Verdict(USAGE),
    "mnemolog.errors.InvalidOrderError": Verdict(USAGE),
    "mnemolog.errors.ServerUnavailableError": Verdict(UNAVAILABLE),
    "mnemolog.errors.PublishError": Verdict(UNAVAILABLE),
    "mnemolog.errors.MnemologError": Verdict(FAILED),
    "mnemolog.embedded.errors.MissingExtraError": Verdict(USAGE),
    "mnemolog.embedded.errors.ServerFailedError": Verdict(UNAVAILABLE),
    "mnemolog.embedded.errors.JarsUnavailableError": Verdict(UNAVAILABLE),
    "mnemolog.embedded.errors.EmbeddedError": Verdict(FAILED),
    "mnemolog.projections.query_errors.QueryError": Verdict(USAGE),
    "mnemolog.projections.query_errors.LogUnreadableError": Verdict(UNAVAILABLE),
    "mnemolog.projections.errors.SchemaMissingError": Verdict(USAGE),
    "mnemolog.projections.errors.ProjectionError": Verdict(FAILED),
    "mnemolog.streams.errors.StartRefused": Verdict(USAGE),
    "mnemolog.streams.providers.errors.ProviderConfigurationError": Verdict(USAGE),
    "aiokafka.errors.KafkaError": Verdict(UNAVAILABLE, _SERVERS),
    "psycopg.errors.UndefinedTable": Verdict(USAGE, "run `mnemolog migrate` first"),
    "psycopg.errors.InsufficientPrivilege": Verdict(USAGE, "give the account of MNEMOLOG_POSTGRES these rights"),
    "psycopg.OperationalError": Verdict(UNAVAILABLE, _SERVERS),
    "sqlalchemy.exc.OperationalError": Verdict(UNAVAILABLE, _SERVERS),
    "builtins.FileNotFoundError": Verdict(USAGE, "check the path"),
    "builtins.OSError": Verdict(FAILED, "check the path, its rights and the space left"),
}
_UNEXPECTED = Verdict(FAILED, "this is a fault of Mnemolog; MNEMOLOG_LOG_LEVEL=debug shows where it happened")


def report(error: BaseException) -> int:
    """Write `error` to stderr; the exit code of the command."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    verdict = judge(error)
    words = clean(str(error)).strip() or type(error).__name__
    console = stderr()
    console.print("[bold red]error:[/] ", end="")
    console.print(words if verdict is not _UNEXPECTED else f"{type(error).__name__}: {words}", markup=False)
    if verdict.advice:
        console.print(f"[bold]try:[/] {verdict.advice}")
    if os.environ.get("MNEMOLOG_LOG_LEVEL", "").lower() == "debug":
        console.print("".join(traceback.format_exception(error)), markup=False)
    return verdict.code


def judge(error: BaseException) -> Verdict:
    """What an error means for the user: the first class of its line that is known."""
    for kind in type(error).__mro__:
        if verdict := _VERDICTS.get(f"{kind.__module__}.{kind.__qualname__}"):
            return verdict
    return _UNEXPECTED
