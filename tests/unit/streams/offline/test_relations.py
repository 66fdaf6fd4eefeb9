"""The relations that the offline rules read, in their clear cases."""

import pytest

from mnemolog.schemas.entities import WORDS, read_predicate
from mnemolog.schemas.stored import EarlierMessage
from mnemolog.streams.offline.extract import read_turn
from tests.support.builders.hits import AT
from tests.support.builders.prompts import turn, user

Triples = list[tuple[str, str, str]]


def said(text: str) -> list[tuple[str, Triples]]:
    """The hints of the facts of a sentence of Alice's, with their relations."""
    facts, _ = read_turn(turn(user(text), speaker="Alice"))
    return [(fact.action_hint, [(one.subject, one.predicate, one.object) for one in fact.relations]) for fact in facts]


@pytest.mark.parametrize(
    ("text", "triple"),
    [
        ("I work at Acme.", ("Alice", "employer", "Acme")),
        ("I live in Berlin.", ("Alice", "home_city", "Berlin")),
        ("My dog is called Rex.", ("Alice", "dog", "Alice's dog Rex")),
        ("My wife is called Ana.", ("Alice", "wife", "Alice's wife Ana")),
        ("Tom is my brother.", ("Alice", "brother", "Alice's brother Tom")),
    ],
)
def test_what_fills_a_slot_is_a_relation(text: str, triple: tuple[str, str, str]) -> None:
    ((hint, relations),) = said(text)
    assert (hint, relations) == ("new", [triple])


@pytest.mark.parametrize(
    ("text", "triple"),
    [
        ("Ana is no longer my wife.", ("Alice", "wife", "Alice's wife Ana")),
        ("Ana isn't my boss anymore.", ("Alice", "boss", "Alice's boss Ana")),
        ("I no longer work at Acme.", ("Alice", "employer", "Acme")),
        ("I broke up with my girlfriend.", ("Alice", "girlfriend", "Alice's girlfriend")),
        ("Our old dog died.", ("Alice", "dog", "Alice's dog")),
        ("Ana and I are no longer friends.", ("Alice", "friend", "Alice's friend Ana")),
    ],
)
def test_what_is_over_is_a_relation_of_a_retraction(text: str, triple: tuple[str, str, str]) -> None:
    ((hint, relations),) = said(text)
    assert (hint, relations) == ("retract", [triple])


@pytest.mark.parametrize(
    ("text", "predicates", "name"),
    [
        ("Olga and I broke up.", {"partner"}, "Olga"),
        ("Ines and I got divorced.", {"partner", "spouse"}, "Ines"),
        ("Minka died on Friday.", {"owns"}, "Minka"),
    ],
)
def test_who_is_lost_is_named_alone(text: str, predicates: set[str], name: str) -> None:
    """Whatever they were of what the words may end."""
    (fact,) = read_turn(turn(user(text), speaker="Alice"))[0]
    assert fact.action_hint == "retract"
    assert {WORDS[one.predicate].predicate.name for one in fact.relations} == predicates
    assert len(fact.relations) == len(predicates)
    assert {one.object for one in fact.relations} == {name}
    assert name in {entity.name for entity in fact.entities}


@pytest.mark.parametrize(
    "text",
    [
        *("I think Ana is no longer my wife.", "Tom said she is no longer my boss.", "Maybe Olga and I broke up."),
        *("We broke up.", "Olga and I broke up the ice.", "Ana is not my wife.", "Ana and I are not friends."),
        *("Ana and Eva are no longer friends.", "Ana is no longer my wife's boss.", "My wife Ana sings."),
        *("My brother no longer smokes.", "I like Berlin.", "If I worked at Acme, I would cry."),
    ],
)
def test_what_is_doubtful_or_said_of_others_is_no_relation(text: str) -> None:
    assert [fact.relations for fact in read_turn(turn(user(text), speaker="Alice"))[0] if fact.relations] == []


@pytest.mark.parametrize(
    ("text", "tie", "names"),
    [
        ("My kids Leo and Mia have chickenpox.", "children", ("Leo", "Mia")),
        ("My sons Leo, Max and Tim have chickenpox.", "sons", ("Leo", "Max", "Tim")),
        ("My parents Eva and Karl are visiting.", "parents", ("Eva", "Karl")),
    ],
)
def test_members_of_a_group_are_what_the_group_is(text: str, tie: str, names: tuple[str, ...]) -> None:
    ((hint, relations),) = said(text)
    assert (hint, relations) == ("new", [("Alice", tie, name) for name in names])
    assert read_predicate(tie) is not None
    assert said("My kids Leo and Mia no longer live with me.") == [("retract", [])]


ANA = "Alice's wife Ana Keller"
EMPLOYER, HOME = (ANA, "employer", "Siemens"), (ANA, "lives_in", "Bonn")


@pytest.mark.parametrize(
    ("text", "triples"),
    [
        ("She works at Siemens.", [EMPLOYER]),
        ("And she lives in Bonn.", [HOME]),
        ("She works at Siemens and lives in Bonn.", [EMPLOYER, HOME]),
        ("She works at Siemens in Paris. She lives in Bonn.", [EMPLOYER, HOME]),
        ("She no longer works at Siemens.", [EMPLOYER]),
        ("Maybe she works at Siemens.", []),
        ("He works at Siemens.", []),
        ("She says my brother works at Siemens.", []),
        ("She works for Tina. She lives in Bonn.", [(ANA, "employer", "Tina")]),
        ("I think she no longer works at Siemens.", []),
    ],
)
def test_a_pronoun_has_the_relations_of_the_person_whom_it_means(text: str, triples: Triples) -> None:
    """Whether the person was named in the same message or in one before the turn."""
    wife = "My wife is called Ana Keller."
    before = [EarlierMessage(turn_id="t0", role="user", content=wife, at=AT)]
    named, _ = read_turn(turn(user(f"{wife} {text}"), speaker="Alice"))
    later, _ = read_turn(turn(user(text), speaker="Alice"), before)
    for facts in (named[1:], later):
        found = [(one.subject, one.predicate, one.object) for fact in facts for one in fact.relations]
        assert found == triples
        assert {fact.subject for fact in facts if fact.relations} <= {ANA}


@pytest.mark.parametrize(
    ("text", "triples"),
    [
        ("Tom works at Acme.", [("Tom", "employer", "Acme")]),
        ("Tom Meyer no longer lives in Ulm.", [("Tom Meyer", "lives_in", "Ulm")]),
        ("Everyone works at Acme.", []),
        ("Inka works at Acme.", []),
        ("Monday works for Tom.", []),
        ("Tom says Ben works at Acme.", []),
    ],
)
def test_who_is_named_clearly_works_and_lives_somewhere(text: str, triples: Triples) -> None:
    (fact,) = read_turn(turn(user(text), speaker="Alice"))[0]
    assert [(one.subject, one.predicate, one.object) for one in fact.relations] == triples
    types = {"Acme": "organisation", "Ulm": "place"}
    assert all(types[one.object] in {entity.type for entity in fact.entities} for one in fact.relations)
