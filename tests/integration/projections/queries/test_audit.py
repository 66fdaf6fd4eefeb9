"""The books of the tables, on a real Postgres."""

from datetime import timedelta
from typing import Any

import pytest

from mnemolog.projections.queries.audit import (
    Audit,
    FailedTurn,
    audit,
    drop_turns,
    failed_turns,
    received_turn,
    table_counts,
    unended_turns,
)
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.command import DeleteAll, SetPolicy
from mnemolog.schemas.policy import LimitHit, Policy
from tests.support.builders.commits import (
    ALICE,
    BOB,
    START_TIME,
    added,
    command_commit,
    commit,
    day,
    event_id_at,
    fact_id_at,
    pending,
    pending_confirmed,
    policy_set,
    skipped,
    undone,
)
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
TENANT = ScopeFilter(user_id="**", agent_id="**", app_id="**", run_id="**")
NOW = START_TIME + timedelta(minutes=5)


def failed_checks(report: Audit) -> list[tuple[str, str]]:
    return [(finding.severity, finding.what) for finding in report.findings]


async def fill(db: ProjectedDatabase) -> None:
    await db.journal_turns("1", "2", "3", "4", "5")
    await db.apply(commit("1", added("A.")), commit("2"), b"no commit", commit("1", added("Again.")))
    await db.apply(commit("3", outcome="failed", reason="x"), partition=3)


async def test_accepted_is_ended_plus_in_flight(db: ProjectedDatabase) -> None:
    """Law 2: every accepted turn has exactly one end, or is still on its way."""
    nothing = await audit(db.conn, now=NOW)
    assert (nothing.ok, nothing.accepted, nothing.partitions, nothing.oldest_in_flight) == (True, 0, (), None)
    await fill(db)
    books = await audit(db.conn, now=NOW)
    assert (books.ok, failed_checks(books)) == (True, [])
    assert (books.accepted, books.in_flight, books.ends) == (5, 2, {"stored": 1, "failed": 1, "nothing_stored": 1})
    assert books.oldest_in_flight == timedelta(minutes=5)
    assert [(one.partition, one.next_offset, one.records) for one in books.partitions] == [(0, 4, 4), (3, 1, 1)]
    late = await audit(db.conn, now=day(1))
    assert (late.ok, failed_checks(late)) == (
        False,
        [("error", "2 turns have been in flight for more than 0:15:00")],
    )
    totals = await table_counts(db.conn)
    assert (totals.turns, totals.in_flight, totals.active_facts, totals.failed_turns) == (5, 2, 1, 1)
    assert totals.last_turn_at is not None


async def test_an_end_before_the_journal_is_a_warning_and_later_an_error(db: ProjectedDatabase) -> None:
    await db.apply(commit("1"))
    early, late = await audit(db.conn, now=NOW), await audit(db.conn, now=day(1))
    assert (early.ok, failed_checks(early)) == (True, [("warning", "1 turns ended before the journal had them")])
    assert (late.ok, late.accepted) == (False, 1)
    assert failed_checks(late) == [("error", "1 turns ended more than 0:15:00 ago and are not in the journal")]


DAMAGE = {
    "DELETE FROM commits WHERE source_id = '1'": [
        "partition 0 of the log: 1 of 4 offsets have neither a commit nor a rejection",
        "1 events belong to no commit",
    ],
    "DELETE FROM facts": ["1 events are about a fact that is not there"],
    "ALTER TABLE memory_events DISABLE TRIGGER ALL; DELETE FROM memory_events": [
        "1 commits that brought facts have no event",
        "1 facts were made by no event",
    ],
    "UPDATE projection_offsets SET next_offset = CASE partition WHEN 0 THEN 2 ELSE 3 END": [
        "partition 0 of the log: 2 records lie at or beyond the next offset 2",
        "partition 3 of the log: 2 of 3 offsets have neither a commit nor a rejection",
    ],
    "INSERT INTO rejections (partition, log_offset, item, reason, detail) VALUES (0, 0, 0, 'not_a_commit', '')": [
        "partition 0 of the log: 1 offsets have both a commit and a rejection"
    ],
}


@pytest.mark.parametrize("damage", DAMAGE)
async def test_what_was_lost_or_moved_is_found(db: ProjectedDatabase, damage: str) -> None:
    await fill(db)
    await db.conn.execute(damage.encode())
    found = await audit(db.conn, now=NOW)
    assert (found.ok, failed_checks(found)) == (False, [("error", what) for what in DAMAGE[damage]])


async def test_what_decisions_leave_behind_balances_and_is_missed(db: ProjectedDatabase) -> None:
    """Held back, confirmed and taken back; a policy; a statement about what is not known."""
    await db.journal_turns("1", "2", "3", "4", "5")
    first = commit("1", added("A."))
    held = commit("2", pending("B.", fact_id_at(first)), pending("C.", fact_id_at(first)), at=day(1))
    confirmed_held = commit("3", pending_confirmed(fact_id_at(held), fact_id_at(first), text="B again."), at=day(2))
    unknown = skipped(fact_id_at(commit("never", added("D."))))
    await db.apply(first, held, confirmed_held, commit("4", undone(event_id_at(confirmed_held)), at=day(3)))
    await db.apply(commit("5", policy_set(Policy(add_only=True)), unknown, at=day(4)))
    assert failed_checks(await audit(db.conn, now=NOW)) == []
    await db.conn.execute("DELETE FROM pending_confirmations")
    await db.conn.execute("UPDATE former_states SET event_id = gen_random_uuid()")
    await db.conn.execute("UPDATE undone SET undone_by = gen_random_uuid()")
    assert failed_checks(await audit(db.conn, now=NOW)) == [
        ("error", "1 facts wait for a confirmation without a row that says so, or the other way round"),
        ("error", "2 former states belong to no fact or no event"),
        ("error", "1 events were undone by no event"),
    ]


async def test_commands_are_no_turns_and_a_turn_has_the_end_of_its_last_attempt(db: ProjectedDatabase) -> None:
    await fill(db)
    policy = Policy(note="quiet")
    await db.apply(command_commit("c1", SetPolicy(level="scope", policy=policy), policy_set(policy)), partition=1)
    await db.apply(command_commit("c2", DeleteAll()), partition=1)
    books = await audit(db.conn, now=NOW)
    assert (books.ok, books.accepted, sum(books.ends.values()), books.in_flight) == (True, 5, 3, 2)
    failed = [commit("4", outcome="failed", reason="invalid_reply", attempt=attempt) for attempt in (1, 2)]
    await db.apply(*failed, commit("4", added("B."), attempt=3), partition=1)
    hit = LimitHit(name="turns_per_minute", level="scope", count=1, limit=1)
    refused = commit("5", outcome="rejected", reason="limit", limit=hit)
    await db.apply(refused, commit("5", added("B."), attempt=2), partition=1)
    books = await audit(db.conn, now=NOW)
    assert (books.ok, failed_checks(books)) == (True, [])
    assert (books.accepted, books.in_flight, books.ends) == (5, 0, {"stored": 3, "failed": 1, "nothing_stored": 1})


async def test_turns_that_failed_or_were_rejected_are_listed_until_another_attempt_succeeds(
    db: ProjectedDatabase,
) -> None:
    hit = LimitHit(name="active_facts", level="scope", count=2, limit=1)
    await db.journal_turns("1", "2", "3")
    await db.apply(
        commit("1", added("A.")),
        commit("2", outcome="failed", reason="no_reply", detail="the model gave none"),
        commit("3", outcome="rejected", reason="limit", limit=hit),
        commit("4", outcome="rejected", reason="other", scope=BOB),
    )
    found = {one.turn_id: one for one in await failed_turns(db.conn, TENANT, limit=10)}
    assert set(found) == {"2", "3", "4"}
    assert (found["2"].status, found["2"].reason, found["2"].detail) == ("failed", "no_reply", "the model gave none")
    assert [found[name].can_retry for name in ("2", "3", "4")] == [True, True, False]
    assert [one.turn_id for one in await failed_turns(db.conn, ScopeFilter.of_scope(BOB), limit=10)] == ["4"]
    assert len(await failed_turns(db.conn, TENANT, limit=1)) == 1
    await db.apply(commit("2", added("B."), attempt=2))
    assert {one.turn_id for one in await failed_turns(db.conn, TENANT, limit=10)} == {"3", "4"}


async def test_failed_turns_are_listed_by_reason_and_time_until_they_are_dropped(db: ProjectedDatabase) -> None:
    await db.journal_turns("1", "2", "3")
    await db.apply(
        commit("1", outcome="failed", reason="no_reply", at=day(1)),
        commit("2", outcome="failed", reason="no_reply", at=day(3)),
        commit("3", outcome="failed", reason="invalid_reply", at=day(3)),
        commit("2", outcome="failed", reason="no_reply", scope=BOB, at=day(3)),
    )

    async def listed(scope: ScopeFilter = TENANT, **chosen: Any) -> list[FailedTurn]:
        return sorted(await failed_turns(db.conn, scope, limit=10, **chosen), key=lambda one: one.turn_id)

    assert [one.turn_id for one in await listed(reason="no_reply")] == ["1", "2", "2"]
    assert [one.turn_id for one in await listed(since=day(2))] == ["2", "2", "3"]
    assert [one.turn_id for one in await failed_turns(db.conn, TENANT, limit=1, turn_id="1")] == ["1"]
    (late,) = await listed(ScopeFilter.of_scope(ALICE), reason="no_reply", since=day(2))
    await drop_turns(db.conn, [late], actor="kim", why="a test of ours")
    await drop_turns(db.conn, [late], actor="lee", why="once more")
    assert [(one.turn_id, one.user_id) for one in await listed()] == [("1", "alice"), ("2", "bob"), ("3", "alice")]
    assert (await table_counts(db.conn)).failed_turns == 3
    rows = await (await db.conn.execute("SELECT owner, source_id, actor, why FROM dropped_turns")).fetchall()
    assert rows == [("default/alice", "2", "kim", "a test of ours")]
    await db.apply(commit("2", outcome="failed", reason="no_reply", attempt=2))
    assert ("2", 2) in [(one.turn_id, one.attempt) for one in await listed()]


async def test_turns_that_never_ended_are_found_the_oldest_first(db: ProjectedDatabase) -> None:
    await db.journal_turns("1", "2", "3")
    await db.apply(commit("2", outcome="failed", reason="no_reply"))
    later = NOW + timedelta(days=9000)
    assert [turn.turn_id for turn in await unended_turns(db.conn, "default", before=later, limit=10)] == ["1", "3"]
    assert [turn.turn_id for turn in await unended_turns(db.conn, "default", "alice", before=later, limit=1)] == ["1"]
    for tenant, user, before in (("default", "bob", later), ("other", None, later), ("default", None, day(-9000))):
        assert await unended_turns(db.conn, tenant, user, before=before, limit=10) == []


async def test_a_turn_is_given_back_as_it_was_received(db: ProjectedDatabase) -> None:
    await db.journal_turns("1")
    turn = await received_turn(db.conn, "default", "1", "alice")
    assert turn is not None
    assert turn.turn_id == "1"
    assert await received_turn(db.conn, "default", "2") is None
    assert await received_turn(db.conn, "other", "1") is None
