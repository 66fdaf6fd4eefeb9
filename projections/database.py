"""Connections to Postgres: pools, vectors as halfvecs, rows as values, and retries while the server is unavailable."""

import asyncio
import random
import re
import struct
import sys
from array import array
from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Any, ClassVar, Concatenate, Final, ParamSpec, TypeVar

import psycopg
from pgvector.psycopg.halfvec import HalfVectorBinaryDumper, register_halfvec_info
from psycopg import AsyncConnection, AsyncRawCursor
from psycopg.adapt import Buffer
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow, class_row, dict_row, tuple_row
from psycopg.sql import SQL, Composed
from psycopg.types import TypeInfo
from psycopg.types.json import Jsonb
from psycopg_pool import AsyncConnectionPool

from mnemolog.common.logs import get_logger
from mnemolog.common.retry import growing_delay, retry_while
from mnemolog.projections.errors import SchemaMissingError, StatementTimeoutError
from mnemolog.projections.faults import SlowStatement, StatementTallies, fault_of
from mnemolog.schemas.vector import Vector


class _VectorDumper(HalfVectorBinaryDumper):
    """Writes float16 bytes in Postgres' byte order; converting them to numbers takes eight times as long."""

    def dump(self, obj: Any) -> Buffer | None:
        halves = array("H", obj.data)
        if sys.byteorder == "little":
            halves.byteswap()
        return struct.pack(">HH", len(halves), 0) + halves.tobytes()


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

    A connection sees the tables of this project, takes a `Vector` for a halfvec and speaks UTC. One that the server
    ended while it lay idle is replaced unseen. An operation raises `psycopg.OperationalError` while Postgres is
    unavailable.
    """
    more = {"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off"} if looks_up else {}
    pool: Pool = AsyncConnectionPool(
        url,
        kwargs={
            **connection_settings(url, application_name=application_name, statement_timeout=statement_timeout, **more),
            "autocommit": autocommit,
        },
        configure=prepare_connection,
        check=_refuse_ended,
        min_size=min_size,
        max_size=max_size,
        open=False,
        name=application_name,
        timeout=CONNECT_SECONDS * 2,
    )
    from mnemolog.projections import metrics  # noqa: PLC0415 - Prometheus is a tenth of the import of a client

    metrics.POOL_WAITING.labels(pool=pool.name).set_function(lambda: pool.get_stats().get("requests_waiting", 0))
    return pool


async def _refuse_ended(connection: AsyncConnection[TupleRow]) -> None:
    """Raise `OperationalError` where the server has ended the connection. Reads what has come, and asks nothing."""
    for _ in range(2):  # its last words, and then the end
        connection.pgconn.consume_input()


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
    """Send a `Vector` as a halfvec on a new connection. Raises `SchemaMissingError` where there is no pgvector."""
    info = await TypeInfo.fetch(connection, "public.halfvec")
    if info is None:
        raise SchemaMissingError("the database has no pgvector: run `mnemolog migrate` first")
    register_halfvec_info(connection, info)
    connection.adapters.register_dumper(Vector, type("VectorDumper", (_VectorDumper,), {"oid": info.oid}))
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
    from mnemolog.projections import metrics  # noqa: PLC0415 - as in `open_pool`

    slow, is_waiting = SlowStatement(tallies, name), False

    async def attempt() -> T:
        slow.begin_attempt()
        try:
            result = await operation()
        except psycopg.errors.QueryCanceled as error:
            if slow.is_at_fault() or is_shared:
                raise StatementTimeoutError(name) from error
            raise
        tallies.finished[name] += 1
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


Row = TypeVar("Row")
Query = SQL | Composed


async def fetch_rows(
    conn: AsyncConnection[TupleRow], row: type[Row], query: Query, parameters: Mapping[str, Any]
) -> list[Row]:
    """Run `query` and make a `row` of each of its rows, by the names of its columns."""
    async with conn.cursor(row_factory=class_row(row)) as cursor:
        await cursor.execute(query, parameters)
        return await cursor.fetchall()


async def fetch_value(conn: AsyncConnection[TupleRow], query: Query, parameters: Mapping[str, Any]) -> Any:
    """The only column of the only row of `query`."""
    ((value,),) = await (await conn.execute(query, parameters)).fetchall()
    return value


@lru_cache(maxsize=64)
def numbered(text: str) -> tuple[str, tuple[str, ...]]:
    """A statement with `$1` for its first named parameter and so on, as it is sent, and the names in this order."""
    places: dict[str, int] = {}
    sent = re.sub(r"%\((\w+)\)s", lambda found: f"${places.setdefault(found[1], len(places) + 1)}", text)
    return sent.replace("%%", "%"), tuple(places)


async def fetch_long(
    conn: AsyncConnection[TupleRow], query: Query, parameters: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The rows of a long statement. Psycopg looks for the parameters of one beyond 4096 characters at each call."""
    text, names = numbered(query.as_string())
    async with AsyncRawCursor(conn, row_factory=dict_row) as cursor:
        await cursor.execute(text.encode(), [parameters[name] for name in names])
        return await cursor.fetchall()


P = ParamSpec("P")


class Store:
    """Runs the queries of one `.sql` file; every call waits while Postgres is unavailable."""

    QUERIES: ClassVar[Mapping[str, SQL | Composed]]

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def _rows(
        self,
        query: str,
        parameters: Mapping[str, Any],
        *,
        make: Any = tuple_row,
        operation: str | None = None,
        is_shared: bool = False,
    ) -> list[Any]:
        """The rows of a query, each as psycopg's row factory `make` gives it; `is_shared` where several ask in it."""

        async def fetch() -> list[Any]:
            async with (
                self._pool.connection() as connection,
                connection.cursor(binary=True, row_factory=make) as cursor,
            ):
                return await (await cursor.execute(self.QUERIES[query], parameters)).fetchall()

        return await retry_while_unavailable(fetch, name=operation or query, is_shared=is_shared)

    async def _run(
        self,
        operation: str,
        function: Callable[Concatenate[AsyncConnection[TupleRow], P], Awaitable[T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Call `function` with a connection; `operation` names it in the metric of retries and in the log."""

        async def attempt() -> T:
            async with self._pool.connection() as connection:
                return await function(connection, *args, **kwargs)

        return await retry_while_unavailable(attempt, name=operation)


RowConnection = AsyncConnection[TupleRow]


def jsonb(text: str | bytes) -> Jsonb:
    """JSON that is text already."""
    return Jsonb(text, dumps=lambda given: given)
