"""What an error of Postgres means, and when a slow statement is its own fault."""

from collections.abc import Awaitable, Callable
from functools import partial

import psycopg
import pytest
from prometheus_client import REGISTRY
from psycopg import errors
from psycopg_pool import PoolClosed, PoolTimeout

from mnemolog.projections.database import retry_while_unavailable
from mnemolog.projections.errors import StatementTimeoutError
from mnemolog.projections.faults import Fault, StatementTallies, fault_of

FAULTS: dict[type[BaseException], Fault] = {
    # the server, or the way to it
    psycopg.OperationalError: "server",
    PoolTimeout: "server",
    errors.ConnectionFailure: "server",
    errors.DiskFull: "server",
    errors.OutOfMemory: "server",
    errors.TooManyConnections: "server",
    errors.AdminShutdown: "server",
    errors.CrashShutdown: "server",
    errors.CannotConnectNow: "server",
    errors.DeadlockDetected: "server",
    errors.SerializationFailure: "server",
    errors.LockNotAvailable: "server",
    errors.ObjectInUse: "server",
    errors.ReadOnlySqlTransaction: "server",
    errors.IdleInTransactionSessionTimeout: "server",
    errors.TransactionTimeout: "server",
    errors.InvalidPassword: "server",
    errors.IoError: "server",
    # this statement, or the server
    errors.QueryCanceled: "slow",
    # a value of one record
    psycopg.DataError: "record",
    psycopg.IntegrityError: "record",
    errors.UniqueViolation: "record",
    errors.NumericValueOutOfRange: "record",
    errors.UntranslatableCharacter: "record",
    errors.ProgramLimitExceeded: "record",
    errors.StatementTooComplex: "record",
    OverflowError: "record",
    # what waiting does not mend
    PoolClosed: "program",
    errors.UndefinedTable: "program",
    errors.InsufficientPrivilege: "program",
    errors.InvalidCatalogName: "program",
    errors.SyntaxError: "program",
    errors.FeatureNotSupported: "program",
    errors.DataCorrupted: "program",
    errors.IndexCorrupted: "program",
    errors.InternalError_: "program",
    errors.DuplicatePreparedStatement: "program",
    errors.InFailedSqlTransaction: "program",
    ValueError: "program",
}
STOPPED = errors.QueryCanceled("canceling statement due to statement timeout")


@pytest.mark.parametrize(("error", "fault"), FAULTS.items(), ids=lambda one: getattr(one, "__name__", one))
def test_each_error_has_its_fault(error: type[BaseException], fault: Fault) -> None:
    assert fault_of(error("as the test asked for")) == fault


async def no_sleep(_seconds: float) -> None:
    return


async def test_an_outage_is_waited_out() -> None:
    tries = 0
    waited: list[float] = []

    async def operation() -> str:
        nonlocal tries
        tries += 1
        if tries < 12:
            raise psycopg.OperationalError("connection refused")
        return "done"

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    retries = partial(REGISTRY.get_sample_value, "mnemolog_database_retries_total", {"operation": "try"})
    before = retries() or 0
    assert await retry_while_unavailable(operation, name="try", jitter=lambda: 1.0, sleep=sleep) == "done"
    assert (waited[:3], waited[-1]) == ([0.05, 0.1, 0.2], 5.0)
    assert retries() == before + 11


@pytest.mark.parametrize("error", [error for error, fault in FAULTS.items() if fault in ("record", "program")])
async def test_what_waiting_cannot_mend_is_raised(error: type[BaseException]) -> None:
    async def operation() -> None:
        raise error("as the test asked for")

    with pytest.raises(error):
        await retry_while_unavailable(operation, name="try", sleep=no_sleep)


def stopped_until(
    attempts: int, meanwhile: Callable[[], Awaitable[object]]
) -> tuple[Callable[[], Awaitable[str]], list[int]]:
    """An operation that is stopped so many times; other things happen during each attempt."""
    count = [0]

    async def operation() -> str:
        count[0] += 1
        await meanwhile()
        if count[0] <= attempts:
            raise STOPPED
        return "done"

    return operation, count


@pytest.mark.parametrize(("others", "attempts"), [("match", 6), ("another", 20)])
async def test_a_statement_that_is_stopped_while_others_finish_is_given_up(others: str, attempts: int) -> None:
    tallies = StatementTallies()

    async def ten_others_finish() -> None:
        for _ in range(10):
            tallies.finished[others] += 1

    operation, count = stopped_until(1000, ten_others_finish)
    with pytest.raises(StatementTimeoutError, match="match took longer"):
        await retry_while_unavailable(operation, name="match", sleep=no_sleep, tallies=tallies)
    assert count == [attempts]


async def test_a_shared_statement_that_is_stopped_is_given_up_at_once_to_be_divided() -> None:
    async def nothing_else_happens() -> None:
        """As in a quiet worker."""

    operation, count = stopped_until(1000, nothing_else_happens)
    with pytest.raises(StatementTimeoutError, match="match took longer"):
        await retry_while_unavailable(operation, name="match", is_shared=True, sleep=no_sleep)
    assert count == [1]


async def test_a_statement_that_is_stopped_as_all_of_its_kind_are_is_repeated() -> None:
    tallies = StatementTallies()

    async def others_are_stopped() -> None:
        tallies.finished["another"] += 1
        tallies.stopped["match"] += 1

    operation, count = stopped_until(1000, others_are_stopped)
    waiting: list[float | None] = []

    async def sleep(_seconds: float) -> None:
        waiting.append(REGISTRY.get_sample_value("mnemolog_database_waiting"))

    assert await retry_while_unavailable(operation, name="match", sleep=sleep, tallies=tallies) == "done"
    assert count == [1001]
    assert set(waiting) == {1.0}
    assert REGISTRY.get_sample_value("mnemolog_database_waiting") == 0.0
