"""Searches at the edges: far times, one matter of several users, nothing to compare."""

from datetime import UTC, datetime
from typing import Any, Final

import pytest

from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.projections.search.search import SearchOptions, search
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import ALICE, added, commit, day
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
MINE: Final = ScopeFilter.of_scope(ALICE)
NOW: Final = day(100)


async def texts(db: ProjectedDatabase, scope: ScopeFilter = MINE, **asked: Any) -> list[str]:
    options = SearchOptions.read({"top_k": 100, **asked})
    return [hit.fact.text for hit in await search(db.conn, scope, "tea", None, options, at=NOW)]


async def test_old_facts_and_far_times_are_searched(db: ProjectedDatabase) -> None:
    await db.apply(commit("t1", added("tea"), at=day(0)))
    assert await texts(db, half_life_days=0.001) == ["tea"]
    far = datetime(3200, 1, 1, tzinfo=UTC)
    assert await texts(db, true_at=far, believed_at=far) == ["tea"]


async def test_one_matter_is_that_of_one_user(db: ProjectedDatabase) -> None:
    for user in ("ann", "ben", "cleo", "dan"):
        await db.apply(commit(user, added(f"tea of {user}", key="drink"), scope=Scope(user_id=user)))
    last = commit(
        "more", *(added(f"much tea {number}", key="drink") for number in range(4)), scope=Scope(user_id="ann")
    )
    await db.apply(last)
    everyone = await texts(db, ScopeFilter(user_id="*"), per_matter=2)
    assert {"tea of ben", "tea of cleo", "tea of dan"} <= set(everyone[:5])


async def test_without_vectors_what_has_no_word_in_common_is_below_the_threshold(db: ProjectedDatabase) -> None:
    await db.apply(commit("t1", added("tea"), added("a red car")))
    found = await search(db.conn, MINE, "tea", None, SearchOptions(explain=True), at=NOW)
    assert {reason: left.facts for reason, left in (found.left_out or {}).items()} == {"below_threshold": 1}
