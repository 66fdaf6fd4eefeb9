"""Ends follow the facts that set them: a disbelieved fact leaves what a history without it has.

However values, plans, merges and late news came about; by the entities that facts are about, where these are known.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal
from uuid import UUID

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from mnemolog.schemas.entities import Alias, KnownEntity
from mnemolog.schemas.facts import FactState
from mnemolog.streams.ends import EndRules, move_ends
from tests.support.builders.commits import (
    Draft,
    added,
    commit,
    contradicted,
    corrected,
    day,
    expired,
    fact_id_at,
    merged,
    replaced,
    retracted,
    skipped,
)
from tests.support.harnesses.memory_projection import MemoryProjection, MemoryReader

NOW = 100
"""The day after all arrivals, as a number of days."""


class Teller:
    """Tells facts one after another, as a log without a model: `move_ends` is the only decision about ends."""

    def __init__(self) -> None:
        self.projection = MemoryProjection()
        self._arrivals = 0

    def commit(
        self, source_id: str, draft: Draft, at: datetime | None = None, entity: KnownEntity | None = None
    ) -> UUID | None:
        """The fact that the event brings, about `entity`."""
        self._arrivals += 1
        told = commit(source_id, draft, at=at or day(NOW) + timedelta(minutes=self._arrivals))
        fact_id = fact_id_at(told) if told.events[0].new_fact else None
        if entity is not None and fact_id is not None:
            self.projection.subjects[fact_id] = entity
        rules = EndRules(at=told.decided_at, subject_of=lambda _: entity)
        events = asyncio.run(move_ends(told.events, MemoryReader(self.projection), rules))
        self.projection.append(told.model_copy(update={"events": events}))
        return fact_id

    def state(self, fact_id: UUID) -> FactState:
        return self.projection.state_of(fact_id)

    def states(self) -> dict[UUID, FactState]:
        return {fact_id: self.state(fact_id) for fact_id in self.projection.state.facts}


@dataclass(frozen=True, slots=True)
class Statement:
    """A value of the slot that holds from a day on, or a detail that is merged into what holds."""

    since: int
    is_detail: bool = False


@dataclass(frozen=True, slots=True)
class History:
    """Statements in the order in which they arrive, each with its number; `timer` is after which of them it runs."""

    statements: tuple[Statement, ...]
    timer: int

    @property
    def numbers(self) -> range:
        return range(len(self.statements))


class SlotTeller(Teller):
    """Tells the values of one slot: a simple decision takes the place of a model's."""

    def __init__(self) -> None:
        super().__init__()
        self.fact_ids: dict[int, UUID] = {}

    def tell(self, number: int, statement: Statement) -> None:
        fact_id = self.commit(f"t{number}", self._draft(number, statement))
        assert fact_id is not None
        self.fact_ids[number] = fact_id

    def run_timer(self, at: datetime) -> None:
        for fact_id, state in self.states().items():
            if state.status == "active" and state.true_to is not None and state.true_to <= at:
                self.commit(f"timer-{fact_id}", expired(fact_id, ended_at=state.true_to), at=at)

    def comparable(self) -> dict[UUID, tuple[object, ...]]:
        """Each fact's status, times of truth, belief and successor: all but counters and when it was learned."""
        return {
            fact_id: (
                "ended" if state.status in ("superseded", "expired") and state.believed_to is None else state.status,
                state.true_from,
                state.true_to,
                state.believed_to is None,
                self._standing(state.superseded_by),
                state.unresolved,
            )
            for fact_id, state in self.states().items()
        }

    def _standing(self, fact_id: UUID | None) -> UUID | None:
        """What a fact was merged into stands for it."""
        state = self.states()[fact_id] if fact_id else None
        merged_away = state is not None and state.status == "superseded" and state.believed_to is not None
        return self._standing(state.superseded_by) if state and merged_away else fact_id

    def _draft(self, number: int, statement: Statement) -> Draft:
        since, text = day(statement.since), f"Value {number}."
        slot: dict[str, Any] = {"key": "home_city", "true_from": since}
        believed = {fact_id: state for fact_id, state in self.states().items() if state.believed_to is None}
        begun = {fact_id: state.true_from for fact_id, state in believed.items()}
        last = max(begun, key=lambda fact_id: (begun[fact_id], fact_id), default=None)
        if last is None:
            return added(text, **slot)
        if statement.is_detail and begun[last] <= since:
            return merged(text, last, key="home_city", true_from=begun[last])
        newer = [fact_id for fact_id, began in begun.items() if began > since]
        if newer:
            first = min(newer, key=lambda fact_id: begun[fact_id])
            return added(text, ended_at=begun[first], ended_by=first, **slot)
        return replaced(text, last, ended_at=since, **slot)


DAYS = st.integers(0, 200)  # from 100 on it is a plan
Disbelief = Literal["deleted", "denied", "corrected"]


@st.composite
def histories(draw: st.DrawFn) -> History:
    days = draw(st.lists(DAYS, min_size=2, max_size=7, unique=True))
    details = draw(st.sets(st.sampled_from(range(1, len(days))), max_size=2))
    statements = tuple(Statement(since, is_detail=number in details) for number, since in enumerate(days))
    return History(statements, timer=draw(st.integers(0, len(days))))


def told(history: History, *, without: int | None = None) -> SlotTeller:
    teller = SlotTeller()
    for number, statement in enumerate(history.statements):
        if number != without:
            teller.tell(number, statement)
        if number == history.timer:
            teller.run_timer(day(NOW) + timedelta(hours=1))
    return teller


def disbelieve(fact_id: UUID, how: Disbelief) -> Draft:
    match how:
        case "deleted":
            return retracted(fact_id, ended_at=None)
        case "denied":
            return contradicted("It is not so.", fact_id, key="home_city", action_hint="retract")
        case "corrected":
            return corrected("It never was.", fact_id, key="home_city", action_hint="retract")


@settings(max_examples=300, deadline=None)
@given(histories(), st.data(), st.sampled_from(["deleted", "denied", "corrected"]))
def test_disbelieving_a_fact_leaves_what_a_history_without_it_has(
    history: History, data: st.DataObject, how: Disbelief
) -> None:
    number = data.draw(st.sampled_from(history.numbers), label="disbelieved")
    assume(not any(one.is_detail for one in history.statements[number:]))  # what was merged goes with it
    teller = told(history)
    gone = teller.fact_ids[number]
    assume(teller.state(gone).status == "active")
    teller.commit("disbelief", disbelieve(gone, how), at=day(NOW) + timedelta(hours=2))
    denial = {fact_id for fact_id in teller.states() if fact_id not in teller.fact_ids.values()}
    found = {one: state for one, state in teller.comparable().items() if one not in {gone, *denial}}
    assert found == told(history, without=number).comparable()


@settings(max_examples=200, deadline=None)
@given(histories().filter(lambda history: not any(one.is_detail for one in history.statements)))
def test_values_end_each_other_in_the_same_way_in_every_order(history: History) -> None:
    def lines(statements: Sequence[tuple[int, Statement]]) -> dict[int, tuple[object, ...]]:
        teller = SlotTeller()
        for number, statement in statements:
            teller.tell(number, statement)
        numbers = {fact_id: number for number, fact_id in teller.fact_ids.items()}
        states = {numbers[fact_id]: state for fact_id, state in teller.states().items()}
        return {
            number: (state.true_to, state.superseded_by and numbers[state.superseded_by])
            for number, state in states.items()
        }

    in_order = sorted(enumerate(history.statements), key=lambda one: one[1].since)
    assert lines(list(enumerate(history.statements))) == lines(in_order)


@given(st.integers(0, 40), st.integers(41, 80), st.integers(0, 99))
@example(0, 50, 20)
def test_a_late_repetition_moves_a_beginning_and_the_end_before_it(first: int, second: int, again: int) -> None:
    assume(again < second)
    teller = SlotTeller()
    teller.tell(0, Statement(first))
    teller.tell(1, Statement(second))
    old, new = teller.fact_ids[0], teller.fact_ids[1]
    teller.commit("late", skipped(new, true_from=day(again)))
    begins = day(again if again > first else second)  # else the first value was said in between
    assert (teller.state(old).true_to, teller.state(new).true_from) == (begins, begins)


@pytest.mark.parametrize(("value", "begins"), [("Rome", 20), ("Oslo", 7)])
def test_a_value_that_ended_and_returned_keeps_both_times(value: str, begins: int) -> None:
    """Rome until the 10th, and a value since the 20th that is told again for the 7th."""
    teller = Teller()
    slot: dict[str, Any] = {"key": "home_city", "single_valued": True}
    old = teller.commit("t0", added("Home 1.", value="Rome", true_from=day(3), **slot))
    assert old is not None
    teller.commit("t1", retracted(old, ended_at=day(10)))
    new = teller.commit("t2", added("Home 2.", value=value, true_from=day(20), **slot))
    assert new is not None
    teller.commit("late", skipped(new, true_from=day(7)))
    assert teller.state(new).true_from == day(begins)
    assert teller.state(old).true_to == day(min(begins, 10))


def person(number: int, *names: str, twins: Sequence[int] = ()) -> KnownEntity:
    aliases = tuple(Alias(text=name, key=name.casefold()) for name in names)
    possible = tuple(UUID(int=twin) for twin in twins)
    return KnownEntity(
        entity_id=UUID(int=number), name=names[0], type="person", aliases=aliases, possible_twins=possible
    )


class PeopleTeller(Teller):
    """Tells homes of people; each ends the one before it of the same person."""

    def __init__(self) -> None:
        super().__init__()
        self.homes: dict[UUID, list[UUID]] = {}

    def say(self, entity: KnownEntity, name: str, since: int) -> UUID:
        """A home since a day: what they lived in then ends with it, or it with what is newer."""
        own = {fact_id: self.state(fact_id) for fact_id in self.homes.get(entity.entity_id, ())}
        begun = {fact_id: state.true_from for fact_id, state in own.items()}
        newer = [one for one in begun if begun[one] > day(since)]
        slot: dict[str, Any] = {"key": "home_city", "single_valued": True, "true_from": day(since), "subject": name}
        held = [one for one, state in own.items() if state.status == "active"]
        if newer:
            first = min(newer, key=lambda one: begun[one])
            draft = added("A home.", ended_at=begun[first], ended_by=first, **slot)
        elif held:
            draft = replaced("A home.", *held, ended_at=day(since), **slot)
        else:
            draft = added("A home.", **slot)
        fact_id = self.commit(f"t{len(self.projection.log)}", draft, entity=entity)
        assert fact_id is not None
        self.homes.setdefault(entity.entity_id, []).append(fact_id)
        return fact_id

    def delete(self, fact_id: UUID) -> None:
        if self.state(fact_id).status == "active":
            self.commit("deletion", retracted(fact_id, ended_at=None))

    def ends_of(self, entity: KnownEntity) -> list[tuple[object, ...]]:
        """Of each of their homes the end, and whether it is unresolved."""
        states = [self.state(fact_id) for fact_id in self.homes[entity.entity_id]]
        return [(state.status, state.true_from, state.true_to, state.unresolved) for state in states]


Said = tuple[bool, int]
"""Whether it is of the other one, and since which day; in the order in which it is said."""


def people_after(said: Sequence[Said], say: Callable[[PeopleTeller, bool, int], UUID], deleted: int) -> PeopleTeller:
    people = PeopleTeller()
    facts = [say(people, is_other, since) for is_other, since in said]
    people.delete(facts[deleted])
    return people


@st.composite
def homes(draw: st.DrawFn) -> list[Said]:
    days = draw(st.lists(st.integers(0, NOW - 1), min_size=2, max_size=7, unique=True))
    return [(draw(st.booleans()), since) for since in days]


@settings(max_examples=200, deadline=None)
@given(homes(), st.data(), st.booleans())
def test_facts_of_two_of_one_name_never_move_each_others_ends(
    said: list[Said], data: st.DataObject, may_be_twins: bool
) -> None:
    """What holds of one is what a history without the other one has."""
    one, other = person(1, "Tom"), person(2, "Tom", twins=[1] if may_be_twins else [])
    deleted = data.draw(st.integers(0, len(said) - 1), label="deleted")
    found = people_after(said, lambda people, is_other, at: people.say(other if is_other else one, "Tom", at), deleted)
    for is_other, entity in ((False, one), (True, other)):
        own = [place for place, statement in enumerate(said) if statement[0] is is_other]
        if not own:
            continue
        alone = PeopleTeller()
        facts = {place: alone.say(entity, "Tom", said[place][1]) for place in own}
        if deleted in facts:
            alone.delete(facts[deleted])
        assert found.ends_of(entity) == alone.ends_of(entity)


@settings(max_examples=200, deadline=None)
@given(homes(), st.data())
def test_facts_of_one_under_two_names_move_each_others_ends_as_under_one(said: list[Said], data: st.DataObject) -> None:
    bob = person(1, "Robert", "Bob")
    deleted = data.draw(st.integers(0, len(said) - 1), label="deleted")
    by_two = people_after(said, lambda people, is_other, at: people.say(bob, ("Robert", "Bob")[is_other], at), deleted)
    by_one = people_after(said, lambda people, _, at: people.say(bob, "Robert", at), deleted)
    assert by_two.ends_of(bob) == by_one.ends_of(bob)
