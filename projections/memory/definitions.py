"""Makes the schema `memory`, and brings it up to date after migrations.

It has the client's own queries as functions, and views over the tables.
"""

import hashlib
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from psycopg import Connection
from psycopg.sql import SQL, Composable, Literal

from mnemolog.projections.definitions import replace_definitions
from mnemolog.projections.errors import MemorySchemaRefusedError
from mnemolog.projections.memory.client_queries import CLIENT_QUERIES, fact_columns, scope_condition
from mnemolog.projections.sql import column_types, queries

MEMORY_SCHEMA: Final = "memory"
_ABOUT: Final = "Views and functions for SQL users: what is known, without the internal tables. Made by"
_VIEWS_AND_HELPERS: Final = (
    *("check_scope", "check_given", "check_search", "state_at"),
    *("fact_rows", "current_facts", "pending_rows", "event_rows", "turn_rows"),
    *("entity_rows", "entity_alias_rows", "fact_entity_rows", "relationship_rows"),
)
_FACT_COLUMN: Final = re.compile(r"(?:AS |\.)(\w+)(?=,\n|, f\.|\Z)")
_SHARED_TEXTS: Final = ("scope_parameters", "settings", "hit_columns")
_SQL: Final = {**queries("memory"), **queries("memory_views")}


def ensure_memory_schema(connection: Connection[Any]) -> None:
    """Give the schema the views and functions of this program; does nothing where it has them.

    Runs in the caller's transaction. Raises `SchemaInUseError` where objects of others would be lost by that, and
    `MemorySchemaRefusedError` where the schema is another application's.
    """
    functions = [
        _composed(
            name, {place: query.body_in(name) for place, query in found.items()} | {"scope": scope_condition(name)}
        )
        for name, found in CLIENT_QUERIES.items()
    ]
    made = [*map(_composed, _VIEWS_AND_HELPERS), *functions, _SQL["column_comments"]]
    text = "\n".join(f"{one.as_string()};" for one in made)
    comment = f"{_ABOUT} {hashlib.sha256(text.encode()).hexdigest()}."
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
    replace_definitions(connection, MEMORY_SCHEMA, text)
    connection.execute(SQL("COMMENT ON SCHEMA memory IS {}").format(Literal(comment)))


def _composed(name: str, more: Mapping[str, Composable] = MappingProxyType({})) -> SQL:
    """The statements under a name of `memory.sql`; a text without places is taken as it is."""
    conflicting = queries("pending")["conflicting_fact"].as_string().replace("utc_text(", "mnemolog.utc_text(")
    types, columns = column_types("facts"), queries("facts")["fact_columns"].as_string()  # no table has begins_later
    places = {
        **{name: _SQL[name] for name in _SHARED_TEXTS},
        "fact_types": SQL(", ".join(f"{name} {types.get(name, 'boolean')}" for name in _FACT_COLUMN.findall(columns))),
        "fact": fact_columns(ids="s"),
        "conflicting": SQL(conflicting),
        **more,
    }
    text = _SQL[name]
    has_places = any(f"{{{place}}}" in text.as_string() for place in places)
    return SQL(text.format(**places).as_string()) if has_places else text
