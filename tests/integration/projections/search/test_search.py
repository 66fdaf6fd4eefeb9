"""What makes a fact a hit of a search and gives it its place, on a real Postgres."""

from typing import Any, Final

import pytest

from mnemolog.projections.queries.scope_filter import ANY_OR_NONE, ScopeFilter
from mnemolog.projections.search.search import (
    DEFAULT_RRF_K,
    Findings,
    ScopeCount,
    SearchOptions,
    count_facts,
    search,
)
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.vector import Vector
from tests.support.builders.commits import (
    ALICE,
    added,
    commit,
    confirmed,
    day,
    fact_id_at,
    pending,
    vector,
    vector_with_similarity,
)
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

MINE: Final = ScopeFilter.of_scope(ALICE)
NOW: Final = day(100)
ASKED: Final = vector_with_similarity(1)


async def found(db: ProjectedDatabase, text: str = "tea", near: Vector | None = ASKED, **options: Any) -> Findings:
    return await search(db.conn, MINE, text, near, SearchOptions.read(options), at=NOW)


def texts(findings: Findings) -> list[str]:
    return [hit.fact.text for hit in findings]


async def test_rrf_fuses_the_ranks_of_vector_and_words_and_explains_them(db: ProjectedDatabase) -> None:
    await db.apply(
        commit("1", added("She plays the violin.", vector=vector_with_similarity(0.9))),
        commit("2", added("A cat named Violin.", vector=vector_with_similarity(0.5)), at=day(1)),
        commit("3", added("Music makes her happy.", vector=vector_with_similarity(0.95)), at=day(2)),
    )
    hits = await found(db, "Who plays violin?", fusion="rrf")
    assert texts(hits) == ["She plays the violin.", "A cat named Violin.", "Music makes her happy."]
    best, first, second = hits[0].score, 1 / (DEFAULT_RRF_K + 1), 1 / (DEFAULT_RRF_K + 2)
    assert (best.mode, best.vector_rank, best.text_rank) == ("hybrid", 2, 1)
    assert best.similarity == pytest.approx(0.9, abs=0.002)
    assert best.total == pytest.approx((second + first) * best.prior)
    last = hits[2].score
    assert (last.text_rank, last.text_score, last.text_part, last.vector_part) == (None, None, 0, first)
    ranks = {hit.fact.text: (hit.score.vector_rank, hit.score.text_rank) for hit in hits}
    asked_for = await found(db, "Who plays violin?", ranks=True)
    assert {hit.fact.text: (hit.score.vector_rank, hit.score.text_rank) for hit in asked_for} == ranks
    plain = await found(db, "Who plays violin?")
    assert {(hit.score.vector_rank, hit.score.text_rank) for hit in plain} == {(None, None)}


async def test_weighted_fusion_sums_the_shares(db: ProjectedDatabase) -> None:
    await db.apply(
        commit("1", added("green tea", vector=vector_with_similarity(0.2)), at=day(40)),
        commit("2", added("coffee", vector=vector_with_similarity(0.8)), at=day(100)),
    )
    weights = {"vector": 0.4, "text": 0.4, "names": 0.0, "recency": 0.2, "times": 0.0}
    near, worded = await found(db, half_life_days=30.0, weights=weights)
    assert (near.fact.text, worded.fact.text) == ("green tea", "coffee")
    assert near.score.text_part == pytest.approx(0.4)  # the best of the words
    assert near.score.vector_part == pytest.approx(0.4 * 0.2, abs=0.001)
    assert near.score.recency_part == pytest.approx(0.2 / 4, rel=0.01)  # two half-lives
    assert worded.score.recency_part == pytest.approx(0.2, rel=0.01)
    for one in (near.score, worded.score):
        parts = (one.vector_part, one.text_part, one.names_part, one.recency_part, one.times_part)
        assert one.total == pytest.approx(sum(parts) * one.prior)
    assert texts(await found(db, weights={"text": 0.0, "vector": 0.0, "recency": 1.0}))[0] == "coffee"


async def test_without_a_vector_the_words_decide_and_the_hits_say_so(db: ProjectedDatabase) -> None:
    await db.apply(commit("1", added("Alice lives in Bern."), added("Alice likes tea.")))
    hits = await found(db, "where does she live", None, explain=True)
    assert [(hit.fact.text, hit.score.mode, hit.score.similarity) for hit in hits] == [
        ("Alice lives in Bern.", "lexical", None)
    ]
    assert {reason: left.facts for reason, left in hits.left_out.items()} == {"below_threshold": 1}


async def test_a_vector_of_another_model_or_length_brings_nobody(db: ProjectedDatabase) -> None:
    await db.apply(commit("1", added("Bern.", vector=ASKED), added("Other.", vector=vector(1, 0))))
    assert texts(await found(db, "?", vector_with_similarity(1, model="another"))) == []
    assert texts(await found(db, "?")) == ["Bern."]


async def test_importance_decides_between_equals_and_by_its_weight_between_near_equals(db: ProjectedDatabase) -> None:
    other_model = vector_with_similarity(1, model="another")
    for near, worded in ((0.3, 0.9), (0.9, 0.3)):
        drafts = added("near", vector=ASKED, importance=near), added("tea", vector=other_model, importance=worded)
        scope = Scope(user_id=f"{near}")
        await db.apply(commit("1", *drafts, scope=scope))
        alone = SearchOptions.read({"weights": {"neighbours": 0.0}})
        hits = await search(db.conn, ScopeFilter.of_scope(scope), "tea", ASKED, alone, at=NOW)
        assert texts(hits) == (["near", "tea"] if near > worded else ["tea", "near"])
    likely, important = (vector_with_similarity(cosine) for cosine in (0.9, 0.8))
    await db.apply(
        commit("1", added("tea", vector=likely, importance=0.0), added("tea", vector=important, importance=1.0))
    )
    for weight, first in ((0.0, 0.0), (0.05, 0.0), (1.0, 1.0)):
        best, *_ = await found(db, weights={"importance": weight, "text": 0.0})
        assert best.fact.importance == first


async def test_a_pending_fact_is_found_flagged_and_behind_an_equal_active_one(db: ProjectedDatabase) -> None:
    known = commit("1", added("She plays the violin.", vector=vector_with_similarity(0.9)))
    held = pending("She plays the violin now.", fact_id_at(known), vector=vector_with_similarity(0.9))
    await db.apply(known, commit("2", held, at=day(1)))
    assert [(hit.fact.text, hit.fact.status) for hit in await found(db, "violin")] == [
        ("She plays the violin.", "active"),
        ("She plays the violin now.", "pending_confirmation"),
    ]


async def test_what_has_no_word_in_common_needs_the_floor(db: ProjectedDatabase) -> None:
    await db.apply(
        commit("1", added("Music makes her happy.", vector=vector_with_similarity(0.5))),
        commit("2", added("She drinks tea.", vector=vector_with_similarity(0.1)), at=day(1)),
        commit("3", added("She plays the violin.", vector=vector_with_similarity(-0.2)), at=day(2)),
    )
    violin, music, tea = "She plays the violin.", "Music makes her happy.", "She drinks tea."
    for floor, expected in ((0.3, [violin, music]), (0.6, [violin]), (0.0, [music, tea, violin])):
        hits = texts(await found(db, "the violin", threshold=floor))
        assert (sorted(hits) if floor == 0 else hits) == expected
    with_word = await found(db, "the violin", threshold=0.6)
    assert with_word.below_threshold == 2  # what has a word in common needs no similarity
    nothing = await found(db, "quantum chromodynamics", threshold=0.6)
    assert (nothing.hits, nothing.below_threshold) == ((), 3)


async def test_a_mention_makes_a_fact_recent(db: ProjectedDatabase) -> None:
    known = commit("1", added("tea"), at=day(1))
    await db.apply(known, commit("2", confirmed(fact_id_at(known)), at=day(100)))
    weights = {"vector": 0.5, "names": 0.0, "times": 0.0, "recency": 0.05}
    (hit,) = await found(db, "tea", None, half_life_days=30.0, weights=weights)
    assert hit.score.recency_part == pytest.approx(0.05, rel=0.01)
    assert texts(await found(db, half_life_days=0.001)) == ["tea"]


async def test_a_word_says_the_more_the_fewer_facts_have_it(db: ProjectedDatabase) -> None:
    many = [commit(str(number), added(f"green tea {number}")) for number in range(30)]
    await db.apply(*many, commit("x", added("matcha")))
    (best, other, *_) = await found(db, "green tea or matcha", None)
    assert best.fact.text == "matcha"
    assert (best.score.text_score or 0) + (other.score.text_score or 0) == pytest.approx(1)  # of all that was asked for
    assert (await found(db, "matcha", None))[0].score.text_score == 1
    assert 0 < ((await found(db, "matcha with quarks", None))[0].score.text_score or 0) < 0.5  # no fact has them


async def test_facts_of_a_run_stand_beside_those_of_its_user(db: ProjectedDatabase) -> None:
    run = Scope(user_id="alice", run_id="r")
    await db.apply(
        commit("1", added("In a run."), added("Ended.", valid_until=day(50)), scope=run),
        commit("2", added("In another."), scope=Scope(user_id="alice", run_id="s", app_id="app")),
        commit("3", added("Of an agent."), scope=Scope(user_id="alice", agent_id="bot")),
        commit("4", added("Of Bob's run."), scope=Scope(user_id="bob", run_id="r")),
        commit("5", added("Elsewhere."), scope=Scope(tenant="other", user_id="alice", run_id="r")),
    )
    beside = ScopeCount(within=0, beside=3, ids=("agent_id", "app_id", "run_id"))
    assert await count_facts(db.conn, MINE, at=NOW) == beside
    assert await count_facts(db.conn, ScopeFilter.of_scope(run), at=NOW) == ScopeCount(within=1, beside=0, ids=())
    any_run = ScopeFilter(user_id="alice", run_id=ANY_OR_NONE)
    assert await count_facts(db.conn, any_run, at=day(10)) == ScopeCount(within=2, beside=2, ids=("agent_id", "app_id"))
