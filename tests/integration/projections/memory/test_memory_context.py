"""`memory.context` gives the facts of the client's context in its order."""

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from mnemolog.projections.context import Context, ContextRules, compose, lasting_facts
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.search import SearchOptions, search
from tests.support.builders.commits import added, commit, fact_id_at, pending
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
MINE = ScopeFilter(user_id="alice")
NOW = datetime.now(UTC)
LONG_AGO = NOW - timedelta(days=367)
QUESTION = "what does she drink in the garden?"


@pytest.fixture
async def known(db: ProjectedDatabase) -> ProjectedDatabase:
    """Facts of all sections, with every doubt."""
    lately = NOW - timedelta(days=40)
    first = commit(
        "1",
        added("Never drinks milk.", category="hard_preference", importance=0.9),
        added("Is allergic to nuts.", category="health"),
        *(
            added(text, category="health", event_time=lately, importance_category="specific_event")
            for text in ("Spilled a drink on a plaster.", "Was at the dentist.")
        ),
        added("Plants a garden.", category="task_context", importance=0.3),
        added("Likes jazz.", category="soft_preference"),
        added("Likes a drink in the evening.", category="soft_preference"),
        added("Has a garden.", category="identity"),
        added("May drink coffee.", confidence=0.3),
        added("The garden is sold.", unresolved=True),
        at=lately,
    )
    old = [
        added(f"Has a drink of {drink}.", category=category)
        for drink, category in (("tea", "other"), ("rum", "identity"))
    ]
    waiting = pending("Drinks no tea.", fact_id_at(first, 8))
    now = NOW - timedelta(hours=1)
    await db.apply(commit("0", *old, at=LONG_AGO), first, commit("2", waiting, at=lately))
    await db.apply(commit("4", added("Has a drink of gin."), at=NOW - timedelta(days=363)))
    await db.apply(commit("3", added("Reads a drink menu.", category="task_context"), at=now))
    return db


async def clients(db: ProjectedDatabase, question: str | None, budget: int = 100_000) -> Context:
    lasting = await lasting_facts(db.conn, [MINE], NOW)
    hits = (await search(db.conn, MINE, question, None, SearchOptions(threshold=0.1), at=NOW)).hits if question else ()
    rules = ContextRules(budget_tokens=budget)
    return compose(lasting, [hit.fact for hit in hits], rules, at=NOW)


async def asked(db: ProjectedDatabase, call: str, *parameters: Any) -> list[dict[str, Any]]:
    query = f"SELECT * FROM memory.context({call})"  # noqa: S608 - no foreign text
    cursor = db.conn.cursor(row_factory=psycopg.rows.dict_row)
    return await (await cursor.execute(query.encode(), parameters)).fetchall()


@pytest.mark.parametrize("question", [QUESTION, None])
async def test_its_facts_and_their_order_are_the_clients(known: ProjectedDatabase, question: str | None) -> None:
    rows = await asked(known, "%s, user_id => 'alice', budget_tokens => 100000", question)
    context = await clients(known, question)
    in_place = sorted(rows, key=lambda row: row["place"])
    assert [(row["fact_id"], row["section"]) for row in in_place] == [
        (fact.fact_id, fact.section) for fact in context.facts
    ]
    assert all(row["fits"] for row in rows)
    assert len(rows) == (14 if question else 6)


async def test_room_is_given_in_the_order_of_the_client(known: ProjectedDatabase) -> None:
    rows = await asked(known, "%s, user_id => 'alice', budget_tokens => 1", QUESTION)
    left_out = (await clients(known, QUESTION, budget=1)).left_out
    assert [(row["fact_id"], tuple(row["doubts"])) for row in rows] == [(one.fact_id, one.doubts) for one in left_out]
    assert {doubt for row in rows for doubt in row["doubts"]} == {"pending", "unresolved", "low_confidence", "old"}
    assert not any(row["fits"] for row in rows)


async def test_what_is_smaller_fits_behind_what_does_not(known: ProjectedDatabase) -> None:
    rows = await asked(known, "%s, user_id => 'alice', budget_tokens => 25", QUESTION)
    used = 0
    for row in rows:
        assert row["tokens"] == (len(row["text"]) + 2) // 3 + 2
        assert row["fits"] == (used + row["tokens"] <= 25)
        used += row["tokens"] * row["fits"]
    assert 0 < used <= 25


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("'tea'", "neither a user_id nor an agent_id"),
        ("'tea', user_id => '*'", "a context belongs to one scope"),
        ("' ', user_id => 'alice'", "the text to search for is empty"),
        ("'tea', user_id => 'alice', budget_tokens => 0", "budget_tokens is 0"),
        ("'tea', user_id => 'alice', min_confidence => 'NaN'", "min_confidence NaN"),
    ],
)
async def test_wrong_parameters_are_told(db: ProjectedDatabase, call: str, message: str) -> None:
    with pytest.raises(psycopg.errors.DataError, match=message) as caught:
        await asked(db, call)
    assert caught.value.diag.message_hint
