"""Who reads the schema `memory`: through rebuilds, and with how few rights."""

import asyncio
import re
from collections.abc import Iterator
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest

from mnemolog.projections.rebuild.rebuild import rebuild
from mnemolog.projections.rebuild.replay import TableLogSource
from tests.support.builders.commits import BOB, added, commit
from tests.support.databases import database_name
from tests.support.harnesses.projected_database import ProjectedDatabase
from tests.support.paths import ROOT

pytestmark = pytest.mark.postgres
PAGE = (ROOT / "docs" / "sql.md").read_text()
VIEWS = ("current_facts", "facts", "pending", "events", "turns", "entities", "entity_aliases", "fact_entities")


async def test_readers_see_no_gap_while_a_rebuild_swaps(db: ProjectedDatabase) -> None:
    await db.apply(*(commit(f"n{number}", added(f"Fact {number}.")) for number in range(300)))
    stop = asyncio.Event()
    readers = [asyncio.create_task(read_until(db.url, stop, query)) for query in READ]
    try:
        for _ in range(3):
            assert (await rebuild(db.url, TableLogSource(db.pool))).swapped
    finally:
        stop.set()
        seen = await asyncio.gather(*readers)
    assert seen == [{300}] * len(READ)


READ = (
    "SELECT count(*) FROM memory.current_facts WHERE user_id = 'alice'",
    "SELECT count(*) FROM memory.facts_as_of(user_id => 'alice')",
    "SELECT count(*) FROM memory.changes_between('2020-01-01', user_id => 'alice')",
)


async def read_until(url: str, stop: asyncio.Event, query: str) -> set[int]:
    """The counts that the query gave until `stop`, prepared on one connection."""
    seen = set()
    async with await psycopg.AsyncConnection.connect(url, autocommit=True, prepare_threshold=1) as connection:
        while not stop.is_set():
            ((count,),) = await (await connection.execute(query.encode())).fetchall()
            seen.add(count)
    return seen


@pytest.fixture
def reader(db: ProjectedDatabase) -> Iterator[str]:
    """The URL of a role without any rights of its own."""
    role, url = f"reader_of_{database_name(db.url)}", urlsplit(db.url)
    with psycopg.connect(db.url, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'pw'".encode())
        try:
            yield urlunsplit(url._replace(netloc=f"{role}:pw@{url.hostname}:{url.port}"))
        finally:
            admin.execute(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}".encode())


def block(words: str) -> str:
    """The page's SQL block that has these words."""
    (found,) = (code for code in re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL) if words in code)
    return str(found)


def texts(url: str, query: str) -> list[str]:
    with psycopg.connect(url, autocommit=True) as connection:
        return [text for (text,) in connection.execute(query.encode())]


async def test_the_grants_of_the_page_are_enough_and_outlive_a_rebuild(db: ProjectedDatabase, reader: str) -> None:
    await db.apply(commit("1", added("Tea.")))
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        texts(reader, "SELECT text FROM memory.current_facts")
    role = urlsplit(reader).username
    await db.conn.execute(block("GRANT USAGE ON SCHEMA memory").replace("reporting", str(role)).encode())
    calls = ("facts_as_of({})", "changes_between('2020-01-01', {})", "profile({})", "search('tea', {})")
    for _ in range(2):
        for view in VIEWS:
            texts(reader, f"SELECT count(*)::text FROM memory.{view}")  # noqa: S608 - no foreign text
        for call in calls:
            found = texts(reader, f"SELECT text FROM memory.{call.format('user_id => $$alice$$')}")  # noqa: S608 - no foreign text
            assert found == ["Tea."]
        for write in ("DELETE FROM memory.facts", "DELETE FROM mnemolog.facts", "UPDATE memory.facts SET text = ''"):
            with pytest.raises(psycopg.Error, match=r"permission denied|cannot (delete|update)"):
                texts(reader, write)
        await rebuild(db.url, TableLogSource(db.pool))


async def test_the_function_of_the_page_shows_one_tenant_alone(db: ProjectedDatabase, reader: str) -> None:
    await db.apply(commit("1", added("Of acme."), scope=BOB.model_copy(update={"tenant": "acme"})))
    await db.apply(commit("1", added("Of another tenant."), scope=BOB), partition=1)
    role = urlsplit(reader).username
    await db.conn.execute(block("SECURITY DEFINER").replace("acme_reporting", str(role)).encode())
    assert texts(reader, "SELECT text FROM acme.current_facts('bob')") == ["Of acme."]
    for other in ("memory.current_facts", "mnemolog.facts"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            texts(reader, f"SELECT text FROM {other}")  # noqa: S608 - no foreign text
    await rebuild(db.url, TableLogSource(db.pool))
    assert texts(reader, "SELECT text FROM acme.current_facts('bob')") == ["Of acme."]
