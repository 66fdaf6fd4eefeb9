"""The registry of predicates: what a word for one means, and that the way back leads back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from mnemolog.schemas.entities import PREDICATES, WORDS, PredicateName, read_predicate
from mnemolog.streams.entities.names import TIE_TYPES

NAMES = sorted(PREDICATES)
NAME: TypeAdapter[str] = TypeAdapter(PredicateName)


@pytest.mark.parametrize(
    ("said", "name", "is_reversed"),
    [
        ("wife", "spouse", False),
        ("Married to", "spouse", False),
        ("is_the_husband_of", "spouse", True),
        ("has brother", "sibling", False),
        ("mother", "parent", False),
        ("mother_of", "parent", True),
        ("is child of", "parent", False),
        ("son", "parent", True),
        ("works at", "employer", False),
        ("employer", "employer", False),
        ("employee", "employer", True),
        ("employee-of", "employer", False),
        ("dog", "owns", False),
        ("owned by", "owns", True),
        ("home_city", "lives_in", False),
        ("member_of", "member_of", False),
        ("member", "member_of", True),
        ("ex-wife", "former_spouse", False),
        ("are friends", "friend", False),
        ("colleagues", "colleague", False),
        ("cousins", "cousin", False),
    ],
)
def test_a_word_for_a_predicate_is_read(said: str, name: str, is_reversed: bool) -> None:
    read = read_predicate(said)
    assert read is not None
    assert (read.predicate.name, read.is_reversed) == (name, is_reversed)


def test_a_word_that_is_not_registered_stays_as_it_is() -> None:
    read = read_predicate("Was Mentored By")
    assert read is not None
    assert (read.predicate.name, read.predicate.inverse, read.is_reversed) == ("was_mentored_by", None, False)


@pytest.mark.parametrize("said", ["", "  ", "配偶者", "7 of 9", "x" * 65, '"];--'])
def test_what_is_no_word_is_no_predicate(said: str) -> None:
    assert read_predicate(said) is None


@given(st.sampled_from(NAMES))
def test_the_inverse_leads_back(name: str) -> None:
    predicate = PREDICATES[name]
    assert predicate.inverse is not None
    back = read_predicate(predicate.inverse)
    assert back is not None
    assert back.predicate == predicate
    assert back.is_reversed == (predicate.inverse != predicate.name)


@given(st.sampled_from(sorted(WORDS)))
def test_of_turns_a_word_round(word: str) -> None:
    """ "Mother of" is "mother" with subject and object in each other's places; that holds for every word."""
    read, of = WORDS[word], read_predicate(f"{word}_of")
    if f"{word}_of" not in WORDS:  # "member_of" is a predicate of its own
        assert of is not None
        assert (of.predicate, of.is_reversed) == (read.predicate, not read.is_reversed)


@given(st.text(max_size=100))
def test_whatever_is_said_a_predicate_has_a_name_that_can_be_stored(said: str) -> None:
    if (read := read_predicate(said)) is not None:
        assert NAME.validate_python(read.predicate.name) == read.predicate.name
        assert NAME.validate_python(read.word) == read.word


def test_no_two_predicates_share_a_name() -> None:
    names = [name for one in PREDICATES.values() for name in {one.name, one.inverse}]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("tie", TIE_TYPES)
def test_every_tie_of_a_name_is_a_registered_predicate(tie: str) -> None:
    read = read_predicate(tie)
    assert read is not None
    assert read.predicate.name in PREDICATES


def test_small_words_before_a_word_are_left_out_and_nothing_is_read_of_too_many() -> None:
    read = read_predicate("is_" * 20 + "wife")
    assert read is not None
    assert read.predicate.name == "spouse"
    assert read_predicate("a_" * 50_000) is None
    assert read_predicate("is_" * 50_000 + "wife") is None
