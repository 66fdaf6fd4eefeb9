"""How many facts there are, and of whom, in a real Postgres."""

from itertools import count

import pytest

from mnemolog.projections.errors import QueryError
from mnemolog.projections.queries.facts import IdCount, count_facts, facts, named_ids
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.filters import parse_filter
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import added, commit, day, fact_id_at, pending, retracted
from tests.support.harnesses.projected_database import ProjectedDatabase
from tests.support.naive_filters import sample_commits

pytestmark = pytest.mark.postgres

EVERYBODY = ScopeFilter(user_id="**", agent_id="**", app_id="**", run_id="**")
NUMBERS = count(1)


async def know(db: ProjectedDatabase, number: int, **ids: str) -> None:
    facts_of_scope = [added(f"Fact {place}.") for place in range(number)]
    await db.apply(commit(f"t{next(NUMBERS)}", *facts_of_scope, scope=Scope(**ids)))


async def test_users_agents_and_runs_have_their_facts_and_scopes(db: ProjectedDatabase) -> None:
    await know(db, 2, user_id="alice")
    await know(db, 3, user_id="alice", run_id="r1")
    await know(db, 1, user_id="bob", agent_id="bot", run_id="r1")
    await know(db, 5, agent_id="bot")
    await know(db, 7, tenant="other", user_id="eve")
    assert await named_ids(db.conn, "user_id", EVERYBODY) == [
        IdCount(id="alice", facts=5, scopes=2),
        IdCount(id="bob", facts=1, scopes=1),
    ]
    assert await named_ids(db.conn, "agent_id", EVERYBODY) == [IdCount(id="bot", facts=6, scopes=2)]
    assert await named_ids(db.conn, "run_id", EVERYBODY) == [IdCount(id="r1", facts=4, scopes=2)]
    of_alice = ScopeFilter(user_id="alice", agent_id="**", app_id="**", run_id="**")
    assert await named_ids(db.conn, "run_id", of_alice) == [IdCount(id="r1", facts=3, scopes=1)]


async def test_only_active_and_pending_facts_count(db: ProjectedDatabase) -> None:
    known = commit("1", added("A."), added("B."), scope=Scope(user_id="ann"))
    waiting = commit("2", pending("C.", fact_id_at(known)), scope=Scope(user_id="ann"))
    gone = commit("3", added("D."), scope=Scope(user_id="zoe"))
    await db.apply(
        known, waiting, gone, commit("4", retracted(fact_id_at(gone)), scope=Scope(user_id="zoe"), at=day(1))
    )
    assert await named_ids(db.conn, "user_id", EVERYBODY) == [IdCount(id="ann", facts=3, scopes=1)]


@pytest.mark.parametrize("limit", [1, 2, 4])
async def test_pages_of_users_have_each_once(db: ProjectedDatabase, limit: int) -> None:
    names = ["Ann", "ann", "bob", "Zoe", "\u00e4nne"]
    for name in names:
        await know(db, 1, user_id=name)
    listed: list[str] = []
    while page := await named_ids(db.conn, "user_id", EVERYBODY, limit=limit, after=listed[-1] if listed else None):
        assert len(page) <= limit
        listed += [one.id for one in page]
    assert sorted(listed) == sorted(names)
    with pytest.raises(QueryError, match="give 1 or more"):
        await named_ids(db.conn, "user_id", EVERYBODY, limit=0)


async def test_a_count_is_that_of_the_list(db: ProjectedDatabase) -> None:
    await db.apply(*sample_commits())
    of_alice = ScopeFilter(user_id="alice", agent_id="*", run_id="**", app_id="**")
    for filters in ({}, {"state": "superseded"}, {"importance": {"gte": 0.5}}, {"run_id": None}):
        for scope in (EVERYBODY, of_alice):
            wanted = parse_filter(filters)
            for all_versions in (False, True):
                listed = await facts(db.conn, scope, wanted, all_versions=all_versions, at=day(60))
                assert listed
                found = await count_facts(db.conn, scope, wanted, all_versions=all_versions, at=day(60))
                assert found == len(listed)
