"""What was known at each time to be true at each time, against a small oracle that knows no state of the tables."""

import asyncio
import itertools
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mnemolog.projections.queries.facts import facts, facts_as_of
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.facts import MovedEnd
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import (
    Draft,
    added,
    commit,
    contradicted,
    day,
    expired,
    fact_id_at,
    replaced,
    retracted,
    skipped,
)
from tests.support.harnesses.projected_database import ProjectedDatabase

pytestmark = pytest.mark.postgres

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


def steps() -> st.SearchStrategy[list[Step]]:
    kinds = st.sampled_from(["add", "replace", "deny", "delete", "repeat", "expire"])
    return st.lists(st.tuples(kinds, st.integers(0, 5), TIMES), min_size=1, max_size=LAST_DAY - FIRST_DAY)


class Oracle:
    """Turns steps into commits, and keeps what is believed after each of them."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._ids: dict[int, UUID] = {}
        self.commits: list[Commit] = []
        self.worlds: list[World] = []

    def take(self, steps: Sequence[Step]) -> None:
        world: World = {}
        for number, (kind, choice, time) in enumerate(steps):
            now = FIRST_DAY + number
            still = [one for one in world.values() if one.ends is None or one.ends > now]
            target = still[choice % len(still)] if still else None
            draft, world = self._step(kind if target else "add", target, time, number, dict(world))
            committed = commit(f"t{number}", draft, scope=self._scope, at=day(now))
            self._ids[number] = fact_id_at(committed)
            self.commits.append(committed)
            self.worlds.append(world)

    def _step(self, kind: str, target: Held | None, time: int, number: int, world: World) -> tuple[Draft, World]:
        if target is None or kind == "add":
            world[number] = Held(number, time)
            return added(f"Fact {number}.", true_from=day(time)), world
        target_id, ended_at = self._ids[target.number], max(time, target.begins)
        match kind:
            case "replace":
                world |= {
                    target.number: replace(target, ends=ended_at, ended_by=number),
                    number: Held(number, ended_at),
                }
                return replaced(f"Fact {number}.", target_id, ended_at=day(ended_at), true_from=day(ended_at)), world
            case "repeat":
                world[target.number] = replace(target, begins=min(target.begins, time))
                said = skipped(target_id)
                return (lambda place: said(place).model_copy(update={"true_from": day(time)})), world
            case "expire":
                world[target.number] = replace(target, ends=ended_at)
                return expired(target_id, ended_at=day(ended_at)), world
        del world[target.number]
        reopened = [one for one in world.values() if one.ended_by == target.number]
        world |= {one.number: replace(one, ends=None, ended_by=None) for one in reopened}
        moved = tuple(MovedEnd(fact_id=self._ids[one.number], ender=target_id) for one in reopened)
        if kind == "delete":
            return _with_moved(retracted(target_id, ended_at=None), moved), world
        world[number] = Held(number, time)
        return _with_moved(contradicted(f"Fact {number}.", target_id, true_from=day(time)), moved), world


def _with_moved(draft: Draft, moved: tuple[MovedEnd, ...]) -> Draft:
    return lambda place: draft(place).model_copy(update={"moved_ends": moved})


def _true(world: World, at: int) -> set[str]:
    """The facts that are true on a day, by their texts."""
    return {f"Fact {one.number}." for one in world.values() if one.begins <= at and (one.ends is None or one.ends > at)}


def _instants(worlds: Sequence[World]) -> Iterator[int]:
    """The days on which something begins or ends, and the days before."""
    bounds = {bound for world in worlds for one in world.values() for bound in (one.begins, one.ends) if bound}
    return iter(sorted({*bounds, *(bound - 1 for bound in bounds)}))


async def check(stored: ProjectedDatabase, oracle: Oracle, scope: Scope) -> None:
    await stored.apply(*oracle.commits)
    filtered = ScopeFilter(user_id=scope.user_id)
    for number, world in enumerate(oracle.worlds):
        believed_at = day(FIRST_DAY + number) + timedelta(hours=1)
        for true_at in _instants(oracle.worlds[number : number + 1]):
            found = await facts_as_of(stored.conn, filtered, believed_at=believed_at, true_at=day(true_at))
            assert {fact.text for fact in found} == _true(world, true_at), (number, true_at)
    end = FIRST_DAY + len(oracle.worlds)
    for now in (end, end + 5, end + 30):
        listed = [fact.fact_id for fact in await facts(stored.conn, filtered, at=day(now)) if not fact.begins_later]
        known = await facts_as_of(stored.conn, filtered, believed_at=day(now), true_at=day(now))
        assert listed == [fact.fact_id for fact in known]


def test_as_of_is_what_the_commits_until_then_say(database: str) -> None:
    numbers = itertools.count()
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        stored = runner.run(stack.enter_async_context(ProjectedDatabase.open(database)))

        @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(steps())
        def check_steps(taken: list[Step]) -> None:
            scope = Scope(user_id=f"user-{next(numbers)}")
            oracle = Oracle(scope)
            oracle.take(taken)
            runner.run(check(stored, oracle, scope))

        try:
            check_steps()
        finally:
            runner.run(stack.aclose())
