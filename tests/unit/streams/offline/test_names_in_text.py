"""What a sentence names is found without a model in the clear cases, and nowhere else."""

import pytest

from mnemolog.streams.offline.names_in_text import names_heard, sentence_entities, value_entities


def found(said: str, subject: str | None = "Alice", *, before: tuple[str, ...] = ()) -> list[tuple[str, str, str]]:
    entities = sentence_entities(said, subject, names_heard(before))
    return [(one.name, one.type, one.role) for one in entities]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("My brother Tom moved out.", [("Alice's brother Tom", "person", "object")]),
        ("I walked our dog with my wife.", [("Alice's dog", "animal", "object"), ("Alice's wife", "person", "object")]),
        ("I had lunch with Tom from work.", [("Tom from work", "person", "object")]),
        ("I met Inka Keller in Berlin.", [("Inka Keller", "other", "mention"), ("Berlin", "place", "mention")]),
        ("I met Liz Keller.", [("Liz Keller", "person", "mention")]),
        ("Tom called.", [("Tom", "other", "mention")]),
        ("Inka called.", []),
        ("Dinner was late.", []),
        ("Inka Keller called.", [("Inka Keller", "other", "mention")]),
        ("Visited Inka in hospital.", [("Inka", "other", "mention")]),
        ("Congrats Liz, that is great.", [("Liz", "other", "mention")]),
        ("I like Tom's car, and the Millers' too.", [("Tom", "other", "mention"), ("Millers", "other", "mention")]),
        ("Nick from the pub plays darts.", [("Nick from the pub", "person", "object")]),
        ("Apart from meetings I had a day off.", []),
        ("I moved to Berlin from my village.", [("Berlin", "place", "mention")]),
        ("I met another Tom at the gym.", [("another Tom", "other", "mention")]),
        ("I spoke to Mr. Novak today.", [("Mr. Novak", "person", "mention")]),
        ("My wife is Ana.", [("Alice's wife Ana", "person", "object")]),
        ("My boss is Tom Meyer and she sings.", [("Alice's boss Tom Meyer", "person", "object")]),
        ("My boss is German.", [("Alice's boss", "person", "object"), ("German", "other", "mention")]),
        (
            "My kids are Tom and Ana.",
            [("Alice's kids", "group", "object"), ("Tom", "other", "mention"), ("Ana", "other", "mention")],
        ),
        ("Inka is my neighbour.", [("Alice's neighbour Inka", "person", "object")]),
        ("Inka, my boss, agreed.", [("Alice's boss Inka", "person", "object")]),
        ("He is my boss.", [("Alice's boss", "person", "object")]),
        ("This is my brother.", [("Alice's brother", "person", "object")]),
        ("She is no longer my boss.", [("Alice's boss", "person", "object")]),
        ("Inka is no longer my boss.", [("Alice's boss Inka", "person", "object")]),
        ("Inka is not my boss.", [("Alice's boss", "person", "object")]),
        ("My neighbour is called Inka.", [("Alice's neighbour Inka", "person", "object")]),
        ("My dentist is Dr. Okafor.", [("Alice's dentist Dr. Okafor", "person", "object")]),
        ("Liz's brother Tom left.", [("Liz's brother Tom", "person", "object")]),
        (
            "My kids Leo and Kim are ill.",
            [("Leo", "person", "object"), ("Kim", "person", "object"), ("Alice's kids", "group", "object")],
        ),
        ("I sail on Monday in May.", []),
        ("my mother-in-law Eva visits", [("Alice's mother-in-law Eva", "person", "object")]),
    ],
)
def test_a_sentence_names_ties_origins_and_inner_names(said: str, expected: list[tuple[str, str, str]]) -> None:
    assert found(said) == expected


def test_without_a_speaker_the_tie_is_as_it_was_said() -> None:
    assert found("My brother Tom moved out.", None) == [("My brother Tom", "person", "object")]


@pytest.mark.parametrize(
    ("before", "said", "name"),
    [
        ("I met Inka Keller.", "Inka called.", "Inka"),
        ("My sister Alexandra is here.", "Alex called.", "Alex"),
        ("My sister Inka is here.", "Then she left. Inge called.", None),
    ],
)
def test_a_name_that_was_said_before_may_begin_a_sentence(before: str, said: str, name: str | None) -> None:
    assert found(said, before=(before,)) == ([] if name is None else [(name, "other", "mention")])


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


def test_what_is_too_long_for_a_name_is_none() -> None:
    assert found("My brother Tom met Inka.", "S" * 200) == [("Inka", "other", "mention")]
    assert found(f"I met {'A' * 300} and Inka.") == [("Inka", "other", "mention")]
    assert value_entities("dog", "R" * 300, "Alice") == value_entities("employer", "R" * 300, "Alice") == ()


@pytest.mark.parametrize(
    ("said", "before", "names"),
    [
        ("An is feeling better.", ("I met An in Ulm.",), ["An"]),
        ("Will has a cold.", ("My friend Will called.",), ["Will"]),
        ("Will be back soon.", ("My friend Will called.",), []),
        ("An is feeling better.", ("I met Ana in Ulm.",), []),
        ("May is lovely.", ("My friend May called.",), []),
    ],
)
def test_a_name_that_is_a_small_word_too_is_known_where_it_was_said_and_is_or_has_something(
    said: str, before: tuple[str, ...], names: list[str]
) -> None:
    assert [name for name, *_ in found(said, before=before)] == names
