"""Filters of facts in a real Postgres, against a naive reading of the same filters."""

import asyncio
from datetime import timedelta
from typing import Any, Final, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnemolog.projections.queries.facts import facts
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.search import SearchOptions, search
from mnemolog.schemas.facts import FactStatus
from mnemolog.schemas.filters import parse_filter
from tests.support.builders.commits import added, commit, day
from tests.support.harnesses.projected_database import ProjectedDatabase
from tests.support.naive_filters import FILTERS, holds_at, in_scope, naive, sample_commits

pytestmark = pytest.mark.postgres

ANYBODY: Final = ScopeFilter(user_id="**", agent_id="**", app_id="**", run_id="**")
NOW: Final = day(60)


def test_what_is_no_filter_is_refused_with_its_place() -> None:
    for given_filter, place in [
        ({"nope": 1}, "nope is not a known field"),
        ({"OR": [{"user_id": "a"}, {"importance": {"gte": "x"}}]}, r"OR\.1\.importance\.gte"),
        ({"user_id": {"regex": "a"}}, r"user_id\.regex is not a known field"),
        ({"importance": float("nan")}, "finite"),
        ({"created_at": {"gt": "2026"}}, "created_at.gt"),
        ({"created_at": {"gt": "-5"}}, "created_at.gt"),
        ({"created_at": {"gt": 1700000000.5}}, "created_at.gt"),
        ({"key": {}}, "no operator"),
        ({"key": {"eq": None}}, "compares with null"),
        ({"NOT": None}, "NOT is null"),
        ({"OR": [{"metadata": None}]}, "metadata is null"),
        ({"OR": []}, "OR must have at least 1 item"),
        ({"state": "gone"}, "state.eq must be"),
        ({"memory": "a\x00b"}, "U[+]0000"),
        ([], "an object"),
    ]:
        with pytest.raises(ValueError, match=place):
            parse_filter(given_filter)


def test_a_filter_of_any_size_is_refused_in_bounded_time() -> None:
    deep: dict[str, Any] = {"user_id": "a"}
    for _ in range(100_000):
        deep = {"NOT": deep}
    with pytest.raises(ValueError, match="deeper than 8 levels"):
        parse_filter(deep)
    with pytest.raises(ValueError, match="more than 200 conditions"):
        parse_filter({"OR": [{"user_id": str(number)} for number in range(100_000)]})
    with pytest.raises(ValueError, match="at most 1000 items"):
        parse_filter({"user_id": {"in": [str(number) for number in range(2000)]}})


def nested(levels: int, *, as_list: bool) -> dict[str, Any]:
    wanted: dict[str, Any] = {"metadata": {"a": {"eq": 1}}}
    for _ in range(levels):
        wanted = {"NOT": [wanted] if as_list else wanted}
    return wanted


@pytest.mark.parametrize("as_list", [True, False])
def test_as_many_levels_and_conditions_as_the_page_says_are_allowed(as_list: bool) -> None:
    parse_filter(nested(8, as_list=as_list))
    with pytest.raises(ValueError, match="deeper than 8 levels"):
        parse_filter(nested(9, as_list=as_list))
    parse_filter({"OR": [{"importance": {"gte": number / 200}} for number in range(200)]})
    with pytest.raises(ValueError, match="more than 200 conditions"):
        parse_filter({"OR": [{"importance": {"gte": number / 201}} for number in range(201)]})


PARTS_OF_TIME: Final = (
    *("year", "month", "day", "hour", "minute", "day_of_week", "is_weekend", "quarter", "week_of_year"),
)


async def test_each_part_of_a_time_is_found_by_each_of_its_values(db: ProjectedDatabase) -> None:
    await db.apply(*sample_commits())
    await db.apply(commit("new year", added("Happy new year."), at=day(0) - timedelta(hours=10)))
    everything = await facts(db.conn, ANYBODY, all_versions=True, at=NOW)
    for part in PARTS_OF_TIME:
        values = {fact.structured_attributes[part] for fact in everything}
        assert len(values) > 1, part
        for value in sorted(values):
            wanted = {"structured_attributes": {part: value}}
            found = await facts(db.conn, ANYBODY, parse_filter(wanted), all_versions=True, at=NOW)
            passing = [one.fact_id for one in everything if naive(wanted, one, NOW)]
            assert [one.fact_id for one in found] == passing, wanted


@pytest.mark.parametrize("state", get_args(FactStatus))
async def test_the_state_that_a_filter_asks_about_is_the_one_that_is_shown(db: ProjectedDatabase, state: str) -> None:
    """Also of facts whose end has passed while no event says so yet: these are expired."""
    await db.apply(*sample_commits())
    wanted = parse_filter({"state": state})
    asked = [SearchOptions.read({"filters": {"state": state}}), SearchOptions.read({"state": state})]
    shown = [one.status for one in await facts(db.conn, ANYBODY, wanted, at=NOW)]
    hits = [await search(db.conn, ANYBODY, "Bern", None, options, at=NOW) for options in asked]
    shown += [hit.fact.status for found in hits for hit in found]
    assert set(shown) <= {state}
    assert bool(shown) == (state in {"active", "superseded", "expired"})
    everything = await facts(db.conn, ANYBODY, all_versions=True, at=NOW)
    of_state = [one.fact_id for one in everything if one.status == state]
    assert of_state == [one.fact_id for one in await facts(db.conn, ANYBODY, wanted, at=NOW)]


SCOPES = st.sampled_from(
    [ANYBODY, ScopeFilter(user_id="alice", agent_id="bot"), ScopeFilter(agent_id="bot", run_id="*")]
)


async def test_a_filter_finds_what_a_naive_reading_of_it_finds(second_database: str) -> None:
    async with ProjectedDatabase.open(second_database) as db:
        await db.apply(*sample_commits())
        everything = await facts(db.conn, ANYBODY, all_versions=True, at=NOW)
        assert len({one.status for one in everything}) > 1
        loop = asyncio.get_running_loop()
        found = {True: 0, False: 0}

        @settings(max_examples=400, deadline=None, suppress_health_check=[*HealthCheck])
        @given(scope=SCOPES, wanted=FILTERS)
        def check(scope: ScopeFilter, wanted: dict[str, Any]) -> None:
            parsed = parse_filter(wanted)
            asked = facts(db.conn, scope, parsed, at=NOW)
            got = asyncio.run_coroutine_threadsafe(asked, loop).result(60)
            expected = [
                one.fact_id
                for one in everything
                if naive(wanted, one, NOW) and in_scope(scope, one) and (parsed.asks_about_state or holds_at(one, NOW))
            ]
            found[bool(expected)] += 1
            assert [one.fact_id for one in got] == expected

        await asyncio.to_thread(check)
    assert min(found.values()) > 50
