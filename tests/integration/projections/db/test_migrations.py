"""Migrations: repeatable, safe at once, forward only; a second schema is equal to the first."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
import pytest_asyncio
from alembic import command
from psycopg import sql
from psycopg.rows import TupleRow

from mnemolog.projections.errors import DowngradeRefusedError
from mnemolog.projections.memory import upgrade as memory_upgrade
from mnemolog.projections.migrations import revision
from mnemolog.projections.migrations.upgrade import create_projection_schema, migrate, migration_text
from mnemolog.projections.rebuild.log_source import TableLogSource
from mnemolog.projections.rebuild.rebuild import rebuild
from mnemolog.projections.sql import queries
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.provenance import Step
from tests.support.builders.commits import (
    added,
    commit,
    confirmed,
    contradicted,
    day,
    fact_id_at,
    merged,
    replaced,
    skipped,
    with_decision,
)
from tests.support.databases import database_name
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
MIGRATIONS = Path(revision.__file__).parent
NEWEST = max(path.name[:4] for path in MIGRATIONS.glob("*.sql"))
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


USED_TOKENS = Step(
    stage="extract", milliseconds=1, model="m", llm_calls=1, input_tokens=5, output_tokens=2, cached_tokens=4
)


def before_decisions() -> list[Commit]:
    """Everything that could happen before decisions were more than adding, confirming and overwriting."""
    first = commit("1", *(added(f"Fact {number}.", speaker=f"Speaker {3 - number}") for number in range(4)), at=day(1))
    facts = [fact_id_at(first, number) for number in range(4)]
    replacing = with_decision(replaced("New.", facts[0]), by="model", model="m", prompt_version="resolve-1")
    return [
        first,
        commit("2", confirmed(facts[0]), skipped(facts[3]), at=day(2), steps=[USED_TOKENS]),
        commit("3", replacing, added("Perhaps.", unresolved=True, speaker="Alice"), at=day(3)),
        commit("4", merged("Both.", facts[1], facts[2]), at=day(4)),
        commit("5", contradicted("Never.", fact_id_at(commit("3", replacing))), at=day(5)),
    ]


async def as_before_decisions(url: str, filled: ProjectedDatabase) -> None:
    """A database as its second migration left it, with the same rows in the columns that there were."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        for schema, file in (("mnemolog_journal", "0001_journal.sql"), ("mnemolog", "0002_projections.sql")):
            await connection.execute(f"CREATE SCHEMA {schema}")
            await connection.execute(f"SET search_path = {schema}, public")
            await connection.execute(migration_text(file).encode())
        await connection.execute("CREATE TABLE mnemolog_journal.alembic_version (version_num varchar(32) PRIMARY KEY)")
        await connection.execute("INSERT INTO mnemolog_journal.alembic_version VALUES ('0002')")
        for table, columns in await (await connection.execute(COLUMNS)).fetchall():
            names = {"table": sql.Identifier(table), "columns": sql.SQL(", ").join(map(sql.Identifier, columns))}
            rows = await filled.conn.execute(sql.SQL("SELECT to_jsonb(t)::text FROM {table} AS t").format(**names))
            for row in await rows.fetchall():
                await connection.execute(TAKEN.format(**names), row)


TAKEN = sql.SQL("INSERT INTO {table} ({columns}) SELECT {columns} FROM jsonb_populate_record(NULL::{table}, %s::jsonb)")
COLUMNS = """
SELECT c.relname::text, array_agg(a.attname::text) FROM pg_class AS c
JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND a.attgenerated = ''
WHERE c.relnamespace = 'mnemolog'::regnamespace AND c.relkind = 'r'
GROUP BY c.relname
"""
STANDINGS = """
SELECT fact_id, status, confidence, mention_count, last_confirmed_at, true_to, closed_at, believed_from, believed_to,
    superseded_by, unresolved, recorded_at, authority, single_valued
FROM facts ORDER BY fact_id
"""
SCOPE_COUNTS = "SELECT tenant, user_id, version, facts, speakers FROM scopes ORDER BY 1, 2"
TENANT_COUNTS = "SELECT tenant, partition, facts FROM tenant_facts ORDER BY 1, 2"
TOKENS = "SELECT tenant, user_id, day, partition, tokens FROM daily_tokens ORDER BY 1, 2, 3, 4"
USAGE = "SELECT d.* FROM daily_usage AS d ORDER BY 1, 2, 3, 4, 5, 6, 7, 8"
ENDS = """
SELECT former.fact_id, former.event_id, former.until, former.status, former.confidence, former.mention_count,
    former.last_confirmed_at, former.believed_from
FROM former_states AS former JOIN memory_events USING (event_id)
WHERE event IN ('facts_merged', 'fact_replaced', 'fact_contradicted') ORDER BY 1
"""
COVERED = """
SELECT count(*) FROM facts AS f WHERE f.recorded_at <> (
    SELECT least(min(s.since), f.state_since) FROM former_states AS s WHERE s.fact_id = f.fact_id
) OR f.state_since <> (SELECT coalesce(max(s.until), f.state_since) FROM former_states AS s WHERE s.fact_id = f.fact_id)
"""
AUTHORS = "SELECT event_id, model, prompt_version FROM memory_events WHERE model IS NOT NULL"


async def test_tables_of_before_are_brought_on_and_a_rebuild_makes_them_whole(
    empty_database: str, database: str
) -> None:
    async with ProjectedDatabase.open(database) as fresh:
        await fresh.apply(*before_decisions())
        await as_before_decisions(empty_database, fresh)
        await migrate(empty_database)
        async with ProjectedDatabase.open(empty_database) as old:
            for query in (STANDINGS, ENDS, AUTHORS, SCOPE_COUNTS, TENANT_COUNTS, TOKENS, USAGE):
                assert len(rows := await old.rows(query)) > 0
                assert rows == await fresh.rows(query)
            assert await old.rows(COVERED) == [(0,)]
            assert (await rebuild(old.url, TableLogSource(old.pool))).swapped
            assert await all_rows(old) == await all_rows(fresh)


async def test_an_upgrade_keeps_rights_on_views_and_what_is_made_over_them(
    empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = command.upgrade
    monkeypatch.setattr(command, "upgrade", lambda config, _: newest(config, "0021"))
    monkeypatch.setattr(memory_upgrade, "ensure_memory_schema", lambda _: None)  # it is of the newest tables
    await migrate(empty_database)
    monkeypatch.undo()
    async with await psycopg.AsyncConnection.connect(empty_database, autocommit=True) as connection:
        await connection.execute("GRANT SELECT ON mnemolog.turns TO PUBLIC")
        await connection.execute("CREATE VIEW public.mine AS SELECT source_id, status FROM mnemolog.turns")
        await migrate(empty_database)
        rights = await connection.execute("SELECT has_table_privilege('public', 'mnemolog.turns', 'select')")
        assert await rights.fetchall() == [(True,)]
        assert await (await connection.execute("SELECT * FROM public.mine")).fetchall() == []


async def all_rows(db: ProjectedDatabase) -> dict[str, list[TupleRow]]:
    tables = await db.rows("SELECT tablename::text FROM pg_tables WHERE schemaname = 'mnemolog'")
    query = sql.SQL("SELECT t::text FROM {} AS t ORDER BY 1")
    return {name: await (await db.conn.execute(query.format(sql.Identifier(name)))).fetchall() for (name,) in tables}


def test_no_migration_is_taken_back() -> None:
    _, downgrade = revision.sql_revision("0002_projections.sql")
    with pytest.raises(DowngradeRefusedError, match="0002"):
        downgrade()


def test_queries_are_found_by_file_and_name() -> None:
    assert "FROM" in queries("search")["hybrid"].as_string()
