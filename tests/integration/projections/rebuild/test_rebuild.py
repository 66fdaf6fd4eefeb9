"""The tables made anew from the log, on a real Postgres."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any, LiteralString

import pytest
from psycopg import AsyncConnection

from mnemolog.projections.errors import DependentViewsError, LogGapError, LogTooShortError, RebuildRunningError
from mnemolog.projections.rebuild.rebuild import Progress, rebuild
from mnemolog.projections.rebuild.replay import TableLogSource
from mnemolog.projections.write.projector import LogRecord
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.provenance import Step
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import (
    ALICE,
    BOB,
    added,
    commit,
    confirmed,
    contradicted,
    day,
    fact_id_at,
    merged,
    replaced,
    skipped,
)
from tests.support.builders.sample_logs import every_decision_log
from tests.support.harnesses.in_memory_log import InMemoryLog
from tests.support.harnesses.projected_database import ProjectedDatabase
from tests.support.imports import packages_loaded_by
from tests.support.paths import ROOT
from tests.support.polling import eventually

pytestmark = pytest.mark.postgres
TABLES = [
    *("commits", "daily_tokens", "daily_usage", "entities", "entity_aliases", "entity_changes"),
    *("fact_entities", "fact_relations"),
    *("facts", "former_states", "memory_events", "name_vectors", "pending_confirmations", "policies", "profiles"),
    *(
        "projection_offsets",
        "rejections",
        "relationship_evidence",
        "relationships",
        "scopes",
        "tenant_facts",
        "undone",
    ),
]
DORA = Scope(user_id="dora")


def sample_log(scope: Scope = ALICE) -> list[Commit | bytes]:
    """Every kind of event, a repeated source, a stale target, bytes that are not a commit, turns without facts."""
    first = commit("1", added("Lives in Bern.", category="identity"), added("Tea."), added("A cat."), scope=scope)
    last = commit("2", replaced("Lives in Rome.", fact_id_at(first), category="identity"), scope=scope, at=day(1))
    return [
        first,
        last,
        commit("3", skipped(fact_id_at(first, 1)), confirmed(fact_id_at(first, 2)), scope=scope, at=day(2)),
        commit("1", added("Never."), scope=scope, at=day(2)),
        commit("4", replaced("Lives in Oslo.", fact_id_at(first)), scope=scope, at=day(3)),
        b"no commit",
        commit("5", merged("Tea and a cat.", fact_id_at(first, 1), fact_id_at(first, 2)), scope=scope, at=day(4)),
        commit("6", contradicted("Lives in Nice.", fact_id_at(last), category="identity"), scope=scope, at=day(5)),
        commit("7", scope=scope, at=day(6)),
        commit("8", scope=scope, outcome="failed", reason="invalid_record", at=day(6)),
    ]


async def fill(db: ProjectedDatabase) -> None:
    await db.apply(*sample_log())
    await db.apply(*sample_log(BOB), commit("bytes", scope=None, outcome="failed", reason="not_a_record"), partition=2)


def many(count: int, scope: Scope, name: str = "n") -> list[Commit]:
    return [commit(f"{name}{number}", added(f"Fact {name}{number}."), scope=scope) for number in range(count)]


async def schemas_of(db: ProjectedDatabase) -> list[str]:
    found = await db.rows("SELECT nspname::text FROM pg_namespace WHERE nspname LIKE 'mnemolog%' ORDER BY 1")
    return [name for (name,) in found]


async def facts_table_oid(db: ProjectedDatabase) -> int:
    ((oid,),) = await db.rows("SELECT 'mnemolog.facts'::regclass::oid::bigint")
    return int(oid)


async def test_replay_gives_the_same_tables(db: ProjectedDatabase) -> None:
    """Law 4: the tables are a function of the log; a rebuild finds every row equal, and its tables take over."""
    await fill(db)
    await db.apply(*every_decision_log(DORA), partition=4)
    used = Step(stage="extract", milliseconds=1, model="m", llm_calls=1, input_tokens=5)
    await db.apply(commit("over", outcome="rejected", reason="limit", steps=[used]), partition=4)
    before = await db.rows("SELECT f::text FROM facts AS f ORDER BY 1")
    oid = await facts_table_oid(db)
    reported: list[Progress] = []
    report = await rebuild(db.url, TableLogSource(db.pool), progress=reported.append)
    assert [table.table for table in report.tables] == TABLES
    assert [table.differing for table in report.tables] == [0] * len(TABLES)
    assert all(table.live_digest == table.rebuilt_digest and table.equal for table in report.tables)
    assert (report.equal, report.swapped, report.records) == (True, True, 33)
    assert report.offsets == {0: 10, 2: 11, 4: 12}
    assert all(table.live_rows == table.rebuilt_rows > 0 for table in report.tables)
    assert await facts_table_oid(db) != oid
    assert await db.rows("SELECT f::text FROM facts AS f ORDER BY 1") == before
    assert await schemas_of(db) == ["mnemolog", "mnemolog_journal"]
    assert reported[0] == Progress(step="folding", done=0, total=33)
    assert reported[-1] == Progress(step="comparing", done=40, total=40)
    assert (await rebuild(db.url, TableLogSource(db.pool))).equal


async def test_a_scope_of_which_only_speakers_are_known_rebuilds_to_the_same(db: ProjectedDatabase) -> None:
    await db.apply(*(commit(name, speaker=name, scope=DORA) for name in ("Zoe", "Dora", "Abe")))
    speakers: LiteralString = "SELECT user_id, speakers FROM scopes"
    assert (await rebuild(db.url, TableLogSource(db.pool))).equal
    assert await db.rows(speakers) == [("dora", ["Zoe", "Dora", "Abe"])]
    assert await db.rows("SELECT * FROM profiles") == []


async def test_the_projector_goes_on_in_the_new_tables(db: ProjectedDatabase) -> None:
    await fill(db)
    await rebuild(db.url, TableLogSource(db.pool))
    await db.apply(commit("9", added("After."), at=day(9)))
    assert await db.rows("SELECT count(*) FROM facts WHERE text = 'After.'") == [(1,)]
    assert (await rebuild(db.url, TableLogSource(db.pool), verify_only=True)).equal


async def test_the_new_tables_have_the_indexes_of_the_old_ones(db: ProjectedDatabase) -> None:
    await fill(db)
    query: LiteralString = "SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = 'mnemolog' ORDER BY indexdef"
    before = await db.rows(query)
    await rebuild(db.url, TableLogSource(db.pool))
    assert await db.rows(query) == before


async def test_an_empty_log_gives_empty_tables(db: ProjectedDatabase) -> None:
    report = await rebuild(db.url, TableLogSource(db.pool))
    assert (report.equal, report.records) == (True, 0)


async def test_differences_are_counted_shown_and_mended(db: ProjectedDatabase) -> None:
    await fill(db)
    await db.rows("UPDATE facts SET confidence = 0.1 WHERE text = 'Lives in Rome.' RETURNING 1")
    await db.rows("DELETE FROM profiles WHERE user_id = 'bob' RETURNING 1")
    await db.rows(
        "INSERT INTO scopes (tenant, user_id, agent_id, app_id, run_id, owner, version) "
        "VALUES ('default', 'eve', '', '', '', 'default/eve', 1) RETURNING 1"
    )
    verified = await rebuild(db.url, TableLogSource(db.pool), verify_only=True)
    found = {
        table.table: (table.differing, {one.kind for one in table.examples})
        for table in verified.tables
        if not table.equal
    }
    assert found == {"facts": (2, {"changed"}), "profiles": (1, {"missing"}), "scopes": (1, {"unfounded"})}
    assert "eve" in next(table for table in verified.tables if table.table == "scopes").examples[0].key
    assert (verified.swapped, verified.equal) == (False, False)
    assert await db.rows("SELECT count(*) FROM facts WHERE confidence = 0.1") == [(2,)]
    assert await schemas_of(db) == ["mnemolog", "mnemolog_journal"]

    mended = await rebuild(db.url, TableLogSource(db.pool))
    assert (mended.swapped, mended.equal) == (True, False)
    assert await db.rows("SELECT count(*) FROM facts WHERE confidence = 0.1") == [(0,)]
    assert (await rebuild(db.url, TableLogSource(db.pool), verify_only=True)).equal


async def kept(db: ProjectedDatabase) -> InMemoryLog:
    log, source = InMemoryLog({}), TableLogSource(db.pool)
    for partition in await source.partitions():
        end = await source.end_offset(partition)
        log.records[partition] = [record.value async for record in source.read(partition, 0, end)]
    return log


@pytest.mark.parametrize("loss", ["rows", "table", "schema"])
async def test_tables_that_were_lost_come_back_whole_from_the_log(db: ProjectedDatabase, loss: str) -> None:
    await fill(db)
    before = await db.rows("SELECT f::text FROM facts AS f ORDER BY 1")
    log = await kept(db)
    match loss:
        case "rows":
            await db.conn.execute("TRUNCATE facts, commits, projection_offsets, profiles")
        case "table":
            await db.conn.execute("DROP TABLE facts, projection_offsets CASCADE")
        case _:
            await db.conn.execute("DROP SCHEMA mnemolog CASCADE")
    report = await rebuild(db.url, log)
    assert (report.swapped, report.offsets) == (True, {0: 10, 2: 11})
    assert await db.rows("SELECT f::text FROM facts AS f ORDER BY 1") == before
    assert (await rebuild(db.url, log)).equal


async def test_tables_that_lag_behind_the_log_are_compared_where_they_are_and_then_brought_on(
    db: ProjectedDatabase,
) -> None:
    await fill(db)
    log = await kept(db)
    log.records[0].append(commit("9", added("Later."), at=day(9)).to_bytes())
    report = await rebuild(db.url, log)
    assert (report.equal, report.offsets) == (True, {0: 11, 2: 11})
    assert await db.rows("SELECT count(*) FROM facts WHERE text = 'Later.'") == [(1,)]
    await db.projector.apply({0: [LogRecord(offset=10, value=log.records[0][10])]})
    assert await db.rows("SELECT count(*) FROM facts WHERE text = 'Later.'") == [(1,)]


async def test_a_log_that_lacks_records_is_refused_and_nothing_changes(db: ProjectedDatabase) -> None:
    await fill(db)
    log = await kept(db)
    oid = await facts_table_oid(db)
    log.records[0][4] = b""
    with pytest.raises(LogGapError):
        await rebuild(db.url, log)
    del log.records[0][4:]
    with pytest.raises(LogTooShortError, match="ends at offset 4, the live tables hold it up to 10"):
        await rebuild(db.url, log)
    assert await facts_table_oid(db) == oid


async def test_commits_that_arrive_meanwhile_are_in_it_and_readers_see_no_gap(db: ProjectedDatabase) -> None:
    await db.apply(*many(1500, ALICE))
    stop = asyncio.Event()
    tasks = [
        asyncio.create_task(_publish(db, stop)),
        *(asyncio.create_task(_read_continuously(db, stop)) for _ in range(2)),
    ]
    try:
        reports = [await rebuild(db.url, TableLogSource(db.pool)) for _ in range(3)]
    finally:
        stop.set()
        published, *seen = await asyncio.gather(*tasks)
    assert all(report.equal and report.swapped for report in reports)
    assert published > 0
    assert min(seen) > 0
    assert await db.rows("SELECT count(*), count(DISTINCT source_id) FROM facts") == [(1500 + published,) * 2]
    last = await rebuild(db.url, TableLogSource(db.pool), verify_only=True)
    assert (last.equal, last.offsets) == (True, {0: 1500, 1: published})


async def _publish(db: ProjectedDatabase, stop: asyncio.Event) -> int:
    published = 0
    while not stop.is_set():
        await db.apply(*many(3, BOB, f"live{published}-"), partition=1)
        published += 3
    return published


async def _read_continuously(db: ProjectedDatabase, stop: asyncio.Event) -> int:
    """Read without pause: the count never falls, and no query fails."""
    seen, highest = 0, 0
    async with ProjectedDatabase.open(db.url) as reader:
        while not stop.is_set():
            ((count,),) = await reader.rows("SELECT count(*) FROM facts")
            assert count >= max(highest, 1500)
            seen, highest = seen + 1, count
    return seen


class InterruptedByTest(Exception):  # noqa: N818 - it is no error
    """Raised by a test in the middle of a rebuild."""


@pytest.mark.parametrize("step", ["folding", "comparing"])
async def test_an_interrupted_rebuild_leaves_the_live_tables_and_the_next_one_succeeds(
    db: ProjectedDatabase, step: str
) -> None:
    await fill(db)
    oid = await facts_table_oid(db)

    def interrupt(progress: Progress) -> None:
        if progress.step == step and progress.done > 0:
            raise InterruptedByTest

    with pytest.raises(InterruptedByTest):
        await rebuild(db.url, TableLogSource(db.pool), progress=interrupt)
    assert await facts_table_oid(db) == oid
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
    await fill(db)
    oid = await facts_table_oid(db)
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
    assert await facts_table_oid(db) == oid
    assert await eventually(poll)


async def test_grants_move_to_the_new_tables(db: ProjectedDatabase) -> None:
    await fill(db)
    role = "reader_of_" + db.url.rsplit("/", 1)[1]
    await db.conn.execute(f'CREATE ROLE "{role}"')
    try:
        for grant in (f'USAGE ON SCHEMA mnemolog TO "{role}"', f'SELECT ON facts, turns TO "{role}" WITH GRANT OPTION'):
            await db.conn.execute(f"GRANT {grant}")
        await rebuild(db.url, TableLogSource(db.pool))
        for table, expected in {"facts": True, "turns": True, "commits": False}.items():
            cursor = await db.conn.execute(
                "SELECT has_schema_privilege(%s, 'mnemolog', 'USAGE') AND has_table_privilege(%s, %s, 'SELECT')",
                [role, role, table],
            )
            assert await cursor.fetchone() == (expected,)
    finally:
        await db.conn.execute(f'DROP OWNED BY "{role}"')
        await db.conn.execute(f'DROP ROLE "{role}"')


async def test_views_of_others_are_not_cut_off(db: ProjectedDatabase) -> None:
    await fill(db)
    await db.conn.execute("CREATE VIEW public.cities AS SELECT text FROM mnemolog.facts")
    with pytest.raises(DependentViewsError, match=r"public\.cities"):
        await rebuild(db.url, TableLogSource(db.pool))
    assert (await rebuild(db.url, TableLogSource(db.pool), verify_only=True)).equal
    assert len(await db.rows("SELECT * FROM public.cities")) == 14


async def test_a_commit_that_no_table_can_hold_is_rejected_alike(db: ProjectedDatabase) -> None:
    taken = commit("1", added("Bern."))
    thief = commit("2", added("Rome.", fact_id=fact_id_at(taken)), scope=BOB)
    await db.apply(taken, thief, commit("3", added("Oslo.")))
    assert await db.rows("SELECT log_offset, reason FROM rejections") == [(1, "not_storable")]
    assert (await rebuild(db.url, TableLogSource(db.pool))).equal


async def test_a_rebuild_that_has_ended_holds_its_lock_no_longer(
    db: ProjectedDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Postgres ends a closed session a little later: the next rebuild does not wait for that."""
    await fill(db)
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
