"""What was known at each time to be true at each time, whatever happened since, against an oracle of its own."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemolog.projections.queries.facts import facts, facts_as_of
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.command import Undo
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.facts import MovedEnd
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import (
    ALICE,
    Draft,
    added,
    commit,
    confirmed,
    contradicted,
    day,
    expired,
    fact_id_at,
    merged,
    replaced,
    retracted,
    skipped,
)
from tests.support.builders.sample_logs import every_decision_log
from tests.support.harnesses.command_harness import CommandHarness
from tests.support.harnesses.projected_database import ProjectedDatabase, database_for_examples

pytestmark = pytest.mark.postgres

MINE = ScopeFilter.of_scope(ALICE)
FIRST_DAY, LAST_DAY = 20, 40
TIMES = st.integers(10, 50)


@dataclass(frozen=True)
class Held:
    """A fact as the oracle knows it, in days: since when and until when it is true, and by what it ended."""

    number: int
    begins: int
    ends: int | None = None
    ended_by: int | None = None


World = dict[int, Held]
"""What is believed after a commit, by the number of the commit that brought it."""
Step = tuple[str, int, int]
"""What happens, which of the open facts it is about, and a time."""
KINDS = st.sampled_from(["add", "replace", "deny", "delete", "repeat", "expire"])
STEPS = st.lists(st.tuples(KINDS, st.integers(0, 5), TIMES), min_size=1, max_size=LAST_DAY - FIRST_DAY)


class Oracle:
    """Turns steps into commits, and keeps what is believed after each of them."""

    def __init__(self, scope: Scope, steps: Sequence[Step]) -> None:
        self._ids: dict[int, UUID] = {}
        self.commits: list[Commit] = []
        self.worlds: list[World] = []
        world: World = {}
        for number, (kind, choice, time) in enumerate(steps):
            now = FIRST_DAY + number
            still = [one for one in world.values() if one.ends is None or one.ends > now]
            target = still[choice % len(still)] if still else None
            draft, world = self._step(kind, target, time, number, dict(world))
            committed = commit(f"t{number}", draft, scope=scope, at=day(now))
            self._ids[number] = fact_id_at(committed)
            self.commits.append(committed)
            self.worlds.append(world)

    def _step(self, kind: str, target: Held | None, time: int, number: int, world: World) -> tuple[Draft, World]:
        text = f"Fact {number}."
        if target is None or kind == "add":
            return added(text, true_from=day(time)), world | {number: Held(number, time)}
        target_id, ended_at = self._ids[target.number], max(time, target.begins)
        match kind:
            case "replace":
                ended = replace(target, ends=ended_at, ended_by=number)
                draft = replaced(text, target_id, ended_at=day(ended_at), true_from=day(ended_at))
                return draft, world | {target.number: ended, number: Held(number, ended_at)}
            case "repeat":
                longer = replace(target, begins=min(target.begins, time))
                return skipped(target_id, true_from=day(time)), world | {target.number: longer}
            case "expire":
                draft = expired(target_id, ended_at=day(ended_at))
                return draft, world | {target.number: replace(target, ends=ended_at)}
        del world[target.number]
        reopened = [one for one in world.values() if one.ended_by == target.number]
        world |= {one.number: replace(one, ends=None, ended_by=None) for one in reopened}
        moved = tuple(MovedEnd(fact_id=self._ids[one.number], ender=target_id) for one in reopened)
        if kind == "delete":
            return _with_moved(retracted(target_id), moved), world
        draft = contradicted(text, target_id, true_from=day(time))
        return _with_moved(draft, moved), world | {number: Held(number, time)}


def _with_moved(draft: Draft, moved: tuple[MovedEnd, ...]) -> Draft:
    return lambda place: draft(place).model_copy(update={"moved_ends": moved})


def _true(world: World, at: int) -> set[str]:
    """The facts that are true on a day, by their texts."""
    return {f"Fact {one.number}." for one in world.values() if one.begins <= at and (one.ends is None or one.ends > at)}


def _days(world: World) -> Iterator[int]:
    """The days on which something begins or ends, and the days before."""
    bounds = {bound for one in world.values() for bound in (one.begins, one.ends) if bound}
    return iter(sorted({*bounds, *(bound - 1 for bound in bounds)}))


async def check(stored: ProjectedDatabase, oracle: Oracle, mine: ScopeFilter) -> None:
    await stored.apply(*oracle.commits)
    for number, world in enumerate(oracle.worlds):
        believed_at = day(FIRST_DAY + number) + timedelta(hours=1)
        for true_at in _days(world):
            found = await facts_as_of(stored.conn, mine, believed_at=believed_at, true_at=day(true_at))
            assert {fact.text for fact in found} == _true(world, true_at), (number, true_at)
    end = FIRST_DAY + len(oracle.worlds)
    for now in (end, end + 5, end + 30):
        listed = [fact for fact in await facts(stored.conn, mine, at=day(now)) if not fact.begins_later]
        known = await facts_as_of(stored.conn, mine, believed_at=day(now), true_at=day(now))
        assert [fact.fact_id for fact in listed] == [fact.fact_id for fact in known]


def test_as_of_is_what_the_commits_until_then_say(database: str) -> None:
    numbers = itertools.count()
    with database_for_examples(database) as (db, run):

        @settings(max_examples=30)
        @given(STEPS)
        def check_steps(steps: list[Step]) -> None:
            scope = Scope(user_id=f"user-{next(numbers)}")
            run(check(db, Oracle(scope, steps), ScopeFilter.of_scope(scope)))

        check_steps()


async def test_every_instant_of_the_past_is_told_as_it_was_told_then(db: ProjectedDatabase) -> None:
    """Every event that can change a fact, a commit a day; each day is asked again at the end, for each column."""
    known = commit("1", *(added(f"Known {number}.", confidence=0.6) for number in range(6)), at=day(12))
    ids = [fact_id_at(known, number) for number in range(6)]
    touches = (
        *(skipped(ids[0]), confirmed(ids[1]), skipped(ids[1]), merged("Both.", ids[2], ids[3])),
        *(contradicted("Rather.", ids[4]), expired(ids[5], ended_at=day(15), text="Until the 15th.")),
    )
    ended = commit("3", expired(ids[5], ended_at=day(15)), at=day(16))
    answers = {}
    for made in (*every_decision_log()[:8], known, commit("2", *touches, at=day(13)), ended):
        await db.apply(made)
        answers[made.decided_at] = await facts(db.conn, MINE, at=made.decided_at)
    for number, source in enumerate(("d8", "c0", "2")):
        made = await CommandHarness(db).execute(f"c{number}", Undo(source_id=source), at=day(17 + number))
        answers[made.decided_at] = await facts(db.conn, MINE, at=made.decided_at)
    assert len({repr([(fact.text, fact.mention_count) for fact in then]) for then in answers.values()}) >= 10
    for at, then in answers.items():
        assert await facts_as_of(db.conn, MINE, believed_at=at, true_at=at) == then


async def test_several_events_of_one_commit_leave_no_moment_between_them(db: ProjectedDatabase) -> None:
    one = commit("1", added("A.", confidence=0.6))
    two = commit("2", confirmed(fact_id_at(one)), skipped(fact_id_at(one)), replaced("B.", fact_id_at(one)), at=day(1))
    await db.apply(one, two)
    (before,) = await facts_as_of(db.conn, MINE, believed_at=day(1), true_at=day(1))
    assert (before.text, before.confidence, before.mention_count) == ("A.", 0.6, 1)
    (after,) = await facts_as_of(db.conn, MINE, believed_at=two.decided_at, true_at=two.decided_at)
    assert after.text == "B."
    (old,) = await facts_as_of(db.conn, MINE, believed_at=two.decided_at, true_at=day(0.5))
    assert (old.confidence, old.mention_count, old.status) == (0.7, 3, "superseded")
