"""The schema `memory`: what it shows, and that its functions answer as the client does."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, LiteralString

import psycopg
import pytest

from mnemolog.projections.memory.client_queries import CLIENT_QUERIES
from mnemolog.projections.queries import diff, facts, pending
from mnemolog.projections.queries.results import Fact
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.provenance import Mood, Step
from mnemolog.schemas.scope import Scope
from tests.support.builders import commits
from tests.support.builders.commits import (
    BOB,
    added,
    commit,
    contradicted,
    corrected,
    day,
    expired,
    fact_id_at,
    merged,
    pending_rejected,
    replaced,
    retracted,
    skipped,
)
from tests.support.builders.sample_logs import every_decision_log
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
MINE = ScopeFilter(user_id="alice")
NOW = datetime(2026, 11, 1, tzinfo=UTC)
JOY = Mood(emotion="joy", intensity=0.75, energy="high")
FAR = datetime(2999, 1, 1, tzinfo=UTC)
OTHERS = (BOB, Scope(user_id="alice", run_id="r1"), Scope(user_id="alice", agent_id="helper"), Scope(agent_id="alice"))
STATES = {
    "replaced": "superseded",
    "contradicted": "archived",
    "deleted": "retracted",
    "ended with its term": "ended",
    "expired": "expired",
    "to be corrected": "superseded",
    "merged": "superseded",
    "upcoming": "upcoming",
    "pending": "pending",
    "rejected": "archived",
    **dict.fromkeys(("current", "current denial", "current, corrected", "current, merged"), "current"),
    **dict.fromkeys(("current, challenged", "current, unresolved"), "current"),
}


def eventful_log() -> list[Commit]:
    """Facts in every state; their texts say in which they end up."""
    first = commit(
        "1",
        added("replaced", key="home_city", value="Bern"),
        *map(added, ("contradicted", "deleted", "expired", "to be corrected", "current, challenged")),
        added("merged", category="identity"),
        added("ended with its term", valid_until=day(4)),
        at=day(1),
    )
    ids = [fact_id_at(first, number) for number in range(8)]
    ends = commit(
        "2",
        replaced("current", ids[0], key="home_city", value="Rome", category="identity"),
        contradicted("current denial", ids[1]),
        retracted(ids[2]),
        expired(ids[3], ended_at=day(1.5)),
        corrected("current, corrected", ids[4]),
        merged("current, merged", ids[6], category="identity"),
        skipped(ids[5]),
        at=day(2),
        steps=(Step(stage="extract", milliseconds=1, mood=JOY), Step(stage="embed", milliseconds=1)),
    )
    later = commit(
        "3",
        added("upcoming", true_from=FAR, category="identity"),
        added("current, unresolved", unresolved=True),
        commits.pending("pending", ids[5], needs_human=True),
        commits.pending("rejected", ids[5]),
        at=day(3),
    )
    rejection = commit("4", pending_rejected(fact_id_at(later, 3), confirmed=ids[5]), at=day(4))
    return [first, ends, later, rejection, commit("5", at=day(5))]


@pytest.fixture
async def known(db: ProjectedDatabase) -> ProjectedDatabase:
    """The log above, and others' facts beside it."""
    await db.apply(*eventful_log())
    for partition, scope in enumerate(OTHERS, 1):
        await db.apply(commit(f"o{partition}", added(f"of {scope}"), scope=scope), partition=partition)
    await db.journal_turns("1", "2", "9")
    return db


async def records(db: ProjectedDatabase, query: LiteralString, *parameters: Any) -> list[dict[str, Any]]:
    cursor = db.conn.cursor(row_factory=psycopg.rows.dict_row)
    return await (await cursor.execute(query, parameters)).fetchall()


def without_state(rows: list[dict[str, Any]]) -> list[Fact]:
    return [Fact(**{name: value for name, value in row.items() if name != "state"}) for row in rows]


async def test_a_plain_select_shows_what_holds_now_and_the_states_in_one_word(known: ProjectedDatabase) -> None:
    shown = await records(known, "SELECT text, unresolved FROM memory.current_facts WHERE user_id = 'alice'")
    current = [text for text, state in STATES.items() if state == "current"]
    assert sorted(row["text"] for row in shown) == sorted([*current, f"of {OTHERS[1]}", f"of {OTHERS[2]}"])
    assert [row["text"] for row in shown if row["unresolved"]] == ["current, unresolved"]
    rows = await records(
        known, "SELECT text, state FROM memory.facts WHERE user_id = 'alice' AND coalesce(run_id, agent_id) IS NULL"
    )
    assert {row["text"]: row["state"] for row in rows} == STATES


async def test_what_holds_now_is_what_the_client_lists_and_knows_as_of_now(known: ProjectedDatabase) -> None:
    query: LiteralString = """
        SELECT * FROM memory.current_facts
        WHERE user_id = 'alice' AND agent_id IS NULL AND run_id IS NULL ORDER BY recorded_at, fact_id
    """
    shown = {fact.fact_id: fact for fact in without_state(await records(known, query))}
    listed = [fact for fact in await facts.facts(known.conn, MINE, at=NOW) if not fact.begins_later]
    assert shown == {fact.fact_id: fact for fact in listed}
    as_of = await facts.facts_as_of(known.conn, MINE, believed_at=NOW, true_at=NOW)
    undisputed = {fact_id: replace(fact, disputed=False) for fact_id, fact in shown.items()}  # of now alone
    assert undisputed == {fact.fact_id: fact for fact in as_of}


async def test_changes_are_the_clients_and_name_what_they_ended(db: ProjectedDatabase) -> None:
    await db.apply(*eventful_log())
    await db.apply(*(one.model_copy() for one in every_decision_log(BOB)), partition=1)
    asked: LiteralString = "SELECT * FROM memory.changes_between(%s, %s, user_id => %s)"
    for user in ("alice", "bob"):
        told = await diff.diff(db.conn, ScopeFilter(user_id=user), day(0), day(20))
        rows = await records(db, asked, day(0), day(20), user)
        kinds = {(row["at"], row["kind"], row["event"]) for row in rows}
        assert kinds == {(change.at, kind, change.event) for kind, change in told.in_order}
        assert len(rows) > 10
    rows = await records(db, asked, day(2), day(3), "alice")
    assert [(row["kind"], row["text"], [old["text"] for old in row["old"]]) for row in rows] == [
        ("replaced", "current", ["replaced"]),
        ("contradicted", "current denial", ["contradicted"]),
        ("retracted", "deleted", []),
        ("expired", "expired", []),
        ("corrected", "current, corrected", ["to be corrected"]),
        ("merged", "current, merged", ["merged"]),
    ]


async def test_a_profile_and_pending_facts_are_the_clients(known: ProjectedDatabase) -> None:
    profile = await facts.profile(known.conn, MINE, NOW)
    rows = await records(known, "SELECT * FROM memory.profile(user_id => 'alice')")
    for section in facts.PROFILE_SECTIONS:
        entries = [row for row in rows if row["section"] == section]
        assert [str(row["fact_id"]) for row in entries] == [entry["fact_id"] for entry in getattr(profile, section)]
        assert [row["place"] for row in entries] == list(range(1, len(entries) + 1))
    assert {row["section"] for row in rows} == {"identity", "other", "upcoming", "recent_changes"}
    (waiting,) = await pending.pending(known.conn, MINE, NOW)
    (row,) = await records(known, "SELECT * FROM memory.pending WHERE user_id = 'alice'")
    assert (row["fact_id"], row["action"], row["guard"]) == (waiting.fact.fact_id, waiting.action, waiting.guard)
    assert row["needs_human"]
    assert [one["text"] for one in row["challenged"]] == ["current, challenged"]
    assert [one.text for one in waiting.challenged] == ["current, challenged"]


async def test_every_event_and_turn_is_shown(known: ProjectedDatabase) -> None:
    await known.apply(*every_decision_log(Scope(user_id="dora")), partition=9)
    counts: LiteralString = "SELECT (SELECT count(*) FROM memory_events), (SELECT count(*) FROM memory.events)"
    ((events, shown),) = await known.rows(counts)
    assert events == shown > 20
    turns = await known.rows(
        "SELECT turn_id, status, emotion, intensity, energy FROM memory.turns WHERE user_id = 'alice' ORDER BY 1"
    )
    nothing = (None, None, None)
    assert turns == [("1", "stored", *nothing), ("2", "stored", "joy", 0.75, "high"), ("9", "pending", *nothing)]


async def test_names_are_found_whatever_the_search_path_and_everything_has_a_comment(known: ProjectedDatabase) -> None:
    silent = await known.rows(
        """
        SELECT c.relname || coalesce('.' || a.attname, '')
        FROM pg_class AS c
        LEFT JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0
        WHERE c.relnamespace = 'memory'::regnamespace AND c.relkind = 'v'
            AND (col_description(c.oid, a.attnum) IS NULL OR obj_description(c.oid, 'pg_class') IS NULL)
        UNION ALL
        SELECT proname FROM pg_proc
        WHERE pronamespace = 'memory'::regnamespace AND obj_description(oid, 'pg_proc') IS NULL
        """
    )
    assert silent == []
    await known.conn.execute("SET search_path = pg_catalog")
    views = ("facts", "current_facts", "pending", "turns", "events")
    calls = (
        *("facts_as_of(user_id => 'alice')", "profile(user_id => 'alice')"),
        *("changes_between('2026-01-01', user_id => 'alice')", "search('current', user_id => 'alice')"),
    )
    for source in (*views, *calls):
        query = f"SELECT * FROM memory.{source}"  # noqa: S608 - no foreign text
        assert await (await known.conn.execute(query.encode())).fetchall()


async def test_the_functions_have_the_text_of_the_clients_queries(db: ProjectedDatabase) -> None:
    query: LiteralString = "SELECT prosrc FROM pg_proc WHERE pronamespace = 'memory'::regnamespace AND proname = %s"
    for name, found in CLIENT_QUERIES.items():
        ((source,),) = await (await db.conn.execute(query, [name])).fetchall()
        for one in found.values():
            assert one.body_in(name).as_string() in source
