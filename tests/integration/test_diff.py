"""What changed in belief between two instants, on a real Postgres."""

from collections.abc import AsyncIterator

import pytest

from projections.diffing import Change, Diff, diff
from projections.query_errors import QueryError
from projections.scoping import ScopeFilter
from tests.builders import (
    ALICE,
    BOB,
    START,
    added,
    commit,
    confirmed,
    contradicted,
    day,
    fact_of,
    merged,
    replaced,
    skipped,
)
from tests.stored import Stored

pytestmark = pytest.mark.postgres
MINE = ScopeFilter.exactly(ALICE)


@pytest.fixture
async def db(database: str) -> AsyncIterator[Stored]:
    async with Stored.open(database) as stored:
        yield stored


def shown(changes: tuple[Change, ...]) -> list[tuple[list[str], str | None]]:
    return [([old.text for old in change.old], change.text) for change in changes]


async def test_groups_what_changed_with_old_and_new(db: Stored) -> None:
    known = commit("1", *(added(f"Old {number}.") for number in range(5)))
    await db.apply(
        known,
        commit("2", replaced("Now.", fact_of(known, 0), reason="she moved"), at=day(1)),
        commit("3", contradicted("Indeed.", fact_of(known, 1)), added("New."), at=day(1)),
        commit("4", merged("Both.", fact_of(known, 2), fact_of(known, 3)), at=day(1)),
        commit("5", confirmed(fact_of(known, 4)), skipped(fact_of(known, 4)), skipped(fact_of(known, 4)), at=day(1)),
        commit("6", added("Bob's."), scope=BOB, at=day(1)),
        commit("7", added("Later."), at=day(2)),
    )
    changed = await diff(db.conn, MINE, day(1), day(2))
    assert shown(changed.added) == [([], "New.")]
    assert shown(changed.replaced) == [(["Old 0."], "Now.")]
    assert shown(changed.contradicted) == [(["Old 1."], "Indeed.")]
    assert [(sorted(old), new) for old, new in shown(changed.merged)] == [(["Old 2.", "Old 3."], "Both.")]
    assert shown(changed.confirmed) == [([], "Old 4.")]
    assert changed.skipped == 2
    assert (changed.replaced[0].reason, changed.replaced[0].stale) == ("she moved", False)


async def test_the_interval_begins_with_since_and_ends_before_until(db: Stored) -> None:
    known = commit("1", added("A."))
    await db.apply(known)
    at = known.decided_at
    assert shown((await diff(db.conn, MINE, at, day(1))).added) == [([], "A.")]
    assert shown((await diff(db.conn, MINE, START, at)).added) == []


async def test_a_stale_decision_is_marked_and_shows_no_foreign_text(db: Stored) -> None:
    known = commit("1", added("Lives in Bern."))
    await db.apply(known, commit("2", replaced("Lives in Rome.", fact_of(known)), scope=BOB, at=day(1)))
    changed = await diff(db.conn, ScopeFilter.exactly(BOB), START, day(2))
    assert [(one.text, one.old, one.stale) for one in changed.replaced] == [("Lives in Rome.", (), True)]


async def test_no_interval_is_refused(db: Stored) -> None:
    with pytest.raises(QueryError, match="exchange them"):
        await diff(db.conn, MINE, day(2), day(1))
    with pytest.raises(QueryError, match="need a zone"):
        await diff(db.conn, MINE, day(1).replace(tzinfo=None), day(2))


async def test_nothing_changed(db: Stored) -> None:
    nothing: tuple[Change, ...] = ()
    assert await diff(db.conn, MINE, day(1), day(2)) == Diff(
        since=day(1),
        until=day(2),
        added=nothing,
        replaced=nothing,
        contradicted=nothing,
        merged=nothing,
        confirmed=nothing,
        skipped=0,
    )
