"""Ends move by the entities that facts are about, where these are known, and by names elsewhere."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from mnemolog.schemas.entities import Alias, KnownEntity
from mnemolog.schemas.facts import FactState
from mnemolog.streams.ends import EndRules, move_ends
from tests.support.builders.commits import Draft, added, commit, day, fact_id_at, replaced, retracted
from tests.support.harnesses.memory_projection import MemoryProjection, MemoryReader

NOW = 100


def person(number: int, *names: str, twins: Sequence[int] = ()) -> KnownEntity:
    aliases = tuple(Alias(text=name, key=name.casefold()) for name in names)
    possible = tuple(UUID(int=twin) for twin in twins)
    return KnownEntity(
        entity_id=UUID(int=number), name=names[0], type="person", aliases=aliases, possible_twins=possible
    )


@dataclass
class People:
    """Homes of people, as they are told one after another; each ends the one before it of the same person."""

    projection: MemoryProjection = field(default_factory=MemoryProjection)
    homes: dict[UUID, list[UUID]] = field(default_factory=dict)

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
        fact_id = self.commit(draft, entity)
        self.homes.setdefault(entity.entity_id, []).append(fact_id)
        return fact_id

    def commit(self, draft: Draft, entity: KnownEntity | None = None) -> UUID:
        at = day(NOW) + timedelta(minutes=len(self.projection.log))
        told = commit(f"t{len(self.projection.log)}", draft, at=at)
        fact_id = fact_id_at(told) if told.events[0].new_fact else UUID(int=0)
        if entity is not None:
            self.projection.subjects[fact_id] = entity
        rules = EndRules(at=told.decided_at, subject_of=lambda _: entity)
        events = asyncio.run(move_ends(told.events, MemoryReader(self.projection), rules))
        self.projection.append(told.model_copy(update={"events": events}))
        return fact_id

    def state(self, fact_id: UUID) -> FactState:
        return self.projection.state_of(fact_id)

    def ends_of(self, entity: KnownEntity) -> list[tuple[object, ...]]:
        """Of each of their homes the end, and whether it is unresolved."""
        states = [self.state(fact_id) for fact_id in self.homes[entity.entity_id]]
        return [(state.status, state.true_from, state.true_to, state.unresolved) for state in states]


Told = tuple[bool, int]
"""Whether it is of the other one, and since which day; in the order in which it is said."""


def told(statements: Sequence[Told], say: Callable[[People, bool, int], object], deleted: int) -> People:
    people = People()
    facts = [say(people, is_other, since) for is_other, since in statements]
    gone = facts[deleted]
    assert isinstance(gone, UUID)
    if people.state(gone).status == "active":
        people.commit(retracted(gone, ended_at=None))
    return people


@st.composite
def statements(draw: st.DrawFn) -> list[Told]:
    days = draw(st.lists(st.integers(0, NOW - 1), min_size=2, max_size=7, unique=True))
    return [(draw(st.booleans()), since) for since in days]


@settings(max_examples=200, deadline=None)
@given(statements(), st.data(), st.booleans())
def test_facts_of_two_of_one_name_never_move_each_others_ends(
    both: list[Told], data: st.DataObject, may_be_twins: bool
) -> None:
    """What holds of one is what a history without the other one has."""
    one, other = person(1, "Tom"), person(2, "Tom", twins=[1] if may_be_twins else [])
    deleted = data.draw(st.integers(0, len(both) - 1), label="deleted")

    def say(people: People, is_other: bool, since: int) -> UUID:
        return people.say(other if is_other else one, "Tom", since)

    found = told(both, say, deleted)
    for is_other, entity in ((False, one), (True, other)):
        own = [place for place, statement in enumerate(both) if statement[0] is is_other]
        if not own:
            continue
        alone = People()
        facts = {place: alone.say(entity, "Tom", both[place][1]) for place in own}
        if deleted in facts and alone.state(facts[deleted]).status == "active":
            alone.commit(retracted(facts[deleted], ended_at=None))
        assert found.ends_of(entity) == alone.ends_of(entity)


@settings(max_examples=200, deadline=None)
@given(statements(), st.data())
def test_facts_of_one_under_two_names_move_each_others_ends_as_under_one(
    named: list[Told], data: st.DataObject
) -> None:
    bob = person(1, "Robert", "Bob")
    deleted = data.draw(st.integers(0, len(named) - 1), label="deleted")

    def by_two(people: People, is_other: bool, since: int) -> UUID:
        return people.say(bob, "Bob" if is_other else "Robert", since)

    def by_one(people: People, _is_other: bool, since: int) -> UUID:
        return people.say(bob, "Robert", since)

    assert told(named, by_two, deleted).ends_of(bob) == told(named, by_one, deleted).ends_of(bob)
