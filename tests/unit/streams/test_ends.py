"""Ends follow the facts that set them: a disbelieved fact leaves what a history without it has.

However values, plans, merges and late news came about; by the entities that facts are about, where these are known.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, cast
from uuid import UUID

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from mnemolog.schemas import ids
from mnemolog.schemas.entities import KnownEntity
from mnemolog.schemas.facts import FactState
from mnemolog.schemas.provenance import FactSnapshot
from mnemolog.streams.ends import EndRules, may_be_rivals, move_ends
from tests.support.builders.commits import (
    ALICE,
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
    with_decision,
)
from tests.support.builders.decisions import LAST_YEAR, TODAY, known_fact
from tests.support.builders.entities import known_entity
from tests.support.harnesses.memory_projection import MemoryProjection

NOW = 100
"""The day after all arrivals, as a number of days."""


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


class Teller:
    """Tells values of one slot: a simple decision takes the place of a model's, `move_ends` follows the ends."""

    def __init__(self) -> None:
        self.projection = MemoryProjection()
        self.fact_ids: dict[int, UUID] = {}
        self._arrivals = 0

    def tell(
        self, number: int, since: int, *, is_detail: bool = False, of: KnownEntity | None = None, name: str = "Alice"
    ) -> None:
        """A value `of` somebody: it ends the one before it of the same person, or ends with what is newer."""
        own = {one for one in self.fact_ids.values() if self.projection.subjects.get(one) == of}
        believed = {one: state for one, state in self.states().items() if one in own and state.believed_to is None}
        begun = {one: state.true_from for one, state in believed.items()}
        last = max(begun, key=lambda one: (begun[one], one), default=None)
        newer = [one for one, began in begun.items() if began > day(since)]
        text = f"Value {number}."
        slot: dict[str, Any] = {"key": "home_city", "single_valued": True, "subject": name}
        if last is None:
            draft = added(text, true_from=day(since), **slot)
        elif is_detail and begun[last] <= day(since):
            draft = merged(text, last, true_from=begun[last], **slot)
        elif newer:
            first = min(newer, key=lambda one: begun[one])
            draft = added(text, ended_at=begun[first], ended_by=first, true_from=day(since), **slot)
        else:
            draft = replaced(text, last, ended_at=day(since), true_from=day(since), **slot)
        fact_id = self.commit(f"t{number}", draft, of=of)
        assert fact_id is not None
        self.fact_ids[number] = fact_id

    def commit(
        self, source_id: str, *drafts: Draft, at: datetime | None = None, of: KnownEntity | None = None
    ) -> UUID | None:
        """The fact that the first event brings."""
        self._arrivals += 1
        told = commit(source_id, *drafts, at=at or day(NOW) + timedelta(minutes=self._arrivals))
        fact_id = fact_id_at(told) if told.events[0].new_fact else None
        if of is not None and fact_id is not None:
            self.projection.subjects[fact_id] = of
        rules = EndRules(at=told.decided_at, subject_of=lambda _: of)
        events = asyncio.run(move_ends(told.events, cast("Any", self.projection.reader), rules))
        self.projection.append(told.model_copy(update={"events": events}))
        return fact_id

    def delete(self, number: int) -> None:
        fact_id = self.fact_ids[number]
        if self.states()[fact_id].status == "active":
            self.commit("deletion", retracted(fact_id, ended_at=None))

    def run_timer(self, at: datetime) -> None:
        for fact_id, state in self.states().items():
            if state.status == "active" and state.true_to is not None and state.true_to <= at:
                self.commit(f"timer-{fact_id}", expired(fact_id, ended_at=state.true_to), at=at)

    def states(self) -> dict[UUID, FactState]:
        return {fact_id: self.projection.state_of(fact_id) for fact_id in self.projection.state.facts}

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


DAYS = st.integers(0, 200)  # from 100 on it is a plan
Disbelief = Literal["deleted", "denied", "corrected"]


@st.composite
def histories(draw: st.DrawFn) -> History:
    days = draw(st.lists(DAYS, min_size=2, max_size=7, unique=True))
    details = draw(st.sets(st.sampled_from(range(1, len(days))), max_size=2))
    statements = tuple(Statement(since, is_detail=number in details) for number, since in enumerate(days))
    return History(statements, timer=draw(st.integers(0, len(days))))


def told(history: History, *, without: int | None = None) -> Teller:
    teller = Teller()
    for number, statement in enumerate(history.statements):
        if number != without:
            teller.tell(number, statement.since, is_detail=statement.is_detail)
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
    assume(teller.states()[gone].status == "active")
    teller.commit("disbelief", disbelieve(gone, how), at=day(NOW) + timedelta(hours=2))
    denial = {fact_id for fact_id in teller.states() if fact_id not in teller.fact_ids.values()}
    found = {one: state for one, state in teller.comparable().items() if one not in {gone, *denial}}
    assert found == told(history, without=number).comparable()


@settings(max_examples=200, deadline=None)
@given(histories().filter(lambda history: not any(one.is_detail for one in history.statements)))
def test_values_end_each_other_in_the_same_way_in_every_order(history: History) -> None:
    def lines(statements: Sequence[tuple[int, Statement]]) -> dict[int, tuple[object, ...]]:
        teller = Teller()
        for number, statement in statements:
            teller.tell(number, statement.since, is_detail=statement.is_detail)
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
    teller = Teller()
    teller.tell(0, first)
    teller.tell(1, second)
    old, new = teller.fact_ids[0], teller.fact_ids[1]
    teller.commit("late", skipped(new, true_from=day(again)))
    begins = day(again if again > first else second)  # else the first value was said in between
    states = teller.states()
    assert (states[old].true_to, states[new].true_from) == (begins, begins)


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
    states = teller.states()
    assert (states[old].true_to, states[new].true_from) == (day(min(begins, 10)), day(begins))


GUARDED = [
    pytest.param({}, {}, False, id="no guard"),
    pytest.param({"authority": "human"}, {}, True, id="human_word"),
    pytest.param({"category": "health"}, {"confidence": 0.6}, True, id="high_risk"),
    pytest.param({}, {"confidence": 0.4}, True, id="low_confidence"),
    pytest.param({"subject": "Alice Meyer"}, {}, True, id="perhaps of somebody else"),
]


@pytest.mark.parametrize(("known", "said", "is_guarded"), GUARDED)
@pytest.mark.parametrize("way", ["repetition", "import", "late value", "withdrawal"])
def test_each_guard_stands_on_each_end_that_moves(
    way: str, known: dict[str, Any], said: dict[str, Any], *, is_guarded: bool
) -> None:
    """Rome was ended on the 20th by a person; a later statement, or a command, would end it on the 7th, or again."""
    slot: dict[str, Any] = {"key": "home_city", "single_valued": True, "subject": "Alice"}
    teller = Teller()
    rome = teller.commit("t0", added("Home 1.", value="Rome", true_from=day(3), **slot | known))
    assert rome is not None
    oslo = {"value": "Oslo", "true_from": day(20), **slot | said}
    ender = teller.commit("t1", replaced("Home 2.", rome, ended_at=day(20), **oslo))
    assert ender is not None
    match way:
        case "repetition":
            teller.commit("late", skipped(ender, true_from=day(7)))
        case "import":
            before = FactSnapshot(fact_id=ender, text="Home 2.", confidence=0.95, true_from=day(20))
            again = merged("Home 2.", ender, **oslo | {"true_from": day(7)})
            teller.commit("late", with_decision(again, before=(before,)))
        case "late value":
            bern = {"value": "Bern", "true_from": day(7), **slot | said}
            teller.commit("late", added("Home 3.", ended_at=day(20), ended_by=ender, **bern))
        case "withdrawal":
            bern = {"value": "Bern", "true_from": day(30), **slot | said}
            teller.commit("denial", contradicted("Home 3.", ender, **bern))
    state = teller.states()[rome]
    if way == "withdrawal":
        assert (state.true_to, state.unresolved) == ((None, True) if is_guarded else (day(30), False))
    else:
        assert state.true_to == (day(20) if is_guarded else day(7))


Told = Callable[[UUID], Draft]


def _value(text: str, make: Callable[..., Draft], since: int) -> Told:
    """A value of the slot that ends, or denies, the fact told before it."""
    slot: dict[str, Any] = {"key": "home_city", "single_valued": True, "subject": "Alice", "true_from": day(since)}
    ends = {"ended_at": day(since)} if make is replaced else {}
    return lambda before: make(text, before, **ends, **slot)


@pytest.mark.parametrize(
    "told",
    [
        pytest.param((("replace", 5), ("contradict", 5), ("contradict", 5)), id="denied twice"),
        pytest.param((("replace", 5), ("contradict", 6), ("contradict", 7), ("contradict", 8)), id="three times"),
        pytest.param((("replace", 5), ("contradict", 6), ("delete", 6)), id="the last one is withdrawn"),
        pytest.param((("replace", 5), ("contradict", 6), ("replace", 7), ("contradict", 8)), id="and changed again"),
        pytest.param((("replace", 5), ("replace", 6), ("contradict", 6), ("delete", 6)), id="the second change denied"),
    ],
)
def test_ends_move_within_a_commit_as_over_several(told: Sequence[tuple[str, int]]) -> None:
    kinds: dict[str, Callable[..., Draft]] = {"replace": replaced, "contradict": contradicted}
    found = []
    for together in (False, True):
        teller = Teller()
        teller.tell(0, 1)
        last = teller.fact_ids[0]
        drafts: list[Draft] = []
        sources = [("t", place) if together else (f"s{place}", 0) for place in range(len(told))]
        for (kind, since), (source_id, ordinal) in zip(told, sources, strict=True):
            draft = retracted(last) if kind == "delete" else _value(f"Value {since}.", kinds[kind], since)(last)
            last = ids.fact_id(ALICE.owner, source_id, ordinal)
            drafts.append(draft)
            if not together:
                teller.commit(source_id, draft, at=day(NOW))
        if together:
            teller.commit("t", *drafts, at=day(NOW))
        first = teller.states()[teller.fact_ids[0]]
        found.append((first.status, first.true_to, first.unresolved))
    assert found[0] == found[1]


Said = tuple[bool, int]
"""Whether it is of the other one, and since which day; in the order in which it is said."""


@st.composite
def homes(draw: st.DrawFn) -> list[Said]:
    days = draw(st.lists(st.integers(0, NOW - 1), min_size=2, max_size=7, unique=True))
    return [(draw(st.booleans()), since) for since in days]


def after(statements: dict[int, tuple[KnownEntity, str, int]], deleted: int) -> dict[int, tuple[object, ...]]:
    """Of each home, told by its number, the end and whether it is unresolved; the `deleted` one was deleted last."""
    teller = Teller()
    for number, (entity, name, since) in statements.items():
        teller.tell(number, since, of=entity, name=name)
    if deleted in statements:
        teller.delete(deleted)
    states = {number: teller.states()[fact_id] for number, fact_id in teller.fact_ids.items()}
    return {number: (one.status, one.true_from, one.true_to, one.unresolved) for number, one in states.items()}


@settings(max_examples=200, deadline=None)
@given(homes(), st.data(), st.booleans())
def test_facts_of_two_of_one_name_never_move_each_others_ends(
    said: list[Said], data: st.DataObject, may_be_twins: bool
) -> None:
    """What holds of one is what a history without the other one has."""
    one = known_entity("Tom", number=1)
    other = known_entity("Tom", number=2, twins=[one.entity_id] if may_be_twins else [])
    deleted = data.draw(st.integers(0, len(said) - 1), label="deleted")
    both = {place: (other if is_other else one, "Tom", since) for place, (is_other, since) in enumerate(said)}
    found = after(both, deleted)
    for entity in (one, other):
        alone = after({place: told for place, told in both.items() if told[0] == entity}, deleted)
        assert {place: found[place] for place in alone} == alone


@settings(max_examples=200, deadline=None)
@given(homes(), st.data())
def test_facts_of_one_under_two_names_move_each_others_ends_as_under_one(said: list[Said], data: st.DataObject) -> None:
    bob = known_entity("Robert", "Bob", number=1)
    deleted = data.draw(st.integers(0, len(said) - 1), label="deleted")
    by_two = {place: (bob, ("Robert", "Bob")[is_other], since) for place, (is_other, since) in enumerate(said)}
    by_one = {place: (bob, "Robert", since) for place, (_, _, since) in by_two.items()}
    assert after(by_two, deleted) == after(by_one, deleted)


@pytest.mark.parametrize(
    ("other", "are_rivals"),
    [
        pytest.param({"value": "Rome"}, False, id="the same value"),
        pytest.param({"value": "Rome", "text": "Mira's home is in Rome."}, False, id="the same value in other words"),
        pytest.param({"value": "Oslo"}, True, id="another value"),
        pytest.param({}, True, id="a value that is not known"),
        pytest.param({"value": "Rome", "action_hint": "retract"}, True, id="a later end of the value"),
        pytest.param({"value": "Oslo", "key": "employer"}, False, id="another key"),
    ],
)
def test_rivals_are_other_values_of_one_slot(other: dict[str, Any], are_rivals: bool) -> None:
    one = known_fact(key="home_city", value="Rome", true_from=LAST_YEAR)
    found = known_fact(**{"key": "home_city", "true_from": TODAY, **other})
    assert may_be_rivals(one, found, EndRules(at=day(NOW))) == are_rivals
