"""Filters of facts in a real Postgres: the examples of the pages, and random ones against the memory in memory."""

from collections import Counter
from datetime import timedelta
from typing import Any, Final, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnemolog.projections.errors import QueryError
from mnemolog.projections.queries.facts import facts
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.search import SearchOptions, search
from mnemolog.schemas.facts import FactStatus
from mnemolog.schemas.filters import parse_filter
from mnemolog.schemas.scope import Scope
from mnemolog.testing.filters import lets_through
from tests.support.builders.commits import added, commit, day
from tests.support.harnesses.projected_database import ProjectedDatabase, database_for_examples
from tests.support.naive_filters import (
    FILTERS,
    FILTERS_OF_IDS,
    holds_at,
    in_scope,
    sample_commits,
    says_whose,
    whose,
)

pytestmark = pytest.mark.postgres

ANYBODY: Final = ScopeFilter(user_id="**", agent_id="**", app_id="**", run_id="**")
NOW: Final = day(60)
PARTS_OF_TIME: Final = (
    *("year", "month", "day", "hour", "minute", "day_of_week", "is_weekend", "quarter", "week_of_year"),
)
STORED: Final[dict[str, dict[str, str]]] = {
    "alice": {"user_id": "alice"},
    "alice in a run": {"user_id": "alice", "run_id": "session_123"},
    "alice with coach": {"user_id": "alice", "agent_id": "coach"},
    "bob": {"user_id": "bob"},
    "bot": {"agent_id": "bot"},
    "bot in an app": {"agent_id": "bot", "app_id": "acme"},
}
"""What is stored for whom: nothing for alice and bot together."""
OF_ALICE: Final = {"alice", "alice in a run", "alice with coach"}
EXAMPLES: Final[list[tuple[dict[str, Any], set[str]]]] = [
    ({"user_id": "alice"}, {"alice"}),
    ({"AND": [{"user_id": "alice"}]}, {"alice"}),
    ({"OR": [{"user_id": "alice"}]}, OF_ALICE),
    ({"AND": [{"user_id": "alice"}, {"agent_id": "bot"}]}, set()),
    ({"AND": [{"user_id": "alice"}, {"agent_id": "coach"}]}, {"alice with coach"}),
    ({"OR": [{"user_id": "alice"}, {"agent_id": "bot"}]}, {*OF_ALICE, "bot", "bot in an app"}),
    ({"AND": [{"user_id": "*"}]}, {"alice", "bob"}),
    ({"OR": [{"user_id": "*"}]}, {*OF_ALICE, "bob"}),
    ({"AND": [{"user_id": "alice"}, {"run_id": "session_123"}]}, {"alice in a run"}),
    ({"user_id": "alice", "run_id": "*"}, {"alice in a run"}),
    ({"user_id": "alice", "agent_id": "*"}, {"alice with coach"}),
    ({"agent_id": "bot"}, {"bot"}),
    ({"agent_id": "bot", "app_id": {"ne": "x"}}, {"bot", "bot in an app"}),
    ({"user_id": {"in": ["alice", "bob"]}}, {"alice", "bob"}),
    ({"user_id": "alice", "OR": [{"run_id": "session_123"}, {"agent_id": "coach"}]}, OF_ALICE - {"alice"}),
    ({"user_id": "alice", "NOT": [{"run_id": "session_123"}]}, {"alice"}),
    ({"user_id": "alice", "OR": [{"memory": {"contains": "alice"}}, {"key": "x"}]}, {"alice"}),
]


async def test_the_examples_find_what_the_page_says(db: ProjectedDatabase) -> None:
    await db.apply(*(commit(text, added(text), scope=Scope(**ids)) for text, ids in STORED.items()))
    await db.apply(commit("other", added("another tenant"), scope=Scope(tenant="other", user_id="alice")))
    for wanted, expected in EXAMPLES:
        parsed = parse_filter(wanted)
        found = await facts(db.conn, ScopeFilter.of_filter("default", parsed), parsed, at=NOW)
        assert {fact.text for fact in found} == expected, wanted


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
            passing = [one.fact_id for one in everything if lets_through(parse_filter(wanted), one)]
            assert [one.fact_id for one in found] == passing, wanted


async def test_the_state_that_a_filter_asks_about_is_the_one_that_is_shown(db: ProjectedDatabase) -> None:
    """Also of facts whose end has passed while no event says so yet: these are expired."""
    await db.apply(*sample_commits())
    everything = await facts(db.conn, ANYBODY, all_versions=True, at=NOW)
    for state in get_args(FactStatus):
        found = await facts(db.conn, ANYBODY, parse_filter({"state": state}), at=NOW)
        assert [one.fact_id for one in found] == [one.fact_id for one in everything if one.status == state]
        assert bool(found) == (state in {"active", "superseded", "expired"})
        for asked in ({"filters": {"state": state}}, {"state": state}):
            hits = await search(db.conn, ANYBODY, "Bern", None, SearchOptions.read(asked), at=NOW)
            assert {fact.status for fact in (*found, *(hit.fact for hit in hits))} <= {state}


SCOPES = st.sampled_from(
    [ANYBODY, ScopeFilter(user_id="alice", agent_id="bot"), ScopeFilter(agent_id="bot", run_id="*")]
)


def test_a_filter_finds_what_it_finds_in_memory(database: str) -> None:
    """And alone it never lets another scope through."""
    counted: Counter[tuple[str, bool]] = Counter()
    with database_for_examples(database) as (db, run):
        run(db.apply(*sample_commits()))
        everything = run(facts(db.conn, ANYBODY, all_versions=True, at=NOW))
        assert len({one.status for one in everything}) > 1

        @settings(max_examples=600, suppress_health_check=[*HealthCheck])
        @given(asked=st.tuples(SCOPES, FILTERS) | st.tuples(st.none(), FILTERS_OF_IDS | FILTERS))
        def check(asked: tuple[ScopeFilter | None, dict[str, Any]]) -> None:
            given_scope, wanted = asked  # no scope where the filter alone says whose facts are wanted
            parsed = parse_filter(wanted)
            expected = [
                one.fact_id
                for one in everything
                if lets_through(parsed, one)
                and (whose(wanted, one) if given_scope is None else in_scope(given_scope, one))
                and (parsed.asks_about_state or holds_at(one, NOW))
            ]
            try:
                scope = given_scope or ScopeFilter.of_filter("default", parsed)
            except QueryError:
                assert not says_whose(wanted) or not expected
                counted["refused", bool(expected)] += 1
                return
            assert given_scope or says_whose(wanted)
            assert [one.fact_id for one in run(facts(db.conn, scope, parsed, at=NOW))] == expected
            counted["in a scope" if given_scope else "alone", bool(expected)] += 1

        check()
    assert all(counted[how, some] > 20 for how in ("in a scope", "alone") for some in (True, False))
