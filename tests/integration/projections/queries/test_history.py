"""The way of a fact through its versions, on a real Postgres."""

from uuid import UUID

import pytest

from mnemolog.projections.errors import UnknownFactError
from mnemolog.projections.queries.explain import history
from mnemolog.schemas.facts import FactState, Reversal
from tests.support.builders.commits import (
    BOB,
    added,
    commit,
    confirmed,
    contradicted,
    corrected,
    day,
    event_id_at,
    extended,
    fact_id_at,
    merged,
    pending,
    pending_confirmed,
    related,
    replaced,
    retracted,
    skipped,
    undone,
)
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres


async def test_tells_every_version_and_what_touched_it(db: ProjectedDatabase) -> None:
    first = commit("1", added("Lives in Bern."), added("Has a cat."), added("Unrelated."))
    second = commit("2", replaced("Lives in Rome.", fact_id_at(first), reason="she moved"), at=day(1))
    third = commit("3", skipped(fact_id_at(second)), confirmed(fact_id_at(second)), at=day(2))
    fourth = commit("4", merged("Lives in Rome with a cat.", fact_id_at(second), fact_id_at(first, 1)), at=day(3))
    fifth = commit("5", contradicted("Lives in Nice.", fact_id_at(fourth)), at=day(4))
    await db.apply(first, second, third, fourth, fifth)
    found = await history(db.conn, "default", fact_id_at(fourth))
    assert [(one.text, one.status) for one in found.versions if one.text != "Has a cat."] == [
        ("Lives in Bern.", "superseded"),
        ("Lives in Rome.", "superseded"),
        ("Lives in Rome with a cat.", "archived"),
        ("Lives in Nice.", "active"),
    ]
    assert len(found.versions) == 5
    assert [(event.event, event.source_id) for event in found.events] == [
        ("fact_added", "1"),
        ("fact_added", "1"),
        ("fact_replaced", "2"),
        ("fact_skipped", "3"),
        ("fact_confirmed", "3"),
        ("facts_merged", "4"),
        ("fact_contradicted", "5"),
    ]
    moved = found.events[2]
    assert (moved.reason, moved.decided_by, moved.targets) == ("she moved", "threshold", [fact_id_at(first)])
    assert moved.candidates == [{"fact_id": str(fact_id_at(first)), "similarity": 0.8}]


async def test_a_parent_of_a_merge_does_not_show_its_sibling(db: ProjectedDatabase) -> None:
    first = commit("1", added("Has a cat."), added("Has a dog."))
    await db.apply(
        first, commit("2", merged("Has a cat and a dog.", fact_id_at(first), fact_id_at(first, 1)), at=day(1))
    )
    found = await history(db.conn, "default", fact_id_at(first))
    assert [one.text for one in found.versions] == ["Has a cat.", "Has a cat and a dog."]


async def test_what_a_confirmation_or_a_correction_ended_is_a_version_both_ways(db: ProjectedDatabase) -> None:
    first = commit("1", added("Lives in Bern."))
    waiting = commit("2", pending("Lives in Rome.", fact_id_at(first), action="replace"), at=day(1))
    third = commit("3", pending_confirmed(fact_id_at(waiting), fact_id_at(first), action="replace"), at=day(2))
    fourth = commit("4", corrected("Lives in Milan.", fact_id_at(waiting)), at=day(3))
    await db.apply(first, waiting, third, fourth)
    expected = ["Lives in Bern.", "Lives in Rome.", "Lives in Milan."]
    for asked in (fact_id_at(first), fact_id_at(waiting), fact_id_at(fourth)):
        found = await history(db.conn, "default", asked)
        assert [one.text for one in found.versions] == expected
    assert [event.event for event in found.events] == [
        "fact_added",
        "fact_pending",
        "pending_confirmed",
        "fact_corrected",
    ]
    assert found.versions[1].believed_from == third.decided_at


async def test_an_undo_is_among_the_events_and_marks_what_it_took_back(db: ProjectedDatabase) -> None:
    first = commit("1", added("Lives in Bern."))
    await db.apply(first)
    (known,) = (await history(db.conn, "default", fact_id_at(first))).versions
    before = FactState(**{name: getattr(known, name) for name in FactState.model_fields})
    second = commit("2", replaced("Lives in Rome.", fact_id_at(first)), at=day(1))
    reversals = (
        Reversal(fact_id=fact_id_at(first), now="superseded", before=before),
        Reversal(fact_id=fact_id_at(second), now="active", before=None),
    )
    await db.apply(second, commit("3", undone(event_id_at(second), *reversals), at=day(2)))
    found = await history(db.conn, "default", fact_id_at(first))
    assert [(event.event, event.undone) for event in found.events] == [
        ("fact_added", False),
        ("fact_replaced", True),
        ("decision_undone", False),
    ]
    assert [(one.text, one.status) for one in found.versions] == [
        ("Lives in Bern.", "active"),
        ("Lives in Rome.", "undone"),
    ]
    assert found.events[2].fact_id is None


async def test_relations_are_told_from_both_ends_and_hold_while_both_do(db: ProjectedDatabase) -> None:
    first = commit("1", added("Has a dog."), added("Likes tea."))
    second = commit(
        "2", extended("The dog is Rex.", fact_id_at(first)), related("Tea at four.", fact_id_at(first, 1)), at=day(1)
    )
    await db.apply(first, second)
    for asked in (fact_id_at(first), fact_id_at(second)):
        (one,) = (await history(db.conn, "default", asked)).relations
        assert (one.text, one.relation, one.related_text, one.holds) == (
            "The dog is Rex.",
            "extends",
            "Has a dog.",
            True,
        )
    await db.apply(commit("3", retracted(fact_id_at(first, 1)), at=day(2)))
    (one,) = (await history(db.conn, "default", fact_id_at(second, 1))).relations
    assert (one.relation, one.holds) == ("similar", False)


async def test_another_users_attempt_on_a_fact_is_not_shown(db: ProjectedDatabase) -> None:
    mine = commit("1", added("Lives in Bern."))
    await db.apply(mine, commit("2", replaced("Lives in Rome.", fact_id_at(mine)), scope=BOB, at=day(1)))
    found = await history(db.conn, "default", fact_id_at(mine))
    assert [event.source_id for event in found.events] == ["1"]
    assert [one.status for one in found.versions] == ["active"]


async def test_an_unknown_fact_and_one_of_another_tenant_are_refused(db: ProjectedDatabase) -> None:
    mine = commit("1", added("Lives in Bern."))
    await db.apply(mine)
    for tenant, fact_id in (("default", UUID(int=1)), ("other", fact_id_at(mine))):
        with pytest.raises(UnknownFactError):
            await history(db.conn, tenant, fact_id)
