"""The tables made anew from the log, on a real Postgres."""

import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest
from psycopg import AsyncConnection

from mnemolog.projections.errors import ForeignObjectsError, LogGapError, LogTooShortError, RebuildRunningError
from mnemolog.projections.rebuild import digest, swap
from mnemolog.projections.rebuild.rebuild import Progress, rebuild
from mnemolog.projections.rebuild.replay import TableLogSource
from mnemolog.projections.write.projector import LogRecord
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import ALICE, BOB, added, commit, day
from tests.support.harnesses.projected_database import ProjectedDatabase
from tests.support.harnesses.rebuilds import (
    RECORDS,
    catalogue,
    differing,
    fill_live_tables,
    interrupt,
    oids,
    schemas_of,
)
from tests.support.imports import packages_loaded_by
from tests.support.paths import ROOT
from tests.support.polling import eventually

pytestmark = pytest.mark.postgres
TABLES = [
    *("commits", "daily_tokens", "daily_usage", "entities", "entity_aliases", "entity_changes"),
    *("fact_entities", "fact_relations"),
    *("facts", "former_states", "memory_events", "name_vectors", "pending_confirmations", "policies", "profiles"),
    *("projection_offsets", "rejections", "relationship_evidence", "relationships", "scopes", "tenant_facts", "undone"),
]
FACTS = "SELECT f::text FROM facts AS f ORDER BY 1"


def many(count: int, scope: Scope, name: str = "n") -> list[Commit]:
    return [commit(f"{name}{number}", added(f"Fact {name}{number}."), scope=scope) for number in range(count)]


async def test_replay_gives_the_same_tables(db: ProjectedDatabase) -> None:
    """Law 4: the tables are a function of the log; a rebuild finds every row equal, and its tables take over."""
    await fill_live_tables(db)
    dora = Scope(user_id="dora")  # of whom only speakers are known
    await db.apply(*(commit(name, speaker=name, scope=dora) for name in ("Zoe", "Dora", "Abe")), partition=4)
    before, oid = await db.rows(FACTS), await oids(db, "facts")
    reported: list[Progress] = []
    report = await rebuild(db.url, TableLogSource(db.pool), progress=reported.append)
    assert [table.table for table in report.tables] == TABLES
    assert [table.differing for table in report.tables] == [0] * len(TABLES)
    assert all(table.live_digest == table.rebuilt_digest and table.equal for table in report.tables)
    assert all(table.live_rows == table.rebuilt_rows > 0 for table in report.tables)
    records = 2 * RECORDS + 3
    assert (report.equal, report.swapped, report.records) == (True, True, records)
    assert report.offsets == {0: RECORDS, 2: RECORDS, 4: 3}
    assert await oids(db, "facts") != oid
    assert await db.rows(FACTS) == before
    assert await db.rows("SELECT speakers FROM scopes WHERE user_id = 'dora'") == [(["Zoe", "Dora", "Abe"],)]
    assert await schemas_of(db) == ["mnemolog", "mnemolog_journal"]
    parts = 2 * (len(TABLES) - len(swap.KEPT_TABLES))
    assert reported[0] == Progress(step="folding", done=0, total=records)
    assert reported[-1] == Progress(step="comparing", done=parts, total=parts)
    await db.apply(commit("9", added("After."), at=day(9)))
    assert await db.rows("SELECT count(*) FROM facts WHERE text = 'After.'") == [(1,)]
    assert (await rebuild(db.url, TableLogSource(db.pool))).equal


async def test_differences_are_counted_shown_and_mended(db: ProjectedDatabase) -> None:
    await fill_live_tables(db)
    await db.rows("UPDATE facts SET confidence = 0.1 WHERE text = 'Lives in Rome.' RETURNING 1")
    await db.rows("DELETE FROM profiles WHERE user_id = 'bob' RETURNING 1")
    await db.rows(
        "INSERT INTO scopes (tenant, user_id, agent_id, app_id, run_id, owner, version) "
        "VALUES ('default', 'eve', '', '', '', 'default/eve', 1) RETURNING 1"
    )
    verified = await rebuild(db.url, TableLogSource(db.pool), verify_only=True)
    assert differing(verified) == {
        "facts": (2, {"changed"}),
        "profiles": (1, {"missing"}),
        "scopes": (1, {"unfounded"}),
    }
    assert "eve" in next(table for table in verified.tables if table.table == "scopes").examples[0].key
    assert (verified.swapped, verified.equal) == (False, False)
    assert await db.rows("SELECT count(*) FROM facts WHERE confidence = 0.1") == [(2,)]
    assert await schemas_of(db) == ["mnemolog", "mnemolog_journal"]

    mended = await rebuild(db.url, TableLogSource(db.pool))
    assert (mended.swapped, mended.equal) == (True, False)
    assert await db.rows("SELECT count(*) FROM facts WHERE confidence = 0.1") == [(0,)]
    assert (await rebuild(db.url, TableLogSource(db.pool), verify_only=True)).equal


async def test_digests_do_not_depend_on_the_parts_in_which_tables_are_read(
    db: ProjectedDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    await db.apply(*many(200, ALICE))
    whole = await rebuild(db.url, TableLogSource(db.pool), verify_only=True)
    monkeypatch.setattr(digest, "BLOCKS_PER_JOB", 3)
    reported: list[Progress] = []
    in_parts = await rebuild(db.url, TableLogSource(db.pool), verify_only=True, progress=reported.append)
    assert in_parts.tables == whole.tables
    assert reported[-1].total > 2 * len(whole.tables)
    await db.rows("UPDATE facts SET text = 'Other.' WHERE text = 'Fact n0.' RETURNING 1")
    changed = await rebuild(db.url, TableLogSource(db.pool), verify_only=True)
    assert differing(changed) == {"facts": (1, {"changed"})}


async def test_words_that_a_fact_has_not_are_a_difference_and_are_filled_anew(db: ProjectedDatabase) -> None:
    await db.apply(commit("1", added("She plays violins.")))
    words = await db.rows("SELECT words FROM facts")
    await db.rows("UPDATE facts SET words = to_tsvector('english', text) RETURNING 1")
    assert await db.rows("SELECT words FROM facts") != words
    assert differing(await rebuild(db.url, TableLogSource(db.pool))) == {"facts": (1, {"changed"})}
    assert await db.rows("SELECT words FROM facts") == words


@pytest.mark.parametrize(
    "loss",
    [
        "TRUNCATE facts, commits, projection_offsets, profiles",
        "DROP TABLE facts, projection_offsets CASCADE",
        "DROP SCHEMA mnemolog CASCADE",
    ],
)
async def test_tables_that_were_lost_come_back_whole_from_the_log(db: ProjectedDatabase, loss: Any) -> None:
    log = await fill_live_tables(db)
    before = await db.rows(FACTS)
    await db.conn.execute(loss)
    report = await rebuild(db.url, log)
    assert (report.swapped, report.offsets) == (True, {0: RECORDS, 2: RECORDS})
    assert await db.rows(FACTS) == before
    assert (await rebuild(db.url, log)).equal


async def test_tables_that_lag_behind_the_log_are_compared_where_they_are_and_then_brought_on(
    db: ProjectedDatabase,
) -> None:
    log = await fill_live_tables(db)
    log.records[0].append(commit("9", added("Later."), at=day(9)).to_bytes())
    report = await rebuild(db.url, log)
    assert (report.equal, report.offsets) == (True, {0: RECORDS + 1, 2: RECORDS})
    assert await db.rows("SELECT count(*) FROM facts WHERE text = 'Later.'") == [(1,)]
    await db.projector.apply({0: [LogRecord(offset=RECORDS, value=log.records[0][RECORDS])]})
    assert await db.rows("SELECT count(*) FROM facts WHERE text = 'Later.'") == [(1,)]


async def test_a_log_that_lacks_records_is_refused_and_nothing_changes(db: ProjectedDatabase) -> None:
    log = await fill_live_tables(db)
    oid = await oids(db, "facts")
    log.records[0][4] = b""
    with pytest.raises(LogGapError):
        await rebuild(db.url, log)
    del log.records[0][4:]
    with pytest.raises(LogTooShortError, match=f"ends at offset 4, the live tables hold it up to {RECORDS}"):
        await rebuild(db.url, log)
    assert await oids(db, "facts") == oid


async def test_commits_that_arrive_meanwhile_are_in_it_and_readers_see_no_gap(db: ProjectedDatabase) -> None:
    at_first = 600
    await db.apply(*many(at_first, ALICE))
    stop = asyncio.Event()

    async def publish() -> int:
        published = 0
        while not stop.is_set():
            await db.apply(*many(3, BOB, f"live{published}-"), partition=1)
            published += 3
        return published

    async def read() -> int:
        """Without pause: the count never falls, and no query fails."""
        seen, highest = 0, at_first
        async with ProjectedDatabase.open(db.url) as reader:
            while not stop.is_set():
                ((count,),) = await reader.rows("SELECT count(*) FROM facts")
                assert count >= highest
                seen, highest = seen + 1, count
        return seen

    tasks = [asyncio.create_task(work) for work in (publish(), read(), read())]
    try:
        reports = [await rebuild(db.url, TableLogSource(db.pool)) for _ in range(2)]
    finally:
        stop.set()
        published, *seen = await asyncio.gather(*tasks)
    assert all(report.equal and report.swapped for report in reports)
    assert published > 0
    assert min(seen) > 0
    assert await db.rows("SELECT count(*), count(DISTINCT source_id) FROM facts") == [(at_first + published,) * 2]
    last = await rebuild(db.url, TableLogSource(db.pool), verify_only=True)
    assert (last.equal, last.offsets) == (True, {0: at_first, 1: published})


@pytest.mark.parametrize("step", ["folding", "comparing"])
async def test_an_interrupted_rebuild_leaves_the_live_tables_and_the_next_one_succeeds(
    db: ProjectedDatabase, step: str
) -> None:
    await fill_live_tables(db)
    before, live = await catalogue(db.conn), await oids(db, *TABLES)
    await interrupt(db, TableLogSource(db.pool), step=step, after=1)
    assert (await catalogue(db.conn), await oids(db, *TABLES)) == (before, live)
    assert "mnemolog_next" in await schemas_of(db)
    await asyncio.wait_for(db.apply(commit("9", added("Goes on."), at=day(9))), timeout=10)
    assert (await rebuild(db.url, TableLogSource(db.pool))).equal
    assert await schemas_of(db) == ["mnemolog", "mnemolog_journal"]


KILLED = """
import asyncio, sys, time
from mnemolog.projections.rebuild.replay import TableLogSource
from mnemolog.projections.database import open_pool
from mnemolog.projections.rebuild.rebuild import rebuild

def halt(progress):
    if progress.step == "comparing":
        print("halted", flush=True)
        time.sleep(600)

async def main(url):
    async with open_pool(url, min_size=1, max_size=2, application_name="killed") as pool:
        await rebuild(url, TableLogSource(pool), progress=halt)

asyncio.run(main(sys.argv[1]))
"""


async def test_a_killed_rebuild_leaves_the_live_tables_and_the_next_one_succeeds(db: ProjectedDatabase) -> None:
    await fill_live_tables(db)
    oid = await oids(db, "facts")
    command = [sys.executable, "-c", KILLED, db.url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, env=os.environ) as process:
        try:
            assert process.stdout is not None
            lines = iter(process.stdout.readline, b"")
            assert await asyncio.to_thread(lambda: b"halted\n" in lines)
            with pytest.raises(RebuildRunningError):
                await rebuild(db.url, TableLogSource(db.pool))
        finally:
            process.send_signal(signal.SIGKILL)

    async def rebuilt() -> bool:
        try:
            return (await rebuild(db.url, TableLogSource(db.pool))).equal
        except RebuildRunningError:
            return False  # Postgres has not noticed the death yet

    poll: Callable[[], bool | Awaitable[bool]] = rebuilt
    assert await oids(db, "facts") == oid
    assert await eventually(poll)


OF_OTHERS: Final = {
    "view public.cities": "CREATE VIEW public.cities AS SELECT text FROM mnemolog.facts",
    "materialized view public.cities": "CREATE MATERIALIZED VIEW public.cities AS SELECT text FROM mnemolog.facts",
    "table constraint notes_fact_id_fkey on public.notes": (
        "CREATE TABLE public.notes (fact_id uuid REFERENCES mnemolog.facts)"
    ),
    "table column public.notes.fact": "CREATE TABLE public.notes (fact mnemolog.facts)",
    "function public.shout(facts)": (
        "CREATE FUNCTION public.shout(facts) RETURNS text LANGUAGE sql AS $$ SELECT upper($1.text) $$"
    ),
    "function shout()": "CREATE FUNCTION mnemolog.shout() RETURNS text LANGUAGE sql AS $$ SELECT 'a' $$",
    "trigger told on facts": (
        "CREATE TRIGGER told BEFORE UPDATE ON mnemolog.facts FOR EACH ROW "
        "EXECUTE FUNCTION suppress_redundant_updates_trigger()"
    ),
    "publication relation facts in publication told": "CREATE PUBLICATION told FOR TABLE mnemolog.facts",
    "publication namespace mnemolog in publication told": "CREATE PUBLICATION told FOR TABLES IN SCHEMA mnemolog",
    "policy own on facts": "CREATE POLICY own ON mnemolog.facts USING (user_id = current_user)",
    "row security of facts": "ALTER TABLE mnemolog.facts ENABLE ROW LEVEL SECURITY",
    "table notes": "CREATE TABLE mnemolog.notes (id int)",
    "column facts.stars": "ALTER TABLE mnemolog.facts ADD COLUMN stars int",
    "index facts_of_others": "CREATE INDEX facts_of_others ON mnemolog.facts (text)",
    "statistics object public.told": "CREATE STATISTICS public.told ON key, value FROM mnemolog.facts",
    "type mood": "CREATE TYPE mnemolog.mood AS ENUM ('good')",
}


@pytest.mark.parametrize("name", OF_OTHERS)
async def test_what_others_made_is_named_and_kept(db: ProjectedDatabase, name: str) -> None:
    await db.conn.execute(OF_OTHERS[name].encode())
    before = await catalogue(db.conn)
    with pytest.raises(ForeignObjectsError, match=rf"[(, ]{re.escape(name)}[),]"):
        await rebuild(db.url, TableLogSource(db.pool))
    assert await catalogue(db.conn) == before


async def test_rights_to_columns_outlive_a_rebuild(db: ProjectedDatabase) -> None:
    await db.conn.execute("GRANT SELECT (text, key), UPDATE (value) ON mnemolog.facts TO pg_monitor")
    await rebuild(db.url, TableLogSource(db.pool))
    rights = "SELECT column_name, privilege_type FROM information_schema.column_privileges WHERE grantee = 'pg_monitor'"
    assert set(await db.rows(rights)) == {("text", "SELECT"), ("key", "SELECT"), ("value", "UPDATE")}


CHANGES: Final = {
    "index facts_active": "DROP INDEX mnemolog.facts_active",
    "trigger facts_words on facts": "ALTER TABLE mnemolog.facts DISABLE TRIGGER facts_words",
    "function fill_fact_words()": (
        "CREATE OR REPLACE FUNCTION mnemolog.fill_fact_words() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RETURN NEW; END $$"
    ),
    "column facts.value": "ALTER TABLE mnemolog.facts ALTER value SET DEFAULT ''",
    "table constraint facts_confidence_check on facts": (
        "ALTER TABLE mnemolog.facts DROP CONSTRAINT facts_confidence_check"
    ),
}


@pytest.mark.parametrize("name", CHANGES)
async def test_what_the_live_schema_lacks_is_told(db: ProjectedDatabase, name: str) -> None:
    await fill_live_tables(db)
    await db.conn.execute(CHANGES[name].encode())
    found = await rebuild(db.url, TableLogSource(db.pool), verify_only=True)
    assert (found.equal, found.objects) == (False, (name,))


async def test_a_rebuild_that_has_ended_holds_its_lock_no_longer(
    db: ProjectedDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Postgres ends a closed session a little later: the next rebuild does not wait for that."""
    await fill_live_tables(db)
    left_open: list[AsyncConnection[Any]] = []

    async def stay_open(self: AsyncConnection[Any]) -> None:
        left_open.append(self)

    with monkeypatch.context() as patch:
        patch.setattr(AsyncConnection, "close", stay_open)
        assert (await rebuild(db.url, TableLogSource(db.pool))).equal
    assert (await rebuild(db.url, TableLogSource(db.pool))).equal
    for connection in left_open:
        await connection.close()


def test_a_rebuild_knows_no_provider() -> None:
    """Law 4: no model is called; the modules that could are not even imported."""
    providers = ("mnemolog.streams", "openai", "onnxruntime", "httpx", "aiokafka")
    assert packages_loaded_by("mnemolog.projections.rebuild.rebuild", *providers) == []
