"""The projector on a real Postgres: rows and position together, repeats skipped, gaps refused, poison set aside."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from prometheus_client import REGISTRY
from psycopg import sql
from structlog.testing import capture_logs

from mnemolog.projections.database import open_pool
from mnemolog.projections.errors import CommitTimeoutError, LogChangedError, LogGapError
from mnemolog.projections.write import projector
from mnemolog.projections.write.projector import SWAP_LOCK, LogRecord, Projector
from mnemolog.projections.write.row_writer import profile_batches, refresh_profiles
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.errors import UnsupportedVersionError
from mnemolog.schemas.facts import content_hash
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import (
    ALICE,
    BOB,
    START_TIME,
    added,
    commit,
    confirmed,
    contradicted,
    day,
    event_id_at,
    fact_id_at,
    merged,
    pseudo_random_vector,
    replaced,
    skipped,
)
from tests.support.builders.sample_logs import every_decision_log
from tests.support.harnesses.projected_database import ProjectedDatabase
from tests.support.polling import eventually

pytestmark = pytest.mark.postgres

FIRST = commit("t1", added("Alice lives in Bern.", category="identity", key="home_city", value="Bern"), at=day(1))
BERN = fact_id_at(FIRST)
BOBS = [commit(f"b{number}", added(f"Bob runs {number}."), scope=BOB) for number in range(1, 4)]
FULL_TEXT = "Alice pays 5 %: \\ 'quoted' \t and 日本語."
FULL_SCOPE = Scope(tenant="acme", user_id="alice", agent_id="a", app_id="b", run_id="c")
FULL = commit(
    "t1",
    added(
        FULL_TEXT,
        key="rate",
        value="5 %",
        value_json={"euros": 5},
        more_categories=("rent",),
        category="finance",
        importance_category="specific_event",
        importance=0.5,
        certainty="strong",
        confidence=0.8,
        subject="Alice",
        speaker="Bob",
        event_time=day(0),
        valid_until=day(9),
        vector=pseudo_random_vector("x", 384),
    ),
    scope=FULL_SCOPE,
    metadata={"channel": ["web", 2**62]},
    at=day(1),
)
TABLES = (
    *("commits", "memory_events", "facts", "former_states", "fact_relations", "pending_confirmations", "undone"),
    *("entities", "entity_aliases", "name_vectors", "entity_changes", "fact_entities"),
    *("relationships", "relationship_evidence"),
    *("policies", "profiles", "scopes", "rejections", "projection_offsets"),
)


def log_of(*commits: Commit | bytes, start: int = 0) -> list[LogRecord]:
    values = (item if isinstance(item, bytes) else item.to_bytes() for item in commits)
    return [LogRecord(offset=offset, value=value) for offset, value in enumerate(values, start=start)]


async def all_rows(db: ProjectedDatabase) -> dict[str, list[tuple[Any, ...]]]:
    found = {}
    for table in TABLES:
        query = sql.SQL("SELECT t::text FROM {} AS t ORDER BY 1").format(sql.Identifier(table))
        found[table] = await (await db.conn.execute(query)).fetchall()
    return found


def sample_log() -> list[Commit]:
    """Commits of two people with every event, a repeat, and a turn without facts."""
    second = commit("t2", replaced("Alice lives in Rome.", BERN, category="identity"), confirmed(BERN), at=day(2))
    rome = fact_id_at(second)
    third = commit("t3", merged("Alice lives in Rome with Ana.", rome, category="identity"), skipped(rome), at=day(3))
    return [
        FIRST,
        commit("b1", added("Bob eats no nuts.", category="health"), scope=BOB, at=day(1)),
        second,
        commit("t1", added("A repeat of the first source."), at=day(2)),
        commit("t4"),
        third,
        commit("t5", contradicted("Alice never lived in Rome.", fact_id_at(third), category="identity"), at=day(4)),
        commit("b2", confirmed(fact_id_at(FIRST)), scope=BOB, at=day(5)),
    ]


async def test_a_fact_is_written_as_the_commit_says(db: ProjectedDatabase) -> None:
    await db.apply(FULL)
    ((fact, vector, metadata),) = await db.rows(
        "SELECT to_jsonb(f) - '{words,embedding,metadata}'::text[], embedding::real[], metadata::text FROM facts AS f"
    )
    assert fact == {
        "fact_id": str(fact_id_at(FULL)),
        "owner": "acme/alice",
        "ordinal": 0,
        **FULL_SCOPE.columns,
        "text": FULL_TEXT,
        "search_text": FULL_TEXT,
        "key": "rate",
        "value": "5 %",
        "value_json": {"euros": 5},
        "category": "finance",
        "more_categories": ["rent"],
        "importance_category": "specific_event",
        "importance": 0.5,
        "certainty": "strong",
        "confidence": 0.8,
        "subject": "Alice",
        "speaker": "Bob",
        "excerpt": FULL_TEXT,
        "status": "active",
        "unresolved": False,
        "disputed": False,
        "event_time": "2026-01-01T09:00:00+00:00",
        "valid_until": "2026-01-10T09:00:00+00:00",
        "true_from": "2026-01-02T09:00:00+00:00",
        "believed_from": "2026-01-02T09:00:03+00:00",
        "recorded_at": "2026-01-02T09:00:03+00:00",
        "state_since": "2026-01-02T09:00:03+00:00",
        "authority": "extracted",
        "action_hint": "new",
        "is_hidden": False,
        "single_valued": False,
        "said_at": "2026-01-02T09:00:00+00:00",
        **dict.fromkeys(("true_to", "closed_at", "believed_to", "last_confirmed_at", "superseded_by")),
        "mention_count": 1,
        "supersedes": [],
        "source_id": "t1",
        "stale": False,
        "content_hash": content_hash(FULL_TEXT),
        "embedding_model": "test-embedder",
    }
    assert tuple(vector) == pytest.approx(pseudo_random_vector("x", 384).values, abs=1e-3)
    assert metadata == json.dumps({"channel": ["web", 2**62]})
    words = await db.rows("SELECT count(*) FROM facts WHERE words @@ to_tsquery('english', 'quote | 日本語')")
    assert words == [(1,)]


async def test_what_was_decided_is_written(db: ProjectedDatabase) -> None:
    await db.apply(*every_decision_log())
    rel = "SELECT new.text, relation, old.text FROM fact_relations AS r JOIN facts AS new USING (fact_id)"
    assert await db.rows(f"{rel} JOIN facts AS old ON old.fact_id = r.related_id ORDER BY 2") == [
        ("More.", "extends", "Fact 0."),
        ("Like.", "similar", "Fact 0."),
    ]
    held = "SELECT text, action, guard, settlement, settled_at, settled_by FROM pending_confirmations AS p"
    settled = every_decision_log()[4]
    assert await db.rows(f"{held} JOIN facts USING (fact_id) ORDER BY 1") == [
        ("B.", "contradict", "high_confidence", "confirmed", settled.decided_at, event_id_at(settled)),
        ("C.", "contradict", "high_confidence", "rejected", settled.decided_at, event_id_at(settled, 1)),
    ]
    replacing, undo, redone = every_decision_log()[7:10]
    assert await db.rows("SELECT event_id, undone_by FROM undone") == [(event_id_at(undo), event_id_at(redone))]
    assert await db.rows("SELECT source_id, undoes FROM memory_events WHERE undoes IS NOT NULL ORDER BY 1") == [
        ("c1", event_id_at(replacing)),
        ("c2", event_id_at(undo)),
    ]
    by_model = "SELECT event_id, prompt_version FROM memory_events WHERE model = 'm'"
    assert await db.rows(by_model) == [(event_id_at(replacing), "p")]
    assert await db.rows("SELECT user_id, policy ->> 'note' FROM policies") == [("alice", "for now")]
    ordered_by = "SELECT source_id, order_kind, actor, outcome FROM commits WHERE source_kind = 'command' ORDER BY 1"
    assert await db.rows(ordered_by) == [
        ("c1", "undo", None, "done"),
        ("c2", "undo", None, "done"),
        ("c3", "set_policy", "ops", "done"),
    ]


async def test_any_batches_give_the_same_tables_and_so_do_profiles_made_anew(db: ProjectedDatabase) -> None:
    log = [*sample_log(), *every_decision_log()]
    await db.apply(*log)
    at_once = await all_rows(db)
    for batch in await profile_batches(db.conn):
        await refresh_profiles(db.conn, batch)
    assert await all_rows(db) == at_once
    await db.conn.execute(
        f"DROP TRIGGER memory_events_no_truncate ON memory_events; TRUNCATE {', '.join(TABLES)}".encode()
    )
    for one in log:
        await db.apply(one)
    assert await all_rows(db) == at_once
    assert {table: len(found) for table, found in at_once.items()} == {
        "commits": 18,
        "memory_events": 31,
        "facts": 21,
        "former_states": 17,
        "fact_relations": 2,
        "entities": 2,
        "entity_aliases": 4,
        "name_vectors": 1,
        "entity_changes": 1,
        "fact_entities": 3,
        "relationships": 2,
        "relationship_evidence": 3,
        "pending_confirmations": 2,
        "undone": 1,
        "policies": 1,
        "profiles": 2,
        "scopes": 2,
        "rejections": 4,
        "projection_offsets": 1,
    }


async def test_records_that_were_folded_are_skipped_and_others_in_their_place_refused(db: ProjectedDatabase) -> None:
    log = log_of(*sample_log(), b"no commit")
    await db.projector.apply({0: log[:5]})
    before = await all_rows(db)
    again = await db.projector.apply({0: log[:5]})
    assert (again.skipped, again.next_offsets) == (5, {0: 5})
    assert await all_rows(db) == before
    overlapping = await db.projector.apply({0: log[3:]})
    assert (overlapping.skipped, overlapping.next_offsets) == (2, {0: len(log)})
    for offset in (0, 3, len(log) - 1):  # an applied one, a rejected one, and bytes that are not a commit
        regrown = [*log[:offset], *log_of(commit("new"), commit("newer"), start=offset)]
        with pytest.raises(LogChangedError, match=f"another record at offset {offset} "):
            await db.projector.apply({0: regrown})
    assert await db.projector.next_offsets() == {0: len(log)}


NEWER = FIRST.to_bytes().replace(b'"schema_version":%d' % Commit.VERSION, b'"schema_version":%d' % (Commit.VERSION + 1))


@pytest.mark.parametrize(
    ("records", "error", "words"),
    [
        ({0: log_of(commit("t1"), start=1)}, LogGapError, "read again from offset"),
        ({0: log_of(commit("t0")) + log_of(commit("t2"), start=2)}, LogGapError, "read again from offset"),
        ({0: log_of(FIRST), 5: log_of(BOBS[1], start=1)}, LogGapError, "5"),
        ({0: log_of(commit("t0"), NEWER)}, UnsupportedVersionError, "upgrade"),
    ],
    ids=["gap before", "gap between", "gap in one of two partitions", "newer commit"],
)
async def test_what_cannot_be_folded_stops_loudly_and_writes_nothing(
    db: ProjectedDatabase, records: dict[int, list[LogRecord]], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        await db.projector.apply(records)
    assert await db.rows("SELECT count(*) FROM commits") == [(0,)]
    assert await db.projector.next_offsets() == {}


async def test_what_the_tables_cannot_hold_stops_nobody(db: ProjectedDatabase) -> None:
    """Bytes that are no commit, a count that no column holds, and the id of a fact that is taken."""
    taken, count = commit("taken", added("x", fact_id=BERN)), commit("count", based_on=2**70)
    with capture_logs() as logs:
        await db.apply(b"\xff\x00", b"", FIRST, count, commit("t2", confirmed(BERN), at=day(2)), taken)
    errors = " ".join(entry["error"] for entry in logs if entry["event"] == "commit_not_storable")
    assert ("23505" in errors, str(BERN) in errors) == (True, False), "a log has no values of rows"
    assert await db.rows("SELECT log_offset, item, reason, record FROM rejections ORDER BY 1") == [
        (0, 0, "not_a_commit", b"\xff\x00"),
        (1, 0, "not_a_commit", b""),
        (3, 0, "not_storable", count.to_bytes()),
        (5, 0, "not_storable", taken.to_bytes()),
    ]
    assert await db.rows("SELECT fact_id, mention_count FROM facts") == [(BERN, 2)]
    assert await db.projector.next_offsets() == {0: 6}


async def test_a_batch_with_a_commit_that_the_tables_cannot_hold_is_halved(
    db: ProjectedDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches: list[int] = []
    in_transaction = projector._project_in_transaction

    async def counted(connection: Any, readings: Sequence[Any], write_rows: Any) -> Any:
        batches.append(len(readings))
        return await in_transaction(connection, readings, write_rows)

    monkeypatch.setattr(projector, "_project_in_transaction", counted)
    commits = [commit(f"t{number}", added(f"Fact {number}."), at=day(1)) for number in range(64)]
    commits[41] = commit("t41", based_on=2**70)
    applied = await db.projector.apply({0: log_of(*commits), 5: log_of(*BOBS)})
    assert applied.next_offsets == {0: 64, 5: 3}
    assert len(batches) == 1 + 2 * 6
    assert await db.rows(
        "SELECT partition, count(*) FROM facts JOIN commits USING (source_id) GROUP BY 1 ORDER BY 1"
    ) == [
        (0, 63),
        (5, 3),
    ]
    assert await db.rows("SELECT partition, log_offset, reason FROM rejections") == [(0, 41, "not_storable")]


async def test_a_commit_that_exceeds_the_statement_timeout_stops_loudly_by_its_name(db: ProjectedDatabase) -> None:
    """What stands before it is written, it is not skipped, and it is written once Postgres is quick enough."""
    await db.conn.execute(
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN IF NEW.source_id = 't5' THEN PERFORM pg_sleep(60); END IF; RETURN NEW; END $$"
    )
    await db.conn.execute("CREATE TRIGGER slow BEFORE INSERT ON commits FOR EACH ROW EXECUTE FUNCTION slow()")
    log = log_of(*(commit(f"t{number}", added(f"Fact {number}."), at=day(1)) for number in range(8)))
    async with open_pool(
        db.url, min_size=1, max_size=1, application_name="hasty", autocommit=True, statement_timeout=0.3
    ) as hasty:
        with pytest.raises(CommitTimeoutError, match=r"commit of t5 \(partition 0, offset 5"):
            await Projector(hasty).apply({0: log})
    assert await db.rows("SELECT count(*) FROM commits") == [(5,)]
    assert await db.rows("SELECT count(*) FROM rejections") == [(0,)]
    await db.conn.execute("DROP FUNCTION slow CASCADE")
    assert (await db.projector.apply({0: log})).next_offsets == {0: 8}


async def test_partitions_of_a_batch_are_written_in_one_transaction(db: ProjectedDatabase) -> None:
    applied = await db.projector.apply({5: log_of(*BOBS[:2]), 0: log_of(FIRST)})
    assert applied.next_offsets == await db.projector.next_offsets() == {0: 1, 5: 2}
    assert len(await db.rows("SELECT DISTINCT xmin::text FROM commits")) == 1
    again = await db.projector.apply({5: log_of(*BOBS), 0: log_of(FIRST)})
    assert (again.skipped, again.next_offsets) == (3, {0: 1, 5: 3})
    written = await db.rows("SELECT partition, log_offset FROM commits ORDER BY 1, 2")
    assert written == [(0, 0), (5, 0), (5, 1), (5, 2)]


async def test_the_statements_of_a_batch_are_planned_once_a_connection(database: str) -> None:
    async with open_pool(
        database, min_size=1, max_size=1, application_name="test-plans", autocommit=True, looks_up=True
    ) as pool:
        for offset in range(12):  # psycopg prepares what came five times, Postgres decides after five more
            await Projector(pool).apply({0: log_of(commit(f"t{offset}", added(f"Fact {offset}.")), start=offset)})
        query = "SELECT statement, custom_plans FROM pg_prepared_statements WHERE generic_plans + custom_plans > 0"
        async with pool.connection() as connection:
            planned: dict[str, int] = dict(await (await connection.execute(query)).fetchall())
    assert len(planned) > 5
    assert set(planned.values()) == {0}


async def test_two_projectors_of_one_partition_fold_each_record_once(db: ProjectedDatabase) -> None:
    log = log_of(*(commit(f"t{number}", added(f"fact {number}")) for number in range(60)))

    async def run(one: Projector, size: int) -> None:
        for start in range(0, len(log), size):
            await one.apply({0: log[start : start + size]})

    await asyncio.gather(run(db.projector, 7), run(Projector(db.pool), 4))
    assert await db.rows("SELECT count(*), count(DISTINCT source_id) FROM commits") == [(60, 60)]
    assert await db.rows("SELECT version FROM scopes") == [(60,)]
    assert await db.rows("SELECT count(*) FROM rejections") == [(0,)]


async def applies_after(db: ProjectedDatabase, kind: str, applying: "asyncio.Task[Any]") -> None:
    """Wait until the projector waits for a lock of this kind."""

    async def waits() -> bool:
        query = "SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = %s"
        return bool(await (await db.conn.execute(query, [kind])).fetchall())

    condition: Callable[[], bool | Awaitable[bool]] = waits
    await eventually(condition)
    assert not applying.done()


async def test_a_projector_waits_for_a_swap(db: ProjectedDatabase) -> None:
    async with await psycopg.AsyncConnection.connect(db.url) as swapping:
        await swapping.execute("SELECT pg_advisory_xact_lock(%s)", [SWAP_LOCK])
        applying = asyncio.create_task(db.projector.apply({0: log_of(FIRST)}))
        await applies_after(db, "advisory", applying)
        await swapping.commit()
        assert (await applying).next_offsets == {0: 1}


async def test_partitions_are_locked_in_one_order(db: ProjectedDatabase) -> None:
    """Projectors of the same partitions would wait for each other in a circle otherwise."""
    await db.apply(BOBS[0], partition=5)
    await db.apply(FIRST)
    async with await psycopg.AsyncConnection.connect(db.url) as other:
        await other.execute("SELECT 1 FROM mnemolog.projection_offsets WHERE partition = 5 FOR UPDATE")
        batch = {5: log_of(BOBS[1], start=1), 0: log_of(commit("t2"), start=1)}
        applying = asyncio.create_task(db.projector.apply(batch))
        await applies_after(db, "transactionid", applying)
        with pytest.raises(psycopg.errors.LockNotAvailable):
            await db.rows("SELECT 1 FROM projection_offsets WHERE partition = 0 FOR UPDATE NOWAIT")
        await other.rollback()
        assert (await applying).next_offsets == {0: 2, 5: 2}


async def test_what_was_projected_is_counted(db: ProjectedDatabase) -> None:
    names: tuple[tuple[str, dict[str, str]], ...] = (
        ("mnemolog_events_projected_total", {"event": "fact_replaced", "by": "rule"}),
        (
            "mnemolog_overwrites_total",
            {"event": "fact_replaced", "by": "rule", "model": "", "prompt_version": ""},
        ),
        ("mnemolog_stale_decisions_total", {}),
        ("mnemolog_rejections_total", {"reason": "duplicate_source"}),
        ("mnemolog_commits_projected_total", {"outcome": "nothing_stored"}),
        ("mnemolog_turn_to_fact_seconds_count", {}),
    )
    before = [REGISTRY.get_sample_value(*name) or 0 for name in names]
    await Projector(db.pool, clock=lambda: START_TIME + timedelta(days=30)).apply({0: log_of(*sample_log())})
    after = [REGISTRY.get_sample_value(*name) or 0 for name in names]
    assert [int(new - old) for old, new in zip(before, after, strict=True)] == [1, 1, 3, 1, 1, 6]
    assert ALICE.owner not in str([sample.labels for family in REGISTRY.collect() for sample in family.samples])
