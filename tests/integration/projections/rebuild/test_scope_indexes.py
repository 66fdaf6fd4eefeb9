"""Which scopes have indexes of their own, and that a rebuild leaves them theirs."""

from collections.abc import AsyncIterator
from typing import Any, LiteralString

import pytest
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.database import connection_settings, prepare_connection
from mnemolog.projections.errors import RebuildRunningError
from mnemolog.projections.rebuild import scope_indexes
from mnemolog.projections.rebuild.rebuild import rebuild
from mnemolog.projections.rebuild.replay import open_table_log
from mnemolog.projections.rebuild.scope_indexes import IndexReport, index_scopes
from mnemolog.projections.rebuild.swap import REBUILD_LOCK
from mnemolog.projections.sql import queries
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import added, commit
from tests.support.filled_scopes import fill_scopes
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres


@pytest.fixture
async def conn(database: str) -> AsyncIterator[AsyncConnection[TupleRow]]:
    async with await AsyncConnection.connect(
        database, autocommit=True, **connection_settings(database, application_name="test")
    ) as one:
        await prepare_connection(one)
        yield one


async def rows(conn: AsyncConnection[TupleRow], query: LiteralString) -> list[Any]:
    return [row[0] for row in await (await conn.execute(query)).fetchall()]


async def indexes(conn: AsyncConnection[TupleRow]) -> list[str]:
    query = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'mnemolog' AND indexname ~ '^facts_(near|words)_'"
    return sorted(await rows(conn, query))


def users(report: IndexReport) -> list[str]:
    return [scope.user_id for scope in report.scopes]


async def test_large_scopes_get_indexes_and_lose_them_when_they_shrink_to_a_half(
    database: str, conn: AsyncConnection[TupleRow]
) -> None:
    fill_scopes(database, {"large": 400, "middle": 200, "small": 20}, dimensions=3)
    report = await index_scopes(database, least=150)
    assert (users(report), report.made, report.dropped) == (["large", "middle"], 4, 0)
    made = await indexes(conn)
    assert [sum(f"'{user}'" in text for text in made) for user in ("large", "middle", "small")] == [2, 2, 0]
    assert (await index_scopes(database, least=150)).made == 0

    await conn.execute("UPDATE scopes SET facts = 80 WHERE user_id = 'middle'")
    assert users(await index_scopes(database, least=150)) == ["large", "middle"]
    await conn.execute("UPDATE scopes SET facts = 70 WHERE user_id = 'middle'")
    report = await index_scopes(database, least=150)
    assert (users(report), report.made, report.dropped) == (["large"], 0, 2)
    assert await rows(conn, "SELECT user_id FROM indexed_scopes") == ["large"]
    assert len(await indexes(conn)) == 2


async def test_only_so_many_scopes_have_indexes(
    database: str, conn: AsyncConnection[TupleRow], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_scopes(database, {"a": 40, "b": 60, "c": 50}, dimensions=3)
    monkeypatch.setattr(scope_indexes, "MAX_INDEXED_SCOPES", 2)
    assert users(await index_scopes(database, least=1)) == ["b", "c"]
    await conn.execute("UPDATE scopes SET facts = 70 WHERE user_id = 'a'")
    assert users(await index_scopes(database, least=1)) == ["a", "b"]
    assert sorted(await rows(conn, "SELECT user_id FROM indexed_scopes")) == ["a", "b"]
    assert len(await indexes(conn)) == 4


async def test_what_an_interruption_left_and_indexes_of_another_model_are_made_anew(
    database: str, conn: AsyncConnection[TupleRow]
) -> None:
    fill_scopes(database, {"large": 100}, dimensions=3)
    await index_scopes(database, least=50)
    complete = await indexes(conn)
    await conn.execute(
        "UPDATE pg_index SET indisvalid = false FROM pg_class WHERE oid = indexrelid AND relname ~ '^facts_near_'"
    )
    await conn.execute("DELETE FROM indexed_scopes")
    report = await index_scopes(database, least=50)
    assert (report.made, report.dropped) == (1, 1)
    assert await indexes(conn) == complete
    assert await rows(conn, "SELECT bool_and(indisvalid) FROM pg_index") == [True]
    assert await rows(conn, "SELECT user_id FROM indexed_scopes") == ["large"]

    await conn.execute("UPDATE facts SET embedding_model = 'other'")
    report = await index_scopes(database, least=50)
    assert (report.scopes[0].model, report.made, report.dropped) == ("other", 1, 1)
    assert await rows(conn, "SELECT model FROM indexed_scopes") == ["other"]


async def test_what_a_query_takes_for_a_wildcard_has_none(database: str) -> None:
    fill_scopes(database, {"*": 100, "**": 100, "it's": 100}, dimensions=3)
    assert users(await index_scopes(database, least=50)) == ["it's"]


async def test_only_one_at_a_time_and_not_beside_a_rebuild(database: str, conn: AsyncConnection[TupleRow]) -> None:
    await conn.execute("SELECT pg_advisory_lock(%s)", [REBUILD_LOCK])
    with pytest.raises(RebuildRunningError):
        await index_scopes(database)


async def test_a_rebuild_makes_them_on_the_new_tables_unless_it_compares_only(
    db: ProjectedDatabase, database: str, conn: AsyncConnection[TupleRow]
) -> None:
    for user, facts in {"large": 30, "small": 3}.items():
        drafts = [added(f"{user} likes number {number}.") for number in range(facts)]
        await db.apply(commit(f"1-{user}", *drafts, scope=Scope(user_id=user)))
    await index_scopes(database, least=20)
    before, oid = await indexes(conn), "SELECT 'mnemolog.facts'::regclass::oid"
    table = await rows(conn, oid)
    steps: list[str] = []
    async with open_table_log(database) as log:
        await rebuild(database, log, verify_only=True, progress=lambda at: steps.append(at.step))
        assert "scope indexes" not in steps
        assert (await rebuild(database, log)).equal
    assert await rows(conn, oid) != table
    assert await indexes(conn) == before
    assert len(before) == 2
    assert (await index_scopes(database, least=20)).made == 0


async def test_an_index_is_made_within_the_memory_of_its_facts(conn: AsyncConnection[TupleRow]) -> None:
    for facts, megabytes in ((100, 64), (200_000, 719), (10**9, 2048)):
        await conn.execute(queries("scope_indexes")["limit_memory"], {"facts": facts, "dimensions": 1536})
        shown = await rows(conn, "SELECT setting::int / 1024 FROM pg_settings WHERE name = 'maintenance_work_mem'")
        assert shown == [megabytes]
