"""Migrations: repeatable, safe at once, forward only; a second schema is equal to the first."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
import pytest_asyncio
from psycopg import sql
from psycopg.rows import TupleRow

from mnemolog.projections.errors import DowngradeRefusedError
from mnemolog.projections.migrations import revision
from mnemolog.projections.migrations.upgrade import create_projection_schema, migrate
from mnemolog.projections.sql import queries
from tests.support.databases import database_name

pytestmark = pytest.mark.postgres
MIGRATIONS = Path(revision.__file__).parent
NEWEST = max(path.name[:4] for path in (MIGRATIONS / "versions").glob("[0-9]*.py"))
Connection = psycopg.AsyncConnection[TupleRow]

# Columns, constraints, indexes, triggers, views and functions; names of schemas do not count.
CATALOG = """
SELECT 'column', c.relname || '.' || a.attname,
    format_type(a.atttypid, a.atttypmod) || a.attnotnull || a.attstorage::text
    || coalesce(pg_get_expr(d.adbin, d.adrelid), '')
FROM pg_attribute AS a JOIN pg_class AS c ON c.oid = a.attrelid
LEFT JOIN pg_attrdef AS d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relnamespace = %(schema)s::regnamespace AND a.attnum > 0
UNION ALL
SELECT 'constraint', r.relname || '.' || conname, pg_get_constraintdef(k.oid)
FROM pg_constraint AS k JOIN pg_class AS r ON r.oid = k.conrelid WHERE connamespace = %(schema)s::regnamespace
UNION ALL
SELECT 'index', indexname, indexdef FROM pg_indexes WHERE schemaname = %(schema)s::text
UNION ALL
SELECT 'trigger', tgname, pg_get_triggerdef(t.oid)
FROM pg_trigger AS t JOIN pg_class AS c ON c.oid = t.tgrelid WHERE c.relnamespace = %(schema)s::regnamespace
UNION ALL
SELECT 'view', viewname, definition FROM pg_views WHERE schemaname = %(schema)s::text
UNION ALL
SELECT 'function', proname, pg_get_functiondef(oid) FROM pg_proc WHERE pronamespace = %(schema)s::regnamespace
UNION ALL
SELECT 'storage', c.relname, array_to_string(c.reloptions, ',') FROM pg_class AS c
WHERE c.relnamespace = %(schema)s::regnamespace AND c.reloptions IS NOT NULL
UNION ALL
SELECT 'comment', c.relname, obj_description(c.oid, 'pg_class')
FROM pg_class AS c WHERE c.relnamespace = %(schema)s::regnamespace AND c.relkind IN ('r', 'v')
ORDER BY 1, 2
"""


@pytest_asyncio.fixture
async def connection(database: str) -> AsyncIterator[Connection]:
    async with await psycopg.AsyncConnection.connect(database) as connection:
        await connection.execute("SET search_path = mnemolog, mnemolog_journal, public")
        yield connection
        await connection.rollback()


async def catalog(connection: Connection, schema: str) -> list[tuple[str, ...]]:
    await connection.execute("SET LOCAL search_path = pg_catalog")  # so that every definition names its schema
    rows = await (await connection.execute(CATALOG, {"schema": schema})).fetchall()
    return [tuple(str(value).replace(f"{schema}.", "SCHEMA.") for value in row) for row in rows]


async def test_migrating_again_and_at_once_changes_nothing(empty_database: str) -> None:
    await asyncio.gather(*(migrate(empty_database) for _ in range(3)))
    await migrate(empty_database)
    async with await psycopg.AsyncConnection.connect(empty_database) as connection:
        cursor = await connection.execute("SELECT version_num FROM mnemolog_journal.alembic_version")
        assert await cursor.fetchall() == [(NEWEST,)]
        await connection.execute("SELECT * FROM turns, facts, turn_journal")  # found without a prefix


async def test_the_owner_of_a_database_migrates_it_without_being_superuser(empty_database: str) -> None:
    """As on servers that others run."""
    url, role = urlsplit(empty_database), sql.Identifier(f"owner_{uuid.uuid4().hex}")
    async with await psycopg.AsyncConnection.connect(empty_database, autocommit=True) as admin:
        await admin.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'pw'").format(role))
        try:
            database = sql.Identifier(database_name(empty_database))
            await admin.execute(sql.SQL("ALTER DATABASE {} OWNER TO {}").format(database, role))
            address = f"{role.as_string(admin).strip(chr(34))}:pw@{url.hostname}:{url.port}"
            await migrate(urlunsplit(url._replace(netloc=address)))
        finally:
            await admin.execute(sql.SQL("REASSIGN OWNED BY {} TO CURRENT_USER").format(role))
            await admin.execute(sql.SQL("DROP ROLE {}").format(role))


async def test_a_schema_for_a_rebuild_equals_the_migrated_one(connection: Connection) -> None:
    await create_projection_schema(connection, "mnemolog_next")
    await connection.commit()
    live = await catalog(connection, "mnemolog")
    assert len(live) > 100
    assert await catalog(connection, "mnemolog_next") == live


async def test_making_a_schema_keeps_the_search_path(connection: Connection) -> None:
    await create_projection_schema(connection, "mnemolog_next")
    cursor = await connection.execute("SELECT current_schema()")
    assert await cursor.fetchone() == ("mnemolog",)


@pytest.mark.parametrize(
    "statement", ["UPDATE memory_events SET reason = ''", "DELETE FROM memory_events", "TRUNCATE memory_events"]
)
async def test_memory_events_are_append_only(connection: Connection, statement: str) -> None:
    await connection.execute(
        "INSERT INTO memory_events (event_id, partition, log_offset, ordinal, owner, source_id, event, fact_id, "
        "occurred_at, decided_at, decided_by, reason, payload) VALUES (gen_random_uuid(), 0, 0, 0, 'o', 's', "
        "'fact_added', gen_random_uuid(), now(), now(), 'hash', 'r', '{}')"
    )
    with pytest.raises(psycopg.errors.RestrictViolation, match="append-only"):
        await connection.execute(statement)


def test_no_migration_is_taken_back() -> None:
    _, downgrade = revision.sql_revision("0002_projections.sql")
    with pytest.raises(DowngradeRefusedError, match="0002"):
        downgrade()


def test_queries_are_found_by_file_and_name() -> None:
    assert "FROM" in queries("search")["hybrid"].as_string()
