"""Indexes of large scopes: one of vectors and one of words for each, which hold its facts and no others."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Final, LiteralString, cast

from psycopg.sql import SQL, Identifier

from mnemolog.projections.database import LIVE_SCHEMA, RowConnection, fetch_rows
from mnemolog.projections.rebuild.connections import open_connection
from mnemolog.projections.rebuild.swap import only_rebuild
from mnemolog.projections.sql import queries

LEAST_FACTS: Final = 10_000
"""From here on the indexes took half the time of a scan or less (docs/performance.md, "Search in large scopes")."""
MAX_INDEXED_SCOPES: Final = 16
"""Each costs every statement over facts some microseconds, whosever facts they are (measured there too)."""

_SQL: Final = queries("scope_indexes")


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedScope:
    """A scope with indexes of its own: the model and dimensions of its vectors, and the number of its facts."""

    tenant: str
    user_id: str
    agent_id: str
    app_id: str
    run_id: str
    model: str
    dimensions: int
    facts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexReport:
    """The scopes that have indexes now, the largest first; how many indexes were made for it, and how many dropped."""

    scopes: tuple[IndexedScope, ...]
    made: int
    dropped: int


async def index_scopes(
    url: str, *, least: int = LEAST_FACTS, on_progress: Callable[[int, int], None] = lambda *_: None
) -> IndexReport:
    """Make the indexes that scopes of `least` facts and more lack, and drop those of scopes that have shrunk to a half.

    At most the 16 largest scopes have indexes. Writers and readers go on: a scope is scanned until its indexes are
    complete. Started again after an interruption, it makes what is missing. `on_progress` gets the numbers of finished
    scopes and of all. Raises `RebuildRunningError` while a rebuild or another call is at work.
    """
    async with open_connection(url, "index-scopes", schema=LIVE_SCHEMA) as connection, only_rebuild(connection):
        asked = {"least": least, "most": MAX_INDEXED_SCOPES}
        wanted = await fetch_rows(connection, IndexedScope, _SQL["large_scopes"], asked)
        dropped = await _drop_others(connection, wanted)
        made = 0
        for number, scope in enumerate(wanted):
            on_progress(number, len(wanted))
            made += await _make_indexes(connection, scope, LIVE_SCHEMA, how="CONCURRENTLY ")
            await connection.execute(_SQL["add_scope"], asdict(scope))
        on_progress(len(wanted), len(wanted))
        return IndexReport(scopes=tuple(wanted), made=made, dropped=dropped)


async def copy_scope_indexes(
    connection: RowConnection, schema: str, *, on_progress: Callable[[int, int], None] = lambda *_: None
) -> None:
    """Make in another schema, which comes first in the search_path, the indexes of the scopes that have some."""
    scopes = await fetch_rows(connection, IndexedScope, _SQL["indexed_scopes"], {})
    for number, scope in enumerate(scopes):
        await _make_indexes(connection, scope, schema)
        on_progress(number + 1, len(scopes))


async def _drop_others(connection: RowConnection, wanted: Sequence[IndexedScope]) -> int:
    """Drop the indexes that none of `wanted` needs, and those that an interruption has left incomplete."""
    needed = {name for scope in wanted for name, _ in await _definitions(connection, scope)}
    for scope in await fetch_rows(connection, IndexedScope, _SQL["indexed_scopes"], {}):
        if {name for name, _ in await _definitions(connection, scope)} - needed:
            await connection.execute(_SQL["remove_scope"], asdict(scope))
    present = await _present_indexes(connection, LIVE_SCHEMA)
    unneeded = [name for name, is_valid in present.items() if name not in needed or not is_valid]
    for name in unneeded:
        # Without blocking those who write.
        await connection.execute(SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(Identifier(LIVE_SCHEMA, name)))
    return len(unneeded)


async def _make_indexes(connection: RowConnection, scope: IndexedScope, schema: str, *, how: str = "") -> int:
    """Make the indexes of `scope` that `schema` lacks; how many."""
    present = await _present_indexes(connection, schema)
    missing = [text for name, text in await _definitions(connection, scope, how=how) if name not in present]
    if missing:
        await connection.execute(_SQL["limit_memory"], asdict(scope))
    for statement in missing:
        await connection.execute(SQL(statement))
    return len(missing)


async def _definitions(
    connection: RowConnection, scope: IndexedScope, *, how: str = ""
) -> list[tuple[str, LiteralString]]:
    """The name of each index of `scope`, and the statement that makes it."""
    rows = await (await connection.execute(_SQL["definitions"], {**asdict(scope), "how": how})).fetchall()
    return cast("list[tuple[str, LiteralString]]", rows)  # the values in it are quoted by format()


async def _present_indexes(connection: RowConnection, schema: str) -> dict[str, bool]:
    return dict(await (await connection.execute(_SQL["present_indexes"], {"schema": schema})).fetchall())
