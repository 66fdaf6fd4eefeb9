"""The way of a fact through its versions, on a real Postgres."""

from collections.abc import AsyncIterator
from uuid import UUID

import pytest

from projections.history import history
from projections.query_errors import UnknownFactError
from tests.builders import BOB, added, commit, confirmed, contradicted, day, fact_of, merged, replaced, skipped
from tests.stored import Stored

pytestmark = pytest.mark.postgres


@pytest.fixture
async def db(database: str) -> AsyncIterator[Stored]:
    async with Stored.open(database) as stored:
        yield stored


async def test_tells_every_version_and_what_touched_it(db: Stored) -> None:
    first = commit("1", added("Lives in Bern."), added("Has a cat."), added("Unrelated."))
    second = commit("2", replaced("Lives in Rome.", fact_of(first), reason="she moved"), at=day(1))
    third = commit("3", skipped(fact_of(second)), confirmed(fact_of(second)), at=day(2))
    fourth = commit("4", merged("Lives in Rome with a cat.", fact_of(second), fact_of(first, 1)), at=day(3))
    fifth = commit("5", contradicted("Lives in Nice.", fact_of(fourth)), at=day(4))
    await db.apply(first, second, third, fourth, fifth)
    told = await history(db.conn, "default", fact_of(fourth))
    assert [(one.text, one.status) for one in told.versions if one.text != "Has a cat."] == [
        ("Lives in Bern.", "superseded"),
        ("Lives in Rome.", "superseded"),
        ("Lives in Rome with a cat.", "archived"),
        ("Lives in Nice.", "active"),
    ]
    assert len(told.versions) == 5
    assert [(event.event, event.source_id) for event in told.events] == [
        ("fact_added", "1"),
        ("fact_added", "1"),
        ("fact_replaced", "2"),
        ("fact_skipped", "3"),
        ("fact_confirmed", "3"),
        ("facts_merged", "4"),
        ("fact_contradicted", "5"),
    ]
    moved = told.events[2]
    assert (moved.reason, moved.decided_by, moved.targets) == ("she moved", "threshold", [fact_of(first)])
    assert moved.candidates == [{"fact_id": str(fact_of(first)), "similarity": 0.8}]


async def test_a_parent_of_a_merge_does_not_show_its_sibling(db: Stored) -> None:
    first = commit("1", added("Has a cat."), added("Has a dog."))
    await db.apply(first, commit("2", merged("Has a cat and a dog.", fact_of(first), fact_of(first, 1)), at=day(1)))
    told = await history(db.conn, "default", fact_of(first))
    assert [one.text for one in told.versions] == ["Has a cat.", "Has a cat and a dog."]


async def test_another_users_attempt_on_a_fact_is_not_shown(db: Stored) -> None:
    mine = commit("1", added("Lives in Bern."))
    await db.apply(mine, commit("2", replaced("Lives in Rome.", fact_of(mine)), scope=BOB, at=day(1)))
    told = await history(db.conn, "default", fact_of(mine))
    assert [event.source_id for event in told.events] == ["1"]
    assert [one.status for one in told.versions] == ["active"]


async def test_an_unknown_fact_and_one_of_another_tenant_are_refused(db: Stored) -> None:
    mine = commit("1", added("Lives in Bern."))
    await db.apply(mine)
    for tenant, fact_id in (("default", UUID(int=1)), ("other", fact_of(mine))):
        with pytest.raises(UnknownFactError):
            await history(db.conn, tenant, fact_id)
