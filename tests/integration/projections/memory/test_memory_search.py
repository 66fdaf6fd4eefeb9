"""`memory.search` finds what the client finds."""

from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

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
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.vector import Vector
from tests.support.builders.commits import BOB, added, commit, fact_id_at, pending, replaced
from tests.support.filled_scopes import MODEL, fill_scopes
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
NEAR = [0.6, 0.8, 0.0]
TEXT = "[0.6, 0.8, 0]"
QUESTION = "What did the user say about word7 and word42?"


@pytest.fixture
def filled(database: str) -> str:
    """Two users with 300 facts each."""
    fill_scopes(database, {"alice": 300, "bob": 300}, dimensions=3)
    return database


async def asked(db: ProjectedDatabase, call: str, *parameters: Any) -> list[dict[str, Any]]:
    query = f"SELECT * FROM memory.search({call})"  # noqa: S608 - no foreign text
    cursor = db.conn.cursor(row_factory=psycopg.rows.dict_row)
    return await (await cursor.execute(query.encode(), parameters)).fetchall()


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("vector", [TEXT, None])
@pytest.mark.parametrize("threshold", [0.0, 0.9])
async def test_hits_and_scores_are_the_clients(
    filled: str, vector: str | None, threshold: float, *, indexed: bool
) -> None:
    if indexed:
        assert len((await index_scopes(filled, least=200)).scopes) == 2
    async with ProjectedDatabase.open(filled) as db:
        rows = await asked(db, "%s, %s::halfvec, user_id => 'alice', threshold => %s", QUESTION, vector, threshold)
        near = Vector.from_values(MODEL, NEAR) if vector else None
        options = SearchOptions(threshold=threshold)
        hits = (await search(db.conn, ScopeFilter(user_id="alice"), QUESTION, near, options, at=datetime.now(UTC))).hits
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
    rows = await asked(db, "'lives', user_id => 'alice'")
    assert {row["text"]: row["state"] for row in rows} == {
        "Lives in Bern.": "current",
        "Lives in Nice.": "current",
        "Lives in Oslo.": "pending",
        "Lives in Paris.": "upcoming",
    }


async def test_scopes_do_not_mix(db: ProjectedDatabase) -> None:
    await db.apply(commit("1", added("Tea.")), commit("2", added("Tea, too."), scope=BOB))
    of_run, of_tenant = Scope(user_id="alice", run_id="r1"), Scope(user_id="alice", tenant="acme")
    await db.apply(commit("3", added("Tea of a run."), scope=of_run), commit("4", added("Tea."), scope=of_tenant))

    async def found(scope: str) -> list[str]:
        return sorted(row["text"] for row in await asked(db, f"'tea', {scope}"))

    assert await found("user_id => 'alice'") == ["Tea."]
    assert await found("user_id => 'alice', run_id => '*'") == ["Tea of a run."]
    assert await found("user_id => 'alice', run_id => '**'") == ["Tea of a run.", "Tea."]
    assert await found("user_id => '*'") == ["Tea, too.", "Tea."]
    assert await found("user_id => 'nobody'") == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("NULL, user_id => 'alice'", "the text to search for is empty"),
        ("E' \\n\\t ', user_id => 'alice'", "the text to search for is empty"),
        ("'tea'", "neither a user_id nor an agent_id"),
        ("'tea', user_id => 'alice', tenant => '**'", "sees one tenant"),
        ("'tea', user_id => 'alice', top_k => 0", "top_k is 0"),
        ("'tea', user_id => 'alice', top_k => NULL", "top_k is NULL"),
        ("'tea', user_id => 'alice', threshold => 'NaN'", "threshold is NaN"),
        (
            "'tea', '[1, 0]', user_id => 'alice'",
            r"the vector has 2 dimensions, and those of the facts .* have",
        ),
    ],
)
async def test_wrong_parameters_are_told(db: ProjectedDatabase, call: str, message: str) -> None:
    await db.apply(commit("1", added("Tea.")))
    with pytest.raises(psycopg.errors.DataError, match=message) as caught:
        await asked(db, call)
    assert caught.value.diag.message_hint


@pytest.mark.parametrize("text", ["' | & ! <-> (", "🍵🍵", "the of and", "茶", "x" * 1_000_000, "tea " * 100_000])
async def test_any_text_is_a_question(db: ProjectedDatabase, text: str) -> None:
    await db.apply(commit("1", added("Tea.")))
    found = await asked(db, "%s, user_id => 'alice'", text)
    assert [row["text"] for row in found] == (["Tea."] if "tea" in text else [])


async def test_a_vector_of_another_model_is_compared_with_none(db: ProjectedDatabase) -> None:
    await db.apply(commit("1", added("Tea.")))
    call = "'coffee', '[0.6, 0.8, 0]', user_id => 'alice', threshold => 0"
    assert await asked(db, f"{call}, model => 'another'") == []
    (row,) = await asked(db, call)
    assert row["similarity"] is not None
