"""A simulated Postgres: transactions, locks of rows, connections that break before or after a statement took effect.

Statements are recognised by their text; `tables` says what each does. What is on its way to the server happens there
although the client is killed meanwhile; what a broken connection has not committed never happened.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import Context
from functools import partial
from typing import Any, Final

from psycopg import OperationalError

from mnemolog.projections.sql import queries
from mnemolog.projections.write.rows import Changes
from tests.simulation.loop import PROCESS, SimulatedLoop
from tests.simulation.servers.consumer_group import NETWORK_SECONDS, travel
from tests.simulation.servers.tables import Tables, statement_of

_PROJECTOR: Final = queries("projector")
_LOCK: Final = _PROJECTOR["lock_partitions"]
_MOVE: Final = _PROJECTOR["move_partitions"]
_WITHOUT_EFFECT: Final = (_PROJECTOR["share_swap_lock"], _PROJECTOR["open_partitions"], _PROJECTOR["announce"])

Rows = Sequence[tuple[Any, ...]]


class Postgres:
    """The server: committed tables, and who holds the row of which partition."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self.loop = loop
        self.tables = Tables(loop.time)
        self.failures = 0.0
        self.statement_seconds = NETWORK_SECONDS
        self._connections: set[Connection] = set()
        self._holders: dict[int, Connection] = {}
        self._waiting: list[tuple[int, Connection, asyncio.Future[Rows]]] = []
        self._context = Context()

    @asynccontextmanager
    async def connection(self) -> "AsyncIterator[Connection]":
        """A connection of its own, as a pool gives it."""
        connection = Connection(self)
        self._connections.add(connection)
        try:
            yield connection
        finally:
            self.later(partial(self.end, connection))

    def disconnect(self, process: str) -> None:
        """The process is dead: its connections break, in the order in which the server notices."""
        for connection in sorted(self._connections, key=lambda one: one.number):
            if connection.process == process:
                self.later(partial(self.end, connection))

    def end(self, connection: "Connection") -> None:
        connection.is_open = False
        self._connections.discard(connection)
        self.release(connection)

    def later(self, what: Callable[[], object], within: float = NETWORK_SECONDS) -> None:
        self.loop.call_later(self.loop.random.random() * within, what, context=self._context)

    async def ask(self, connection: "Connection", work: Callable[[], Rows]) -> Rows:
        """Have the server do `work`, and wait for its answer. The connection may break before or after."""
        answer: asyncio.Future[Rows] = self.loop.create_future()
        fate = self.loop.random.random() / self.failures if self.failures else 1.0

        def arrive() -> None:
            if fate < 0.5:
                self.end(connection)
            elif not answer.done():
                _answer(answer, connection, work)

        self.later(arrive, self.statement_seconds)
        if fate < 1:
            await travel(self.loop)
            await asyncio.sleep(NETWORK_SECONDS + self.statement_seconds)
            self.end(connection)
            raise OperationalError("the connection is lost")
        found = await answer
        await travel(self.loop)
        return found

    async def lock(self, connection: "Connection", partition: int) -> Rows:
        """Wait for the row of a partition; its offset."""
        await travel(self.loop)
        answer: asyncio.Future[Rows] = self.loop.create_future()
        self._waiting.append((partition, connection, answer))
        self._grant()
        found = await answer
        await travel(self.loop)
        return found

    def release(self, connection: "Connection") -> None:
        self._holders = {partition: one for partition, one in self._holders.items() if one is not connection}
        self._grant()

    def _grant(self) -> None:
        left = []
        for partition, connection, answer in self._waiting:
            if answer.done():
                continue
            if not connection.is_open:
                _answer(answer, connection, list)
            elif self._holders.setdefault(partition, connection) is connection:
                answer.set_result([(self.tables.next_offsets.get(partition, 0),)])
            else:
                left.append((partition, connection, answer))
        self._waiting = left


class Connection:
    """A connection that commits each statement, or a whole transaction."""

    def __init__(self, server: Postgres) -> None:
        self._server = server
        self.process = PROCESS.get()
        self.is_open = True
        self.number = server.tables.count_connection()
        self._changes: list[Changes] = []
        self._offsets: dict[int, int] = {}

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        try:
            yield
            await self._server.ask(self, self._commit)
        finally:
            self._changes, self._offsets = [], {}
            self._server.release(self)

    @asynccontextmanager
    async def pipeline(self) -> AsyncIterator[None]:
        yield

    @asynccontextmanager
    async def cursor(self, **_: object) -> "AsyncIterator[Connection]":
        yield self

    async def execute(self, query: object, parameters: Mapping[str, Any] | None = None, **_: object) -> "Cursor":
        asked = parameters or {}
        if query is _LOCK:
            return Cursor(
                [(place, *row) for place in sorted(asked["partitions"]) for row in await self._server.lock(self, place)]
            )
        if query is _MOVE:
            await self._server.ask(self, list)
            self._offsets |= zip(asked["partitions"], asked["next_offsets"], strict=True)
            return Cursor([])
        if any(query is one for one in _WITHOUT_EFFECT):
            return Cursor(await self._server.ask(self, list))
        statement = statement_of(query)
        return Cursor(await self._server.ask(self, lambda: statement(self._server.tables, asked, self.process or "")))

    async def write(self, changes: Changes) -> None:
        """In the place of COPY and UPDATE."""
        await self._server.ask(self, list)
        self._changes.append(changes)

    def _commit(self) -> Rows:
        for changes in self._changes:
            self._server.tables.apply(changes)
        self._server.tables.move(self._offsets)
        return []


class Cursor:
    """The rows of a statement."""

    def __init__(self, rows: Rows) -> None:
        self._rows = list(rows)

    async def fetchall(self) -> Rows:
        return self._rows

    async def fetchone(self) -> tuple[Any, ...] | None:
        return self._rows[0] if self._rows else None


def _answer(answer: "asyncio.Future[Rows]", connection: Connection, work: Callable[[], Rows]) -> None:
    if connection.is_open:
        answer.set_result(work())
    else:
        answer.set_exception(OperationalError("the connection is closed"))
