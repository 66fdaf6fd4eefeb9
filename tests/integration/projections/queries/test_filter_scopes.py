"""Filters that alone say whose facts are wanted, in a real Postgres: the examples of the pages, and a naive reading."""

import asyncio
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings

from mnemolog.projections.errors import QueryError
from mnemolog.projections.queries.facts import facts
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.filters import parse_filter
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import added, commit, day
from tests.support.harnesses.projected_database import ProjectedDatabase
from tests.support.naive_filters import FILTERS, FILTERS_OF_IDS, holds_at, naive, sample_commits, says_whose, whose

pytestmark = pytest.mark.postgres

NOW: Final = day(60)
ANYBODY: Final = ScopeFilter(user_id="**", agent_id="**", app_id="**", run_id="**")
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


@pytest.mark.parametrize(
    "wanted",
    [
        {"categories": "health"},
        {"run_id": "r1"},
        {"NOT": [{"user_id": "alice"}]},
        {"OR": [{"user_id": "alice"}, {"categories": "health"}]},
        {"AND": [{"OR": [{"user_id": "alice"}, {"run_id": "r1"}]}]},
        {"user_id": None},
    ],
)
def test_a_filter_that_does_not_say_whose_facts_is_refused(wanted: dict[str, Any]) -> None:
    with pytest.raises(QueryError, match="name a user_id or an agent_id"):
        ScopeFilter.of_filter("default", parse_filter(wanted))


async def test_a_filter_alone_never_lets_another_scope_through(second_database: str) -> None:
    async with ProjectedDatabase.open(second_database) as db:
        await db.apply(*sample_commits())
        everything = await facts(db.conn, ANYBODY, all_versions=True, at=NOW)
        loop = asyncio.get_running_loop()
        found = {"refused": 0, "some": 0, "none": 0}

        @settings(max_examples=600, deadline=None, suppress_health_check=[*HealthCheck])
        @given(wanted=FILTERS_OF_IDS | FILTERS)
        def check(wanted: dict[str, Any]) -> None:
            parsed = parse_filter(wanted)
            expected = [
                one.fact_id
                for one in everything
                if naive(wanted, one, NOW) and whose(wanted, one) and (parsed.asks_about_state or holds_at(one, NOW))
            ]
            try:
                scope = ScopeFilter.of_filter("default", parsed)
            except QueryError:
                assert not says_whose(wanted) or not expected
                found["refused"] += 1
                return
            assert says_whose(wanted)
            got = asyncio.run_coroutine_threadsafe(facts(db.conn, scope, parsed, at=NOW), loop).result(60)
            assert [one.fact_id for one in got] == expected
            found["some" if expected else "none"] += 1

        await asyncio.to_thread(check)
    assert min(found.values()) > 20
