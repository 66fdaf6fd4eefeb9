"""Tells by an error of Postgres what is at fault: the server, one record, a slow statement, or the program."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final, Literal

import psycopg
from psycopg_pool import PoolClosed

from mnemolog.common.suspicion import Suspicion

Fault = Literal["server", "record", "slow", "program"]

_FAULTS: Final[dict[str, Fault]] = {
    "08": "server",  # connection lost
    "22": "record",  # a value that no column holds
    "23": "record",  # an id that is taken, a constraint
    "25006": "server",  # read-only: another server is the primary now
    "25P03": "server",  # idle too long in a transaction: this process was held up
    "25P04": "server",  # transaction too long
    "28": "server",  # password changed: waits until both agree
    "40": "server",  # deadlock, serialization
    "53": "server",  # disk full, out of memory, too many connections
    "54": "record",  # too large, too many or too deeply nested values
    "55": "server",  # locked, in use
    "57014": "slow",  # statement timeout
    "57": "server",  # starting, stopping, crashed
    "58": "server",  # input or output error
}
"""By SQLSTATE or its class (postgresql.org/docs/current/errcodes-appendix.html); all others are the program's."""
RECORD_ERRORS: Final = (
    psycopg.DataError,
    psycopg.IntegrityError,
    psycopg.errors.ProgramLimitExceeded,
    psycopg.errors.StatementTooComplex,
    OverflowError,
)
"""What is raised where a value of a statement is at fault."""
_LONGEST_FIRST: Final = sorted(_FAULTS, key=len, reverse=True)


def fault_of(error: BaseException) -> Fault:
    """What is at fault.

    `server`: waiting can help. `record`: a value of this statement; without it, others succeed. `slow`: it took longer
    than the statement timeout, by the server's fault or its own. `program`: waiting does not help.
    """
    if isinstance(error, PoolClosed) or not isinstance(error, (psycopg.Error, OverflowError)):
        return "program"
    state = error.sqlstate if isinstance(error, psycopg.Error) else None
    if state is not None:
        return next((_FAULTS[prefix] for prefix in _LONGEST_FIRST if state.startswith(prefix)), "program")
    if isinstance(error, psycopg.OperationalError):
        return "server"  # no connection, so no server that could give a state
    return "record" if isinstance(error, (psycopg.DataError, psycopg.IntegrityError, OverflowError)) else "program"


def without_rows(error: BaseException) -> str:
    """An error for logs: Postgres's own message and its detail may quote the row, which has the words of a user."""
    if not isinstance(error, psycopg.Error) or error.sqlstate is None:
        return str(error).strip() or type(error).__name__
    place = (error.diag.schema_name, error.diag.table_name, error.diag.column_name, error.diag.constraint_name)
    return " ".join((type(error).__name__, error.sqlstate, *filter(None, place)))


@dataclass(slots=True)
class StatementTallies:
    """How many statements of each operation came to an end, and how many the statement timeout stopped."""

    finished: Counter[str] = field(default_factory=Counter)
    stopped: Counter[str] = field(default_factory=Counter)


class SlowStatement:
    """Collects evidence on one statement that is stopped again and again.

    It is compared with others of its operation; where there were none, any statement that finished counts as one.
    """

    def __init__(self, tallies: StatementTallies, operation: str) -> None:
        self._tallies = tallies
        self._operation = operation
        self._suspicion = Suspicion()
        self.begin_attempt()

    def begin_attempt(self) -> None:
        tallies, operation = self._tallies, self._operation
        self._finished, self._stopped = tallies.finished[operation], tallies.stopped[operation]
        self._all_finished = tallies.finished.total()

    def is_at_fault(self) -> bool:
        """Count the attempt that was just stopped; whether the evidence is against this statement now."""
        tallies, operation = self._tallies, self._operation
        finished, stopped = tallies.finished[operation] - self._finished, tallies.stopped[operation] - self._stopped
        tallies.stopped[operation] += 1
        if not finished and not stopped:
            finished = min(1, tallies.finished.total() - self._all_finished)
        self._suspicion.add_failure(successes=finished, failures=stopped)
        return self._suspicion.is_conclusive
