"""Names, ties, other names and relations in a sentence are found in the clear cases, and nowhere else."""

import pytest

from mnemolog.schemas.entities import MAX_NAME
from mnemolog.streams.llm.extract_reply import names_of_value
from mnemolog.streams.offline.extract import read_turn, sentence_entities
from tests.support.builders.prompts import turn, user


def found(said: str, subject: str | None = "Alice") -> list[tuple[str, str, str]]:
    return [(one.name, one.type, one.role) for one in sentence_entities(said, subject)]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("My brother Tom moved out.", [("Alice's brother Tom", "person", "object")]),
        ("I walked our dog with my wife.", [("Alice's dog", "animal", "object"), ("Alice's wife", "person", "object")]),
        ("I had lunch with Tom from work.", [("Tom from work", "person", "object")]),
        ("I met Inka Keller in Berlin.", [("Inka Keller", "other", "mention"), ("Berlin", "place", "mention")]),
        ("I met Liz Keller.", [("Liz Keller", "person", "mention")]),
        ("Tom called.", [("Tom", "other", "mention")]),
        ("Dinner was late.", []),
        ("Inka Keller called.", [("Inka Keller", "other", "mention")]),
        ("Visited Inka in hospital.", [("Inka", "other", "mention")]),
        ("Congrats Liz, that is great.", [("Liz", "other", "mention")]),
        ("I like Tom's car, and the Millers' too.", [("Tom", "other", "mention"), ("Millers", "other", "mention")]),
        ("Nick from the pub plays darts.", [("Nick from the pub", "person", "object")]),
        ("Apart from meetings I had a day off.", []),
        ("I moved to Berlin from my village.", [("Berlin", "place", "mention")]),
        ("I spoke to Mr. Novak today.", [("Mr. Novak", "other", "mention")]),
        ("My wife is Ana.", [("Alice's wife Ana", "person", "object")]),
        ("My neighbour is called Inka.", [("Alice's neighbour Inka", "person", "object")]),
        ("My dentist is Dr. Okafor.", [("Alice's dentist Dr. Okafor", "person", "object")]),
        ("My boss Tom Meyer sings.", [("Alice's boss Tom Meyer", "person", "object")]),
        ("My boss is German.", [("Alice's boss", "person", "object"), ("German", "other", "mention")]),
        (
            "My kids are Tom and Ana.",
            [("Alice's kids", "group", "object"), ("Tom", "other", "mention"), ("Ana", "other", "mention")],
        ),
        ("He is my boss.", [("Alice's boss", "person", "object")]),
        ("This is my brother.", [("Alice's brother", "person", "object")]),
        ("She is no longer my boss.", [("Alice's boss", "person", "object")]),
        ("Inka is not my boss.", [("Alice's boss", "person", "object")]),
        ("Liz's brother Tom left.", [("Liz's brother Tom", "person", "object")]),
        ("I sail on Monday in May.", []),
        ("my mother-in-law Eva visits", [("Alice's mother-in-law Eva", "person", "object")]),
    ],
)
def test_a_sentence_names_ties_origins_and_inner_names(said: str, expected: list[tuple[str, str, str]]) -> None:
    assert found(said) == expected


def test_without_a_speaker_the_tie_is_as_it_was_said() -> None:
    assert found("My brother Tom moved out.", None) == [("My brother Tom", "person", "object")]


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("home_city", "Bern", [("Bern", "place")]),
        ("employer", "Acme", [("Acme", "organisation")]),
        ("dog", "Rex", [("Alice's dog Rex", "animal")]),
        ("brother", "Tom", [("Alice's brother Tom", "person")]),
        ("allergy", "nuts", []),
        ("birthday", "14 June", []),
    ],
)
def test_the_value_of_a_key_may_be_a_name(key: str, value: str, expected: list[tuple[str, str]]) -> None:
    assert [(one.name, one.type) for one in names_of_value(key, value, "Alice")[0]] == expected


def test_what_is_too_long_for_a_name_is_none() -> None:
    assert found("My brother Tom met Inka.", "S" * 200) == [("Inka", "other", "mention")]
    assert found(f"I met {'A' * 300} and Inka.") == [("Inka", "other", "mention")]
    assert names_of_value("dog", "R" * 300, "Alice") == names_of_value("employer", "R" * 300, "Alice") == ((), ())


TOO_LONG = "B" + "x" * MAX_NAME


def test_what_is_too_long_is_no_name() -> None:
    assert names_of_value("employer", "Acme", TOO_LONG)[1] == ()


def said(text: str) -> list[tuple[str, list[tuple[str, str, str]]]]:
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
    "text",
    ["My wife Ana sings.", "My brother no longer smokes.", "I like Berlin.", "If I worked at Acme, I would cry."],
)
def test_nothing_else_is_one(text: str) -> None:
    assert [relations for _, relations in said(text) if relations] == []
