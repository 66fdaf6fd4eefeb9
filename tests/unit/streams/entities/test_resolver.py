"""Each step that finds the entity of a name: what it finds, what it leaves apart, and what it leaves in doubt."""

import tomllib
from collections import Counter
from collections.abc import Iterator
from itertools import product
from time import process_time
from typing import Literal
from uuid import UUID

import pytest

from mnemolog.schemas.entities import (
    MAX_ENTITIES,
    SAME_AS,
    Alias,
    EntityType,
    KnownEntity,
    NamedEntity,
    NamedRelation,
    ResolutionStep,
)
from mnemolog.schemas.facts import ExtractedFact
from mnemolog.streams.commands.context import CommandRefusedError
from mnemolog.streams.commands.entities import given_alias
from mnemolog.streams.entities.links import TurnEntities
from mnemolog.streams.entities.names import compare_names, name_key
from mnemolog.streams.entities.resolver import EntityRegistry, NameContext
from tests.support.harnesses.entity_talk import EntityTalk
from tests.support.paths import ROOT

Expected = tuple[str | None, ResolutionStep, int]
CONTEXT = NameContext(owner="default/alice", source_id="c1")
FOLDER = ROOT / "tests/data/entity_steps"
STEPS = sorted(path.stem for path in FOLDER.glob("*.toml"))
MIN_PAIRS = 30
Verdict = Literal["right", "missed", "doubted", "harmful"]
BASELINE: dict[tuple[str, int], dict[Verdict, int]] = {
    ("alias", 0): {"right": 17, "missed": 1, "harmful": 1},
    ("alias", 1): {"right": 17, "harmful": 1},
    ("diminutive", 0): {"right": 15, "missed": 2},
    ("diminutive", 1): {"right": 16, "missed": 1},
    ("exact", 0): {"right": 23, "missed": 1},
    ("exact", 1): {"right": 21, "missed": 1, "doubted": 2},
    ("prefix", 0): {"right": 35, "doubted": 1},
    ("prefix", 1): {"right": 35, "doubted": 1},
    ("tie", 0): {"right": 23},
    ("tie", 1): {"right": 23},
}
"""Measured; the errors are listed where it fails. An improvement is written here too."""


def pairs(step: str) -> Iterator[tuple[int, EntityType, str, str, str]]:
    """The half of each pair (0 for tuning, 1 for testing), the type, who is known, the name and the outcome."""
    for kind, lines in tomllib.loads((FOLDER / f"{step}.toml").read_text()).items():
        for place, line in enumerate(lines):
            known, name, outcome = line.split(" | ")
            yield place % 2, kind, known, name, outcome


def outcome_of(known: str, name: str, kind: EntityType) -> str:
    """Whether a name is the first who is known, may be one of them, or is neither."""
    talk = EntityTalk()
    for one in known.split("; "):
        own, *others = one.split(" = ")  # named by the first of the names, and told to have the others
        told = tuple(NamedRelation(subject=own, predicate=SAME_AS, object=other) for other in others)
        entities = (NamedEntity(name=own, type=kind, role="object"),)
        text = f"Fact {talk.turns}."
        talk.tell(ExtractedFact(text=text, excerpt="said", search_text="", entities=entities, relations=told))
    first = next(one.entity_id for one in talk.known.values() if not one.keys("user"))
    before = set(talk.known)
    _, link = talk.say(name, kind=kind)
    if link.entity_id in before:
        return "same" if link.entity_id == first else "another"
    return "twin" if talk.known[link.entity_id].possible_twins else "apart"


def verdict(expected: str, found: str) -> Verdict:
    """A wrong merge does harm; to miss or to doubt one costs a link."""
    if found == expected:
        return "right"
    if found in ("same", "another"):
        return "harmful"
    return "doubted" if found == "twin" else "missed"


@pytest.mark.parametrize("half", [0, 1])
@pytest.mark.parametrize("step", STEPS)
def test_a_step_is_as_right_as_it_was_on_labelled_pairs(step: str, half: int) -> None:
    labelled = list(pairs(step))
    assert len({pair[1:4] for pair in labelled}) == len(labelled) >= MIN_PAIRS
    assert {outcome for *_, outcome in labelled} == {"same", "twin", "apart"}
    wrong: list[str] = []
    counts: Counter[Verdict] = Counter()
    for _, kind, known, name, expected in (pair for pair in labelled if pair[0] == half):
        found = outcome_of(known, name, kind)
        counts[verdict(expected, found)] += 1
        if found != expected:
            wrong.append(f"{known} | {name}: {found}, not {expected}")
    assert dict(counts) == BASELINE[step, half], wrong


def step_of(known: list[str], name: str, *, kind: EntityType = "person") -> Expected:
    """What a name means after others were said: the entity's name, how it was found, and how many twins it has."""
    talk = EntityTalk()
    for one in known:
        talk.say(one, kind=kind)
    before = set(talk.known)
    _, link = talk.say(name, kind=kind)
    entity = talk.known[link.entity_id]
    return (entity.name if link.entity_id in before else None), link.step, len(entity.possible_twins)


def test_names_of_different_types_are_different() -> None:
    talk = EntityTalk()
    talk.say("Paris", "Reykjavik", kind="place")
    _, link = talk.say("Paris", kind="person")
    assert link.step == "new"
    assert {entity.type for entity in talk.known.values() if entity.name == "Paris"} == {"place", "person"}
    assert talk.say("Reyjkavik", kind="organisation")[1].step == "new"
    assert talk.say("Reyjkavik", kind="place")[1].step == "fuzzy"
    talk.say("John Miller", kind="organisation")
    _, link = talk.say("Jonh", kind="other")
    assert talk.known[link.entity_id].possible_twins == ()


def test_what_one_name_brings_is_an_alias_from_then_on() -> None:
    talk = EntityTalk()
    for name in ("Robert", "Bob", "my brother Bob"):
        talk.say(name)
    _, link = talk.say("my brother")
    assert (talk.known[link.entity_id].name, link.step) == ("Robert", "tie")
    assert talk.say("bob")[1].step == "alias"
    talk.say("Jonathan Miller")
    assert [talk.say("Jonahtan Miller")[1].step for _ in range(2)] == ["fuzzy", "alias"]


def test_the_tie_is_that_of_who_speaks() -> None:
    talk = EntityTalk(user_names=("Alice",))
    talk.say("my wife Ana", speaker="Alice")
    _, bobs = talk.say("my wife", speaker="Bob")
    assert bobs.step == "new"
    assert talk.say("my wife", speaker="Bob")[1].entity_id == bobs.entity_id
    assert talk.known[talk.say("Alice's wife", speaker="Bob")[1].entity_id].name == "Ana"


def test_who_owns_a_tie_is_linked_as_well() -> None:
    talk = EntityTalk()
    links = talk.say("Tom's wife Ana")
    assert [(talk.known[link.entity_id].name, link.role) for link in links] == [
        ("the user", "subject"),
        ("Ana", "object"),
        ("Tom", "mention"),
    ]


# Names that users of other memory layers saw joined, or kept as two, against their will.
TWO = [
    ("Iran", "place", "Tigran", "person"),  # vectorize-io/hindsight#3751
    ("Room 101", "place", "Room 102", "place"),  # vectorize-io/hindsight#4642
    ("2023 Tax Return", "other", "2024 Tax Return", "other"),
    ("UA123", "event", "UA124", "event"),
    ("Dr John Richardson", "person", "Dr Jane Richardson", "person"),  # vectorize-io/hindsight#4441
    ("Q3 revenue report", "other", "Q4 revenue report", "other"),
    ("Dr Wall", "person", "Dr Waler", "person"),  # vectorize-io/hindsight#3752 joins them; nobody can know
    ("ASR1603", "product", "ASR1605", "product"),  # Graphify-Labs/graphify#878
    ("cranel", "product", "cranelr", "product"),
]
ONE = [
    ("DGIA", "organisation", "DGIA", "organisation"),  # getzep/graphiti#1734: short names, vectors apart
    ("Alice Chen", "person", "Alice", "person"),
    ("José", "person", "Jose", "person"),
    ("İpek", "person", "ipek", "person"),
]


@pytest.mark.parametrize(
    ("one", "kind", "other", "kind_of_other", "number"), [*((*two, 2) for two in TWO), *((*one, 1) for one in ONE)]
)
def test_two_stay_two_and_one_is_one(
    one: str, kind: EntityType, other: str, kind_of_other: EntityType, number: int
) -> None:
    talk = EntityTalk(user_names=("Mira",))
    said = [(one, kind), (other, kind_of_other)] * 2
    links = [link for name, type_ in said for link in talk.say(name, kind=type_)]
    assert len({link.entity_id for link in links if link.role == "object"}) == number
    if kind == kind_of_other and number > 1:  # also in one sentence
        links = list(EntityTalk(user_names=("Mira",)).say(one, other, kind=kind))
        assert len({link.entity_id for link in links if link.role == "object"}) == number


@pytest.mark.parametrize(
    "name", ["!!!", "Dr !!!", "the ...", "Prof. --", "!!! from work", "another ?!", "she", "\u200b", "I", "User", "yo"]
)
def test_text_without_a_name_and_words_for_the_speaker_give_no_alias(name: str) -> None:
    with pytest.raises(CommandRefusedError, match="names nobody"):
        given_alias(name, EntityRegistry(()), CONTEXT)


@pytest.mark.parametrize(
    ("name", "key"),
    [("Dr Ana", "ana"), ("Dr", "dr"), ("Tom from work", "tom (work)"), ("another Tom", "tom (another)")],
)
def test_a_given_alias_has_the_key_of_its_name_without_the_title(name: str, key: str) -> None:
    assert given_alias(name, EntityRegistry(()), CONTEXT).key == key


SIMILAR = tomllib.loads((ROOT / "tests/data/similar_names.toml").read_text())


def similar_names(label: str, half: int) -> Iterator[tuple[EntityType, str, str]]:
    for kind, lines in SIMILAR[label].items():
        for line in lines[half::2]:
            one, _, other = line.partition(" | ")
            yield kind, one, other


@pytest.mark.parametrize("half", [0, 1])
def test_no_two_people_or_things_are_taken_for_one_in_either_order(half: int) -> None:
    for kind, one, other in similar_names("different", half):
        for known, name in ((one, other), (other, one)):
            found, step, _ = step_of([known], name, kind=kind)
            assert (found, step) == (None, "new"), (known, name)


@pytest.mark.parametrize(("half", "merged"), [(0, 5), (1, 7)])
def test_what_is_misspelled_is_found_or_a_possible_twin(half: int, merged: int) -> None:
    labelled = list(similar_names("same", half))
    found = Counter(compare_names(one, other) for _, one, other in labelled)
    assert found == {"same": merged, "doubtful": len(labelled) - merged}
    for _, one, other in labelled:
        assert compare_names(one, other) == compare_names(other, one)


@pytest.mark.parametrize("label", ["same", "different"])
@pytest.mark.parametrize("half", [0, 1])
def test_a_misspelled_name_of_a_type_that_nobody_told_is_that_of_a_possible_twin(half: int, label: str) -> None:
    for kind, one, other in similar_names(label, half):
        for (known, name), first in product(((one, other), (other, one)), (kind, "other")):
            talk = EntityTalk()
            talk.say(known, kind=first)
            _, link = talk.say(name, kind=kind if first == "other" else "other")
            assert link.step == "new", (known, name)
            assert talk.known[link.entity_id].possible_twins or compare_names(one, other) is None, (known, name)


def test_a_clear_slip_of_one_type_is_found_beside_one_of_no_type() -> None:
    talk = EntityTalk()
    talk.say("Jonathan Millar", kind="other")
    talk.say("Jonathan Miller")
    _, link = talk.say("Jonahtan Miller")
    other, found = talk.entity("Jonathan Millar"), talk.entity("Jonathan Miller")
    assert (link.step, link.entity_id, link.compared) == ("fuzzy", found.entity_id, (other.entity_id,))


def test_long_names_and_many_entities_cost_a_turn_little() -> None:
    letters = "abcdefghij"
    names = [f"M{letters[number % 10]}{letters[number // 10 % 10]} {'Xy' * 90}{number}" for number in range(500)]
    known = [
        KnownEntity(
            entity_id=UUID(int=number + 1), name=name, type="person", aliases=(Alias(text=name, key=name_key(name)),)
        )
        for number, name in enumerate(names)
    ]
    said = [f"M{letters[-1 - number % 10]}{'y' * 10_000}"[: 150 + number] for number in range(MAX_ENTITIES)]
    facts = [
        ExtractedFact(
            text=f"Fact {place}.",
            excerpt="it",
            search_text="",
            entities=tuple(NamedEntity(name=f"{name[:-2]}{place}", type="person") for name in said),
        )
        for place in range(5)
    ]
    started = process_time()
    assert TurnEntities.of_facts(facts, known, CONTEXT).new
    assert process_time() - started < 10
