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
    lately, event = NOW - timedelta(days=40), "specific_event"
    first = commit(
        "1",
        added("May drink coffee.", confidence=0.3),
        added("Never drinks milk.", category="hard_preference", importance=0.9),
        added("Is allergic to nuts.", category="health"),
        added("Spilled a drink on a plaster.", category="health", event_time=lately, importance_category=event),
        added("Was at the dentist.", category="health", event_time=lately, importance_category=event),
        added("Plants a garden.", category="task_context", importance=0.3),
        added("Likes jazz.", category="soft_preference"),
        added("Likes a drink in the evening.", category="soft_preference"),
        added("Has a garden.", category="identity"),
        added("The garden is sold.", unresolved=True),
        at=lately,
    )
    old = added("Has a drink of tea."), added("Has a drink of rum.", category="identity")
    waiting = pending("Drinks no tea.", fact_id_at(first))
    await db.apply(commit("0", *old, at=LONG_AGO), first, commit("2", waiting, at=lately))
    await db.apply(commit("4", added("Has a drink of gin."), at=NOW - timedelta(days=363)))
    await db.apply(commit("3", added("Reads a drink menu.", category="task_context"), at=NOW - timedelta(hours=1)))
    return db


async def clients(db: ProjectedDatabase, question: str | None, budget: int = 100_000) -> Context:
    lasting = await lasting_facts(db.conn, [MINE], NOW)
    hits = (await search(db.conn, MINE, question, None, SearchOptions(threshold=0.1), at=NOW)).hits if question else ()
    return compose(lasting, [hit.fact for hit in hits], ContextRules(budget_tokens=budget), at=NOW)


async def asked(db: ProjectedDatabase, question: str | None, budget: int = 100_000) -> list[dict[str, Any]]:
    call = "SELECT * FROM memory.context(%s, user_id => 'alice', budget_tokens => %s)"
    cursor = db.conn.cursor(row_factory=psycopg.rows.dict_row)
    return await (await cursor.execute(call, [question, budget])).fetchall()


@pytest.mark.parametrize("question", [QUESTION, None])
async def test_its_facts_and_their_order_are_the_clients(known: ProjectedDatabase, question: str | None) -> None:
    rows, context = await asked(known, question), await clients(known, question)
    in_place = sorted(rows, key=lambda row: row["place"])
    assert [(row["fact_id"], row["section"]) for row in in_place] == [
        (fact.fact_id, fact.section) for fact in context.facts
    ]
    assert all(row["fits"] for row in rows)
    assert len(rows) == (14 if question else 6)


async def test_room_is_given_in_the_order_of_the_client(known: ProjectedDatabase) -> None:
    rows = await asked(known, QUESTION, 1)
    left_out = (await clients(known, QUESTION, budget=1)).left_out
    assert [(row["fact_id"], tuple(row["doubts"])) for row in rows] == [(one.fact_id, one.doubts) for one in left_out]
    assert {doubt for row in rows for doubt in row["doubts"]} == {"pending", "unresolved", "low_confidence", "old"}
    assert not any(row["fits"] for row in rows)
    used = 0
    for row in await asked(known, QUESTION, 25):  # what is smaller fits behind what does not
        assert row["tokens"] == (len(row["text"]) + 2) // 3 + 2
        assert row["fits"] == (used + row["tokens"] <= 25)
        used += row["tokens"] * row["fits"]
    assert 0 < used <= 25
