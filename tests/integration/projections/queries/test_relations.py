"""What was known of relations at each time to hold at each time, against an oracle that reads the history alone."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemolog.projections.queries.entities import AskedTimes, relations
from mnemolog.projections.queries.scope_filter import ScopeFilter
from mnemolog.schemas.command import Undo
from mnemolog.schemas.commit import Commit
from mnemolog.schemas.entities import Strength
from mnemolog.schemas.scope import Scope
from tests.support.builders.commits import (
    added,
    command_commit,
    commit,
    contradicted,
    day,
    event_id_at,
    fact_id_at,
    merged,
    replaced,
    retracted,
    undone,
)
from tests.support.builders.entity_events import (
    EntityDraft,
    entity_id_at,
    registered,
    relation_ended,
    relation_stated,
    with_entities,
)
from tests.support.builders.sample_logs import reversal
from tests.support.harnesses.projected_database import ProjectedDatabase, database_for_examples

pytestmark = pytest.mark.postgres

FIRST_DAY = 20
OTHERS = ("Ana", "Tom")
KINDS = ("state", "state then", "mention", "mention then", "over", "over", "end", "replace", "deny", "merge", "undo")


@dataclass(frozen=True)
class Told:
    """What a statement told of somebody, in days: that it is so (its strength) or that it is over (since when).

    `fact` is the fact that stands for it, and what that is worth: since when and until when it is true.
    """

    number: int
    who: str
    begins: int
    strength: Strength | None = None
    over: int | None = None
    is_dated: bool = False
    ends: int | None = None
    fact: int = 0


World = dict[int, Told]
"""What is believed after a commit, by the number of the commit that told it."""
Step = tuple[str, int, str, int]
"""What happens, to which of the believed facts, of whom, and a time."""


STEPS = st.lists(
    st.tuples(st.sampled_from(KINDS), st.integers(0, 5), st.sampled_from(OTHERS), st.integers(10, 35)),
    min_size=1,
    max_size=12,
)


class History:
    """Turns steps into commits, and keeps what is believed after each of them."""

    def __init__(self, scope: Scope, steps: Sequence[Step]) -> None:
        self.scope = scope
        first = commit("people", added("Alice knows Ana and Tom."), scope=scope, at=day(FIRST_DAY - 1))
        self._alice = entity_id_at(first)
        self._ids = {name: entity_id_at(first, place) for place, name in enumerate(OTHERS, 1)}
        people = [registered("Alice"), *(registered(name, place=place) for place, name in enumerate(OTHERS, 1))]
        self.commits = [with_entities(first, *people)]
        self.worlds: list[World] = [{}]
        self.undone: set[int] = set()
        for number, (kind, choice, who, time) in enumerate(steps, 1):
            world = dict(self.worlds[-1])
            open_ = [one for one in world.values() if one.ends is None and (kind != "undo" or one.fact == one.number)]
            if not open_ or kind.startswith(("state", "mention", "over")):
                done = self._tell(kind, who, time, number, world)
            else:
                done = self._end(kind, open_[choice % len(open_)], time, number, world)
            self.commits.append(done)
            self.worlds.append(world)

    def _tell(self, kind: str, who: str, time: int, number: int, world: World) -> Commit:
        today = FIRST_DAY + number
        is_dated = kind.endswith("then")
        strength: Strength = "medium" if kind.startswith("mention") else "strong"
        begins = time if is_dated else today
        draft = added(f"Fact {number}.", true_from=day(begins), event_time=day(begins) if is_dated else None)
        if kind == "over":
            world[number] = Told(number, who, begins, over=time, fact=number)
            said: EntityDraft = relation_ended(0, self._alice, "friend", self._ids[who], at=day(time))
        else:
            world[number] = Told(number, who, begins, strength, is_dated=is_dated, fact=number)
            said = relation_stated(0, self._alice, "friend", self._ids[who], strength=strength)
        return with_entities(commit(f"t{number}", draft, scope=self.scope, at=day(today)), said)

    def _end(self, kind: str, target: Told, time: int, number: int, world: World) -> Commit:
        today, text = FIRST_DAY + number, f"Fact {number}."
        fact, ends = fact_id_at(self.commits[target.fact]), max(time, target.begins)
        about = [one.number for one in world.values() if one.fact == target.fact]
        match kind:
            case "end" | "replace":
                world |= {one: replace(world[one], ends=ends) for one in about}
                draft = retracted(fact, ended_at=day(ends))
                if kind == "replace":
                    draft = replaced(text, fact, ended_at=day(ends), true_from=day(ends))
            case "merge":
                world |= {one: replace(world[one], fact=number) for one in about}
                draft = merged(text, fact, true_from=day(target.begins))
            case "undo":
                self.undone.add(target.number)
                del world[target.number]
                source = self.commits[target.number]
                back = undone(event_id_at(source), reversal(fact, "active", None), undone_event="fact_added")
                order = Undo(source_id=source.source_id)
                return command_commit(f"t{number}", order, back, scope=self.scope, at=day(today))
            case _:
                for one in about:
                    del world[one]
                draft = contradicted(text, fact, true_from=day(today))
        return commit(f"t{number}", draft, scope=self.scope, at=day(today))

    def holding(self, world: World, at: int) -> dict[str, set[int]]:
        """With whom there is a friendship on a day, and the statements that say so; undone ones count at no time."""
        world = {number: one for number, one in world.items() if number not in self.undone}
        found: dict[str, set[int]] = {}
        for one in world.values():
            if self._counts(one, world, at):
                found.setdefault(one.who, set()).add(one.number)
        return found

    @staticmethod
    def _counts(one: Told, world: World, at: int) -> bool:
        lasts = one.strength == "medium" or one.ends is None or one.ends > at
        over = [
            other.over
            for other in world.values()
            if other.over is not None
            and other.who == one.who
            and (other.over >= one.begins or (not one.is_dated and other.number > one.number))
        ]
        return one.strength is not None and lasts and one.begins <= at and all(end > at for end in over)


def _days(world: World) -> Iterator[int]:
    """The days on which something begins or ends, the days before, and one in the far future."""
    bounds = {bound for one in world.values() for bound in (one.begins, one.ends, one.over) if bound}
    return iter(sorted({*bounds, *(bound - 1 for bound in bounds), 90}))


async def check(stored: ProjectedDatabase, history: History) -> None:
    await stored.apply(*history.commits)
    scope = ScopeFilter.of_scope(history.scope)
    numbers = {fact_id_at(one): number for number, one in enumerate(history.commits)}
    for number, world in enumerate(history.worlds):
        for at in _days(world):
            as_of = AskedTimes(believed_at=day(FIRST_DAY + number) + timedelta(hours=1), true_at=day(at))
            found = await relations(stored.conn, scope, as_of=as_of)
            shown = {one.object: {numbers[fact] for fact in one.evidence} for one in found}
            assert shown == history.holding(world, at), (number, at)
        everything = await relations(stored.conn, scope, as_of=as_of, all_versions=True)
        assert all(one.until is None or one.since is None or one.since <= one.until for one in everything)
    now = await relations(stored.conn, scope)
    assert {one.object for one in now} == set(history.holding(history.worlds[-1], 10**4))


def test_relations_are_what_the_history_until_then_says(database: str) -> None:
    numbers = itertools.count()
    with database_for_examples(database) as (db, run):

        @settings(max_examples=25)
        @given(STEPS)
        def check_steps(steps: list[Step]) -> None:
            run(check(db, History(Scope(user_id=f"user-{next(numbers)}"), steps)))

        check_steps()
