"""Migrations: repeatable, safe at once, forward only; a second schema is equal to the first."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
import pytest_asyncio
from psycopg import sql
from psycopg.rows import TupleRow

from mnemolog.projections.errors import MigrationRefusedError, SchemaInUseError
from mnemolog.projections.migrations import upgrade
from mnemolog.projections.migrations.upgrade import create_projection_schema, migrate
from mnemolog.projections.sql import migration_text, queries
from tests.support.databases import database_name
from tests.support.harnesses.rebuilds import catalogue

pytestmark = pytest.mark.postgres
Connection = psycopg.AsyncConnection[TupleRow]


@pytest_asyncio.fixture
async def connection(database: str) -> AsyncIterator[Connection]:
    async with await psycopg.AsyncConnection.connect(database) as connection:
        await connection.execute("SET search_path = mnemolog, mnemolog_journal, public")
        yield connection
        await connection.rollback()


async def test_migrating_again_and_at_once_changes_nothing(empty_database: str) -> None:
    await asyncio.gather(*(migrate(empty_database) for _ in range(3)))
    await migrate(empty_database)
    async with await psycopg.AsyncConnection.connect(empty_database) as connection:
        cursor = await connection.execute("SELECT file FROM mnemolog_journal.schema_files ORDER BY file")
        assert [file for (file,) in await cursor.fetchall()] == [
            *("journal/functions.sql", "journal/tables.sql"),
            *("projections/functions.sql", "projections/tables.sql", "projections/views.sql"),
        ]
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
    assert await (await connection.execute("SELECT current_schema()")).fetchone() == ("mnemolog",)
    live = await catalogue(connection)
    assert len(live) > 100
    assert await catalogue(connection, "mnemolog_next") == live


async def test_memory_events_are_append_only(connection: Connection) -> None:
    await connection.execute(
        "INSERT INTO memory_events (event_id, partition, log_offset, ordinal, owner, source_id, event, fact_id, "
        "occurred_at, decided_at, decided_by, reason, payload) VALUES (gen_random_uuid(), 0, 0, 0, 'o', 's', "
        "'fact_added', gen_random_uuid(), now(), now(), 'hash', 'r', '{}')"
    )
    for change in ("UPDATE memory_events SET reason = ''", "DELETE FROM memory_events", "TRUNCATE memory_events"):
        with pytest.raises(psycopg.errors.RestrictViolation, match="append-only"):
            async with connection.transaction():
                await connection.execute(change.encode())


def run(url: str, *statements: str) -> list[TupleRow]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.cursor()
        for statement in statements:
            cursor.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


@pytest.mark.parametrize(
    ("statement", "refusal"),
    [
        (
            "INSERT INTO mnemolog_journal.schema_files VALUES ('projections/9999_later.sql', '')",
            r"newer than this program, which does not know projections/9999_later\.sql",
        ),
        (
            "UPDATE mnemolog_journal.schema_files SET digest = '' WHERE file = 'journal/tables.sql'",
            r"journal/tables\.sql was changed after it was applied",
        ),
        ("CREATE TABLE mnemolog_journal.alembic_version (version_num text)", "from before the first release"),
    ],
)
async def test_a_database_of_another_program_is_refused_as_it_is(database: str, statement: str, refusal: str) -> None:
    run(database, statement, OTHER_VIEW)
    before = run(database, VIEWS)
    with pytest.raises(MigrationRefusedError, match=refusal):
        await migrate(database)
    assert run(database, VIEWS) == before


@pytest.mark.parametrize("table", ["mnemolog.facts", "mnemolog_journal.mine"])
def test_a_schema_of_somebody_else_is_refused_as_it_is(empty_database: str, table: str) -> None:
    run(empty_database, f"CREATE SCHEMA {table.partition('.')[0]}", f"CREATE TABLE {table} (a int)")
    with pytest.raises(MigrationRefusedError, match=f"the schema {table.partition('.')[0]} has tables"):
        asyncio.run(migrate(empty_database))
    assert run(empty_database, f"SELECT * FROM {table}") == []  # noqa: S608 -- names of this file


VIEWS = "SELECT viewname, definition FROM pg_views WHERE schemaname = 'mnemolog' ORDER BY 1"
RIGHTS = "SELECT has_table_privilege('public', 'mnemolog.open_reservations', 'select')"
CHANGED_VIEWS = "UPDATE mnemolog_journal.schema_files SET digest = '' WHERE file = 'projections/views.sql'"
OTHER_VIEW = """
CREATE OR REPLACE VIEW mnemolog.open_reservations AS SELECT * FROM mnemolog_journal.limit_reservations WHERE false
"""
OTHER_COLUMNS = """
DROP VIEW mnemolog.open_reservations CASCADE;
CREATE VIEW mnemolog.open_reservations AS SELECT 1 AS tenant;
"""
GRANTED = "GRANT SELECT ON mnemolog.open_reservations TO PUBLIC"
MINE = "CREATE VIEW public.mine AS SELECT tenant FROM mnemolog.open_reservations"


@pytest.mark.parametrize(("view", "more"), [(OTHER_VIEW, [MINE]), (OTHER_COLUMNS, [])], ids=["same", "other columns"])
async def test_a_changed_view_is_replaced_with_its_rights(database: str, view: str, more: list[str]) -> None:
    """And what others made over it stays, where its columns are the same."""
    made = run(database, VIEWS)
    run(database, view, CHANGED_VIEWS, GRANTED, *more)
    await migrate(database)
    assert run(database, VIEWS) == made
    assert run(database, RIGHTS) == [(True,)]
    assert not more or run(database, "SELECT * FROM public.mine") == []


async def test_a_view_with_other_columns_is_not_taken_from_those_who_need_it(database: str) -> None:
    run(database, OTHER_COLUMNS, CHANGED_VIEWS, MINE)
    before = run(database, VIEWS)
    with pytest.raises(SchemaInUseError, match="drop mine, migrate"):
        await migrate(database)
    assert run(database, VIEWS) == before


async def test_a_numbered_file_runs_once_and_views_are_made_after_it(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, tables, added = migration_text, upgrade._table_files, "projections/0001_shorter.sql"
    made = run(database, VIEWS)
    with psycopg.connect(database) as reader:  # readers are not waited for where nothing has changed
        reader.execute("SELECT FROM mnemolog.turns, mnemolog.facts, mnemolog.merge_proposals")
        await migrate(database)
    shorter = "DROP VIEW merge_proposals; ALTER TABLE policies ADD COLUMN note text"
    monkeypatch.setattr(upgrade, "migration_text", lambda file: shorter if file == added else text(file))
    monkeypatch.setattr(upgrade, "_table_files", lambda of: [*tables(of), *([added] if of == "projections" else [])])
    await migrate(database)
    await migrate(database)
    assert run(database, VIEWS) == made
    assert run(database, "SELECT note FROM mnemolog.policies") == []


async def test_a_reader_that_goes_on_for_long_leaves_the_database_as_it_was(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorter = sql.SQL(queries("migrations")["set_timeouts"].as_string().replace("5s", "200ms"))
    monkeypatch.setattr(upgrade, "_SQL", {**queries("migrations"), "set_timeouts": shorter})
    run(database, OTHER_VIEW, CHANGED_VIEWS)
    before = run(database, VIEWS)
    with psycopg.connect(database) as reader:
        reader.execute("SELECT FROM mnemolog.open_reservations")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            await migrate(database)
    assert run(database, VIEWS) == before


def test_queries_are_found_by_file_and_name() -> None:
    assert "FROM" in queries("search")["hybrid"].as_string()
