"""What the options of a search let through, on a real Postgres, against a naive reading of the same options."""

import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnemolog.projections.errors import QueryError
from mnemolog.projections.queries.facts import facts, facts_as_of
from mnemolog.projections.queries.results import Fact
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.search import MAX_SCOPES, SearchOptions, search
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.facts import FactStatus, PromotedFrom
from mnemolog.schemas.scope import Scope
from mnemolog.schemas.vector import Vector
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
from tests.support.harnesses.projected_database import ProjectedDatabase, database_for_examples

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


async def texts(
    db: ProjectedDatabase, scope: Any = MINE, /, *, text: str = "tea", near: Vector | None = None, **asked: Any
) -> list[str]:
    return [hit.fact.text for hit in await search(db.conn, scope, text, near, options(**asked), at=NOW)]


async def test_a_filter_narrows_before_the_best_are_chosen(db: ProjectedDatabase) -> None:
    many = [added(f"tea {number}", category="other", vector=ASKED) for number in range(150)]
    await db.apply(commit("1", *many, added("green tea", category="health", vector=vector_with_similarity(0.1))))
    assert await texts(db, near=ASKED, filters={"categories": "health"}, top_k=1) == ["green tea"]
    assert await texts(db, filters={"memory": {"contains": "{filter} %(at)s %"}}) == []


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
            found = await texts(db, believed_at=believed_at, true_at=true_at)
            wanted = await facts_as_of(db.conn, MINE, believed_at=believed_at, true_at=true_at)
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


async def test_scopes_that_cannot_be_searched_together_are_refused(db: ProjectedDatabase) -> None:
    mine, elsewhere = ScopeFilter.of_scope(ALICE), ScopeFilter.of_scope(SCOPES[4])
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
        assert await texts(db, near=ASKED, period=period, only_period=only) == expected


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
    """Several scopes are searched together, each exactly."""
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
            scopes = [ScopeFilter.of_scope(one) for one in within]
            found = run(search(db.conn, scopes, "tea", None, options(**asked), at=day(at)))
            wanted = {fact.fact_id for fact in everything if is_wanted(fact, asked, within, day(at))}
            assert len(found) == len(wanted) <= 100
            assert {hit.fact.fact_id for hit in found} == wanted

        check()
