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
        self, query: str, parameters: Mapping[str, Any], *, make: Any = tuple_row, operation: str | None = None
    ) -> list[Any]:
        """The rows of a query, each as psycopg's row factory `make` gives it."""

        async def fetch(connection: AsyncConnection[TupleRow]) -> list[Any]:
            async with connection.cursor(binary=True, row_factory=make) as cursor:
                return await (await cursor.execute(self.QUERIES[query], parameters)).fetchall()

        return await self._run(operation or query, fetch)

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
