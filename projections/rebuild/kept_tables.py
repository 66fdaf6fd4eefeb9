"""The live tables that a rebuild keeps: the copy of the log, which it verifies instead of writing it again.

While the schema of the rebuild is filled, it shows their rows by views of the same names, as far as it has come. With
the swap the tables themselves take the place of the views.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, LiteralString, cast

from psycopg.sql import SQL, Identifier

from mnemolog.projections.db.pools import LIVE_SCHEMA
from mnemolog.projections.rebuild.schemas import NEXT_SCHEMA
from mnemolog.projections.sql import queries
from mnemolog.projections.write.table_writer import Connection

KEPT_TABLES: Final = ("commits", "memory_events")
FIRST_LOCK_MILLISECONDS: Final = 1500
"""Longer than `deadlock_timeout`, after which Postgres ends an autovacuum that is in the way."""
LOCK_MILLISECONDS: Final = 300
"""So long new readers of the kept tables wait at a time behind the swap, which waits for those that are in them."""
_REPLACED: Final = "replaced_"
_SQL: Final = queries("rebuild")


async def show_live_tables(connection: Connection) -> bool:
    """Replace the new empty tables by views of the live ones, where these are made like new ones; whether they are."""
    for table in KEPT_TABLES:
        live, new = [await _structure(connection, schema, table) for schema in (LIVE_SCHEMA, NEXT_SCHEMA)]
        if live != new:
            return False

    async def create_views() -> None:
        for table in KEPT_TABLES:
            await connection.execute(
                _SQL["show_live_rows"].format(
                    view=Identifier(NEXT_SCHEMA, table),
                    table=Identifier(LIVE_SCHEMA, table),
                    offsets=Identifier(NEXT_SCHEMA, "projection_offsets"),
                )
            )

    await _replace_under_views(connection, create_views, drop="drop_table")
    return True


async def keeps_live_tables(connection: Connection) -> bool | None:
    """Whether the schema of the rebuild shows live tables; None where it lacks relations, so that it is of no use."""
    kinds = []
    for table in KEPT_TABLES:
        asked = {"schema": NEXT_SCHEMA, "relation": table}
        kinds += await (await connection.execute(_SQL["relation_kind"], asked)).fetchall()
    return {(("v",),) * len(KEPT_TABLES): True, (("r",),) * len(KEPT_TABLES): False}.get(tuple(kinds))


async def take_over_live_tables(connection: Connection, wait_milliseconds: int) -> None:
    """Move the live tables to where the views of them are, in the caller's transaction.

    Raises `psycopg.errors.LockNotAvailable` where somebody is in them for longer than `wait_milliseconds`.
    """
    live = [Identifier(LIVE_SCHEMA, table) for table in KEPT_TABLES]
    await connection.execute(_SQL["limit_lock_wait_of_transaction"], {"milliseconds": wait_milliseconds})
    await connection.execute(_SQL["wait_for_readers"].format(tables=SQL(", ").join(live)))
    asked = {"schema": LIVE_SCHEMA, "tables": list(KEPT_TABLES)}
    functions = await (await connection.execute(_SQL["trigger_functions"], asked)).fetchall()

    async def move_tables() -> None:
        for (function,) in functions:
            await connection.execute(_SQL["drop_function"].format(function=Identifier(NEXT_SCHEMA, function)))
            names = {"function": Identifier(LIVE_SCHEMA, function), "schema": Identifier(NEXT_SCHEMA)}
            await connection.execute(_SQL["move_function"].format(**names))
        for table in live:
            await connection.execute(_SQL["move_table"].format(table=table, schema=Identifier(NEXT_SCHEMA)))

    await _replace_under_views(connection, move_tables, drop="drop_view")


async def _replace_under_views(
    connection: Connection, replace: Callable[[], Awaitable[None]], *, drop: LiteralString
) -> None:
    """Let `replace` make other relations of the names of the kept tables; who has read them reads these then.

    Comments and grants of the views and functions that do so stay.
    """
    asked = {"schema": NEXT_SCHEMA, "relations": list(KEPT_TABLES)}
    readers = await (await connection.execute(_SQL["readers_of"], asked)).fetchall()
    for table in KEPT_TABLES:
        names = {"relation": Identifier(NEXT_SCHEMA, table), "name": Identifier(_REPLACED + table)}
        await connection.execute(_SQL["rename_relation"].format(**names))
    await replace()
    for (definition,) in readers:
        await connection.execute(SQL(cast("LiteralString", definition)))  # as Postgres wrote it
    for table in KEPT_TABLES:
        await connection.execute(_SQL[drop].format(relation=Identifier(NEXT_SCHEMA, _REPLACED + table)))


async def _structure(connection: Connection, schema: str, table: str) -> Sequence[str]:
    rows = await connection.execute(_SQL["table_structure"], {"schema": schema, "table": table})
    return [definition for (definition,) in await rows.fetchall()]
