"""`memory.search` and `memory.context` answer as the client does, and no function of the schema takes what is wrong."""

import re
import time
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any, Final, get_args

import psycopg
import pytest

from mnemolog.projections.context import Context, ContextRules, Doubt, compose, lasting_facts
from mnemolog.projections.memory.client_queries import SEARCH_DEFAULTS
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.rebuild.scope_indexes import index_scopes
from mnemolog.projections.search.search import (
    CANDIDATES_PER_HIT,
    FIELD_WEIGHTS,
    MAX_QUERY_WORDS,
    MIN_CANDIDATES,
    SearchOptions,
    search,
)
from mnemolog.schemas.vector import Vector
from tests.support.builders.commits import BOB, added, commit, fact_id_at, pending, replaced
from tests.support.cases.questions import QUESTIONS, SECONDS
from tests.support.filled_scopes import MODEL, fill_scopes
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
MINE = ScopeFilter(user_id="alice")
NEAR = Vector.from_values(MODEL, [0.6, 0.8, 0.0])
INVALID, MISSING, NO_TIME = "22023", "22004", "22007"
NOBODY, EMPTY = "neither a user_id nor an agent_id", "the text to search for is empty"
NOW = datetime.now(UTC)
LONG_AGO = NOW - timedelta(days=367)


async def asked(db: ProjectedDatabase, call: str, *parameters: Any) -> list[dict[str, Any]]:
    started = time.perf_counter()
    cursor = db.conn.cursor(row_factory=psycopg.rows.dict_row)
    try:
        found = await cursor.execute(f"SELECT * FROM memory.{call}".encode(), parameters or None)  # noqa: S608 - ours
        return await found.fetchall()
    finally:
        assert time.perf_counter() - started < SECONDS


async def texts(db: ProjectedDatabase, call: str, *parameters: Any) -> list[str]:
    return sorted(row["text"] for row in await asked(db, call, *parameters))


async def test_hits_and_scores_are_the_clients_by_a_scan_and_by_indexes(db: ProjectedDatabase) -> None:
    fill_scopes(db.url, {"alice": 300, "bob": 300}, dimensions=3)
    question = "What did the user say about word7 and word42?"
    call = "search(%s, %s::halfvec, user_id => 'alice', threshold => %s)"
    for is_indexed, vector, threshold in product((False, True), ("[0.6, 0.8, 0]", None), (0.0, 0.9)):
        assert len((await index_scopes(db.url, least=200 if is_indexed else 1000)).scopes) == 2 * is_indexed
        rows = await asked(db, call, question, vector, threshold)
        options, near = SearchOptions(threshold=threshold), NEAR if vector else None
        hits = (await search(db.conn, MINE, question, near, options, at=datetime.now(UTC))).hits
        assert [row["fact_id"] for row in rows] == [hit.fact.fact_id for hit in hits]
        assert [row["score"] for row in rows] == pytest.approx([hit.score.total for hit in hits], abs=1e-6)
        assert [row["similarity"] for row in rows] == [hit.score.similarity for hit in hits]
        assert len(rows) == 20


def test_its_constants_are_the_defaults_of_the_client() -> None:
    options = SearchOptions()
    weights = {f"{name}_weight": weight for name, weight in options.shares.items()}
    assert {
        "fusion": options.fusion,
        "rrf_k": options.rrf_k,
        "half_life_days": options.half_life_days,
        "min_candidates": MIN_CANDIDATES,
        "candidates_per_hit": CANDIDATES_PER_HIT,
        "max_words": MAX_QUERY_WORDS,
        "per_matter": options.per_matter,
        "field_weights": f"{{{','.join(map(str, FIELD_WEIGHTS))}}}",
        **weights,
    } == SEARCH_DEFAULTS


async def test_it_says_what_is_not_current(db: ProjectedDatabase) -> None:
    known = commit("1", added("Lives in Rome."), added("Lives in Bern."))
    waiting = pending("Lives in Oslo.", fact_id_at(known, 1))
    later = added("Lives in Paris.", true_from=datetime(2999, 1, 1, tzinfo=UTC))
    await db.apply(known, commit("2", replaced("Lives in Nice.", fact_id_at(known)), waiting, later))
    rows = await asked(db, "search('lives', user_id => 'alice')")
    assert {row["text"]: row["state"] for row in rows} == {
        "Lives in Bern.": "current",
        "Lives in Nice.": "current",
        "Lives in Oslo.": "pending",
        "Lives in Paris.": "upcoming",
    }


@pytest.fixture
async def eventful(db: ProjectedDatabase) -> ProjectedDatabase:
    """Facts of all sections, with every doubt."""
    lately, event = NOW - timedelta(days=40), "specific_event"
    first = commit(
        "1",
        added("May drink coffee.", confidence=0.3),
        added("Never drinks milk.", category="hard_preference", importance=0.9),
        added("Is allergic to nuts.", category="health"),
        added("Has no drink of milk any more.", category="hard_preference", action_hint="retract"),
        added("Spilled a drink on a plaster.", category="health", event_time=lately, importance_category=event),
        added("Was at the dentist.", category="health", event_time=lately, importance_category=event),
        added("Plants a garden.", category="task_context", importance=0.3),
        added("Likes jazz.", category="soft_preference"),
        added("Likes a drink in the evening.", category="soft_preference"),
        added("Has a garden.", category="identity"),
        added("Draws a garden.", category="finance", more_categories=("professional", "soft_preference")),
        added("Weeds the garden.", category="professional", more_categories=("task_context",)),
        added("Has a plaster for the garden.", category="drinks", more_categories=("health", "task_context")),
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


QUESTION = "what does she drink in the garden?"
CONTEXT = "context(%s, user_id => 'alice', budget_tokens => %s)"


@pytest.mark.parametrize("question", [QUESTION, None])
async def test_its_facts_and_their_order_are_the_clients(eventful: ProjectedDatabase, question: str | None) -> None:
    rows, context = await asked(eventful, CONTEXT, question, 100_000), await clients(eventful, question)
    in_place = sorted(rows, key=lambda row: row["place"])
    assert [(row["fact_id"], row["section"]) for row in in_place] == [
        (fact.fact_id, fact.section) for fact in context.facts
    ]
    assert all(row["fits"] for row in rows)
    assert len(rows) == (18 if question else 9)


async def test_room_is_given_in_the_order_of_the_client(eventful: ProjectedDatabase) -> None:
    rows = await asked(eventful, CONTEXT, QUESTION, 1)
    left_out = (await clients(eventful, QUESTION, budget=1)).left_out
    assert [(row["fact_id"], tuple(row["doubts"])) for row in rows] == [(one.fact_id, one.doubts) for one in left_out]
    assert {doubt for row in rows for doubt in row["doubts"]} == {*get_args(Doubt)}
    assert not any(row["fits"] for row in rows)
    used = 0
    for row in await asked(eventful, CONTEXT, QUESTION, 25):  # what is smaller fits behind what does not
        assert row["tokens"] == (len(row["text"]) + 2) // 3 + 2
        assert row["fits"] == (used + row["tokens"] <= 25)
        used += row["tokens"] * row["fits"]
    assert 0 < used <= 25


@pytest.fixture
async def known(db: ProjectedDatabase) -> ProjectedDatabase:
    await db.apply(commit("1", added("Alice likes tea.")), commit("2", added("Bob likes tea."), scope=BOB))
    return db


async def test_any_question_is_answered_from_its_own_scope(known: ProjectedDatabase) -> None:
    for name, text in QUESTIONS.items():
        if "\x00" in text or "\ud800" in text:  # no client can send it
            continue
        for function in ("search", "context"):
            found = await texts(known, f"{function}(%s, user_id => 'alice')", text)
            assert found in ([], ["Alice likes tea."]), (name, function)
            assert found or " tea " not in f" {text[:100]} ", name


REFUSED: Final = (
    ("facts_as_of()", INVALID, NOBODY),
    ("facts_as_of(user_id => '')", INVALID, "an id in the scope is empty"),
    ("facts_as_of(user_id => 'alice', tenant => '*')", INVALID, "sees one tenant, and this one names '*'"),
    ("facts_as_of(user_id => 'alice', tenant => NULL)", INVALID, "sees one tenant, and this one names none"),
    ("facts_as_of(NULL, user_id => 'alice')", MISSING, "believed_at is NULL"),
    ("facts_as_of('x', user_id => 'alice')", NO_TIME, "invalid input syntax"),
    ("changes_between('2026-01-02', '2026-01-01', user_id => 'alice')", INVALID, "is after until"),
    ("changes_between('infinity', '-infinity', user_id => 'alice')", INVALID, "is after until"),
    ("changes_between(NULL, user_id => 'alice')", MISSING, "since is NULL"),
    ("changes_between('2026-01-02', app_id => 'a')", INVALID, NOBODY),
    ("profile()", INVALID, NOBODY),
    ("profile(user_id => '')", INVALID, "an id in the scope is empty"),
    ("profile(user_id => '*')", INVALID, "this one has a wildcard"),
    ("search(NULL, user_id => 'alice')", INVALID, EMPTY),
    ("search(E' \\n\\t ', user_id => 'alice')", INVALID, EMPTY),
    ("search('tea')", INVALID, NOBODY),
    ("search('tea', user_id => '')", INVALID, "an id in the scope is empty"),
    ("search('tea', user_id => NULL)", INVALID, NOBODY),
    ("search('tea', user_id => 'alice', tenant => '**')", INVALID, "sees one tenant"),
    ("search('tea', user_id => 'alice', top_k => 0)", INVALID, "top_k is 0"),
    ("search('tea', user_id => 'alice', top_k => -1)", INVALID, "top_k is -1"),
    ("search('tea', user_id => 'alice', top_k => 2147483647)", INVALID, "top_k is 2147483647"),
    ("search('tea', user_id => 'alice', top_k => NULL)", INVALID, "top_k is NULL"),
    ("search('tea', user_id => 'alice', threshold => 'NaN')", INVALID, "threshold is NaN"),
    ("search('tea', user_id => 'alice', threshold => 'Infinity')", INVALID, "threshold is Infinity"),
    ("search('tea', '[1, 0]', user_id => 'alice')", "22000", "the vector has 2 dimensions, and those of the facts"),
    ("context('tea')", INVALID, NOBODY),
    ("context('tea', user_id => '*')", INVALID, "a context belongs to one scope"),
    ("context(' ', user_id => 'alice')", INVALID, EMPTY),
    ("context('tea', user_id => 'alice', threshold => -1.0)", INVALID, "threshold is -1"),
    ("context('tea', user_id => 'alice', budget_tokens => 0)", INVALID, "budget_tokens is 0"),
    ("context('tea', user_id => 'alice', budget_tokens => -1)", INVALID, "budget_tokens is -1"),
    ("context('tea', user_id => 'alice', min_confidence => 'NaN')", INVALID, "min_confidence NaN"),
)


async def test_what_makes_no_sense_is_refused_with_what_to_do(known: ProjectedDatabase) -> None:
    for call, code, words in REFUSED:
        with pytest.raises(psycopg.Error, match=re.escape(words)) as caught:
            await asked(known, call)
        assert caught.value.sqlstate == code, call
        assert caught.value.diag.message_hint or code == NO_TIME, call


async def test_an_unknown_scope_has_nothing(known: ProjectedDatabase) -> None:
    calls = ("search('tea', {})", "context('tea', {})", "profile({})", "facts_as_of(now(), {})")
    for call in (*calls, "changes_between('-infinity', 'infinity', {})"):
        for user in (" ", "x" * 1_000_000, "'; DROP TABLE facts; --", "\N{PARTY POPPER}"):
            assert await asked(known, call.format("user_id => %s"), user) == []
