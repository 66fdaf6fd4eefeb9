"""Makes the schema `memory`, and brings it up to date after migrations."""

from typing import Any, Final, LiteralString, cast

import psycopg
from psycopg import Connection
from psycopg.sql import SQL, Literal

from mnemolog.projections.errors import MemorySchemaInUseError, MemorySchemaRefusedError
from mnemolog.projections.memory.definitions import MEMORY_SCHEMA, digest, statements
from mnemolog.projections.sql import queries

_ABOUT: Final = "Views and functions for SQL users: what is known, without the internal tables. Made by"
_SQL: Final = queries("memory_schema")
_OTHER_COLUMNS: Final = (psycopg.errors.InvalidFunctionDefinition, psycopg.errors.InvalidTableDefinition)


def ensure_memory_schema(connection: Connection[Any]) -> None:
    """Give the schema the views and functions of this program; does nothing where it has them.

    Runs in the caller's transaction. What others have made over them stays: definitions are replaced in their places.
    Where one gets other columns, all are made anew, with the grants on them; raises `MemorySchemaInUseError` where
    objects outside of the schema depend on them, and `MemorySchemaRefusedError` where it is another application's.
    """
    comment = f"{_ABOUT} {digest()}."
    found = connection.execute(_SQL["schema_comment"]).fetchone()
    if found == (comment,):
        return
    if not (found and found[0].startswith(_ABOUT)):
        _refuse_content(connection)
    connection.execute(_SQL["create_schema"])
    try:
        with connection.transaction():
            _run(connection, statements())
    except _OTHER_COLUMNS:
        _make_anew(connection)
    connection.execute(_SQL["set_comment"].format(comment=Literal(comment)))


def _refuse_content(connection: Connection[Any]) -> None:
    """An empty schema may be there: for grants on it before it is filled."""
    if content := [name for (name,) in connection.execute(_SQL["content"]).fetchall()]:
        raise MemorySchemaRefusedError(content)


def _make_anew(connection: Connection[Any]) -> None:
    if dependents := [name for (name,) in connection.execute(_SQL["dependents"]).fetchall()]:
        raise MemorySchemaInUseError(dependents)
    given = queries("rebuild")["grants"]
    grants = connection.execute(given, {"live": MEMORY_SCHEMA, "rebuilt": MEMORY_SCHEMA}).fetchall()
    connection.execute(_SQL["drop_schema"])
    connection.execute(_SQL["create_schema"])
    _run(connection, statements())
    _run(connection, [SQL(cast("LiteralString", grant)) for (grant,) in grants])


def _run(connection: Connection[Any], wanted: list[SQL]) -> None:
    for statement in wanted:
        connection.execute(statement)
