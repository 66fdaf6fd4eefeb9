"""What follows from a change of who is who, for facts and people at random, against rules told pair by pair."""

from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from mnemolog.schemas.stored import StoredFact
from mnemolog.streams.commands.identity import SubjectChange, consequences
from mnemolog.streams.ends import EndRules
from tests.support.builders.commits import day
from tests.support.builders.stored_facts import stored_fact

SIZE: Final = 6
RULES: Final = EndRules(at=day(9))
PEOPLE: Final = st.lists(st.sampled_from(["Ana", "Annie", "Tom", ""]), min_size=SIZE, max_size=SIZE)
HOMES: Final = st.lists(st.sampled_from(["Bern", "bern", "Oslo"]), min_size=SIZE, max_size=SIZE)
ENDERS: Final = st.lists(st.one_of(st.none(), st.integers(1, SIZE)), min_size=SIZE, max_size=SIZE)


def fact_at(place: int, home: str, ender: int | None) -> StoredFact:
    """A home since a day, and until another one of a later place where there is one."""
    ends: dict[str, Any] = (
        {} if ender is None else {"status": "superseded", "true_to": day(ender), "superseded_by": UUID(int=ender)}
    )
    fact = stored_fact(value=home, single_valued=True, true_from=day(place), **ends)
    return replace(fact, fact_id=UUID(int=place))


def known_as(people: list[str]) -> dict[UUID, UUID | None]:
    return {UUID(int=place): UUID(bytes=one.ljust(16).encode()) if one else None for place, one in enumerate(people)}


@settings(max_examples=200, deadline=None)
@given(PEOPLE, PEOPLE, HOMES, ENDERS)
def test_ends_and_questions_follow_whom_facts_are_about(
    before: list[str], after: list[str], homes: list[str], enders: list[int | None]
) -> None:
    later = [ender if ender is not None and place < ender < SIZE else None for place, ender in enumerate(enders)]
    facts = [fact_at(place, home, ender) for place, (home, ender) in enumerate(zip(homes, later, strict=True))]
    change = SubjectChange(facts={one.fact_id: one for one in facts}, before=known_as(before), after=known_as(after))
    found = consequences(change, RULES)
    parted: set[int] = set()
    asked: dict[int, set[int]] = {}
    for one in range(SIZE):
        for other in range(one + 1, SIZE):
            now = [after[one], after[other]]
            if "" in now:
                continue
            was_one = before[one] == before[other] or "" in (before[one], before[other])
            if later[one] == other and was_one and now[0] != now[1]:
                parted.add(one)
            is_open = later[one] is None and later[other] is None
            if is_open and not was_one and now[0] == now[1] and homes[one].lower() != homes[other].lower():
                asked.setdefault(other, set()).add(one)
    assert {one.int: ender.int for one, ender in found.parted.items()} == {one: later[one] for one in parted}
    assert {mark.fact_id.int: {one.int for one in mark.beside} for mark in found.marks} == asked
    assert {one.int: state.unresolved for one, state in found.states.items()} == dict.fromkeys(asked, True)


def test_an_end_has_its_former_date_where_its_ender_is_of_the_entity_again() -> None:
    facts = {one.fact_id: one for one in (fact_at(0, "Bern", 2), fact_at(1, "Oslo", 2), fact_at(2, "Rome", None))}
    by_former = fact_at(0, "Bern", 1).state
    before, after = known_as(["Ana", "Tom", "Ana"]), known_as(["Ana"] * 3)
    earlier = {UUID(int=0): [("subjects_changed", by_former)]}
    found = consequences(SubjectChange(facts=facts, before=before, after=after, earlier=earlier), RULES)
    assert found.states[UUID(int=0)] == by_former


def test_a_key_of_many_values_asks_nothing_and_takes_no_time() -> None:
    facts = [replace(fact_at(place, str(place), None), fact_id=UUID(int=place)) for place in range(3000)]
    many = {
        one.fact_id: replace(one, fact=one.fact.model_copy(update={"key": "likes", "single_valued": False}))
        for one in facts
    }
    before = {one: UUID(int=one.int % 2) for one in many}
    found = consequences(SubjectChange(facts=many, before=before, after=dict.fromkeys(many, UUID(int=0))), RULES)
    assert (found.marks, found.states) == ([], {})
