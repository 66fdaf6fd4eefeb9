"""Makes the schema `memory`, and brings it up to date after migrations."""

from typing import Any, Final

from psycopg import Connection
from psycopg.sql import SQL, Literal

from mnemolog.projections.definitions import replace_definitions
from mnemolog.projections.errors import MemorySchemaRefusedError
from mnemolog.projections.memory.definitions import MEMORY_SCHEMA, digest, statements
from mnemolog.projections.sql import queries

_ABOUT: Final = "Views and functions for SQL users: what is known, without the internal tables. Made by"


def ensure_memory_schema(connection: Connection[Any]) -> None:
    """Give the schema the views and functions of this program; does nothing where it has them.

    Runs in the caller's transaction. Raises `SchemaInUseError` where objects of others would be lost by that, and
    `MemorySchemaRefusedError` where the schema is another application's.
    """
    comment = f"{_ABOUT} {digest()}."
    (found,) = connection.execute("SELECT obj_description(to_regnamespace('memory'), 'pg_namespace')").fetchone() or (
        None,
    )
    if found == comment:
        return
    if not (found or "").startswith(_ABOUT):  # an empty schema may be there, for grants on it before it is filled
        content = connection.execute(queries("definitions")["content"], {"schema": MEMORY_SCHEMA}).fetchall()
        if content:
            raise MemorySchemaRefusedError([name for (name,) in content])
    connection.execute("CREATE SCHEMA IF NOT EXISTS memory")
    replace_definitions(connection, MEMORY_SCHEMA, "\n".join(f"{one.as_string()};" for one in statements()))
    connection.execute(SQL("COMMENT ON SCHEMA memory IS {}").format(Literal(comment)))
