"""Lists, pages, counts and exports of facts, on a real Postgres."""

import json
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from itertools import count
from typing import Any

import orjson
import pytest

from mnemolog.projections.context import lasting_facts
from mnemolog.projections.errors import QueryError, UnknownFactError
from mnemolog.projections.queries import facts as product
from mnemolog.projections.queries.diff import diff
from mnemolog.projections.queries.facts import (
    IdCount,
    count_facts,
    exported_lines,
    facts,
    facts_as_of,
    named_ids,
    profile,
    published_profile,
)
from mnemolog.projections.queries.quality import decision_quality
from mnemolog.projections.queries.results import Fact
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.filters import parse_filter
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import (
    ALICE,
    BOB,
    START_TIME,
    added,
    commit,
    day,
    fact_id_at,
    pending,
    replaced,
    retracted,
)
from tests.support.harnesses.projected_database import ProjectedDatabase
from tests.support.naive_filters import sample_commits

pytestmark = pytest.mark.postgres
MINE = ScopeFilter.of_scope(ALICE)
EVERYBODY = ScopeFilter(user_id="**", agent_id="**", app_id="**", run_id="**")
NUMBERS = count(1)


def texts(found: list[Fact]) -> list[str]:
    return [fact.text for fact in found]


async def test_facts_are_those_that_hold_and_all_versions_on_demand(db: ProjectedDatabase) -> None:
    first = commit("1", added("Lives in Bern.", key="home_city", value="Bern"), added("Visits.", valid_until=day(3)))
    moved = replaced("Lives in Rome.", fact_id_at(first), ended_at=day(1))
    await db.apply(first, commit("2", moved, pending("Not so.", fact_id_at(first, 1)), at=day(1)))
    assert texts(await facts(db.conn, MINE, at=day(2))) == ["Visits.", "Lives in Rome."]
    assert texts(await facts(db.conn, MINE, at=day(3))) == ["Lives in Rome."]
    versions = {one.text: one for one in await facts(db.conn, MINE, all_versions=True, at=day(3))}
    assert [(text, one.believed_from is None) for text, one in versions.items()][2:] == [
        ("Lives in Rome.", False),
        ("Not so.", True),
    ]
    old = versions["Lives in Bern."]
    assert (old.key, old.value, old.status, old.user_id, old.agent_id) == (
        *("home_city", "Bern", "superseded"),
        *("alice", None),
    )
    assert (old.true_to, old.closed_at, old.believed_to) == (day(1), versions["Lives in Rome."].believed_from, None)
    assert orjson.loads(orjson.dumps(old))["text"] == "Lives in Bern."


async def pages(db: ProjectedDatabase, *, limit: int, between: Sequence[Commit] = ()) -> AsyncIterator[list[Fact]]:
    """The pages of a list; before each of them but the first, one more commit is stored."""
    commits, after = iter(between), None
    while page := await facts(db.conn, MINE, at=day(1), limit=limit, after=after):
        yield page
        after = page[-1].fact_id
        if more := next(commits, None):
            await db.apply(more)


@pytest.mark.parametrize("limit", [1, 3, 5, 8])
async def test_pages_have_each_fact_once_while_facts_are_stored(db: ProjectedDatabase, limit: int) -> None:
    """Also facts of one turn, which were recorded at the same time; and where a page's last fact is ended meanwhile."""
    first = commit("1", *(added(f"Likes tea {number}.") for number in range(5)))
    await db.apply(first, commit("b", added("Bob's."), scope=BOB))
    there = [fact.fact_id for fact in await facts(db.conn, MINE, at=day(1))]
    last_of_page = there[limit - 1] if limit <= 5 else there[-1]
    ending = commit("2", retracted(last_of_page), at=day(1))
    late = commit("0", added("Came late, of an earlier time."), at=START_TIME - timedelta(days=1))
    found = [fact async for page in pages(db, limit=limit, between=[ending, late]) for fact in page]
    assert [fact.fact_id for fact in found if fact.fact_id in there] == there
    assert len({fact.fact_id for fact in found}) == len(found)


async def test_a_page_goes_on_after_a_fact_of_the_tenant_alone(db: ProjectedDatabase) -> None:
    mine, other = commit("1", added("A."), added("B.")), Scope(tenant="other", user_id="x")
    await db.apply(mine, commit("2", added("C."), scope=other))
    assert texts(await facts(db.conn, MINE, at=day(1), after=fact_id_at(mine))) == ["B."]
    with pytest.raises(UnknownFactError):
        await facts(db.conn, MINE, at=day(1), after=fact_id_at(commit("2", scope=other)))


async def test_what_makes_no_sense_is_refused(db: ProjectedDatabase) -> None:
    conn, wide, no_zone = db.conn, ScopeFilter(user_id="*"), day(1).replace(tzinfo=None)
    for asked, words in (
        (facts(conn, MINE, at=day(1), limit=0), "give 1 or more"),
        (facts(conn, MINE, at=day(1), limit=-1), "give 1 or more"),
        (named_ids(conn, "user_id", EVERYBODY, limit=0), "give 1 or more"),
        (facts_as_of(conn, MINE, believed_at=no_zone, true_at=day(1)), "believed_at needs a zone"),
        (diff(conn, MINE, no_zone, day(2)), "since needs a zone"),
        (diff(conn, MINE, day(2), day(1)), "an earlier since, or a later until"),
        (diff(conn, MINE, day(1), day(2), axis="wished"), "choose one of believed, true"),  # type: ignore[arg-type] # wrong ones too
        (decision_quality(conn, None, day(2), day(1)), "an earlier since, or a later until"),
        (profile(conn, wide, day(0)), "instead of"),
        (published_profile(conn, wide, day(1)), "instead of"),
        (lasting_facts(conn, [MINE, wide], day(1)), "exact scopes"),
    ):
        with pytest.raises(QueryError, match=words):
            await asked


async def test_facts_of_one_turn_are_listed_in_the_order_of_their_statements(db: ProjectedDatabase) -> None:
    said = [f"Likes tea {number}." for number in range(12)]
    turn = commit("1", *(added(text, category="soft_preference") for text in said))
    assert sorted(fact_id_at(turn, place) for place in range(12)) != [fact_id_at(turn, place) for place in range(12)]
    await db.apply(turn)
    await db.apply(commit("2", replaced("Likes tea best.", fact_id_at(turn), fact_id_at(turn, 5)), at=day(1)))
    assert texts(await facts(db.conn, MINE, all_versions=True, at=day(2))) == [*said, "Likes tea best."]
    left = [text for place, text in enumerate(said) if place not in (0, 5)]
    assert texts(await facts(db.conn, MINE, at=day(2))) == [*left, "Likes tea best."]
    assert texts(await facts_as_of(db.conn, MINE, believed_at=day(0.5), true_at=day(0.5))) == said
    known = await profile(db.conn, MINE, day(2))
    assert [entry["text"] for entry in known.soft_preferences if entry["text"] in said] == left
    assert [old["text"] for old in known.recent_changes[0]["old"]] == [said[0], said[5]]


async def know(db: ProjectedDatabase, number: int, **ids: str) -> None:
    facts_of_scope = [added(f"Fact {place}.") for place in range(number)]
    await db.apply(commit(f"t{next(NUMBERS)}", *facts_of_scope, scope=Scope(**ids)))


async def test_users_agents_and_runs_have_their_open_facts_and_scopes(db: ProjectedDatabase) -> None:
    known, gone = commit("1", added("A."), added("B.")), commit("3", added("D."), scope=Scope(user_id="zoe"))
    ended = commit("4", retracted(fact_id_at(gone)), scope=Scope(user_id="zoe"), at=day(1))
    await db.apply(known, commit("2", pending("C.", fact_id_at(known))), gone, ended)
    await know(db, 3, user_id="alice", run_id="r1")
    await know(db, 1, user_id="bob", agent_id="bot", run_id="r1")
    await know(db, 5, agent_id="bot")
    await know(db, 7, tenant="other", user_id="eve")
    alice, bob = IdCount(id="alice", facts=6, scopes=2), IdCount(id="bob", facts=1, scopes=1)
    assert await named_ids(db.conn, "user_id", EVERYBODY) == [alice, bob]
    assert await named_ids(db.conn, "agent_id", EVERYBODY) == [IdCount(id="bot", facts=6, scopes=2)]
    assert await named_ids(db.conn, "run_id", EVERYBODY) == [IdCount(id="r1", facts=4, scopes=2)]
    of_alice = ScopeFilter(user_id="alice", agent_id="**", app_id="**", run_id="**")
    assert await named_ids(db.conn, "run_id", of_alice) == [IdCount(id="r1", facts=3, scopes=1)]


async def test_pages_of_users_have_each_once(db: ProjectedDatabase) -> None:
    names = ["Ann", "ann", "bob", "Zoe", "\u00e4nne"]
    for name in names:
        await know(db, 1, user_id=name)
    for limit in (1, 2, 4):
        listed: list[str] = []
        while page := await named_ids(db.conn, "user_id", EVERYBODY, limit=limit, after=listed[-1] if listed else None):
            assert len(page) <= limit
            listed += [one.id for one in page]
        assert sorted(listed) == sorted(names)


async def test_counts_and_exports_are_those_of_the_list(db: ProjectedDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product, "EXPORT_BATCH", 7)
    await db.apply(*sample_commits())
    of_alice = ScopeFilter(user_id="alice", agent_id="*", run_id="**", app_id="**")
    filters: tuple[dict[str, Any], ...] = (
        {},
        {"state": "superseded"},
        {"importance": {"gte": 0.5}},
        {"run_id": None},
        {"key": "nothing"},
    )
    for wanted in map(parse_filter, filters):
        for scope in (EVERYBODY, of_alice):
            for versions in (False, True):
                listed = await facts(db.conn, scope, wanted, all_versions=versions, at=day(60))
                found = await count_facts(db.conn, scope, wanted, all_versions=versions, at=day(60))
                assert (found, bool(found)) == (len(listed), wanted.key is None)
                lines = exported_lines(db.conn, scope, wanted, all_versions=versions, at=day(60))
                batches = [batch async for batch in lines]
                assert all(0 < len(batch) <= 7 for batch in batches)
                exported = [json.loads(line) for batch in batches for line in batch]
                assert [one["id"] for one in exported] == [str(fact.fact_id) for fact in listed]
                attributes = [fact.structured_attributes for fact in listed]
                assert [one["structured_attributes"] for one in exported] == attributes


async def test_what_is_stored_meanwhile_is_not_exported(db: ProjectedDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product, "EXPORT_BATCH", 1)
    await db.apply(commit("1", added("A."), added("B.")))
    found = []
    async for lines in exported_lines(db.conn, EVERYBODY, parse_filter({}), all_versions=False, at=day(60)):
        found += [json.loads(line)["text"] for line in lines]
        cursors = await db.rows("SELECT name FROM pg_cursors WHERE name <> ''")
        assert cursors == [("exported_facts",)]  # the server keeps what has not been read
        await db.apply(commit(f"more {len(found)}", added("C.")))
    assert found == ["A.", "B."]
