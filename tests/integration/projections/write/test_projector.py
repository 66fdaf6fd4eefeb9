"""The projector on a real Postgres: rows and position together, repeats skipped, gaps refused, poison set aside."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any

import psycopg
import pytest
import pytest_asyncio
from prometheus_client import REGISTRY
from psycopg import sql

from mnemolog.projections.database import Pool, open_pool
from mnemolog.projections.errors import LogChangedError, LogGapError
from mnemolog.projections.write.projector import SWAP_LOCK, LogRecord, Projector
from mnemolog.projections.write.row_writer import profile_batches, refresh_profiles
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.errors import UnsupportedVersionError
from mnemolog.schemas.facts import content_hash
from mnemolog.schemas.provenance import Step
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
    fact_id_at,
    merged,
    pseudo_random_vector,
    replaced,
    skipped,
)
from tests.support.builders.sample_logs import every_decision_log
from tests.support.polling import eventually

pytestmark = pytest.mark.postgres

FIRST = commit("t1", added("Alice lives in Bern.", category="identity", key="home_city", value="Bern"), at=day(1))
BERN = fact_id_at(FIRST)
FULL_TEXT = "Alice pays 5 %: \\ 'quoted' \t and 日本語."
FULL_SCOPE = Scope(tenant="acme", user_id="alice", agent_id="a", app_id="b", run_id="c")
FULL = commit(
    "t1",
    added(
        FULL_TEXT,
        key="rate",
        value="5 %",
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


@pytest_asyncio.fixture
async def pool(database: str) -> AsyncIterator[Pool]:
    async with open_pool(database, min_size=1, max_size=4, application_name="test-projector") as pool:
        yield pool


@pytest.fixture
def projector(pool: Pool) -> Projector:
    return Projector(pool, clock=lambda: START_TIME + timedelta(days=30))


def log_of(*commits: Commit | bytes, start: int = 0) -> list[LogRecord]:
    values = (item if isinstance(item, bytes) else item.to_bytes() for item in commits)
    return [LogRecord(offset=offset, value=value) for offset, value in enumerate(values, start=start)]


async def rows(pool: Pool, query: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    async with pool.connection() as connection:
        return await (await connection.execute(query.encode(), parameters)).fetchall()


async def all_rows(pool: Pool) -> dict[str, list[tuple[Any, ...]]]:
    async with pool.connection() as connection:
        return {
            table: await (
                await connection.execute(
                    sql.SQL("SELECT t::text FROM {} AS t ORDER BY 1").format(sql.Identifier(table))
                )
            ).fetchall()
            for table in TABLES
        }


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


async def test_a_fact_is_written_as_the_commit_says(pool: Pool, projector: Projector) -> None:
    await projector.apply({3: log_of(FULL)})
    ((fact,),) = await rows(pool, "SELECT to_jsonb(f) - '{words,embedding,metadata}'::text[] FROM facts AS f")
    assert fact == {
        "fact_id": str(fact_id_at(FULL)),
        "owner": "acme/alice",
        "ordinal": 0,
        **FULL_SCOPE.columns,
        "text": FULL_TEXT,
        "search_text": FULL_TEXT,
        "key": "rate",
        "value": "5 %",
        "category": "finance",
        "importance_category": "specific_event",
        "importance": 0.5,
        "certainty": "strong",
        "confidence": 0.8,
        "subject": "Alice",
        "speaker": "Bob",
        "excerpt": FULL_TEXT,
        "status": "active",
        "unresolved": False,
        "event_time": "2026-01-01T09:00:00+00:00",
        "valid_until": "2026-01-10T09:00:00+00:00",
        "true_from": "2026-01-02T09:00:00+00:00",
        "believed_from": "2026-01-02T09:00:03+00:00",
        "recorded_at": "2026-01-02T09:00:03+00:00",
        "state_since": "2026-01-02T09:00:03+00:00",
        "authority": "extracted",
        "action_hint": "new",
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


async def test_vector_metadata_and_words_of_a_fact_are_written(pool: Pool, projector: Projector) -> None:
    await projector.apply({3: log_of(FULL)})
    ((vector, metadata),) = await rows(pool, "SELECT embedding::real[], metadata::text FROM facts")
    assert tuple(vector) == pytest.approx(pseudo_random_vector("x", 384).values, abs=1e-3)
    assert metadata == json.dumps({"channel": ["web", 2**62]})
    query = "SELECT count(*) FROM facts WHERE words @@ to_tsquery('english', 'quote | 日本語')"
    assert await rows(pool, query) == [(1,)]


async def test_a_commit_is_kept_with_its_costs_and_its_bytes(pool: Pool, projector: Projector) -> None:
    steps = [
        Step(
            stage="extract", milliseconds=300, model="m", llm_calls=2, input_tokens=100, output_tokens=20, reprompts=1
        ),
        Step(stage="embed", milliseconds=5, embedding_calls=0.25, input_tokens=10),
    ]
    committed = commit("t1", outcome="failed", reason="reply_invalid", detail="no JSON", steps=steps, based_on=7)
    await projector.apply({0: log_of(committed)})
    query = (
        "SELECT outcome, reason, detail, based_on, llm_calls, embedding_calls, input_tokens, output_tokens, reprompts,"
        " origin_topic, record FROM commits"
    )
    assert await rows(pool, query) == [
        ("failed", "reply_invalid", "no JSON", 7, 2, 0.25, 110, 20, 1, "conversation_turns", committed.to_bytes())
    ]


async def test_an_event_is_kept_without_the_data_of_its_vector(pool: Pool, projector: Projector) -> None:
    await projector.apply({0: log_of(*sample_log())})
    query = (
        "SELECT event, payload->'fact'->'vector', targets FROM memory_events WHERE source_id = 't2' ORDER BY ordinal"
    )
    assert await rows(pool, query) == [
        ("fact_replaced", {"model": "test-embedder", "dimensions": 3}, [BERN]),
        ("fact_confirmed", None, []),
    ]


async def test_any_batches_give_the_same_tables(pool: Pool, projector: Projector) -> None:
    log = log_of(*sample_log(), *every_decision_log())
    await projector.apply({0: log})
    at_once = await all_rows(pool)
    async with pool.connection() as connection:
        await connection.execute(
            "DROP TRIGGER memory_events_no_truncate ON memory_events; TRUNCATE " + ", ".join(TABLES)
        )
    for record in log:
        await projector.apply({0: [record]})
    assert await all_rows(pool) == at_once
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


async def test_records_that_were_folded_are_skipped(pool: Pool, projector: Projector) -> None:
    log = log_of(*sample_log())
    await projector.apply({0: log[:5]})
    before = await all_rows(pool)
    again = await projector.apply({0: log[:5]})
    assert (again.skipped, again.next_offsets) == (5, {0: 5})
    assert await all_rows(pool) == before
    overlapping = await projector.apply({0: log[3:]})
    assert (overlapping.skipped, overlapping.next_offsets) == (2, {0: len(log)})


async def test_another_record_at_an_offset_that_was_folded_is_no_repeat(projector: Projector) -> None:
    log = log_of(*sample_log(), b"no commit")
    await projector.apply({0: log})
    for offset in (0, 3, len(log) - 1):  # an applied one, a rejected one, and bytes that are not a commit
        regrown = [*log[:offset], *log_of(commit("new"), commit("newer"), start=offset)]
        with pytest.raises(LogChangedError, match=f"another record at offset {offset} "):
            await projector.apply({0: regrown})
    assert await projector.next_offsets() == {0: len(log)}


@pytest.mark.parametrize("offsets", [[1], [0, 2]])
async def test_a_gap_stops_loudly_and_writes_nothing(pool: Pool, projector: Projector, offsets: list[int]) -> None:
    log = [LogRecord(offset=offset, value=commit(f"t{offset}").to_bytes()) for offset in offsets]
    with pytest.raises(LogGapError, match="read again from offset"):
        await projector.apply({0: log})
    assert await rows(pool, "SELECT count(*) FROM commits") == [(0,)]
    assert await projector.next_offsets() == {}


async def test_a_newer_commit_stops_loudly_and_writes_nothing(projector: Projector) -> None:
    known = Commit.VERSION
    newer = FIRST.to_bytes().replace(b'"schema_version":%d' % known, b'"schema_version":%d' % (known + 1))
    with pytest.raises(UnsupportedVersionError, match="upgrade"):
        await projector.apply({0: log_of(commit("t0"), newer)})
    assert await projector.next_offsets() == {}


async def test_bytes_that_are_no_commit_are_kept_and_passed(pool: Pool, projector: Projector) -> None:
    await projector.apply({0: log_of(b"\xff\x00", b"", FIRST)})
    assert await rows(pool, "SELECT log_offset, item, reason, record FROM rejections ORDER BY 1") == [
        (0, 0, "not_a_commit", b"\xff\x00"),
        (1, 0, "not_a_commit", b""),
    ]
    assert await projector.next_offsets() == {0: 3}


POISON = {
    "a count that no column holds": commit("count", based_on=2**70),
    "a fact's id that is taken": commit("taken", added("x", fact_id=BERN)),
}


@pytest.mark.parametrize("poison", POISON.values(), ids=POISON.keys())
async def test_what_the_tables_cannot_hold_stops_nobody(pool: Pool, projector: Projector, poison: Commit) -> None:
    await projector.apply({0: log_of(FIRST, poison, commit("t2", confirmed(BERN), at=day(2)))})
    found = await rows(pool, "SELECT log_offset, item, reason, record FROM rejections")
    assert found == [(1, 0, "not_storable", poison.to_bytes())]
    assert await rows(pool, "SELECT mention_count FROM facts WHERE fact_id = %s", [BERN]) == [(2,)]
    assert await projector.next_offsets() == {0: 3}


async def test_two_projectors_of_one_partition_fold_each_record_once(pool: Pool, projector: Projector) -> None:
    log = log_of(*(commit(f"t{number}", added(f"fact {number}")) for number in range(60)))
    zombie = Projector(pool)

    async def run(one: Projector, size: int) -> None:
        for start in range(0, len(log), size):
            await one.apply({0: log[start : start + size]})

    await asyncio.gather(run(projector, 7), run(zombie, 4))
    assert await rows(pool, "SELECT count(*), count(DISTINCT source_id) FROM commits") == [(60, 60)]
    assert await rows(pool, "SELECT version FROM scopes") == [(60,)]
    assert await rows(pool, "SELECT count(*) FROM rejections") == [(0,)]


async def test_a_swap_waits_for_the_projector_and_the_projector_for_a_swap(
    pool: Pool, projector: Projector, database: str
) -> None:
    async def a_lock_is_waited_for() -> bool:
        waiting = "SELECT 1 FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database "
        ours = "WHERE datname = current_database() AND locktype = 'advisory' AND NOT granted"
        return bool(await rows(pool, waiting + ours))

    condition: Callable[[], bool | Awaitable[bool]] = a_lock_is_waited_for
    async with await psycopg.AsyncConnection.connect(database) as swapping:
        await swapping.execute("SELECT pg_advisory_xact_lock(%s)", [SWAP_LOCK])
        applying = asyncio.create_task(projector.apply({0: log_of(FIRST)}))
        await eventually(condition)
        assert not applying.done()
        await swapping.commit()
        assert (await applying).next_offsets == {0: 1}


async def test_an_outage_is_waited_out(database: str, projector: Projector) -> None:
    await projector.apply({0: log_of(FIRST)})
    async with await psycopg.AsyncConnection.connect(database, autocommit=True) as admin:
        await admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'test-projector' AND datname = current_database()"
        )
    applied = await projector.apply({0: log_of(commit("t2", confirmed(BERN)), start=1)})
    assert applied.next_offsets == {0: 2}


async def test_refreshing_all_profiles_changes_none(pool: Pool, projector: Projector) -> None:
    await projector.apply({0: log_of(*sample_log(), *every_decision_log())})
    before = await all_rows(pool)
    async with pool.connection() as connection:
        for batch in await profile_batches(connection):
            await refresh_profiles(connection, batch)
    assert await all_rows(pool) == before


async def test_every_turn_of_the_view_has_its_end_or_is_pending(pool: Pool, projector: Projector) -> None:
    async with pool.connection() as connection:
        for source in ("t1", "t9"):
            await connection.execute(
                "INSERT INTO turn_journal (owner, source_id, topic, partition, log_offset, published_at)"
                " VALUES ('default/alice', %s, 'conversation_turns', 0, 0, now())",
                [source],
            )
    await projector.apply({0: log_of(FIRST)})
    assert await rows(pool, "SELECT source_id, status, decided_at FROM turns ORDER BY 1") == [
        ("t1", "facts", FIRST.decided_at),
        ("t9", "pending", None),
    ]


async def test_what_was_projected_is_counted(projector: Projector) -> None:
    names: tuple[tuple[str, dict[str, str]], ...] = (
        ("mnemolog_events_projected_total", {"event": "fact_replaced", "by": "threshold"}),
        (
            "mnemolog_overwrites_total",
            {"event": "fact_replaced", "by": "threshold", "model": "", "prompt_version": ""},
        ),
        ("mnemolog_stale_decisions_total", {}),
        ("mnemolog_rejections_total", {"reason": "duplicate_source"}),
        ("mnemolog_commits_projected_total", {"outcome": "no_facts"}),
        ("mnemolog_turn_to_fact_seconds_count", {}),
    )
    before = [REGISTRY.get_sample_value(*name) or 0 for name in names]
    await projector.apply({0: log_of(*sample_log())})
    after = [REGISTRY.get_sample_value(*name) or 0 for name in names]
    assert [int(new - old) for old, new in zip(before, after, strict=True)] == [1, 1, 3, 1, 1, 6]
    assert ALICE.owner not in str([sample.labels for family in REGISTRY.collect() for sample in family.samples])
