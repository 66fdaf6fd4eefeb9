"""Opens pools of connections to Postgres, and repeats operations while it is unavailable."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

import psycopg
from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow
from psycopg_pool import AsyncConnectionPool

from mnemolog.projections import metrics
from mnemolog.projections.db.faults import SlowStatement, StatementTallies, fault_of
from mnemolog.projections.db.halfvec import register_halfvec
from mnemolog.projections.errors import StatementTimeoutError
from mnemolog.projections.logs import get_logger
from mnemolog.projections.retry import growing_delay, retry_while

T = TypeVar("T")
Pool = AsyncConnectionPool[AsyncConnection[TupleRow]]

LIVE_SCHEMA: Final = "mnemolog"
"""The schema of the tables that are a function of the log."""
JOURNAL_SCHEMA: Final = "mnemolog_journal"
SEARCH_PATH: Final = f"{LIVE_SCHEMA},{JOURNAL_SCHEMA},public"
STATEMENT_SECONDS: Final = 30.0
CONNECT_SECONDS: Final = 5
FIRST_DELAY_SECONDS: Final = 0.05
MAX_DELAY_SECONDS: Final = 5.0

log = get_logger(__name__)


def open_pool(
    url: str,
    *,
    min_size: int,
    max_size: int,
    application_name: str,
    statement_timeout: float = STATEMENT_SECONDS,
    autocommit: bool = False,
    looks_up: bool = False,
) -> Pool:
    """Make a pool that its `async with` opens; that does not wait for Postgres.

    `statement_timeout` is in seconds. `autocommit` spares single statements the round trips of a transaction, for
    those who open theirs with `connection.transaction()`. `looks_up` is for statements that read few rows: each is
    planned once a connection, as most take longer to plan than to run; and no plan reads a table whole where an
    index will do, not even one that was made while the table was small, or without statistics.

    A connection sees the tables of this project, takes a `Vector` for a halfvec and speaks UTC. An operation raises
    `psycopg.OperationalError` while Postgres is unavailable.
    """
    more = {"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off"} if looks_up else {}
    pool: Pool = AsyncConnectionPool(
        url,
        kwargs={
            **connection_settings(url, application_name=application_name, statement_timeout=statement_timeout, **more),
            "autocommit": autocommit,
        },
        configure=prepare_connection,
        min_size=min_size,
        max_size=max_size,
        open=False,
        name=application_name,
        timeout=CONNECT_SECONDS * 2,
    )
    metrics.POOL_WAITING.labels(pool=pool.name).set_function(lambda: pool.get_stats().get("requests_waiting", 0))
    return pool


def connection_settings(
    url: str,
    *,
    application_name: str,
    statement_timeout: float = STATEMENT_SECONDS,
    search_path: str = SEARCH_PATH,
    **more: str,
) -> dict[str, Any]:
    """The settings of every connection of this project; `url`'s own options stay, and come first.

    `more` are further parameters of Postgres by their names.
    """
    milliseconds = round(statement_timeout * 1000)
    options = {
        "search_path": search_path,
        "statement_timeout": milliseconds,
        "idle_in_transaction_session_timeout": milliseconds,
        "timezone": "UTC",
        "jit": "off",  # every statement here is short
        **more,
    }
    given = conninfo_to_dict(url).get("options") or ""
    return {
        "application_name": application_name,
        "connect_timeout": CONNECT_SECONDS,
        "options": " ".join([str(given), *(f"-c {name}={value}" for name, value in options.items())]).strip(),
    }


async def prepare_connection(connection: AsyncConnection[Any]) -> None:
    """Register halfvec on a new connection. Raises `SchemaMissingError` where the database has no pgvector."""
    await register_halfvec(connection)
    await connection.commit()


_tallies: Final = StatementTallies()


async def retry_while_unavailable(
    operation: Callable[[], Awaitable[T]],
    *,
    name: str,
    is_shared: bool = False,
    jitter: Callable[[], float] = random.random,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    tallies: StatementTallies = _tallies,
) -> T:
    """Repeat `operation` while the server is at fault (`fault_of`), for as long as that lasts.

    A statement timeout is repeated too, until the evidence says that this very statement is too slow: then
    `StatementTimeoutError` is raised. One that `is_shared`, which several ask together, raises it at once: each of them
    alone may be quick enough. Every other error passes through, and so does a closed pool. An operation whose
    answer got lost runs twice.
    """
    slow, is_waiting = SlowStatement(tallies, name), False

    async def attempt() -> T:
        slow.begin_attempt()
        try:
            result = await operation()
        except psycopg.errors.QueryCanceled as error:
            if slow.is_at_fault() or is_shared:
                raise StatementTimeoutError(name) from error
            raise
        tallies.count_finished(name)
        return result

    def on_retry(failures: int, error: BaseException) -> None:
        nonlocal is_waiting
        if not is_waiting:
            is_waiting = True
            metrics.WAITING.inc()
        metrics.RETRIES.labels(operation=name).inc()
        log.warning("postgres_unavailable", operation=name, failures=failures, error=str(error).strip())

    delay = growing_delay(FIRST_DELAY_SECONDS, MAX_DELAY_SECONDS, jitter=jitter)
    try:
        return await retry_while(is_temporary, attempt, delay=delay, on_retry=on_retry, sleep=sleep)
    finally:
        if is_waiting:
            metrics.WAITING.dec()


def is_temporary(error: BaseException) -> bool:
    """Whether waiting can help: the server is at fault, or may be."""
    return fault_of(error) in ("server", "slow")
