"""The base of classes that read and write tables."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, Concatenate, ParamSpec, TypeVar

from psycopg import AsyncConnection
from psycopg.rows import TupleRow, tuple_row
from psycopg.sql import SQL, Composed

from mnemolog.projections.db.pools import Pool, retry_while_unavailable

T = TypeVar("T")
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
