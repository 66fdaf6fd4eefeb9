"""What a text says of ties that are over, and of values that are relations, whoever speaks."""

import pytest

from mnemolog.schemas.entities import MAX_NAME
from mnemolog.streams.offline.names_in_text import (
    ended_relations,
    relations_of_others,
    stated_in_text,
    value_relations,
)

TOO_LONG = "B" + "x" * MAX_NAME


def test_a_tie_is_over_where_its_words_were_said_before() -> None:
    said = "I met my wife Ana in Rome but she is no longer my wife."
    assert [(one.predicate, one.object) for one in ended_relations(said, None)] == [("wife", "my wife")]


def test_what_is_too_long_is_no_name() -> None:
    assert value_relations("employer", "Acme", TOO_LONG) == ()
    for subject in (TOO_LONG, "B" + "x" * (MAX_NAME - 5)):
        assert ended_relations("She is no longer my wife Ana.", subject) == ()


@pytest.mark.parametrize(
    ("said", "triple"),
    [
        ("My brother Tom works at Rolls-Royce.", ("Alice's brother Tom", "employer", "Rolls-Royce")),
        ("My wife Ana Keller works at Bosch.", ("Alice's wife Ana Keller", "employer", "Bosch")),
        ("My brother Tom Meyer works at Acme.", ("Alice's brother Tom Meyer", "employer", "Acme")),
        ("My sister works at Bosch in Ulm.", ("Alice's sister", "employer", "Bosch")),
        ("My aunt Eva lives in Leeds with her dog.", ("Alice's aunt Eva", "lives_in", "Leeds")),
        ("My band is called The Wet Socks.", ("Alice", "member_of", "The Wet Socks")),
    ],
)
def test_a_sentence_states_where_others_work_and_live_and_the_name_of_a_club(
    said: str, triple: tuple[str, str, str]
) -> None:
    assert [(one.subject, one.predicate, one.object) for one in stated_in_text(said, "Alice")] == [triple]


@pytest.mark.parametrize(
    "said",
    [
        "My sister works at night.",
        "My sister works at Christmas.",
        "My sister's husband works at Bosch.",
        "My sister met a man who sings and works at Bosch.",
        "My aunt Eva lives in fear.",
        "My aunt Eva lived in Leeds.",
        "My mother says my brother works at Bosch.",
        "My brother doesn't work at Bosch.",
        "My brother no longer works at Bosch.",
        "My band is called off.",
        "My company is called Acme.",
    ],
)
def test_a_sentence_states_nothing_that_it_does_not_say(said: str) -> None:
    assert stated_in_text(said, "Alice") == ()


@pytest.mark.parametrize(
    ("said", "triple"),
    [
        ("My brother Tom no longer works at Acme.", ("Alice's brother Tom", "employer", "Acme")),
        ("My brother Tom quit his job at Acme.", ("Alice's brother Tom", "employer", "Acme")),
        ("My aunt no longer lives in Leeds.", ("Alice's aunt", "lives_in", "Leeds")),
    ],
)
def test_a_sentence_ends_where_others_worked_and_lived(said: str, triple: tuple[str, str, str]) -> None:
    found = relations_of_others(said, "Alice", ended=True)
    assert [(one.subject, one.predicate, one.object) for one in found] == [triple]


def test_a_tie_of_somebody_else_is_not_over() -> None:
    assert ended_relations("Ana is no longer my wife's boss.", "Alice") == ()
