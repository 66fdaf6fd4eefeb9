"""What the options of a search let through, on a real Postgres, against a naive reading of the same options."""

import asyncio
import random
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnemolog.projections.errors import QueryError
from mnemolog.projections.queries.facts import facts, facts_as_of
from mnemolog.projections.queries.results import Fact
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.search import DEFAULT_WEIGHTS, MAX_SCOPES, SearchOptions, search
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.facts import FactStatus, PromotedFrom
from mnemolog.schemas.scope import SCOPE_FIELDS, Scope
from tests.support.builders.commits import (
    ALICE,
    added,
    commit,
    confirmed,
    contradicted,
    day,
    expired,
    fact_id_at,
    pending,
    replaced,
    vector_with_similarity,
)
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

MINE: Final = ScopeFilter.of_scope(ALICE)
ANYBODY: Final = ScopeFilter(user_id="**", agent_id="**", app_id="**", run_id="**")
NOW: Final = day(100)
ASKED: Final = vector_with_similarity(1)
STATES: Final[Sequence[FactStatus]] = ("active", "pending_confirmation", "superseded", "expired")
SCOPES: Final = (
    ALICE,
    Scope(user_id="alice", run_id="r1"),
    Scope(user_id="alice", agent_id="bot"),
    Scope(user_id="bob"),
    Scope(tenant="other", user_id="alice"),
)


def options(**given_options: Any) -> SearchOptions:
    return SearchOptions.read({"top_k": 100, **given_options})


async def texts(db: ProjectedDatabase, scope: Any = MINE, /, *, text: str = "tea", **asked: Any) -> list[str]:
    return [hit.fact.text for hit in await search(db.conn, scope, text, None, options(**asked), at=NOW)]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"top_k": 0}, "top_k must be at least 1, not 0"),
        ({"top_k": -5}, "top_k must be at least 1, not -5"),
        ({"top_k": 101}, "top_k must be at most 100, not 101"),
        ({"top_k": True}, "top_k must be a whole number"),
        ({"top_k": 1.5}, "top_k must be a whole number"),
        ({"threshold": float("nan")}, "threshold must be"),
        ({"threshold": -0.1}, r"threshold must be at least 0, not -0\.1"),
        ({"threshold": 1.1}, r"threshold must be at most 1, not 1\.1"),
        ({"threshold": "high"}, "threshold must be a number, not text"),
        ({"state": "gone"}, "state.0 must be 'active'"),
        ({"state": []}, "state must have at least 1 item"),
        ({"state": ["active"] * 8}, "state must have at most 7 items"),
        ({"believed_at": datetime(2026, 1, 1)}, "believed_at needs a zone"),  # noqa: DTZ001 - that is what is refused
        ({"fusion": "borda"}, "fusion must be 'rrf' or 'weighted', not 'borda'"),
        ({"fusion": ["rrf"]}, "fusion must be 'rrf' or 'weighted'"),
        ({"rrf_k": 0}, "rrf_k must be at least 1"),
        ({"half_life_days": 0.0}, "half_life_days must be at least 0.001"),
        ({"half_life_days": float("inf")}, "half_life_days must be"),
        ({"weights": {"vector": -1.0}}, "weights.vector must be at least 0"),
        ({"weights": {"magic": 1.0}}, "weights.magic is not a known field"),
        ({"weights": 3}, "weights must be an object"),
        ({"filters": {"nope": 1}}, "nope is not a known field"),
        ({"only_period": True}, "only_period needs a period"),
        ({"period": [day(2), day(1)]}, "period must end after it begins"),
        ({"period": [day(2)]}, "period.1 is missing"),
        ({"boost": 1}, "boost is not a known field"),
    ],
)
def test_what_is_no_option_is_refused_with_its_place(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(QueryError, match=words):
        SearchOptions.read(wrong)


def test_weights_that_are_not_given_are_those_of_the_fusion() -> None:
    assert SearchOptions.read({}).weights == DEFAULT_WEIGHTS["weighted"]
    assert SearchOptions.read({"fusion": "rrf"}).weights == DEFAULT_WEIGHTS["rrf"]
    read = SearchOptions.read({"weights": {"recency": 0.3}}).weights
    assert read == DEFAULT_WEIGHTS["weighted"].model_copy(update={"recency": 0.3})


async def test_a_filter_narrows_before_the_best_are_chosen(db: ProjectedDatabase) -> None:
    many = [commit(f"{number}", added(f"tea {number}", category="other", vector=ASKED)) for number in range(150)]
    await db.apply(*many, commit("x", added("green tea", category="health", vector=vector_with_similarity(0.1))))
    asked = options(filters={"categories": "health"}, top_k=1)
    assert [hit.fact.text for hit in await search(db.conn, MINE, "tea", ASKED, asked, at=NOW)] == ["green tea"]
    assert await texts(db, filters={"memory": {"contains": "{filter} %(at)s %"}}) == []


async def test_both_times_are_those_of_facts_as_of(db: ProjectedDatabase) -> None:
    home = commit("1", added("tea in Bern", vector=ASKED), at=day(1))
    await db.apply(
        home,
        commit("said again", confirmed(fact_id_at(home)), at=day(7)),
        commit("2", replaced("tea in Rome", fact_id_at(home), ended_at=day(5), vector=ASKED), at=day(10)),
        commit("3", added("tea until", valid_until=day(20)), at=day(3)),
    )
    changes = [until for (until,) in await db.rows("SELECT until FROM former_states")]
    assert len(changes) >= 2
    for believed_at in (*map(day, range(0, 30, 3)), *changes):
        for true_at in range(0, 30, 3):
            found = await texts(db, believed_at=believed_at, true_at=day(true_at))
            wanted = await facts_as_of(db.conn, MINE, believed_at=believed_at, true_at=day(true_at))
            assert sorted(found) == sorted(one.text for one in wanted)
    assert sorted(await texts(db, true_at=day(4))) == ["tea in Bern", "tea until"]
    assert sorted(await texts(db, believed_at=day(6))) == ["tea in Bern", "tea until"]
    assert await texts(db, true_at=day(4), filters={"state": "superseded"}) == ["tea in Bern"]


async def test_a_hit_of_the_past_has_its_state_of_that_time(db: ProjectedDatabase) -> None:
    known = commit("1", added("tea", confidence=0.4), at=day(1))
    await db.apply(known, commit("2", confirmed(fact_id_at(known)), at=day(10)))
    ((then,), (now,)) = [
        await search(db.conn, MINE, "tea", None, one, at=NOW) for one in (options(believed_at=day(5)), options())
    ]
    assert (then.fact.mention_count, then.fact.last_confirmed_at) == (1, None)
    assert (now.fact.mention_count, now.fact.last_confirmed_at) == (2, day(10))
    assert now.fact.confidence > then.fact.confidence == 0.4
    assert now.score.prior > then.score.prior


async def test_several_scopes_are_searched_together_each_exactly(db: ProjectedDatabase) -> None:
    await db.apply(*(commit(str(place), added(f"tea {place}"), scope=one) for place, one in enumerate(SCOPES)))
    mine, run, agent, bob, elsewhere = (ScopeFilter.of_scope(one) for one in SCOPES)
    assert sorted(await texts(db, [mine, run])) == ["tea 0", "tea 1"]
    assert sorted(await texts(db, [run, agent, bob, run])) == ["tea 1", "tea 2", "tea 3"]
    assert await texts(db, [mine]) == ["tea 0"]
    for wrong, words in (
        ([mine, elsewhere], "one tenant"),
        ([mine, ANYBODY], "wildcard"),
        ([], f"1 to {MAX_SCOPES} scopes, not 0"),
        ([ScopeFilter(user_id=str(number)) for number in range(1000)], f"1 to {MAX_SCOPES} scopes, not 1000"),
    ):
        with pytest.raises(QueryError, match=words):
            await texts(db, wrong)


async def test_what_was_promoted_is_found_once_at_any_time(db: ProjectedDatabase) -> None:
    """What it was promoted to stands for it, also from when that has ended."""
    run = SCOPES[1]
    told = commit("t", added("tea in Bern"), scope=run, at=day(1))
    made = commit("p", added("tea in Bern"), at=day(2))
    origin = PromotedFrom(fact_id=fact_id_at(told), source_id="t", said_at=day(1))
    made = made.model_copy(update={"events": (made.events[0].model_copy(update={"promoted_from": origin}),)})
    await db.apply(told, made, commit("m", replaced("tea in Rome", fact_id_at(made), ended_at=day(10)), at=day(10)))
    both = [MINE, ScopeFilter.of_scope(run)]
    assert await texts(db, both, believed_at=day(1.5)) == ["tea in Bern"]
    assert await texts(db, both, believed_at=day(5), true_at=day(5)) == ["tea in Bern"]
    assert await texts(db, both) == ["tea in Rome"]


def test_the_weighted_parts_are_shares_of_one() -> None:
    shares = SearchOptions.read({"weights": {"text": 0.9, "neighbours": 0.3}}).shares
    assert sum(shares[name] for name in ("vector", "text", "names", "recency", "times")) == pytest.approx(1)
    assert shares["text"] == pytest.approx(2 * shares["vector"])
    assert (shares["neighbours"], shares["importance"]) == (0.3, 0.05)
    nothing = dict.fromkeys(("vector", "text", "names", "recency", "times"), 0.0)
    assert SearchOptions.read({"weights": nothing}).shares["text"] == 0
    assert SearchOptions.read({"fusion": "rrf"}).shares["text"] == 1


async def test_weighted_fusion_sums_the_shares(db: ProjectedDatabase) -> None:
    await db.apply(
        commit("1", added("green tea", vector=vector_with_similarity(0.2)), at=day(40)),
        commit("2", added("coffee", vector=vector_with_similarity(0.8)), at=day(100)),
    )
    asked = options(
        half_life_days=30.0, weights={"vector": 0.4, "text": 0.4, "names": 0.0, "recency": 0.2, "times": 0.0}
    )
    near, worded = await search(db.conn, MINE, "tea", ASKED, asked, at=day(100))
    assert (near.fact.text, worded.fact.text) == ("green tea", "coffee")
    assert near.score.text_part == pytest.approx(0.4)  # the best of the words
    assert near.score.vector_part == pytest.approx(0.4 * 0.2, abs=0.001)
    assert near.score.recency_part == pytest.approx(0.2 / 4, rel=0.01)  # two half-lives
    assert worded.score.recency_part == pytest.approx(0.2, rel=0.01)
    for one in (near.score, worded.score):
        assert one.total == pytest.approx(
            (one.vector_part + one.text_part + one.names_part + one.recency_part + one.times_part) * one.prior
        )
    fading = options(weights={"text": 0.0, "vector": 0.0, "recency": 1.0})
    assert next(hit.fact.text for hit in await search(db.conn, MINE, "tea", ASKED, fading, at=day(100))) == "coffee"


async def test_a_mention_makes_a_fact_recent(db: ProjectedDatabase) -> None:
    known = commit("1", added("tea"), at=day(1))
    await db.apply(known, commit("2", confirmed(fact_id_at(known)), at=day(99)))
    (hit,) = await search(
        db.conn,
        MINE,
        "tea",
        None,
        options(half_life_days=30.0, weights={"vector": 0.5, "names": 0.0, "times": 0.0, "recency": 0.05}),
        at=day(99),
    )
    assert hit.score.recency_part == pytest.approx(0.05, rel=0.01)


async def test_the_prior_decides_between_near_equals_alone(db: ProjectedDatabase) -> None:
    await db.apply(
        commit("1", added("tea", vector=vector_with_similarity(0.9), importance=0.0)),
        commit("2", added("tea", vector=vector_with_similarity(0.8), importance=1.0)),
    )
    for weight, first in ((0.0, 0.0), (0.05, 0.0), (1.0, 1.0)):
        asked = options(weights={"importance": weight, "text": 0.0})
        assert (await search(db.conn, MINE, "tea", ASKED, asked, at=NOW))[0].fact.importance == first


async def test_a_rare_word_says_more_than_two_frequent_ones(db: ProjectedDatabase) -> None:
    many = [commit(str(number), added(f"green tea {number}")) for number in range(30)]
    await db.apply(*many, commit("x", added("matcha")))
    (best, other, *_) = await search(db.conn, MINE, "green tea or matcha", None, options(), at=NOW)
    assert best.fact.text == "matcha"
    assert best.score.text_score is not None
    assert other.score.text_score is not None
    assert best.score.text_score + other.score.text_score == pytest.approx(1)  # shares of all that was asked for


async def test_words_that_no_fact_has_lower_the_share_of_all(db: ProjectedDatabase) -> None:
    await db.apply(commit("1", added("green tea")))
    (one,) = await search(db.conn, MINE, "tea", None, at=NOW)
    (two,) = await search(db.conn, MINE, "tea with quarks", None, at=NOW)
    assert one.score.text_score == 1
    assert two.score.text_score is not None
    assert 0 < two.score.text_score < 0.5


async def test_ranks_are_those_of_each_signal_alone(db: ProjectedDatabase) -> None:
    await db.apply(
        commit("1", added("tea", vector=vector_with_similarity(0.5))),
        commit("2", added("green tea", vector=vector_with_similarity(0.9))),
        commit("3", added("coffee", vector=vector_with_similarity(0.7))),
    )

    async def ranks(**more: Any) -> dict[str, tuple[int | None, int | None]]:
        hits = await search(db.conn, MINE, "green tea", ASKED, options(**more), at=NOW)
        return {hit.fact.text: (hit.score.vector_rank, hit.score.text_rank) for hit in hits}

    expected = {"green tea": (1, 1), "coffee": (2, None), "tea": (3, 2)}
    assert await ranks(ranks=True) == await ranks(fusion="rrf") == expected
    assert set((await ranks()).values()) == {(None, None)}


async def test_what_happened_in_the_period_counts_more_or_alone(db: ProjectedDatabase) -> None:
    await db.apply(
        commit("1", added("tea then", vector=vector_with_similarity(0.5), event_time=day(10))),
        commit("2", added("tea now", vector=vector_with_similarity(0.55)), at=day(50)),
    )

    async def found(**more: Any) -> list[str]:
        return [hit.fact.text for hit in await search(db.conn, MINE, "tea", ASKED, options(**more), at=NOW)]

    assert await found() == ["tea now", "tea then"]
    assert await found(period=(day(9), day(11))) == ["tea then", "tea now"]
    assert await found(period=(day(9), day(10))) == ["tea now", "tea then"]  # up to, but not at, its end
    assert await found(period=(day(10), day(11)), only_period=True) == ["tea then"]
    assert await found(period=(day(9), day(10)), only_period=True) == []
    assert await found(period=(day(50), day(51)), only_period=True) == ["tea now"]


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
        if number % 4 == 0:
            yield commit(
                f"u{number}",
                replaced(f"new tea {number}", fact_id_at(first), ended_at=day(40)),
                scope=scope,
                at=day(41),
            )
        if number % 4 == 1:
            yield commit(f"u{number}", pending(f"held tea {number}", fact_id_at(first)), scope=scope, at=day(42))
        if number % 8 == 2:
            yield commit(f"u{number}", contradicted(f"no tea {number}", fact_id_at(first)), scope=scope, at=day(43))
        if number % 8 == 3:
            yield commit(f"u{number}", expired(fact_id_at(first), ended_at=day(45)), scope=scope, at=day(44))


def holds(fact: Fact, at: datetime) -> bool:
    return not any(end and end <= at for end in (fact.valid_until, fact.true_to))


def is_wanted(fact: Fact, asked: dict[str, Any], within: Sequence[Scope], at: datetime) -> bool:
    """Whether the documentation says that a search now finds a fact."""
    if fact.scope not in within:
        return False
    is_open = fact.status in ("active", "pending_confirmation")
    state = "expired" if is_open and not holds(fact, at) else fact.status
    filters = asked.get("filters", {})
    if state not in asked.get("state", STATES if "state" in filters else STATES[:2]):
        return False
    return all(
        {"key": fact.key, "state": state, "importance": fact.importance}[name] == value
        for name, value in filters.items()
    )


asked_options = st.fixed_dictionaries(
    {},
    optional={
        "state": st.lists(st.sampled_from(STATES), min_size=1, max_size=4),
        "filters": st.fixed_dictionaries(
            {},
            optional={
                "key": st.sampled_from(["drink", "food"]),
                "state": st.sampled_from(STATES),
                "importance": st.sampled_from([0.1, 0.9]),
            },
        ),
        "fusion": st.sampled_from(["rrf", "weighted"]),
    },
)


async def test_random_scopes_filters_and_states_find_what_a_naive_reading_finds(db: ProjectedDatabase) -> None:
    await db.apply(*sample_commits())
    everything = [
        *await facts(db.conn, ANYBODY, all_versions=True, at=day(0)),
        *await facts(db.conn, ScopeFilter(tenant="other", user_id="alice"), all_versions=True, at=day(0)),
    ]
    assert {fact.status for fact in everything} == {*STATES, "archived"} - {"expired"}
    assert any(fact.status == "active" and not holds(fact, day(46)) for fact in everything)
    loop = asyncio.get_running_loop()

    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    @given(asked_options, st.sets(st.sampled_from(range(4)), min_size=1), st.sampled_from([30, 46, 60, 100]))
    def check(asked: dict[str, Any], places: set[int], at: int) -> None:
        within = [SCOPES[place] for place in sorted(places)]
        found = asyncio.run_coroutine_threadsafe(
            search(db.conn, [ScopeFilter.of_scope(one) for one in within], "tea", None, options(**asked), at=day(at)),
            loop,
        ).result()
        wanted = {fact.fact_id for fact in everything if is_wanted(fact, asked, within, day(at))}
        assert len(found) == min(100, len(wanted))
        assert {hit.fact.fact_id for hit in found} <= wanted
        ids = {tuple(getattr(hit.fact.scope, name) for name in SCOPE_FIELDS) for hit in found}
        assert ids <= {tuple(getattr(one, name) for name in SCOPE_FIELDS) for one in within}

    await asyncio.to_thread(check)
