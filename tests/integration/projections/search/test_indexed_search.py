"""A large scope is searched through indexes of its own, with the hits that a scan of it gives."""

from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import UTC, datetime
from itertools import product
from typing import Any, Final

import pytest
import pytest_asyncio
from psycopg import AsyncConnection
from psycopg.rows import TupleRow

from mnemolog.projections.database import fetch_long
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.rebuild.scope_indexes import index_scopes
from mnemolog.projections.search.search import MIN_CANDIDATES, Findings, Hit, SearchOptions, search
from mnemolog.schemas.vector import Vector
from tests.support.databases import fresh_database
from tests.support.filled_scopes import MODEL, fill_scopes
from tests.support.plans import connected

pytestmark = pytest.mark.postgres

SIZES: Final = {"large": 8000, "twin": 3500, "other": 1500, "small": 40}
LARGE: Final = ScopeFilter(user_id="large")
AT: Final = datetime(2026, 11, 1, tzinfo=UTC)
BEFORE: Final = datetime(2026, 10, 1, tzinfo=UTC)
DIMENSIONS: Final = 256
LEAST_RECALL: Final = 0.98
QUESTIONS: Final = 20
LEAST_SHARE: Final = 0.9
"""Of hits by words too: how many facts have a frequent word is an estimate."""
UNKNOWN_WORD: Final = "unheard"
FREQUENT: Final = "What matters to the user?"


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def indexed_database(postgres_admin_url: str, template_database: str) -> AsyncIterator[str]:
    """Two large scopes, of which `large` and `twin` have indexes; `other` has none."""
    with fresh_database(postgres_admin_url, template=template_database) as url:
        fill_scopes(url, SIZES, dimensions=DIMENSIONS)
        report = await index_scopes(url, least=3000)
        assert [scope.user_id for scope in report.scopes] == ["large", "twin"]
        yield url


@pytest_asyncio.fixture
async def conn(indexed_database: str) -> AsyncIterator[AsyncConnection[TupleRow]]:
    """In a transaction that is undone."""
    async with await connected(indexed_database) as one, one.transaction(force_rollback=True):
        yield one


async def questions(conn: AsyncConnection[TupleRow], user: str = "large") -> list[tuple[str, Vector]]:
    """Texts and vectors between those of two facts each."""
    query = (
        "SELECT text, embedding::real[] FROM facts WHERE user_id = %s AND status = 'active' ORDER BY fact_id LIMIT %s"
    )
    rows = await (await conn.execute(query, [user, 2 * QUESTIONS])).fetchall()
    return [
        (text, Vector.from_values(MODEL, [0.8 * one + 0.6 * two for one, two in zip(here, there, strict=True)]))
        for (text, here), (_, there) in zip(rows[::2], rows[1::2], strict=True)
    ]


def best(limit: int) -> SearchOptions:
    """With the ranks, and without what facts have beside them: candidates of an index have no order."""
    return SearchOptions.read({"limit": limit, "ranks": True, "weights": {"neighbours": 0.0}})


async def scanned(conn: AsyncConnection[TupleRow], *asked: Any, **more: Any) -> Findings:
    """The hits of a scan: those of the same scope without its indexes."""
    await conn.execute("SAVEPOINT indexed")
    await conn.execute("DELETE FROM indexed_scopes")
    hits = await search(conn, *asked, **more)
    await conn.execute("ROLLBACK TO SAVEPOINT indexed")
    return hits


async def replace_in_candidates(conn: AsyncConnection[TupleRow], text: str, new: str) -> None:
    query = "SELECT pg_get_functiondef(oid) FROM pg_proc WHERE proname = 'indexed_candidates'"
    ((function,),) = await (await conn.execute(query)).fetchall()
    assert text in function
    await conn.execute(function.replace(text, new).encode())


def share(found: Sequence[object], wanted: Sequence[object]) -> float:
    return len(set(found) & set(wanted)) / len(set(wanted))


def nearest(hits: Iterable[Hit]) -> list[object]:
    return [hit.fact.fact_id for hit in hits if hit.score.vector_rank]


def word_scores(hits: Iterable[Hit]) -> list[float]:
    return sorted((hit.score.text_score for hit in hits if hit.score.text_score), reverse=True)


async def facts_read(conn: AsyncConnection[TupleRow], text: str, vector: Vector) -> int:
    """How many rows of facts a search reads, by index or not."""
    query = "SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_xact_user_tables WHERE relname = 'facts'"
    ((before,),) = await (await conn.execute(query)).fetchall()
    await search(conn, LARGE, text, vector, best(10), at=AT)
    ((after,),) = await (await conn.execute(query)).fetchall()
    return int(after - before)


async def test_the_indexes_find_the_facts_that_a_scan_finds(conn: AsyncConnection[TupleRow]) -> None:
    recalls = []
    for _, vector in await questions(conn):
        by_indexes = await search(conn, LARGE, UNKNOWN_WORD, vector, best(100), at=AT)
        by_scan = await scanned(conn, LARGE, UNKNOWN_WORD, vector, best(100), at=AT)
        recalls.append(share(nearest(by_indexes), nearest(by_scan)))
    assert sum(recalls) / len(recalls) >= LEAST_RECALL


async def test_a_16th_of_an_indexed_scope_is_ranked_and_less_than_half_of_it_read(
    conn: AsyncConnection[TupleRow],
) -> None:
    """What the index gives first are not the nearest of all."""
    (text, vector), *_ = await questions(conn)
    a_16th = SIZES["large"] * 0.95 / 16 + MIN_CANDIDATES
    assert await facts_read(conn, UNKNOWN_WORD, vector) >= a_16th
    assert await facts_read(conn, text, vector) < SIZES["large"] / 2
    await replace_in_candidates(conn, "facts / 16", "0")
    assert await facts_read(conn, UNKNOWN_WORD, vector) < a_16th
    await conn.execute("DELETE FROM indexed_scopes")
    assert await facts_read(conn, text, vector) >= SIZES["large"] / 2


async def test_words_with_and_without_vectors_find_the_facts_of_a_scan(conn: AsyncConnection[TupleRow]) -> None:
    for text, vector in (await questions(conn))[:10]:
        by_indexes = await search(conn, LARGE, text, vector, best(10), at=AT)
        by_scan = await scanned(conn, LARGE, text, vector, best(10), at=AT)
        assert by_indexes[0] == by_scan[0]
        assert word_scores(by_indexes)[:5] == pytest.approx(word_scores(by_scan)[:5], abs=0.05)
        by_words = await search(conn, LARGE, text, None, best(10), at=AT)
        wanted = await scanned(conn, LARGE, text, None, best(10), at=AT)
        assert word_scores(by_words) == pytest.approx(word_scores(wanted), abs=0.05)
    assert len(await search(conn, LARGE, FREQUENT, None, SearchOptions(limit=100), at=AT)) == 100


@pytest.mark.parametrize(
    "asked",
    [
        {"filters": {"key": "key_7"}},
        {"state": "superseded"},
        {"believed_at": AT},
        {"explain": True},
        {"neighbours": 2},
        {"period": (datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC)), "only_period": True},
    ],
)
async def test_options_that_narrow_find_what_a_scan_finds(
    conn: AsyncConnection[TupleRow], asked: dict[str, Any]
) -> None:
    """The nearest facts by the indexes could all be such that a filter leaves out."""
    (text, vector), *_ = await questions(conn, "twin")
    options = SearchOptions.read({"limit": 20, **asked})
    hits = await search(conn, LARGE, text, vector, options, at=AT)
    assert len(hits) >= 10
    assert [*hits] == [*await scanned(conn, LARGE, text, vector, options, at=AT)]
    several = [LARGE, ScopeFilter(user_id="other")]
    found = await search(conn, several, text, vector, options, at=AT)
    assert [*found] == [*await scanned(conn, several, text, vector, options, at=AT)]


async def test_there_are_as_many_hits_as_are_asked_for(conn: AsyncConnection[TupleRow]) -> None:
    """Also where nearly all facts of the scope have ended, so that what the index finds first is of no use."""
    (_, vector), *_ = await questions(conn, "twin")
    ended = "UPDATE facts SET valid_until = %s WHERE user_id = 'large' AND hashtext(fact_id::text) %% 40 <> 0"
    await conn.execute(ended, [BEFORE])
    for text, limit in product(("word7", FREQUENT, UNKNOWN_WORD), (1, 100)):
        hits = await search(conn, LARGE, text, vector, best(limit), at=AT)
        wanted = await scanned(conn, LARGE, text, vector, best(limit), at=AT)
        assert len(hits) == len(wanted) == limit
        assert share(nearest(hits)[:10], nearest(wanted)[:10]) >= LEAST_SHARE
    await replace_in_candidates(conn, "'relaxed_order'", "'off'")  # the index gives up, and the scope is scanned
    hits = await search(conn, LARGE, UNKNOWN_WORD, vector, SearchOptions(limit=100), at=AT)
    wanted = await scanned(conn, LARGE, UNKNOWN_WORD, vector, best(100), at=AT)
    assert [hit.fact for hit in hits][:50] == [hit.fact for hit in wanted][:50]  # far ones go by their recency too


async def test_facts_with_all_of_the_frequent_words_come_first(conn: AsyncConnection[TupleRow]) -> None:
    rename = """
        UPDATE facts SET text = %s
        FROM (SELECT fact_id, row_number() OVER (ORDER BY fact_id) AS number FROM facts WHERE user_id = 'large') AS one
        WHERE one.fact_id = facts.fact_id AND number BETWEEN %s AND %s
    """
    for text, first, last in (("apples", 1, 400), ("pears", 401, 800), ("apples, pears", 801, 805)):
        await conn.execute(rename, [text, first, last])
    hits = await search(conn, LARGE, "apples or pears", None, best(10), at=AT)
    assert len(hits) == 10
    assert {hit.fact.text for hit in hits.hits[:4]} == {"apples, pears"}


async def test_a_scope_with_fewer_facts_than_hits_gives_all_of_them(database: str) -> None:
    """Also none, as after its deletion."""
    fill_scopes(database, {"large": 60}, dimensions=8)
    await index_scopes(database, least=50)
    vector = Vector.from_values(MODEL, [1.0] * 8)
    async with await connected(database) as conn:
        for left in (3, 0):
            await conn.execute(
                "UPDATE facts SET status = 'retracted' WHERE fact_id NOT IN "
                "(SELECT fact_id FROM facts WHERE status = 'active' ORDER BY fact_id LIMIT %s)",
                [left],
            )
            assert len(await search(conn, LARGE, UNKNOWN_WORD, vector, best(10), at=AT)) == left


async def test_a_scope_that_loses_its_indexes_during_a_search_is_scanned(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_scopes(database, {"large": 60}, dimensions=8)
    await index_scopes(database, least=50)
    asked = 0

    async def fetch_then_drop(*arguments: Any) -> list[Any]:
        nonlocal asked
        rows, asked = await fetch_long(*arguments), asked + 1
        if asked == 1:
            assert (await index_scopes(database, least=1000)).dropped == 2
        return rows

    monkeypatch.setattr("mnemolog.projections.search.search.fetch_long", fetch_then_drop)
    async with await connected(database) as conn:
        vector = Vector.from_values(MODEL, [1.0] * 8)
        assert len(await search(conn, LARGE, UNKNOWN_WORD, vector, best(10), at=AT)) == 10


async def test_no_fact_of_another_scope_is_found_and_none_by_a_vector_of_another_model(
    conn: AsyncConnection[TupleRow],
) -> None:
    (text, vector), *_ = await questions(conn, "twin")
    of_twin = await search(conn, LARGE, text, vector, SearchOptions(limit=100), at=AT)
    assert {hit.fact.user_id for hit in of_twin} == {"large"}
    other = Vector(model="other", dimensions=vector.dimensions, data=vector.data)
    hits = await search(conn, LARGE, text, other, best(10), at=AT)
    assert hits
    assert nearest(hits) == []


async def test_new_and_ended_facts_count_at_once(conn: AsyncConnection[TupleRow]) -> None:
    (text, vector), *_ = await questions(conn)
    (first, *_) = await search(conn, LARGE, text, vector, best(10), at=AT)
    await conn.execute("UPDATE facts SET status = 'superseded' WHERE fact_id = %s", [first.fact.fact_id])
    hits = await search(conn, LARGE, text, vector, best(10), at=AT)
    assert first.fact.fact_id not in {hit.fact.fact_id for hit in hits}
    await conn.execute("UPDATE facts SET status = 'pending_confirmation' WHERE fact_id = %s", [first.fact.fact_id])
    hits = await search(conn, LARGE, text, vector, best(10), at=AT)
    assert first.fact.fact_id in {hit.fact.fact_id for hit in hits}
