"""Makes the schema `memory`, and brings it up to date after migrations."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, LiteralString, cast

import psycopg
from psycopg import Connection
from psycopg.sql import SQL, Identifier, Literal

from mnemolog.projections.errors import MemorySchemaInUseError, MemorySchemaRefusedError
from mnemolog.projections.memory.definitions import MEMORY_SCHEMA, digest, statements
from mnemolog.projections.sql import queries

_ABOUT: Final = "Views and functions for SQL users: what is known, without the internal tables. Made by"
_SQL: Final = queries("memory_schema")
_OTHER_COLUMNS: Final = (psycopg.errors.InvalidFunctionDefinition, psycopg.errors.InvalidTableDefinition)


def ensure_memory_schema(connection: Connection[Any]) -> None:
    """Give the schema the views and functions of this program; does nothing where it has them.

    Runs in the caller's transaction. What others have made over them stays: definitions are replaced in their places,
    and a function that gets other parameters takes the place of the former one, which is dropped. Where a view or an
    answer gets other columns, all are made anew, with the grants on them. Raises `MemorySchemaInUseError` where objects
    of others would be lost by that, and `MemorySchemaRefusedError` where the schema is another application's.
    """
    comment = f"{_ABOUT} {digest()}."
    found = connection.execute(_SQL["schema_comment"]).fetchone()
    if found == (comment,):
        return
    if not (found and found[0].startswith(_ABOUT)):
        _refuse_content(connection)
    connection.execute(_SQL["create_schema"])
    defined = _defined(connection)
    try:
        with connection.transaction():
            _replace(connection, defined)
    except _OTHER_COLUMNS:
        _make_anew(connection, defined)
    connection.execute(_SQL["set_comment"].format(comment=Literal(comment)))


def _refuse_content(connection: Connection[Any]) -> None:
    """An empty schema may be there: for grants on it before it is filled."""
    if content := [name for (name,) in connection.execute(_SQL["content"]).fetchall()]:
        raise MemorySchemaRefusedError(content)


@dataclass(frozen=True, slots=True)
class _Content:
    """What a schema `memory` has: its functions by what tells them apart, and the names of all."""

    functions: Mapping[str, tuple[int, str]]
    names: frozenset[str]

    @classmethod
    def of(cls, connection: Connection[Any]) -> "_Content":
        functions = {identity: (oid, name) for oid, name, identity in connection.execute(_SQL["functions"]).fetchall()}
        relations = [name for (name,) in connection.execute(_SQL["relations"]).fetchall()]
        return cls(functions, frozenset([*relations, *(name for _, name in functions.values())]))


def _defined(connection: Connection[Any]) -> _Content:
    """What the schema of this program has, by one that is made on trial."""
    with connection.transaction(force_rollback=True):
        connection.execute(_SQL["rename_schema"])
        connection.execute(_SQL["create_schema"])
        _run(connection, statements())
        return _Content.of(connection)


def _replace(connection: Connection[Any], defined: _Content) -> None:
    """Definitions in their places; functions of a defined name with other parameters give way first."""
    former = {
        identity: oid
        for identity, (oid, name) in _Content.of(connection).functions.items()
        if identity not in defined.functions and name in defined.names
    }
    aside = {oid: Identifier(MEMORY_SCHEMA, f"former_{oid}") for oid in former.values()}
    for identity, oid in former.items():
        function = SQL(identity)
        connection.execute(SQL("ALTER FUNCTION {} RENAME TO {}").format(function, Identifier(f"former_{oid}")))
    _run(connection, statements())
    _refuse_dependents(connection, list(aside))
    for name in aside.values():
        connection.execute(SQL("DROP FUNCTION {}").format(name))


def _refuse_dependents(connection: Connection[Any], functions: list[int] | None, also: Iterable[str] = ()) -> None:
    found = [name for (name,) in connection.execute(_SQL["dependents"], {"functions": functions}).fetchall()]
    if dependents := [*found, *also]:
        raise MemorySchemaInUseError(dependents)


def _make_anew(connection: Connection[Any], defined: _Content) -> None:
    added_by_others = sorted(_Content.of(connection).names - defined.names)
    _refuse_dependents(connection, None, (f"{MEMORY_SCHEMA}.{name}" for name in added_by_others))
    given = queries("rebuild")["grants"]
    grants = connection.execute(given, {"live": MEMORY_SCHEMA, "rebuilt": MEMORY_SCHEMA}).fetchall()
    connection.execute(_SQL["drop_schema"])
    connection.execute(_SQL["create_schema"])
    _run(connection, statements())
    _run(connection, [SQL(cast("LiteralString", grant)) for (grant,) in grants])


def _run(connection: Connection[Any], wanted: list[SQL]) -> None:
    for statement in wanted:
        connection.execute(statement)
