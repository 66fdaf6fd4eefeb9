"""The copy of the log in the live tables: verified and kept where it is sound, written anew where it is not."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, LiteralString

import pytest

from mnemolog.projections.errors import SwapRefusedError
from mnemolog.projections.rebuild import fill, replay, swap
from mnemolog.projections.rebuild.rebuild import Progress, rebuild
from mnemolog.projections.rebuild.replay import LogSource, TableLogSource
from mnemolog.projections.sql import queries
from tests.support.builders.commits import added, commit, day
from tests.support.harnesses.projected_database import ProjectedDatabase
from tests.support.harnesses.rebuilds import (
    RECORDS,
    catalogue,
    differing,
    fill_live_tables,
    interrupt,
    kept,
    oids,
    schemas_of,
)
from tests.support.polling import eventually

pytestmark = pytest.mark.postgres
COPY = ("commits", "memory_events")
BATCH = 10


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a short log has several."""
    monkeypatch.setattr(replay, "BATCH", BATCH)


async def copied_rows(db: ProjectedDatabase) -> list[Any]:
    return [
        await db.rows("SELECT c::text FROM commits AS c ORDER BY 1"),
        await db.rows("SELECT e::text FROM memory_events AS e ORDER BY 1"),
    ]


@pytest.mark.parametrize("source", ["log", "table"])
async def test_a_sound_copy_is_kept_with_all_that_belongs_to_it(db: ProjectedDatabase, source: str) -> None:
    log: LogSource = await fill_live_tables(db)
    if source == "table":
        log = TableLogSource(db.pool)
    await db.conn.execute("GRANT USAGE ON SCHEMA mnemolog TO PUBLIC")
    await db.conn.execute("GRANT SELECT ON commits, facts, turns TO pg_monitor WITH GRANT OPTION")
    before, ids, facts = await catalogue(db.conn), await oids(db, *COPY), await oids(db, "facts")
    for _ in range(2):
        report = await rebuild(db.url, log)
        assert (report.equal, report.swapped, kept(report)) == (True, True, set(COPY))
        counts = {table.table: table.rebuilt_rows for table in report.tables}
        assert await db.rows("SELECT count(*) FROM commits") == [(counts["commits"],)]
        assert await db.rows("SELECT count(*) FROM memory_events") == [(counts["memory_events"],)]
    assert await oids(db, *COPY) == ids
    assert await oids(db, "facts") != facts
    assert await catalogue(db.conn) == before
    assert await schemas_of(db) == ["mnemolog", "mnemolog_journal"]
    with pytest.raises(Exception, match="memory_events is append-only"):
        await db.conn.execute("DELETE FROM memory_events")
    await db.apply(commit("after", added("Goes on."), at=day(40)))
    assert await db.rows("SELECT count(*) FROM facts WHERE text = 'Goes on.'") == [(1,)]


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
    "commit changed": ("UPDATE commits SET detail = 'other' WHERE log_offset = 2", {"commits": (2, {"changed"})}),
    "metadata changed": (
        "UPDATE commits SET metadata = '{\"a\": 1}' WHERE log_offset = 21 AND partition = 2",
        {"commits": (1, {"changed"})},
    ),
    "record changed": (
        "UPDATE commits SET record = set_byte(record, 40, 7) WHERE log_offset = 6",
        {"commits": (2, {"changed"})},
    ),
    "commit missing": ("DELETE FROM commits WHERE log_offset = 20", {"commits": (2, {"missing"})}),
    "last commit missing": ("DELETE FROM commits WHERE log_offset = 24", {"commits": (2, {"missing"})}),
    "commit moved": (
        "UPDATE commits SET log_offset = 5000 WHERE log_offset = 2 AND partition = 0",
        {"commits": (2, {"missing", "unfounded"})},
    ),
    "commit behind the log": (A_COMMIT % "'log_offset', 9000", {"commits": (1, {"unfounded"})}),
    "commit of no partition": (A_COMMIT % "'partition', 7", {"commits": (1, {"unfounded"})}),
    "commit in place of a rejection": (A_COMMIT % ("'log_offset', " + REJECTED), {"commits": (1, {"unfounded"})}),
    "event changed": (
        "UPDATE memory_events SET payload = jsonb_set(payload, '{decision,reason}', '\"other\"') WHERE log_offset = 2",
        {"memory_events": (4, {"changed"})},
    ),
    "event missing": (
        "DELETE FROM memory_events WHERE log_offset = 0 AND ordinal = 0 AND partition = 2",
        {"memory_events": (1, {"missing"})},
    ),
    "event added": (AN_EVENT % "'ordinal', 90", {"memory_events": (1, {"unfounded"})}),
    "event before the log": (AN_EVENT % "'log_offset', -1", {"memory_events": (1, {"unfounded"})}),
}


async def damage(db: ProjectedDatabase, kind: str) -> None:
    async with db.conn.transaction():
        await db.conn.execute("ALTER TABLE memory_events DISABLE TRIGGER USER")
        assert (await db.conn.execute(DAMAGES[kind][0])).rowcount > 0
        await db.conn.execute("ALTER TABLE memory_events ENABLE TRIGGER USER")


@pytest.mark.parametrize(
    ("kind", "source"),
    [
        *((kind, "log") for kind in DAMAGES),
        ("commit changed", "processes"),
        # What the records themselves show is found without the topic.
        *((kind, "table") for kind in ("commit changed", "event changed", "event missing", "event added")),
    ],
)
async def test_a_damaged_copy_is_found_and_written_anew(
    db: ProjectedDatabase, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, kind: str, source: str
) -> None:
    log: LogSource = await fill_live_tables(db)
    before = await copied_rows(db)
    await damage(db, kind)
    assert await copied_rows(db) != before
    if source == "processes":
        monkeypatch.setattr(fill, "RECORDS_PER_PROCESS", 1)
        monkeypatch.setattr(fill, "worker_count", lambda: 2)
    report = await rebuild(db.url, TableLogSource(db.pool) if source == "table" else log)
    assert (differing(report), kept(report), report.swapped) == (DAMAGES[kind][1], set(), True)
    assert "log_copy_damaged" in caplog.text
    assert await copied_rows(db) == before


async def test_a_damaged_copy_is_only_reported_where_nothing_is_to_be_swapped(db: ProjectedDatabase) -> None:
    """And once it was written anew, the next rebuild keeps it."""
    log = await fill_live_tables(db)
    await damage(db, "event missing")
    verified = await rebuild(db.url, log, verify_only=True)
    assert (differing(verified), kept(verified), verified.swapped) == (DAMAGES["event missing"][1], set(), False)
    assert kept(await rebuild(db.url, log)) == set()
    again = await rebuild(db.url, log)
    assert (again.equal, kept(again)) == (True, set(COPY))


CHANGES: list[LiteralString] = [
    "DROP INDEX commits_source",
    "ALTER TABLE memory_events DISABLE TRIGGER memory_events_append_only",
    "ALTER TABLE commits DROP CONSTRAINT commits_outcome_check",
    "ALTER TABLE commits ALTER COLUMN attempt DROP DEFAULT",
    "ALTER TABLE commits ADD COLUMN own text",
    "DROP TABLE memory_events CASCADE",
]


async def test_each_change_of_a_table_gives_it_another_structure(db: ProjectedDatabase) -> None:
    async def structure() -> list[Any]:
        asked = [{"schema": "mnemolog", "table": table} for table in COPY]
        return [await (await db.conn.execute(queries("rebuild")["table_structure"], one)).fetchall() for one in asked]

    before = await structure()
    for change in CHANGES:
        async with db.conn.transaction(force_rollback=True):
            await db.conn.execute(change)
            assert await structure() != before, change
    assert await structure() == before


@pytest.mark.parametrize("change", [CHANGES[0], CHANGES[-1]])
async def test_a_copy_in_tables_of_another_make_is_written_anew(db: ProjectedDatabase, change: LiteralString) -> None:
    log = await fill_live_tables(db)
    before = await catalogue(db.conn)
    await db.conn.execute(change)
    report = await rebuild(db.url, log)
    assert (report.swapped, kept(report)) == (True, set())
    assert await catalogue(db.conn) == before


async def test_a_full_rebuild_writes_the_copy_too(db: ProjectedDatabase) -> None:
    log = await fill_live_tables(db)
    before, ids = await catalogue(db.conn), await oids(db, *COPY)
    report = await rebuild(db.url, log, full=True)
    assert (report.equal, report.swapped, kept(report)) == (True, True, set())
    assert set(await oids(db, *COPY)).isdisjoint(ids)
    assert await catalogue(db.conn) == before


@pytest.mark.parametrize(("first", "then", "resumed"), [(False, True, False), (True, False, True)])
async def test_tables_of_an_interrupted_rebuild_are_used_if_they_are_full_enough(
    db: ProjectedDatabase, first: bool, then: bool, resumed: bool
) -> None:
    log = await fill_live_tables(db)
    await interrupt(db, log, after=BATCH, full=first)
    reported: list[Progress] = []
    report = await rebuild(db.url, log, full=then, progress=reported.append)
    assert (report.equal, kept(report), reported[0].done >= BATCH) == (True, set(), resumed)


async def test_the_swap_waits_for_readers_of_the_copy_and_holds_new_ones_up_for_a_moment_only(
    db: ProjectedDatabase,
) -> None:
    async def someone_waits() -> bool:
        return bool(await db.rows("SELECT FROM pg_locks WHERE relation = 'mnemolog.commits'::regclass AND NOT granted"))

    await fill_live_tables(db)
    async with ProjectedDatabase.open(db.url) as reader:
        async with reader.conn.transaction():
            await reader.rows("SELECT count(*) FROM commits")
            swapping = asyncio.create_task(rebuild(db.url, TableLogSource(db.pool)))
            poll: Callable[[], bool | Awaitable[bool]] = someone_waits
            assert await eventually(poll)
            for _ in range(5):
                async with asyncio.timeout(swap.LOCK_RETRY_SECONDS * 10):
                    assert await db.rows("SELECT count(*) > 0 FROM commits") == [(True,)]
            await db.apply(commit("meanwhile", added("Goes on."), at=day(40)))
            assert not swapping.done()
        report = await swapping
    assert (report.equal, kept(report), report.offsets) == (True, set(COPY), {0: RECORDS + 1, 2: RECORDS})


async def test_a_reader_that_stays_in_the_copy_stops_the_swap_which_can_be_had_later(
    db: ProjectedDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = await fill_live_tables(db)
    monkeypatch.setattr(swap, "LOCK_ATTEMPTS", 2)
    facts = await oids(db, "facts")
    async with ProjectedDatabase.open(db.url) as reader, reader.conn.transaction():
        await reader.rows("SELECT count(*) FROM memory_events")
        with pytest.raises(SwapRefusedError):
            await rebuild(db.url, log)
        assert await oids(db, "facts") == facts
    reported: list[Progress] = []
    report = await rebuild(db.url, log, progress=reported.append)
    assert (report.equal, kept(report)) == (True, set(COPY))
    assert reported[0].done == report.records


async def test_old_tables_with_a_reader_in_them_do_not_hold_back_the_next_rebuild(
    db: ProjectedDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Views of the old schema show the kept tables until it is dropped: they are not somebody else's."""
    log = await fill_live_tables(db)
    before = await catalogue(db.conn)
    async with ProjectedDatabase.open(db.url) as reader, reader.conn.transaction():
        await reader.rows("SELECT count(*) FROM facts")
        with monkeypatch.context() as patch:
            patch.setattr(swap, "LOCK_ATTEMPTS", 1)
            assert (await rebuild(db.url, log)).swapped
        assert "mnemolog_old" in await schemas_of(db)
    report = await rebuild(db.url, log)
    assert (report.equal, kept(report)) == (True, set(COPY))
    assert "mnemolog_old" not in await schemas_of(db)
    assert await catalogue(db.conn) == before
