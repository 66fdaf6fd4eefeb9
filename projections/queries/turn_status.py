"""How a turn or a command ended, read from its last commit."""

from collections.abc import Iterable
from uuid import UUID

from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.queries.errors import AmbiguousTurnError, QueryError, UnknownTurnError, check_unicode
from mnemolog.projections.queries.results import WriteResult
from mnemolog.projections.queries.trace import fact_ids_of_commit
from mnemolog.projections.queries.write_result import write_result
from mnemolog.projections.sql import queries
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.scope import Scope


async def turn_status(
    conn: AsyncConnection[TupleRow], tenant: str, turn_id: str, user_id: str | None = None, *, verbose: bool = False
) -> WriteResult:
    """How a turn or a command ended, or that it is pending; `verbose` adds its trace.

    Of a turn that was published again the last end counts. A record that was not a valid turn is found by its
    position, topic/partition/offset. Raises `UnknownTurnError` where neither journal nor log has the turn,
    `AmbiguousTurnError` where several owners of the tenant have one.
    """
    commit = await last_commit(conn, tenant, turn_id, user_id)
    if commit is None:
        return WriteResult(turn_id=turn_id, status="pending")
    return write_result(commit, await fact_texts(conn, commit.scope, fact_ids_of_commit(commit)) if verbose else None)


async def last_commit(
    conn: AsyncConnection[TupleRow], tenant: str, turn_id: str, user_id: str | None = None
) -> Commit | None:
    """The last commit of a turn or a command; None while it has none. Raises as `turn_status` does."""
    for given in (tenant, turn_id, user_id or ""):
        check_unicode(given)
    if "\x00" in tenant + turn_id:
        raise QueryError("an id holds U+0000, which no stored id can")
    parameters = {"tenant": tenant, "turn_id": turn_id, "user_id": user_id}
    ends = await (await conn.execute(queries("facts")["turn"], parameters)).fetchall()
    match ends:
        case []:
            raise UnknownTurnError(tenant, turn_id)
        case [(_, record)]:
            return None if record is None else Commit.from_bytes(record)
        case _:
            raise AmbiguousTurnError(turn_id, [owner for owner, _ in ends])


async def fact_texts(conn: AsyncConnection[TupleRow], scope: Scope | None, fact_ids: Iterable[UUID]) -> dict[UUID, str]:
    """What these facts say, as far as they are of exactly `scope`."""
    if scope is None:
        return {}
    named = {**scope.columns, "fact_ids": list(fact_ids)}
    return dict(await (await conn.execute(queries("facts")["texts"], named)).fetchall())
