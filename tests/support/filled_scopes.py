"""Facts and entities of many owners by the hundred thousand, made by Postgres itself in seconds."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psycopg

MODEL: Final = "text-embedding-3-small"
_BASES: Final = 500


def fill_scopes(url: str, sizes: Mapping[str, int], *, dimensions: int) -> None:
    """Fill an empty migrated database with users of the default tenant, each with so many facts, their turns mixed.

    Of a hundred facts one is pending and three have ended. Takes some seconds for 100 000 facts of few dimensions.
    """
    users = {"users": list(sizes), "sizes": list(sizes.values())}
    _run(url, "filled_scopes.sql", {**users, "dimensions": dimensions, "bases": _BASES, "model": MODEL})
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")


def fill_entities(url: str, *, facts: int = 1) -> None:
    """Give each fact of a database that `fill_scopes` has filled an entity, one for so many facts.

    The first entity of a user is the user, the second their wife; every tenth is a friend. Of ten facts
    one was moved to the third entity.
    """
    _run(url, "filled_entities.sql", {"facts": facts, "model": MODEL})


def name_of_entity(number: int) -> str:
    """The name of an entity of any user by its number."""
    digits = hashlib.md5(str(number).encode(), usedforsecurity=False).hexdigest()[:8]
    return digits.translate(str.maketrans("0123456789", "ghijklmnop")).capitalize()


def _run(url: str, name: str, parameters: Mapping[str, object]) -> None:
    script = Path(__file__).with_name(name).read_text(encoding="utf-8")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET search_path = mnemolog, mnemolog_journal, public")
        connection.execute("SET timezone = 'UTC'")
        with _without_indexes(connection):
            psycopg.ClientCursor(connection).execute(script.encode(), parameters)  # the server takes one statement


@contextmanager
def _without_indexes(connection: psycopg.Connection) -> Iterator[None]:
    """An index that is made of all rows at once takes a tenth of the time."""
    query = (
        "SELECT indexrelid::regclass::text, pg_get_indexdef(indexrelid) FROM pg_index "
        "WHERE NOT indisunique AND indrelid::regclass::text = ANY(%s)"
    )
    tables = ["facts", "memory_events", "commits", "turn_journal", "entities", "entity_aliases", "fact_entities"]
    indexes = connection.execute(query, [tables]).fetchall()
    for name, _ in indexes:
        connection.execute(f"DROP INDEX {name}".encode())
    yield
    for _, definition in indexes:
        connection.execute(definition)
