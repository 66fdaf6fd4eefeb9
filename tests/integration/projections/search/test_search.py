"""Search in facts on a real Postgres: what is a hit, its place and reasons, and what options let through.

`test_questions.py` has what a search makes of the words of its question.
"""

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnemolog.projections.errors import QueryError
from mnemolog.projections.queries.facts import facts, facts_as_of
from mnemolog.projections.queries.results import Fact
from mnemolog.projections.queries.scope_filter import ANY_OR_NONE, ScopeFilter
from mnemolog.projections.search.search import (
    DEFAULT_RRF_K,
    MAX_SCOPES,
    Findings,
    LeftOutHits,
    ScopeCount,
    SearchOptions,
    count_facts,
    search,
)
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.facts import FactStatus, PromotedFrom
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.turn import Message, Turn
from mnemolog.schemas.vector import Vector
from tests.support.builders.commits import (
    ALICE,
    MODEL,
    added,
    commit,
    confirmed,
    contradicted,
    day,
    expired,
    fact_id_at,
    pending,
    replaced,
    vector,
    vector_with_similarity,
)
from tests.support.harnesses.projected_database import ProjectedDatabase, database_for_examples

pytestmark = pytest.mark.postgres

MINE: Final = ScopeFilter.of_scope(ALICE)
ANYBODY: Final = ScopeFilter(user_id="**", agent_id="**", app_id="**", run_id="**")
RUN: Final = Scope(user_id="alice", run_id="r1")
BOTH: Final = (MINE, ScopeFilter.of_scope(RUN))
NOW: Final = day(100)
ASKED: Final = vector_with_similarity(1)
FAR: Final = vector_with_similarity(0.1)
MINUTE: Final = 1 / 24 / 60
PARTS: Final = ("vector", "text", "names", "recency", "times", "neighbours")
STATES: Final[Sequence[FactStatus]] = ("active", "pending_confirmation", "superseded", "expired")
SCOPES: Final = (
    *(ALICE, RUN, Scope(user_id="alice", agent_id="bot"), Scope(user_id="bob")),
    Scope(tenant="other", user_id="alice"),
)


async def found(
    db: ProjectedDatabase, text: str = "tea", near: Vector | None = ASKED, *, scope: Any = MINE, **options: Any
) -> Findings:
    return await search(db.conn, scope, text, near, SearchOptions.read(options), at=NOW)


async def by_words(db: ProjectedDatabase, scope: Any = MINE, **options: Any) -> list[str]:
    return texts(await found(db, "tea", None, scope=scope, limit=100, **options))


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
    await db.apply(
        commit("1", added("In a run."), added("Ended.", valid_until=day(50)), scope=RUN),
        commit("2", added("In another."), scope=Scope(user_id="alice", run_id="s", app_id="app")),
        commit("3", added("Of an agent."), scope=Scope(user_id="alice", agent_id="bot")),
        commit("4", added("Of Bob's run."), scope=Scope(user_id="bob", run_id="r1")),
        commit("5", added("Elsewhere."), scope=Scope(tenant="other", user_id="alice", run_id="r1")),
    )
    beside = ScopeCount(within=0, beside=3, ids=("agent_id", "app_id", "run_id"))
    assert await count_facts(db.conn, MINE, at=NOW) == beside
    assert await count_facts(db.conn, BOTH[1], at=NOW) == ScopeCount(within=1, beside=0, ids=(), models=(MODEL,))
    any_run = ScopeFilter(user_id="alice", run_id=ANY_OR_NONE)
    both = ScopeCount(within=2, beside=2, ids=("agent_id", "app_id"), models=(MODEL,))
    assert await count_facts(db.conn, any_run, at=day(10)) == both


async def test_more_of_one_matter_of_one_user_comes_after_all_others(db: ProjectedDatabase) -> None:
    near = [
        added(f"tea {number}", key="drink", subject=subject, vector=vector_with_similarity(0.9 - number / 100))
        for number, subject in enumerate(["Ann", "ann", "Ann", "Ann", "Tom"])
    ]
    far = [added(f"far tea {number}", vector=FAR) for number in range(3)]
    await db.apply(commit("1", *near), commit("2", *far))
    assert texts(await found(db, per_matter=2))[:3] == ["tea 0", "tea 1", "tea 4"]
    assert texts(await found(db, per_matter=2))[-2:] == ["tea 2", "tea 3"]
    assert texts(await found(db))[-1] == "tea 3"  # the fourth
    assert texts(await found(db, per_matter=5))[:5] == ["tea 0", "tea 1", "tea 2", "tea 3", "tea 4"]
    assert len(await found(db, per_matter=1)) == 8  # nothing is lost where there is room
    assert len(await found(db, per_matter=1, limit=5)) == 5
    for user in ("ben", "cleo", "dan"):
        await db.apply(commit(user, added(f"tea of {user}", key="drink", subject="Ann"), scope=Scope(user_id=user)))
    of_everybody = texts(await found(db, scope=ANYBODY, per_matter=2))
    assert {"tea of ben", "tea of cleo", "tea of dan"} <= set(of_everybody[: of_everybody.index("tea 2")])


async def test_words_count_that_were_said_beside_a_fact(db: ProjectedDatabase) -> None:
    """In full what it has itself, .6 of what is one fact away within an hour, half of that two facts away."""
    minutes = {"One.": 0, "Two.": 1, "The green tea.": 2, "Four.": 61, "Five.": 62.5, "Far.": 130, "Old.": -300}
    await db.apply(
        *(commit(text, added(text, vector=FAR), at=day(10 + minute * MINUTE)) for text, minute in minutes.items()),
        commit("x", added("Elsewhere.", vector=FAR), scope=RUN, at=day(10 + 1.5 * MINUTE)),
        commit("i", added("Imported.", vector=FAR, excerpt=""), at=day(10 + 2 * MINUTE)),
    )
    plain = await found(db, threshold=0.0, weights={"neighbours": 0.0})
    assert {hit.score.neighbours_part for hit in plain} == {0}
    drawn = {hit.fact.text: hit.score for hit in await found(db, threshold=0.0)}
    full = drawn["The green tea."].text_part
    parts = {text: score.neighbours_part / full for text, score in drawn.items() if score.neighbours_part}
    assert parts == pytest.approx({"Two.": 0.6, "Four.": 0.6, "One.": 0.3})  # and "Five." came more than an hour later
    assert drawn["Two."].text_score is None
    for score in drawn.values():
        assert score.total == pytest.approx(sum(getattr(score, f"{name}_part") for name in PARTS) * score.prior)
    again = {hit.fact.text: hit.score.neighbours_part / full for hit in await found(db, scope=BOTH, threshold=0.0)}
    assert {text: part for text, part in again.items() if part} == pytest.approx(parts)
    assert texts(await found(db, threshold=0.5)) == ["The green tea."]  # what is beside it needs the threshold itself


async def test_a_word_of_its_own_counts_once(db: ProjectedDatabase) -> None:
    said = ["Green tea.", "Tea with milk.", "The milk is cold."]
    await db.apply(*(commit(text, added(text), at=day(10 + place * MINUTE)) for place, text in enumerate(said)))
    scores = {hit.fact.text: hit.score for hit in await found(db, "cold milk, green tea", threshold=0.0)}
    whole = scores["Green tea."].text_part / (scores["Green tea."].text_score or 0)
    missing = 1 - (scores["Tea with milk."].text_score or 0)  # "green" is before it, "cold" behind it
    assert scores["Tea with milk."].neighbours_part == pytest.approx(0.6 * missing * whole)


async def test_what_was_left_out_is_told_with_its_reason(db: ProjectedDatabase) -> None:
    home = commit("old", added("old tea"), at=day(1))
    teas = [
        added(f"tea {number}", vector=vector_with_similarity(0.9 - number / 10), key=key, event_time=day(on))
        for number, (key, on) in enumerate([("drink", 5), ("drink", 5), (None, 5), (None, 50)])
    ]
    facts = commit("facts", *teas, added("coffee", vector=FAR, event_time=day(5)), at=day(2))
    coke = replaced("coke", fact_id_at(home), ended_at=day(3), vector=vector_with_similarity(0.0))
    news = commit("new", coke, at=day(4))
    beside = commit("beside", added("ended tea", valid_until=day(9)), added("bob's"), scope=RUN, at=day(2))
    await db.apply(home, facts, news, beside)

    def ids(*places: int) -> tuple[UUID, ...]:
        return tuple(fact_id_at(facts, place) for place in places)

    period: dict[str, Any] = {"period": (day(4), day(6)), "only_period": True}
    asked = {"threshold": 0.5, "per_matter": 1, "explain": True, **period}
    all_but_one = await found(db, limit=2, **asked)
    assert texts(all_but_one) == ["tea 0", "tea 2"]
    assert all_but_one.left_out == {
        "below_threshold": LeftOutHits(facts=2, first=(*ids(4), fact_id_at(news))),
        "same_matter": LeftOutHits(facts=1, first=ids(1)),
        "outside_period": LeftOutHits(facts=1, first=ids(3)),
        "other_state": LeftOutHits(facts=1, first=(fact_id_at(home),)),
    }
    assert (await found(db, limit=1, **asked)).left_out["over_limit"] == LeftOutHits(facts=1, first=ids(2))
    assert (await found(db, scope=BOTH, **asked)).left_out["other_state"].facts == 2
    assert (await found(db, filters={"key": "drink"}, explain=True)).left_out == {}
    assert (await found(db, "quarks", limit=1)).left_out == {}
    assert all_but_one[0].score.vector_rank == 1
    assert all_but_one[0].fact.source_id == "facts"
    assert all_but_one[0].fact.excerpt


async def test_what_was_learned_later_is_not_left_out_of_what_was_known_before(db: ProjectedDatabase) -> None:
    early, ended = commit("1", added("tea"), at=day(1)), commit("2", added("old tea", valid_until=day(3)), at=day(2))
    await db.apply(early, ended, commit("3", added("new tea"), at=day(10)))
    then = await found(db, believed_at=day(5), explain=True)
    assert texts(then) == ["tea"]
    assert then.left_out == {"other_state": LeftOutHits(facts=1, first=(fact_id_at(ended),))}
    assert "other_state" not in (await found(db, believed_at=day(1), explain=True)).left_out


async def test_what_was_said_before_and_after_is_given_with_a_hit(db: ProjectedDatabase) -> None:
    """As many facts as are asked for, of the same scope and hour; they are no hits and take no places of hits."""
    minutes = {"Zero.": -70, "One.": -5, "Two.": -2, "The green tea.": 0, "Three.": 2, "More tea.": 30}
    await db.apply(
        *(commit(text, added(text), at=day(10 + minute * MINUTE)) for text, minute in minutes.items()),
        commit("x", added("Elsewhere."), scope=RUN, at=day(10 + MINUTE)),
    )

    async def beside(**asked: Any) -> dict[str, list[str]]:
        hits = await found(db, "tea", None, **asked)
        return {hit.fact.text: [fact.text for fact in hit.neighbours] for hit in hits}

    assert await beside() == {"The green tea.": [], "More tea.": []}
    assert await beside(neighbours=1) == {"The green tea.": ["Two.", "Three."], "More tea.": ["Three."]}
    assert (await beside(neighbours=9))["The green tea."] == ["One.", "Two.", "Three.", "More tea."]
    assert await beside(neighbours=2, limit=1) == {"More tea.": ["The green tea.", "Three."]}
    assert await beside(scope=BOTH, neighbours=9) == await beside(neighbours=9)
    assert await beside(neighbours=1, believed_at=day(10 + MINUTE)) == {"The green tea.": ["Two."]}
    plain, explained = await found(db, "tea", None), await found(db, "tea", None, neighbours=1, explain=True)
    assert [hit.score.total for hit in explained] == [hit.score.total for hit in plain]


async def test_an_explained_hit_has_what_was_said_in_its_turn(db: ProjectedDatabase) -> None:
    said = Message(role="user", content="Green tea, please.")
    told = Turn(turn_id="told", scope=ALICE, occurred_at=day(1), messages=(said,))
    await db.journal(told)
    await db.apply(commit("told", added("Alice drinks tea.")), commit("2", added("Tea is stored."), at=day(2)))
    explained = await found(db, explain=True)
    messages = {hit.fact.text: hit.messages for hit in explained}
    assert messages == {"Alice drinks tea.": [said.model_dump()], "Tea is stored.": None}
    assert [hit.messages for hit in await found(db)] == [None, None]


async def test_a_filter_narrows_before_the_best_are_chosen(db: ProjectedDatabase) -> None:
    many = [added(f"tea {number}", category="other", vector=ASKED) for number in range(150)]
    green = added("green tea", category="health", more_categories=("drinks",), vector=vector_with_similarity(0.1))
    await db.apply(commit("1", *many, green))
    for category in ("health", "drinks"):
        for asked in ({}, {"believed_at": day(1)}, {"true_at": day(1)}, {"explain": True}):
            best = await found(db, filters={"categories": category}, limit=1, **asked)
            assert texts(best) == ["green tea"], (category, asked)
    assert await by_words(db, filters={"memory": {"contains": "{filter} %(at)s %"}}) == []


async def test_both_times_are_those_of_facts_as_of(db: ProjectedDatabase) -> None:
    home = commit("1", added("tea in Bern"), at=day(1))
    moved = replaced("tea in Rome", fact_id_at(home), ended_at=day(5))
    until = commit("3", added("tea until", valid_until=day(20)), at=day(3))
    await db.apply(home, commit("said again", confirmed(fact_id_at(home)), at=day(7)), commit("2", moved, at=day(10)))
    await db.apply(until)
    changes = [until for (until,) in await db.rows("SELECT until FROM former_states")]
    assert len(changes) >= 2
    far = datetime(3200, 1, 1, tzinfo=UTC)
    for believed_at in (*map(day, range(0, 30, 3)), *changes, far):
        for true_at in (*map(day, range(0, 30, 3)), far):
            wanted = await facts_as_of(db.conn, MINE, believed_at=believed_at, true_at=true_at)
            hits = await by_words(db, believed_at=believed_at, true_at=true_at)
            assert sorted(hits) == sorted(one.text for one in wanted)
    assert sorted(await by_words(db, true_at=day(4))) == ["tea in Bern", "tea until"]
    assert sorted(await by_words(db, believed_at=day(6))) == ["tea in Bern", "tea until"]
    assert await by_words(db, true_at=day(4), filters={"state": "superseded"}) == ["tea in Bern"]


async def test_a_hit_of_the_past_has_its_state_of_that_time(db: ProjectedDatabase) -> None:
    known = commit("1", added("tea", confidence=0.4), at=day(1))
    await db.apply(known, commit("2", confirmed(fact_id_at(known)), at=day(10)))
    (then,), (now,) = await found(db, "tea", None, believed_at=day(5)), await found(db, "tea", None)
    assert (then.fact.mention_count, then.fact.last_confirmed_at) == (1, None)
    assert (now.fact.mention_count, now.fact.last_confirmed_at) == (2, day(10))
    assert now.fact.confidence > then.fact.confidence == 0.4
    assert now.score.prior > then.score.prior


async def test_scopes_that_cannot_be_searched_together_are_refused(db: ProjectedDatabase) -> None:
    for wrong, words in (
        ([MINE, ScopeFilter.of_scope(SCOPES[4])], "one tenant"),
        ([MINE, ANYBODY], "wildcard"),
        ([], f"1 to {MAX_SCOPES} scopes, not 0"),
        ([ScopeFilter(user_id=str(number)) for number in range(1000)], f"1 to {MAX_SCOPES} scopes, not 1000"),
    ):
        with pytest.raises(QueryError, match=words):
            await by_words(db, wrong)


async def test_what_was_promoted_is_found_once_at_any_time(db: ProjectedDatabase) -> None:
    """What it was promoted to stands for it, also from when that has ended."""
    told = commit("t", added("tea in Bern"), scope=RUN, at=day(1))
    made = commit("p", added("tea in Bern"), at=day(2))
    origin = PromotedFrom(fact_id=fact_id_at(told), source_id="t", said_at=day(1))
    made = made.model_copy(update={"events": (made.events[0].model_copy(update={"promoted_from": origin}),)})
    await db.apply(told, made, commit("m", replaced("tea in Rome", fact_id_at(made), ended_at=day(10)), at=day(10)))
    assert await by_words(db, BOTH, believed_at=day(1.5)) == ["tea in Bern"]
    assert await by_words(db, BOTH, believed_at=day(5), true_at=day(5)) == ["tea in Bern"]
    assert await by_words(db, BOTH) == ["tea in Rome"]


async def test_what_happened_in_the_period_counts_more_or_alone(db: ProjectedDatabase) -> None:
    await db.apply(
        commit("1", added("tea then", vector=vector_with_similarity(0.5), event_time=day(10))),
        commit("2", added("tea now", vector=vector_with_similarity(0.55)), at=day(50)),
    )
    now, then = "tea now", "tea then"
    for period, only, expected in (
        (None, False, [now, then]),
        ((day(9), day(11)), False, [then, now]),
        ((day(9), day(10)), False, [now, then]),  # up to, but not at, its end
        ((day(10), day(11)), True, [then]),
        ((day(9), day(10)), True, []),
        ((day(50), day(51)), True, [now]),
    ):
        assert texts(await found(db, period=period, only_period=only)) == expected


def sample_commits() -> Iterator[Commit]:
    """Facts of several scopes in several states, all with the word tea."""
    chance = random.Random(2)
    for number in range(60):
        scope, start = chance.choice(SCOPES), number % 30
        fields: dict[str, Any] = {
            "key": chance.choice(["drink", None]),
            "importance": chance.choice([0.1, 0.9]),
            "valid_until": chance.choice([day(50), day(90), None]),
        }
        first = commit(f"t{number}", added(f"tea {number}", **fields), scope=scope, at=day(start))
        yield first
        known = fact_id_at(first)
        if number % 4 == 0:
            news = replaced(f"new tea {number}", known, ended_at=day(40))
        elif number % 4 == 1:
            news = pending(f"held tea {number}", known)
        elif number % 8 == 2:
            news = contradicted(f"no tea {number}", known)
        elif number % 8 == 3:
            news = expired(known, ended_at=day(45))
        else:
            continue
        yield commit(f"u{number}", news, scope=scope, at=day(44))


def is_wanted(fact: Fact, asked: dict[str, Any], within: Sequence[Scope], at: datetime) -> bool:
    """Whether the documentation says that a search now finds a fact."""
    if fact.scope not in within:
        return False
    is_over = any(end and end <= at for end in (fact.valid_until, fact.true_to))
    state = "expired" if is_over and fact.status in ("active", "pending_confirmation") else fact.status
    filters = asked.get("filters", {})
    if state not in asked.get("state", STATES if "state" in filters else STATES[:2]):
        return False
    values = {"key": fact.key, "state": state, "importance": fact.importance}
    return all(values[name] == value for name, value in filters.items())


FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "key": st.sampled_from(["drink", "food"]),
        "state": st.sampled_from(STATES),
        "importance": st.sampled_from([0.1, 0.9]),
    },
)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "state": st.lists(st.sampled_from(STATES), min_size=1, max_size=4),
        "filters": FILTERS,
        "fusion": st.sampled_from(["rrf", "weighted"]),
    },
)


def test_random_scopes_filters_and_states_find_what_a_naive_reading_finds(database: str) -> None:
    """Several scopes are searched together, each exactly and once."""
    with database_for_examples(database) as (db, run):
        run(db.apply(*sample_commits()))
        everything = [
            fact
            for scope in (ANYBODY, ScopeFilter.of_scope(SCOPES[4]))
            for fact in run(facts(db.conn, scope, all_versions=True, at=day(0)))
        ]
        assert {fact.status for fact in everything} == {*STATES, "archived"} - {"expired"}

        @settings(max_examples=150, suppress_health_check=list(HealthCheck))
        @given(OPTIONS, st.sets(st.sampled_from(range(4)), min_size=1), st.sampled_from([30, 46, 60, 100]))
        def check(asked: dict[str, Any], places: set[int], at: int) -> None:
            within = [SCOPES[place] for place in sorted(places)]
            scopes = [ScopeFilter.of_scope(one) for one in (*within, within[0])]
            options = SearchOptions.read({"limit": 100, **asked})
            hits = run(search(db.conn, scopes, "tea", None, options, at=day(at)))
            wanted = {fact.fact_id for fact in everything if is_wanted(fact, asked, within, day(at))}
            assert len(hits) == len(wanted) <= 100
            assert {hit.fact.fact_id for hit in hits} == wanted

        check()
