"""The step that finds misspelled names: what it takes for one, what it leaves in doubt, and what that costs."""

import tomllib
from collections import Counter
from collections.abc import Iterator
from itertools import product
from time import process_time

import pytest

from mnemolog.schemas.entities import MAX_ENTITIES, EntityType, NamedEntity, ResolutionStep
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.streams.entities.names import are_first_names_alike, compare_names
from tests.support.harnesses.entity_talk import EntityTalk
from tests.support.paths import ROOT
from tests.unit.streams.entities.test_resolver import step_of

PAIRS = tomllib.loads((ROOT / "tests/data/similar_names.toml").read_text())


def labelled(label: str, half: int) -> Iterator[tuple[EntityType, str, str]]:
    for kind, pairs in PAIRS[label].items():
        for pair in pairs[half::2]:
            one, _, other = pair.partition(" | ")
            yield kind, one, other


@pytest.mark.parametrize("half", [0, 1])
def test_no_two_people_or_things_are_taken_for_one_in_either_order(half: int) -> None:
    for kind, one, other in labelled("different", half):
        for known, name in ((one, other), (other, one)):
            found, step, _ = step_of([known], name, kind=kind)
            assert (found, step) == (None, "new"), (known, name)


def types_of(kind: EntityType) -> list[tuple[EntityType, EntityType]]:
    """The types of two names of which nobody told that of one or both."""
    return [(kind, "other"), ("other", kind)]


@pytest.mark.parametrize("label", ["same", "different"])
@pytest.mark.parametrize("half", [0, 1])
def test_a_name_of_a_type_that_nobody_told_is_that_of_a_possible_twin_at_the_most(half: int, label: str) -> None:
    for kind, one, other in labelled(label, half):
        for (known, name), (first, second) in product(((one, other), (other, one)), types_of(kind)):
            talk = EntityTalk()
            talk.say(known, kind=first)
            _, link = talk.say(name, kind=second)
            twins = talk.known[link.entity_id].possible_twins
            assert link.step == "new", (known, name)
            assert twins or compare_names(one, other) is None, (known, name)


FIRST_NAMES = [(label, *pair.split(" | ")) for label in ("same", "different") for pair in PAIRS["first_names"][label]]


@pytest.mark.parametrize(("label", "first_name", "whole"), FIRST_NAMES)
@pytest.mark.parametrize("types", [("person", "person"), ("person", "other"), ("other", "person")])
def test_a_misspelled_first_name_is_that_of_a_possible_twin(
    label: str, first_name: str, whole: str, types: tuple[EntityType, EntityType]
) -> None:
    for known, name in ((first_name, whole), (whole, first_name)):
        talk = EntityTalk()
        talk.say(known, kind=types[0])
        _, link = talk.say(name, kind=types[1])
        assert link.step == "new"
        assert label == "different" or len(talk.known[link.entity_id].possible_twins) == 1


def test_a_title_alone_is_no_first_name() -> None:
    assert not are_first_names_alike("Dr.", "Drew Miller")
    assert not are_first_names_alike("Drew", "Dr.")


def test_how_many_first_names_of_two_people_are_possible_twins() -> None:
    alike = [are_first_names_alike(one, other) for label, one, other in FIRST_NAMES if label == "different"]
    assert Counter(alike) == {True: 6, False: 2}


def test_a_name_of_another_type_is_compared_with_none() -> None:
    talk = EntityTalk()
    talk.say("John Miller", kind="organisation")
    _, link = talk.say("Jonh", kind="other")
    assert talk.known[link.entity_id].possible_twins == ()


def test_a_clear_slip_of_one_type_is_found_beside_one_of_no_type() -> None:
    talk = EntityTalk()
    talk.say("Jonathan Millar", kind="other")
    talk.say("Jonathan Miller")
    _, link = talk.say("Jonahtan Miller")
    other, found = talk.entity("Jonathan Millar"), talk.entity("Jonathan Miller")
    assert (link.step, link.entity_id, link.compared) == ("fuzzy", found.entity_id, (other.entity_id,))


@pytest.mark.parametrize(("half", "merged"), [(0, 7), (1, 9)])
def test_what_is_misspelled_is_found_or_a_possible_twin(half: int, merged: int) -> None:
    pairs = list(labelled("same", half))
    found = Counter(compare_names(one, other) for _, one, other in pairs)
    assert found == {"same": merged, "doubtful": len(pairs) - merged}
    for _, one, other in pairs:
        assert compare_names(one, other) == compare_names(other, one)


@pytest.mark.parametrize(
    ("known", "name", "expected"),
    [
        (["Jonathan Miller"], "Jonahtan Miller", ("Jonathan Miller", "fuzzy", 0)),
        (["Peter Schmidt"], "Peter Schrnidt", ("Peter Schmidt", "fuzzy", 0)),
        (["Hans Müller"], "Hans Mueller", ("Hans Müller", "fuzzy", 0)),
        (["Hans Mueller"], "Hans Müller", ("Hans Mueller", "fuzzy", 0)),
        (["Dr. Jonathan Miller"], "Jonahtan Miller", ("Dr. Jonathan Miller", "fuzzy", 0)),
        (["Robert Schumacher"], "Robert Schunacher", (None, "new", 1)),
        (["Jonathan Miller from work"], "Jonahtan Miller", (None, "new", 0)),
        (["Elisabeth Goldberg"], "Elisabeth Golkberg", (None, "new", 1)),
        (["Elisabeth Goldberg", "Elisabeth Goltberg"], "Elisabeth Golkberg", (None, "new", 2)),
        (["my brother Jonathan Miller"], "Jonahtan Miller from work", (None, "new", 1)),
        (["Ana Keller"], "Anna Keller", (None, "new", 1)),
        (["Jon"], "John", (None, "new", 1)),
        (["Maria"], "Marie", (None, "new", 1)),
        (["Kirsten"], "Kristen", (None, "new", 1)),
        (["Leila"], "Lelia", (None, "new", 1)),
        (["Homer"], "Horner", (None, "new", 0)),
        (["Tim"], "Tom", (None, "new", 0)),
        (["Christian"], "Christina", (None, "new", 1)),
        (["Mr. Miller"], "Mrs. Miller", (None, "new", 0)),
        (["Kathrin"], "Cathrin", (None, "new", 0)),
        (["Jonathan"], "Nathan", (None, "new", 0)),
    ],
)
def test_only_a_clear_slip_is_the_same_person(
    known: list[str], name: str, expected: tuple[str | None, ResolutionStep, int]
) -> None:
    assert step_of(known, name) == expected


def test_a_misspelled_name_is_that_of_one_type_alone() -> None:
    talk = EntityTalk()
    talk.say("Reykjavik", kind="place")
    assert talk.say("Reyjkavik", kind="organisation")[1].step == "new"
    assert talk.say("Reyjkavik", kind="place")[1].step == "fuzzy"


def test_a_misspelled_name_is_an_alias_from_then_on() -> None:
    talk = EntityTalk()
    talk.say("Jonathan Miller")
    assert [talk.say("Jonahtan Miller")[1].step for _ in range(2)] == ["fuzzy", "alias"]


def test_long_names_and_many_entities_cost_a_turn_little() -> None:
    talk = EntityTalk()
    first = "abcdefghij"
    for number in range(500):
        talk.say(f"M{first[number % 10]}{first[number // 10 % 10]}{first[number // 100]} {'Xy' * 90}")
    names = [f"M{first[-1 - number % 10]}{'y' * 10_000}"[: 150 + number] for number in range(MAX_ENTITIES)]
    facts = [
        ExtractedFact(
            text=f"Fact {place}.",
            excerpt="it",
            search_text="",
            entities=tuple(NamedEntity(name=f"{name[:-2]}{place}", type="person") for name in names),
        )
        for place in range(5)
    ]
    started = process_time()
    talk.tell(*facts)
    assert process_time() - started < 10
