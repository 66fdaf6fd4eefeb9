"""`memory.search` finds what the client finds."""

from datetime import UTC, datetime
from itertools import product
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
NEAR = Vector.from_values(MODEL, [0.6, 0.8, 0.0])
QUESTION = "What did the user say about word7 and word42?"


async def asked(db: ProjectedDatabase, call: str, *parameters: Any) -> list[dict[str, Any]]:
    query = f"SELECT * FROM memory.search({call})"  # noqa: S608 - no foreign text
    cursor = db.conn.cursor(row_factory=psycopg.rows.dict_row)
    return await (await cursor.execute(query.encode(), parameters)).fetchall()


async def test_hits_and_scores_are_the_clients_by_a_scan_and_by_indexes(db: ProjectedDatabase) -> None:
    fill_scopes(db.url, {"alice": 300, "bob": 300}, dimensions=3)
    for is_indexed, vector, threshold in product((False, True), ("[0.6, 0.8, 0]", None), (0.0, 0.9)):
        assert len((await index_scopes(db.url, least=200 if is_indexed else 1000)).scopes) == 2 * is_indexed
        rows = await asked(db, "%s, %s::halfvec, user_id => 'alice', threshold => %s", QUESTION, vector, threshold)
        mine, options, near = ScopeFilter(user_id="alice"), SearchOptions(threshold=threshold), NEAR if vector else None
        hits = (await search(db.conn, mine, QUESTION, near, options, at=datetime.now(UTC))).hits
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


async def test_scopes_and_models_do_not_mix(db: ProjectedDatabase) -> None:
    await db.apply(commit("1", added("Tea.")), commit("2", added("Tea, too."), scope=BOB))
    of_run, of_tenant = Scope(user_id="alice", run_id="r1"), Scope(user_id="alice", tenant="acme")
    await db.apply(commit("3", added("Tea of a run."), scope=of_run), commit("4", added("Tea."), scope=of_tenant))
    for scope, expected in (
        ("user_id => 'alice'", ["Tea."]),
        ("user_id => 'alice', run_id => '*'", ["Tea of a run."]),
        ("user_id => 'alice', run_id => '**'", ["Tea of a run.", "Tea."]),
        ("user_id => '*'", ["Tea, too.", "Tea."]),
        ("user_id => 'nobody'", []),
    ):
        assert sorted(row["text"] for row in await asked(db, f"'tea', {scope}")) == expected
    by_vector = "'coffee', '[0.6, 0.8, 0]', user_id => 'alice', threshold => 0"
    assert await asked(db, f"{by_vector}, model => 'another'") == []
    (row,) = await asked(db, by_vector)
    assert row["similarity"] is not None
