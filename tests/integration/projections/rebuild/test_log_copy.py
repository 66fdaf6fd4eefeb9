"""The copy of the log in the live tables: verified and kept where it is sound, written anew where it is not."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, LiteralString

import pytest

from mnemolog.projections.errors import SwapRefusedError
from mnemolog.projections.rebuild import fill as filling
from mnemolog.projections.rebuild import swap
from mnemolog.projections.rebuild.rebuild import Progress, RebuildReport, rebuild
from mnemolog.projections.rebuild.replay import BATCH, LogSource, TableLogSource
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import ALICE, BOB, added, commit, day
from tests.support.builders.sample_logs import every_decision_log
from tests.support.harnesses.in_memory_log import InMemoryLog
from tests.support.harnesses.projected_database import ProjectedDatabase
from tests.support.polling import eventually

pytestmark = pytest.mark.postgres
COPY = ("commits", "memory_events")


class Interrupted(Exception):  # noqa: N818 - it is no error
    """Raised by a test in the middle of a rebuild."""


def records_of(scope: Scope) -> list[bytes]:
    """Every kind of event, bytes that are not a commit, metadata and a second batch."""
    metadata = {"numbers": [1, -0.5, 1e-7], "ä\u2028": {"b": None, "a": "\\ \x7f \n"}}
    made = [*every_decision_log(scope), commit("with metadata", added("Tea."), scope=scope, metadata=metadata)]
    many = [commit(f"m{number}", scope=scope, at=day(30)) for number in range(BATCH)]
    return [*(one.to_bytes() for one in made), b"no commit", *(one.to_bytes() for one in many)]


async def fill(db: ProjectedDatabase) -> InMemoryLog:
    log = InMemoryLog({0: records_of(ALICE), 2: records_of(BOB)})
    for partition, values in log.records.items():
        await db.apply(*values, partition=partition)
    return log


async def oids(db: ProjectedDatabase, *tables: str) -> list[int]:
    query = "SELECT array_agg(oid::regclass::oid::bigint ORDER BY oid) FROM unnest(%s::text[]) AS oid"
    cursor = await db.conn.execute(query, [[f"mnemolog.{table}" for table in tables]])
    ((found,),) = await cursor.fetchall()
    return list(found)


async def copied_rows(db: ProjectedDatabase) -> list[Any]:
    return [
        await db.rows("SELECT c::text FROM commits AS c ORDER BY 1"),
        await db.rows("SELECT e::text FROM memory_events AS e ORDER BY 1"),
    ]


async def catalogue(db: ProjectedDatabase) -> list[Any]:
    """Everything that the schema has, with definitions, comments and grants.

    Postgres writes functions without the brackets and with the names of columns that it does not need.
    """
    return await db.rows("""
        SELECT 'relation', relname::text, relkind::text, relacl::text, obj_description(oid, 'pg_class'),
            pg_get_viewdef(oid)
        FROM pg_class WHERE relnamespace = 'mnemolog'::regnamespace AND relkind IN ('r', 'v', 'i')
        UNION ALL
        SELECT 'function', proname::text,
            regexp_replace(pg_get_functiondef(oid), '[()]| AS "[a-z?]+"', '', 'g'),
            proacl::text, obj_description(oid, 'pg_proc'), ''
        FROM pg_proc WHERE pronamespace = 'mnemolog'::regnamespace
        UNION ALL
        SELECT 'trigger', tgname::text, pg_get_triggerdef(oid), tgenabled::text, '', ''
        FROM pg_trigger WHERE tgrelid IN (SELECT oid FROM pg_class WHERE relnamespace = 'mnemolog'::regnamespace)
        UNION ALL
        SELECT 'constraint', conname::text, pg_get_constraintdef(oid), '', '', ''
        FROM pg_constraint WHERE connamespace = 'mnemolog'::regnamespace
        UNION ALL
        SELECT 'column', attrelid::regclass::text || '.' || attname, attacl::text, col_description(attrelid, attnum),
            attnum::text, ''
        FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
        WHERE relnamespace = 'mnemolog'::regnamespace AND relkind IN ('r', 'v')
        ORDER BY 1, 2, 3
    """)


def kept(report: RebuildReport) -> set[str]:
    return {table.table for table in report.tables if table.kept}


def differing(report: RebuildReport) -> dict[str, tuple[int, set[str]]]:
    return {
        table.table: (table.differing, {one.kind for one in table.examples})
        for table in report.tables
        if not table.equal
    }


@pytest.mark.parametrize("source", ["log", "table"])
@pytest.mark.parametrize("processes", [1, 2])
async def test_a_sound_copy_is_kept_with_all_that_belongs_to_it(
    db: ProjectedDatabase, monkeypatch: pytest.MonkeyPatch, source: str, processes: int
) -> None:
    log: LogSource = await fill(db)
    if source == "table":
        log = TableLogSource(db.pool)
    if processes > 1:
        monkeypatch.setattr(filling, "RECORDS_PER_PROCESS", 1)
        monkeypatch.setattr(filling, "worker_count", lambda: processes)
    await db.conn.execute("GRANT SELECT ON commits, turns TO PUBLIC")
    before, ids, (facts,) = await catalogue(db), await oids(db, *COPY), await oids(db, "facts")
    for _ in range(2):
        report = await rebuild(db.url, log)
        assert (report.equal, report.swapped, kept(report)) == (True, True, set(COPY))
        counts = {table.table: table.rebuilt_rows for table in report.tables}
        assert await db.rows("SELECT count(*) FROM commits") == [(counts["commits"],)]
        assert await db.rows("SELECT count(*) FROM memory_events") == [(counts["memory_events"],)]
    assert await oids(db, *COPY) == ids
    assert await oids(db, "facts") != [facts]
    assert await catalogue(db) == before
    assert await db.rows("SELECT nspname::text FROM pg_namespace WHERE nspname LIKE 'mnemolog\\_%'") == [
        ("mnemolog_journal",)
    ]


A_COMMIT: LiteralString = """
    INSERT INTO commits SELECT (c).*
    FROM (
        SELECT jsonb_populate_record(commits, '{"source_id": "x"}' || jsonb_build_object(%s)) AS c
        FROM commits WHERE log_offset = 1 AND partition = 0
    )
"""
AN_EVENT: LiteralString = """
    INSERT INTO memory_events SELECT (e).*
    FROM (
        SELECT jsonb_populate_record(memory_events, jsonb_build_object('event_id', gen_random_uuid(), %s)) AS e
        FROM memory_events WHERE log_offset = 1 AND ordinal = 0 AND partition = 0
    )
"""
REJECTED: LiteralString = "(SELECT min(log_offset) FROM rejections WHERE reason = 'not_a_commit')"
# One statement each, and what the comparison then finds.
DAMAGES: dict[str, tuple[LiteralString, dict[str, tuple[int, set[str]]]]] = {
    "commit changed": ("UPDATE commits SET detail = 'other' WHERE log_offset = 3", {"commits": (2, {"changed"})}),
    "metadata changed": (
        "UPDATE commits SET metadata = '{\"a\": 1}' WHERE log_offset = 11 AND partition = 2",
        {"commits": (1, {"changed"})},
    ),
    "record changed": (
        "UPDATE commits SET record = set_byte(record, 40, 7) WHERE log_offset = 5",
        {"commits": (2, {"changed"})},
    ),
    "commit missing": ("DELETE FROM commits WHERE log_offset = 400", {"commits": (2, {"missing"})}),
    "last commit missing": ("DELETE FROM commits WHERE log_offset = 412", {"commits": (2, {"missing"})}),
    "commit moved": (
        "UPDATE commits SET log_offset = 5000 WHERE log_offset = 2 AND partition = 0",
        {"commits": (2, {"missing", "unfounded"})},
    ),
    "commit behind the log": (A_COMMIT % "'log_offset', 9000", {"commits": (1, {"unfounded"})}),
    "commit of no partition": (A_COMMIT % "'partition', 7", {"commits": (1, {"unfounded"})}),
    "commit in place of a rejection": (A_COMMIT % ("'log_offset', " + REJECTED), {"commits": (1, {"unfounded"})}),
    "event changed": (
        "UPDATE memory_events SET payload = jsonb_set(payload, '{decision,reason}', '\"other\"') WHERE log_offset = 1",
        {"memory_events": (4, {"changed"})},
    ),
    "event missing": (
        "DELETE FROM memory_events WHERE log_offset = 0 AND ordinal = 0 AND partition = 2",
        {"memory_events": (1, {"missing"})},
    ),
    "event added": (AN_EVENT % "'ordinal', 90", {"memory_events": (1, {"unfounded"})}),
    "event before the log": (AN_EVENT % "'log_offset', -1", {"memory_events": (1, {"unfounded"})}),
}


async def damage(db: ProjectedDatabase, statement: LiteralString) -> None:
    async with db.conn.transaction():
        await db.conn.execute("ALTER TABLE memory_events DISABLE TRIGGER USER")
        assert (await db.conn.execute(statement)).rowcount > 0
        await db.conn.execute("ALTER TABLE memory_events ENABLE TRIGGER USER")


@pytest.mark.parametrize("kind", DAMAGES)
async def test_a_damaged_copy_is_found_and_written_anew(
    db: ProjectedDatabase, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    log = await fill(db)
    before = await copied_rows(db)
    statement, found = DAMAGES[kind]
    await damage(db, statement)
    assert await copied_rows(db) != before
    verified = await rebuild(db.url, log, verify_only=True)
    assert (differing(verified), kept(verified), verified.swapped) == (found, set(), False)
    assert "log_copy_damaged" in caplog.text
    mended = await rebuild(db.url, log)
    assert (differing(mended), mended.swapped) == (found, True)
    assert await copied_rows(db) == before


async def test_a_copy_that_was_written_anew_is_kept_by_the_next_rebuild(db: ProjectedDatabase) -> None:
    log = await fill(db)
    await damage(db, DAMAGES["event missing"][0])
    assert kept(await rebuild(db.url, log)) == set()
    again = await rebuild(db.url, log)
    assert (again.equal, kept(again)) == (True, set(COPY))


@pytest.mark.parametrize("kind", ["commit changed", "event changed", "event missing", "event added"])
async def test_damage_that_the_records_themselves_show_is_found_without_the_topic(
    db: ProjectedDatabase, kind: str
) -> None:
    await fill(db)
    statement, found = DAMAGES[kind]
    await damage(db, statement)
    assert differing(await rebuild(db.url, TableLogSource(db.pool))) == found
    assert (await rebuild(db.url, TableLogSource(db.pool))).equal


async def test_damage_is_found_by_processes_too(db: ProjectedDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    log = await fill(db)
    monkeypatch.setattr(filling, "RECORDS_PER_PROCESS", 1)
    monkeypatch.setattr(filling, "worker_count", lambda: 2)
    statement, found = DAMAGES["commit changed"]
    await damage(db, statement)
    assert differing(await rebuild(db.url, log)) == found
    assert (await rebuild(db.url, log)).equal


@pytest.mark.parametrize(
    "change",
    [
        "DROP INDEX commits_source",
        "ALTER TABLE memory_events DISABLE TRIGGER memory_events_append_only",
        "ALTER TABLE commits DROP CONSTRAINT commits_outcome_check",
        "ALTER TABLE commits ALTER COLUMN attempt DROP DEFAULT",
        "ALTER TABLE commits ADD COLUMN own text",
        "DROP TABLE memory_events CASCADE",
    ],
)
async def test_a_copy_in_tables_of_another_make_is_written_anew(db: ProjectedDatabase, change: LiteralString) -> None:
    log = await fill(db)
    before = await catalogue(db)
    await db.conn.execute(change)
    report = await rebuild(db.url, log)
    assert (report.swapped, kept(report)) == (True, set())
    assert await catalogue(db) == before
    assert kept(await rebuild(db.url, log)) == set(COPY)


async def test_a_full_rebuild_writes_the_copy_too(db: ProjectedDatabase) -> None:
    log = await fill(db)
    before, ids = await catalogue(db), await oids(db, *COPY)
    report = await rebuild(db.url, log, full=True)
    assert (report.equal, report.swapped, kept(report)) == (True, True, set())
    assert set(await oids(db, *COPY)).isdisjoint(ids)
    assert await catalogue(db) == before


async def interrupt(db: ProjectedDatabase, log: InMemoryLog, *, full: bool) -> None:
    def stop(progress: Progress) -> None:
        if progress.done >= BATCH:
            raise Interrupted

    with pytest.raises(Interrupted):
        await rebuild(db.url, log, full=full, progress=stop)


@pytest.mark.parametrize(("first", "then", "resumed"), [(False, True, False), (True, False, True)])
async def test_tables_of_an_interrupted_rebuild_are_used_if_they_are_full_enough(
    db: ProjectedDatabase, first: bool, then: bool, resumed: bool
) -> None:
    log = await fill(db)
    await interrupt(db, log, full=first)
    reported: list[Progress] = []
    report = await rebuild(db.url, log, full=then, progress=reported.append)
    assert (report.equal, kept(report), reported[0].done >= BATCH) == (True, set(), resumed)


async def test_an_interrupted_rebuild_leaves_the_copy_as_it_is(db: ProjectedDatabase) -> None:
    log = await fill(db)
    before, ids = await catalogue(db), await oids(db, *COPY)
    await interrupt(db, log, full=False)
    assert (await catalogue(db), await oids(db, *COPY)) == (before, ids)
    await db.conn.execute("DROP SCHEMA mnemolog_next CASCADE")
    assert (await catalogue(db), await oids(db, *COPY)) == (before, ids)


async def someone_waits(db: ProjectedDatabase) -> bool:
    return bool(await db.rows("SELECT FROM pg_locks WHERE relation = 'mnemolog.commits'::regclass AND NOT granted"))


async def test_the_swap_waits_for_readers_of_the_copy_and_holds_new_ones_up_for_a_moment_only(
    db: ProjectedDatabase,
) -> None:
    await fill(db)
    async with ProjectedDatabase.open(db.url) as reader:
        async with reader.conn.transaction():
            await reader.rows("SELECT count(*) FROM commits")
            swapping = asyncio.create_task(rebuild(db.url, TableLogSource(db.pool)))
            poll: Callable[[], bool | Awaitable[bool]] = partial(someone_waits, db)
            assert await eventually(poll)
            for _ in range(5):
                async with asyncio.timeout(swap.LOCK_RETRY_SECONDS * 10):
                    assert await db.rows("SELECT count(*) > 0 FROM commits") == [(True,)]
            await db.apply(commit("meanwhile", added("Goes on."), at=day(40)))
            assert not swapping.done()
        report = await swapping
    assert (report.equal, kept(report), report.offsets) == (True, set(COPY), {0: 414, 2: 413})


async def test_a_reader_that_stays_in_the_copy_stops_the_swap_which_can_be_had_later(
    db: ProjectedDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = await fill(db)
    monkeypatch.setattr(swap, "LOCK_ATTEMPTS", 2)
    (facts,) = await oids(db, "facts")
    async with ProjectedDatabase.open(db.url) as reader, reader.conn.transaction():
        await reader.rows("SELECT count(*) FROM memory_events")
        with pytest.raises(SwapRefusedError):
            await rebuild(db.url, log)
        assert await oids(db, "facts") == [facts]
    reported: list[Progress] = []
    report = await rebuild(db.url, log, progress=reported.append)
    assert (report.equal, kept(report)) == (True, set(COPY))
    assert reported[0].done == report.records


async def test_the_kept_tables_are_append_only_after_the_swap(db: ProjectedDatabase) -> None:
    log = await fill(db)
    await rebuild(db.url, log)
    with pytest.raises(Exception, match="memory_events is append-only"):
        await db.conn.execute("DELETE FROM memory_events")
    await db.apply(commit("after", added("Goes on."), at=day(40)))
    assert await db.rows("SELECT count(*) FROM facts WHERE text = 'Goes on.'") == [(1,)]


async def test_old_tables_with_a_reader_in_them_do_not_hold_back_the_next_rebuild(
    db: ProjectedDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Views of the old schema show the kept tables until it is dropped: they are not somebody else's."""
    log = await fill(db)
    before = await catalogue(db)
    async with ProjectedDatabase.open(db.url) as reader:
        async with reader.conn.transaction():
            await reader.rows("SELECT count(*) FROM facts")
            monkeypatch.setattr(swap, "LOCK_ATTEMPTS", 1)
            assert (await rebuild(db.url, log)).swapped
            assert await db.rows("SELECT count(*) FROM pg_namespace WHERE nspname = 'mnemolog_old'") == [(1,)]
        monkeypatch.undo()
    report = await rebuild(db.url, log)
    assert (report.equal, kept(report)) == (True, set(COPY))
    assert await db.rows("SELECT count(*) FROM pg_namespace WHERE nspname = 'mnemolog_old'") == [(0,)]
    assert await catalogue(db) == before
