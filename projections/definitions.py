"""Views and functions of a schema are replaced by those of this program; what others made over them stays."""

import re
from collections.abc import Sequence
from typing import Any, Final

import psycopg
from psycopg import Connection
from psycopg.sql import SQL

from mnemolog.projections.errors import SchemaInUseError
from mnemolog.projections.sql import queries

_DEFINED: Final = re.compile(r"^CREATE OR REPLACE (?:VIEW|FUNCTION) (?:\w+\.)?(\w+)", re.MULTILINE)
_PART: Final = re.compile(r"^(?=CREATE OR REPLACE |COMMENT ON )", re.MULTILINE)
_SQL: Final = queries("definitions")


def replace_definitions(connection: Connection[Any], schema: str, text: str) -> None:
    """Run `text`, whose statements create or replace views and functions of `schema`, in the caller's transaction.

    A function that gets other parameters takes the place of the former one. Where a view or an answer gets other
    columns, all are dropped and created, with the grants on them. Raises `SchemaInUseError` where an object of others
    needs a view or function as it was.
    """
    names = _DEFINED.findall(text)
    try:
        with connection.transaction():
            # A comment names a function without its parameters: one has to be left when it is made.
            parts = _PART.split(text)
            comments = [part for part in parts if part.startswith("COMMENT ON ")]
            before = _functions(connection, schema, names)
            connection.execute("".join(part for part in parts if part not in comments).encode())
            untouched = before & _functions(connection, schema, names)
            for oid, _, signature in untouched:
                _refuse_dependents(connection, [oid])
                connection.execute(SQL("DROP FUNCTION {}").format(SQL(signature)))
            connection.execute("".join(comments).encode())
    except (psycopg.errors.InvalidFunctionDefinition, psycopg.errors.InvalidTableDefinition):
        objects = connection.execute(_SQL["objects"], {"schema": schema, "names": names}).fetchall()
        _refuse_dependents(connection, [oid for oid, _ in objects])
        grants = connection.execute(queries("rebuild")["grants"], {"live": schema, "rebuilt": schema}).fetchall()
        for _, drop in objects:
            connection.execute(drop)  # what falls with it is of `objects`, too
        connection.execute(text.encode())
        for (grant,) in grants:
            connection.execute(grant)


def _functions(connection: Connection[Any], schema: str, names: Sequence[str]) -> set[tuple[int, str, str]]:
    """Each function of these names by its oid, the transaction that wrote it, and its signature."""
    return set(connection.execute(_SQL["functions"], {"schema": schema, "names": names}).fetchall())


def _refuse_dependents(connection: Connection[Any], oids: Sequence[int]) -> None:
    found = connection.execute(_SQL["dependents"], {"oids": list(oids)}).fetchall()
    if found:
        raise SchemaInUseError([name for (name,) in found])
