"""What a sentence names is found without a model in the clear cases, and nowhere else."""

import pytest

from mnemolog.streams.entities.names_in_text import sentence_entities, value_entities


def found(said: str, subject: str | None = "Alice", *, has_capital_nouns: bool = False) -> list[tuple[str, str, str]]:
    entities = sentence_entities(said, subject, has_capital_nouns=has_capital_nouns)
    return [(one.name, one.type, one.role) for one in entities]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("My brother Tom moved out.", [("Alice's brother Tom", "person", "object")]),
        ("I walked our dog with my wife.", [("Alice's dog", "animal", "object"), ("Alice's wife", "person", "object")]),
        ("I had lunch with Tom from work.", [("Tom from work", "person", "object")]),
        ("I met Ana Keller in Berlin.", [("Ana Keller", "other", "mention"), ("Berlin", "place", "mention")]),
        ("Tom called.", []),
        ("I sail on Monday in May.", []),
        ("my mother-in-law Eva visits", [("Alice's mother-in-law Eva", "person", "object")]),
    ],
)
def test_a_sentence_names_ties_origins_and_inner_names(said: str, expected: list[tuple[str, str, str]]) -> None:
    assert found(said) == expected


def test_without_a_speaker_the_tie_is_as_it_was_said() -> None:
    assert found("My brother Tom moved out.", None) == [("My brother Tom", "person", "object")]


def test_where_nouns_have_capitals_only_ties_are_read() -> None:
    said = "Ich war mit meinem Bruder Tom im Kino in Berlin."
    assert found(said, has_capital_nouns=True) == [("Alice's Bruder Tom", "person", "object")]


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
    assert [(one.name, one.type) for one in value_entities(key, value, "Alice")] == expected
