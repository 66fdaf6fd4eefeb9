"""Commits in real tables, put there by the real projector."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import datetime
from typing import Any, LiteralString, Protocol, Self, TypeVar

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.database import Pool, open_pool
from mnemolog.projections.stores.turns import Journal, JournalEntry
from mnemolog.projections.write.projector import LogRecord, Projector
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from tests.support.builders.commits import ALICE, START_TIME

T = TypeVar("T")


class ProjectedDatabase:
    """A migrated database that is filled as the projector fills it; `conn` is an autocommit connection for reading."""

    def __init__(self, url: str, pool: Pool, conn: AsyncConnection[TupleRow]) -> None:
        self.url = url
        self.pool = pool
        self.conn = conn
        self.projector = Projector(pool)

    @classmethod
    @asynccontextmanager
    async def open(cls, url: str) -> AsyncIterator[Self]:
        async with open_pool(url, min_size=1, max_size=4, application_name="tests") as pool, pool.connection() as conn:
            await conn.set_autocommit(True)
            yield cls(url, pool, conn)
            await conn.set_autocommit(False)

    async def apply(self, *commits: Commit | bytes, partition: int = 0) -> None:
        """Append to a partition of the log, and project."""
        start = (await self.projector.next_offsets()).get(partition, 0)
        values = (one if isinstance(one, bytes) else one.to_bytes() for one in commits)
        records = [LogRecord(offset=offset, value=value) for offset, value in enumerate(values, start)]
        await self.projector.apply({partition: records})

    async def journal_turns(
        self, *turn_ids: str, scope: Scope = ALICE, at: datetime = START_TIME, text: str = "Hello."
    ) -> None:
        """Put turns into the journal, as published at `at`."""
        messages = (Message(role="user", content=text),)
        turns = [Turn(turn_id=turn_id, scope=scope, messages=messages, occurred_at=at) for turn_id in turn_ids]
        await self.journal(*turns)

    async def journal(self, *turns: Turn, first_offset: int = 0) -> None:
        """Put turns into the journal, one after the other from `first_offset` on, as published when they occurred."""
        entries = [
            JournalEntry(
                parsed=turn,
                topic="conversation_turns",
                partition=0,
                offset=offset,
                published_at=turn.occurred_at,
            )
            for offset, turn in enumerate(turns, first_offset)
        ]
        await Journal(self.pool).record(entries)

    async def rows(self, query: LiteralString) -> list[TupleRow]:
        return await (await self.conn.execute(query)).fetchall()


class Run(Protocol):
    def __call__(self, coro: Coroutine[Any, Any, T], /) -> T: ...


@contextmanager
def database_for_examples(url: str) -> Iterator[tuple[ProjectedDatabase, Run]]:
    """A database for the examples of Hypothesis, which are no coroutines, and what waits for a coroutine."""
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        db = runner.run(stack.enter_async_context(ProjectedDatabase.open(url)))
        try:
            yield db, runner.run
        finally:
            runner.run(stack.aclose())
