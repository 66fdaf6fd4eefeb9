"""What changed between two times: examples of each kind, and random histories against what was known at both ends."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemolog.projections.queries.diff import Change, Diff, diff
from mnemolog.projections.queries.facts import facts, facts_as_of
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.command import Undo
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.scope import Scope
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
from tests.support.harnesses.command_harness import CommandHarness
from tests.support.harnesses.projected_database import ProjectedDatabase, database_for_examples

pytestmark = pytest.mark.postgres
MINE = ScopeFilter.of_scope(ALICE)
LAST = 12
"""The day of the last event of a history; true times lie on days before and after it as well."""
LATER = day(100)
JUST_BEFORE = timedelta(microseconds=1)


def shown(changes: Iterable[Change]) -> list[tuple[list[str], str | None]]:
    return [(sorted(old.text for old in change.old), change.text) for change in changes]


async def test_each_kind_of_decision_has_its_group_with_old_and_new(db: ProjectedDatabase) -> None:
    known = commit("1", *(added(f"Old {number}.") for number in range(15)), added("X.", unresolved=True))
    old = [fact_id_at(known, number) for number in range(16)]
    waiting = commit("2", pending("May be.", old[0]), pending("No.", old[1]), at=day(0.5))
    drafts: tuple[Draft, ...] = (
        *(expired(old[2]), retracted(old[3], text="No longer."), extended("More.", old[4]), related("Else.", old[5])),
        *(corrected("Rather.", old[6]), pending("Perhaps.", old[7]), resolved(old[15], old[8], action="keep_both")),
        *(pending_confirmed(fact_id_at(waiting), old[0], action="replace"), pending_rejected(fact_id_at(waiting, 1))),
        *(replaced("Now.", old[10], reason="she moved"), contradicted("Indeed.", old[11]), added("New.")),
        *(merged("Both.", old[12], old[13]), confirmed(old[14]), skipped(old[14]), skipped(old[14])),
    )
    await db.apply(known, waiting, commit("3", *drafts, at=day(1)), commit("b", added("Bob's."), scope=BOB, at=day(1)))
    await db.apply(commit("4", undone(event_id_at(known, 9), undone_event="fact_added"), at=day(1.5)))
    await db.apply(commit("5", added("Later."), at=day(2)))
    changed = await diff(db.conn, MINE, day(1), day(2))
    assert {kind: shown(getattr(changed, kind)) for kind, _ in changed.in_order if kind != "undone"} == {
        "added": [([], "New.")],
        "replaced": [(["Old 0."], "May be."), (["Old 10."], "Now.")],
        "contradicted": [(["Old 11."], "Indeed.")],
        "expired": [([], "Old 2.")],
        "retracted": [(["Old 3."], "No longer.")],
        "merged": [(["Old 12.", "Old 13."], "Both.")],
        "extended": [(["Old 4."], "More.")],
        "related": [(["Old 5."], "Else.")],
        "confirmed": [([], "Old 14.")],
        "corrected": [(["Old 6."], "Rather.")],
        "pending": [(["Old 7."], "Perhaps.")],
        "rejected": [([], "No.")],
        "resolved": [(["Old 8."], "X.")],
    }
    assert [one.event for one in changed.replaced] == ["pending_confirmed", "fact_replaced"]
    assert (changed.skipped, changed.replaced[1].reason, changed.replaced[1].stale) == (2, "she moved", False)
    assert [one.event for one in changed.undone] == ["decision_undone"]
    (taken_back,) = [one for one in (await diff(db.conn, MINE, START_TIME, day(1))).added if one.undone]
    assert taken_back.text == "Old 9."


async def test_the_interval_begins_with_since_and_ends_before_until(db: ProjectedDatabase) -> None:
    known = commit("1", added("A."))
    await db.apply(known)
    assert shown((await diff(db.conn, MINE, known.decided_at, day(1))).added) == [([], "A.")]
    assert shown((await diff(db.conn, MINE, START_TIME, known.decided_at)).added) == []
    assert await diff(db.conn, MINE, day(1), day(2)) == Diff(since=day(1), until=day(2), axis="believed")
    assert await diff(db.conn, MINE, day(1), day(2), axis="true") == Diff(since=day(1), until=day(2), axis="true")


async def test_a_stale_decision_is_marked_and_shows_no_foreign_text(db: ProjectedDatabase) -> None:
    known = commit("1", added("Lives in Bern."))
    await db.apply(known, commit("2", replaced("Lives in Rome.", fact_id_at(known)), scope=BOB, at=day(1)))
    changed = await diff(db.conn, ScopeFilter.of_scope(BOB), START_TIME, day(2))
    assert [(one.text, one.old, one.stale) for one in changed.replaced] == [("Lives in Rome.", (), True)]


async def test_on_the_axis_of_truth_things_change_when_they_became_so(db: ProjectedDatabase) -> None:
    """She moved on day 2 and left Acme on day 3, and we heard of both on day 10; the visit ended by itself on day 4."""
    lasting = [added(text) for text in ("Lives in Bern.", "Works at Acme.", "Is called Ana.")]
    known = commit("1", *lasting, added("Visits.", valid_until=day(4)), added("Rents.", valid_until=day(20)))
    home, work, name = (fact_id_at(known, number) for number in range(3))
    late = added("Lived in Nice.", true_from=day(1.5), ended_at=day(1.8), ended_by=home)
    heard: tuple[Draft, ...] = (
        replaced("Lives in Rome.", home, ended_at=day(2), true_from=day(2)),
        retracted(work, ended_at=day(3), text="Left Acme.", true_from=day(3)),
        contradicted("Is called Anna.", name, true_from=day(1)),
        *(late, added("Has a dog.", true_from=day(3.5))),
    )
    await db.apply(known, commit("2", *heard, at=day(10)))
    turned = await diff(db.conn, MINE, day(1), day(5), axis="true")
    assert [(kind, one.at, [old.text for old in one.old], one.text) for kind, one in turned.in_order] == [
        ("added", day(1), [], "Is called Anna."),
        ("added", day(1.5), [], "Lived in Nice."),
        ("replaced", day(1.8), ["Lived in Nice."], "Lives in Bern."),
        ("replaced", day(2), ["Lives in Bern."], "Lives in Rome."),
        ("retracted", day(3), ["Works at Acme."], "Left Acme."),
        ("added", day(3.5), [], "Has a dog."),
        ("expired", day(4), ["Visits."], None),
    ]
    assert (await diff(db.conn, MINE, day(1), day(5))).in_order == []


async def test_on_the_axis_of_truth_the_successor_is_one_that_is_believed(db: ProjectedDatabase) -> None:
    """Rome replaced Bern and was not right: it was Milan. Rome's successor is named; where none is believed, nobody."""
    known = commit("1", added("Lives in Bern."), added("Works at Acme."))
    moved = commit(
        "2",
        replaced("Lives in Rome.", fact_id_at(known), ended_at=day(2), true_from=day(2)),
        replaced("Works at Bosch.", fact_id_at(known, 1), ended_at=day(3), true_from=day(3)),
        at=day(4),
    )
    denied = contradicted("Lives in Milan.", fact_id_at(moved), true_from=day(2))
    await db.apply(known, moved, commit("3", denied, retracted(fact_id_at(moved, 1)), at=day(5)))
    turned = await diff(db.conn, MINE, day(1), day(5), axis="true")
    assert [(kind, *shown([one])) for kind, one in turned.in_order] == [
        ("replaced", (["Lives in Bern."], "Lives in Milan.")),
        ("retracted", (["Works at Acme."], None)),
    ]


DAYS = st.integers(0, LAST + 3)
KINDS: dict[str, Any] = {
    "added": lambda text, _, begins, ends: added(text, true_from=begins, valid_until=ends if ends > begins else None),
    "late": lambda text, old, begins, ends: added(text, true_from=min(begins, ends), ended_at=ends, ended_by=old),
    "replaced": lambda text, old, begins, ends: replaced(text, old, ended_at=ends, true_from=begins),
    "contradicted": lambda text, old, begins, _: contradicted(text, old, true_from=begins),
    "merged": lambda text, old, begins, _: merged(text, old, true_from=begins),
    "retracted": lambda text, old, begins, ends: retracted(old, ended_at=ends, text=text, true_from=begins),
    "deleted": lambda _, old, *__: retracted(old),
    "expired": lambda _, old, __, ends: expired(old, ended_at=ends),
    "corrected": lambda text, old, begins, _: corrected(text, old, true_from=begins),
    "pending": lambda text, old, begins, ends: pending(text, old, action="replace", ended_at=ends, true_from=begins),
    "confirmed": lambda _, old, __, ends: pending_confirmed(old, action="replace", ended_at=ends),
    "rejected": lambda _, old, *__: pending_rejected(old),
}


@dataclass(frozen=True)
class Step:
    """One event on the `target`th fact from the last on, with the days of its beginning and end."""

    kind: str
    target: int
    begins: int
    ends: int


STEPS = st.lists(
    st.builds(
        Step,
        kind=st.sampled_from([*KINDS, "undone", "replaced", "replaced"]),
        target=st.integers(0, 2),
        begins=DAYS,
        ends=DAYS,
    ),
    min_size=3,
    max_size=LAST,
)


async def live(db: ProjectedDatabase, scope: Scope, steps: Sequence[Step]) -> None:
    known: list[UUID] = []
    commits: list[Commit] = []
    unapplied: list[Commit] = []
    for number, step in enumerate(steps):
        source, at = f"{scope.user_id}-{number}", day(number)
        if step.kind == "undone":
            if commits:
                await db.apply(*unapplied)
                unapplied.clear()
                named = event_id_at(commits[step.target % len(commits)])
                await CommandHarness(db).execute(source, Undo(event_id=named), at=at, scope=scope)
            continue
        target = known[-1 - step.target % len(known)] if known else UUID(int=1)
        draft = KINDS[step.kind](f"Fact {number}.", target, day(step.begins), day(step.ends))
        one = commit(source, draft, at=at, scope=scope)
        unapplied.append(one)
        commits.append(one)
        known.extend(fact.fact_id for event in one.events if (fact := event.new_fact))
    await db.apply(*unapplied)


def _named(found: Diff) -> set[UUID | None]:
    return {change.fact_id for _, change in found.in_order}


def _old(found: Diff) -> set[UUID | None]:
    return {old.fact_id for _, change in found.in_order for old in change.old}


async def known_at(db: ProjectedDatabase, mine: ScopeFilter, true_at: datetime, believed_at: datetime) -> set[Any]:
    found = await facts_as_of(db.conn, mine, believed_at=believed_at, true_at=true_at)
    return {fact.fact_id for fact in found}


async def check_truth(db: ProjectedDatabase, mine: ScopeFilter, start: datetime, end: datetime) -> None:
    """As it is known at last: what became or ceased to be so leads from the one end to the other."""
    found = await diff(db.conn, mine, start, end, axis="true")
    before, after = [await known_at(db, mine, moment - JUST_BEFORE, LATER) for moment in (start, end)]
    assert all(start <= change.at < end for _, change in found.in_order)
    assert after - before <= _named(found)
    assert before - after <= _old(found)
    assert not _old(found) & after
    every = await facts(db.conn, mine, all_versions=True, at=LATER)
    assert _named(found) <= {None} | {one.fact_id for one in every if one.believed_from and not one.believed_to}


async def check_belief(db: ProjectedDatabase, mine: ScopeFilter, start: datetime, end: datetime) -> None:
    """What was learned, and what began or ended meanwhile, leads from the one end to the other."""
    found = await diff(db.conn, mine, start, end)
    before, after = [await known_at(db, mine, at, at) for at in (start - JUST_BEFORE, end - JUST_BEFORE)]
    assert {fact.fact_id for fact in found.gained} == after - before
    assert {fact.fact_id for fact in found.lost} == before - after
    timed = await diff(db.conn, mine, start, end, axis="true")
    rest = (after ^ before) - _named(found) - _old(found) - _named(timed) - _old(timed)
    for one in await facts(db.conn, mine, all_versions=True, at=LATER):
        bounds = (one.true_from, one.valid_until, one.true_to)
        only_time_has_passed = any(start <= moment < end for moment in bounds if moment)
        assert one.fact_id not in rest or only_time_has_passed


def test_a_diff_leads_from_what_is_known_at_one_end_to_the_other(database: str) -> None:
    numbers = itertools.count()
    with database_for_examples(database) as (db, run):

        @settings(max_examples=100)
        @given(steps=STEPS, ends=st.tuples(DAYS, DAYS).map(sorted))
        def check(steps: list[Step], ends: list[int]) -> None:
            scope = Scope(user_id=f"user-{next(numbers)}")
            mine, (start, end) = ScopeFilter.of_scope(scope), map(day, ends)
            run(live(db, scope, steps))
            run(check_truth(db, mine, start, end))
            run(check_belief(db, mine, start, end))

        check()
