"""The schema that a rebuild fills: without the indexes of readers, or as an interrupted rebuild has left it."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain
from typing import Final, LiteralString, cast

from psycopg.sql import Identifier, Literal

from mnemolog.projections.migrations.upgrade import create_projection_schema, migration_text, projection_files
from mnemolog.projections.rebuild.kept_tables import show_live_tables
from mnemolog.projections.rebuild.schemas import NEXT_SCHEMA
from mnemolog.projections.sql import queries
from mnemolog.projections.write.table_writer import Connection

_FOLDING_PACKAGES: Final = (
    "mnemolog.projections.write",
    "mnemolog.projections.write.entities",
    "mnemolog.schemas",
    "mnemolog.schemas.entities",
)
_SQL: Final = queries("rebuild")


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """An index that only readers need, with the statement that makes it."""

    name: str
    table: str
    definition: LiteralString


async def make_next_schema(connection: Connection, *, full: bool) -> bool:
    """Make the schema with empty tables and without the indexes of readers; its comment keeps them.

    Unless it is to be `full`, it shows the live copy of the log instead of tables for it; whether it does.
    """
    async with connection.transaction():
        await create_projection_schema(connection, NEXT_SCHEMA)
        keeps = not full and await show_live_tables(connection)
        rows = await (await connection.execute(_SQL["plain_indexes"], {"schema": NEXT_SCHEMA})).fetchall()
        for name, _, _ in rows:
            await connection.execute(_SQL["drop_index"].format(index=Identifier(NEXT_SCHEMA, name)))
        comment = json.dumps({"made_by": fingerprint(), "indexes": rows})
        await _set_comment(connection, comment)
    return keeps


async def was_made_by_this_program(connection: Connection) -> bool:
    """Whether there is such a schema, with tables that this program folds and makes in the same way."""
    comment = await _comment(connection)
    return comment is not None and json.loads(comment)["made_by"] == fingerprint()


async def missing_indexes(connection: Connection) -> list[Index]:
    """The indexes of readers that the schema lacks still."""
    indexes = [Index(name=name, table=table, definition=text) for name, table, text in await _indexes(connection)]
    rows = await (await connection.execute(_SQL["plain_indexes"], {"schema": NEXT_SCHEMA})).fetchall()
    present = {name for name, _, _ in rows}
    return [index for index in indexes if index.name not in present]


async def forget_origin(connection: Connection) -> None:
    """Remove what `make_next_schema` has noted: the schema becomes one like any other."""
    await _set_comment(connection, None)


def fingerprint() -> str:
    """SHA-256 of all that decides about the rows: the fold with its records, and the tables."""
    files_of_tables = ("journal/functions.sql", *projection_files())  # the words of facts are found by the former
    return hashlib.sha256("\n".join(chain(_sources(), map(migration_text, files_of_tables))).encode()).hexdigest()


def _sources() -> Iterator[str]:
    for package in _FOLDING_PACKAGES:
        modules = sorted(files(package).iterdir(), key=lambda entry: entry.name)
        yield from (module.read_text(encoding="utf-8") for module in modules if module.name.endswith(".py"))


async def _indexes(connection: Connection) -> list[tuple[str, str, LiteralString]]:
    comment = await _comment(connection)
    return cast("list[tuple[str, str, LiteralString]]", json.loads(comment)["indexes"]) if comment else []


async def _comment(connection: Connection) -> str | None:
    row = await (await connection.execute(_SQL["schema_comment"], {"schema": NEXT_SCHEMA})).fetchone()
    return row[0] if row else None


async def _set_comment(connection: Connection, comment: str | None) -> None:
    statement = _SQL["set_schema_comment"].format(schema=Identifier(NEXT_SCHEMA), comment=Literal(comment))
    await connection.execute(statement)
