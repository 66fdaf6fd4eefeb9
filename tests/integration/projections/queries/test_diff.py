"""What changed in belief between two instants, on a real Postgres."""

from datetime import datetime
from typing import Any
from uuid import UUID

import pytest

from mnemolog.projections.errors import QueryError
from mnemolog.projections.queries.diff import Change, Diff, diff
from mnemolog.projections.queries.scope_filter import ScopeFilter
from tests.support.builders.commits import (
    ALICE,
    BOB,
    START_TIME,
    Draft,
    added,
    commit,
    confirmed,
    contradicted,
    corrected,
    day,
    event_id_at,
    expired,
    extended,
    fact_id_at,
    merged,
    pending,
    pending_confirmed,
    pending_rejected,
    related,
    replaced,
    resolved,
    retracted,
    skipped,
    undone,
)
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres
MINE = ScopeFilter.of_scope(ALICE)


def shown(changes: tuple[Change, ...]) -> list[tuple[list[str], str | None]]:
    return [([old.text for old in change.old], change.text) for change in changes]


def late(text: str, ended_by: UUID, *, true_from: datetime, ended_at: datetime) -> Draft:
    """Late news: history that a newer fact closes."""
    draft = added(text, true_from=true_from)
    return lambda place: draft(place).model_copy(update={"ended_at": ended_at, "ended_by": ended_by})


async def test_groups_what_changed_with_old_and_new(db: ProjectedDatabase) -> None:
    known = commit("1", *(added(f"Old {number}.") for number in range(5)))
    await db.apply(
        known,
        commit("2", replaced("Now.", fact_id_at(known, 0), reason="she moved"), at=day(1)),
        commit("3", contradicted("Indeed.", fact_id_at(known, 1)), added("New."), at=day(1)),
        commit("4", merged("Both.", fact_id_at(known, 2), fact_id_at(known, 3)), at=day(1)),
        commit(
            "5",
            confirmed(fact_id_at(known, 4)),
            skipped(fact_id_at(known, 4)),
            skipped(fact_id_at(known, 4)),
            at=day(1),
        ),
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


async def test_the_interval_begins_with_since_and_ends_before_until(db: ProjectedDatabase) -> None:
    known = commit("1", added("A."))
    await db.apply(known)
    at = known.decided_at
    assert shown((await diff(db.conn, MINE, at, day(1))).added) == [([], "A.")]
    assert shown((await diff(db.conn, MINE, START_TIME, at)).added) == []


async def test_a_stale_decision_is_marked_and_shows_no_foreign_text(db: ProjectedDatabase) -> None:
    known = commit("1", added("Lives in Bern."))
    await db.apply(known, commit("2", replaced("Lives in Rome.", fact_id_at(known)), scope=BOB, at=day(1)))
    changed = await diff(db.conn, ScopeFilter.of_scope(BOB), START_TIME, day(2))
    assert [(one.text, one.old, one.stale) for one in changed.replaced] == [("Lives in Rome.", (), True)]


async def test_no_interval_is_refused(db: ProjectedDatabase) -> None:
    with pytest.raises(QueryError, match="an earlier since, or a later until"):
        await diff(db.conn, MINE, day(2), day(1))
    with pytest.raises(QueryError, match="since needs a zone"):
        await diff(db.conn, MINE, day(1).replace(tzinfo=None), day(2))


async def test_nothing_changed(db: ProjectedDatabase) -> None:
    assert await diff(db.conn, MINE, day(1), day(2)) == Diff(since=day(1), until=day(2), axis="believed")
    assert await diff(db.conn, MINE, day(1), day(2), axis="true") == Diff(since=day(1), until=day(2), axis="true")


async def test_groups_every_kind_of_decision_by_what_it_did(db: ProjectedDatabase) -> None:
    known = commit("1", *(added(f"Old {number}.") for number in range(10)), added("X.", unresolved=True))
    waiting = commit("2", pending("May be.", fact_id_at(known, 0)), pending("No.", fact_id_at(known, 1)), at=day(0.5))
    undo = commit("9", undone(event_id_at(known, 9), undone_event="fact_added"), at=day(1.5))
    await db.apply(
        known,
        waiting,
        commit("3", expired(fact_id_at(known, 2)), retracted(fact_id_at(known, 3), text="No longer."), at=day(1)),
        commit("4", extended("More.", fact_id_at(known, 4)), related("Else.", fact_id_at(known, 5)), at=day(1)),
        commit("5", corrected("Rather.", fact_id_at(known, 6)), pending("Perhaps.", fact_id_at(known, 7)), at=day(1)),
        commit("6", pending_confirmed(fact_id_at(waiting), fact_id_at(known, 0), action="replace"), at=day(1)),
        commit("7", pending_rejected(fact_id_at(waiting, 1)), at=day(1)),
        commit("8", resolved(fact_id_at(known, 10), fact_id_at(known, 8), action="keep_both"), at=day(1)),
        undo,
    )
    changed = await diff(db.conn, MINE, day(1), day(2))
    assert shown(changed.expired) == [([], "Old 2.")]
    assert shown(changed.retracted) == [(["Old 3."], "No longer.")]
    assert shown(changed.extended) == [(["Old 4."], "More.")]
    assert shown(changed.related) == [(["Old 5."], "Else.")]
    assert shown(changed.corrected) == [(["Old 6."], "Rather.")]
    assert shown(changed.pending) == [(["Old 7."], "Perhaps.")]
    assert [(one.event, one.text, [old.text for old in one.old]) for one in changed.replaced] == [
        ("pending_confirmed", "May be.", ["Old 0."])
    ]
    assert shown(changed.rejected) == [([], "No.")]
    assert shown(changed.resolved) == [(["Old 8."], "X.")]
    assert [one.event for one in changed.undone] == ["decision_undone"]
    assert changed.added == changed.contradicted == changed.merged == ()
    (taken_back,) = [one for one in (await diff(db.conn, MINE, START_TIME, day(1))).added if one.undone]
    assert taken_back.text == "Old 9."


async def test_compares_what_was_believed_then_and_now(db: ProjectedDatabase) -> None:
    known = commit("1", added("Lives in Bern."), added("Is called Ana."), added("Visits.", valid_until=day(2)))
    await db.apply(
        known,
        commit(
            "2",
            replaced("Lives in Rome.", fact_id_at(known)),
            pending("Is called Bo.", fact_id_at(known, 1)),
            at=day(3),
        ),
    )
    changed = await diff(db.conn, MINE, day(1), day(4))
    assert [fact.text for fact in changed.gained] == ["Lives in Rome."]
    assert [(fact.text, fact.status) for fact in changed.lost] == [("Lives in Bern.", "active"), ("Visits.", "active")]


async def test_on_the_axis_of_truth_things_change_when_they_became_so(db: ProjectedDatabase) -> None:
    """She moved on day 2 and left Acme on day 3, and we heard of both on day 10; the visit ended by itself on day 4."""
    known = commit(
        "1",
        added("Lives in Bern."),
        added("Works at Acme."),
        added("Visits.", valid_until=day(4)),
        added("Is called Ana."),
        added("Rents.", valid_until=day(20)),
    )
    await db.apply(
        known,
        commit("2", replaced("Lives in Rome.", fact_id_at(known), ended_at=day(2), true_from=day(2)), at=day(10)),
        commit("3", retracted(fact_id_at(known, 1), ended_at=day(3), text="Left Acme.", true_from=day(3)), at=day(10)),
        commit("4", contradicted("Is called Anna.", fact_id_at(known, 3), true_from=day(1)), at=day(10)),
        commit("5", late("Lived in Nice.", fact_id_at(known), true_from=day(1.5), ended_at=day(1.8)), at=day(10)),
        commit("6", added("Has a dog.", true_from=day(3.5)), at=day(10)),
    )
    turned = await diff(db.conn, MINE, day(1), day(5), axis="true")
    assert [(one.at, one.text) for one in turned.added] == [
        (day(1), "Is called Anna."),
        (day(1.5), "Lived in Nice."),
        (day(3.5), "Has a dog."),
    ]
    assert [(one.at, [old.text for old in one.old], one.text) for one in turned.replaced] == [
        (day(1.8), ["Lived in Nice."], "Lives in Bern."),
        (day(2), ["Lives in Bern."], "Lives in Rome."),
    ]
    assert [(one.at, [old.text for old in one.old], one.text) for one in turned.retracted] == [
        (day(3), ["Works at Acme."], "Left Acme.")
    ]
    assert [(one.at, [old.text for old in one.old], one.text) for one in turned.expired] == [
        (day(4), ["Visits."], None)
    ]
    assert turned.contradicted == turned.confirmed == ()
    believed = await diff(db.conn, MINE, day(1), day(5))
    assert shown(believed.replaced) == []


async def test_an_axis_that_is_none_is_refused(db: ProjectedDatabase) -> None:
    axis: Any = "wished"
    with pytest.raises(QueryError, match="choose one of believed, true"):
        await diff(db.conn, MINE, day(1), day(2), axis=axis)


async def test_on_the_axis_of_truth_the_successor_is_one_that_is_believed(db: ProjectedDatabase) -> None:
    """Rome replaced Bern and was not right: it was Milan. Rome's successor is named; where none is believed, nobody."""
    known = commit("1", added("Lives in Bern."), added("Works at Acme."))
    moved = commit(
        "2",
        replaced("Lives in Rome.", fact_id_at(known), ended_at=day(2), true_from=day(2)),
        replaced("Works at Bosch.", fact_id_at(known, 1), ended_at=day(3), true_from=day(3)),
        at=day(4),
    )
    await db.apply(
        known,
        moved,
        commit("3", contradicted("Lives in Milan.", fact_id_at(moved), true_from=day(2)), at=day(5)),
        commit("4", retracted(fact_id_at(moved, 1)), at=day(5)),
    )
    turned = await diff(db.conn, MINE, day(1), day(5), axis="true")
    assert shown(turned.replaced) == [(["Lives in Bern."], "Lives in Milan.")]
    assert shown(turned.retracted) == [(["Works at Acme."], None)]
    assert shown(turned.added) == []
