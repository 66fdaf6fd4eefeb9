"""Known names in texts that nobody has read for names: whole words, in any case, and certainly of one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog.schemas.entities import KnownEntity
from mnemolog.streams.entities.known_names import MAX_LOOKED_UP, MAX_WORDS, aliases_in_text, known_names_in, text_keys
from mnemolog.streams.entities.resolver import EntityRegistry
from tests.support.builders.entities import known_entity, tie_alias


def found(text: str, *known: KnownEntity, taken: tuple[str, ...] = ()) -> list[str]:
    """The own names of those whom a text names."""
    names = {one.entity_id: one.name for one in known}
    return [names[link.entity_id] for link in known_names_in(text, EntityRegistry(known), taken=taken)]


@pytest.mark.parametrize(
    "text", ["Ana called", "I saw ANA's dog", "Did (Ána) call?", "with Ana, Ben", "“Ana”", "Ana\u2019s", "ana-like"]
)
def test_a_known_name_is_found_as_whole_words_in_any_case(text: str) -> None:
    assert found(text, known_entity("Ana")) == ["Ana"]


@pytest.mark.parametrize("text", ["Diana called", "Anabel", "anagram", "banana", "", "An a"])
def test_a_name_within_a_word_is_none(text: str) -> None:
    assert found(text, known_entity("Ana")) == []


@pytest.mark.parametrize("name", ["Jo", "Al", "A1", "J. R.", "7/11"])
def test_a_name_of_fewer_than_three_letters_is_not_looked_for(name: str) -> None:
    assert found(f"I saw {name} there", known_entity(name)) == []


def test_the_longest_name_counts_and_what_is_linked_already_is_taken() -> None:
    keller, ana = known_entity("Ana Keller"), known_entity("Ana")
    assert found("Ana Keller called", keller, ana) == ["Ana Keller"]
    assert found("Ana Keller called Ana", keller, ana) == ["Ana Keller", "Ana"]
    assert found("Tom from work called", known_entity("Tom"), taken=("Tom from work",)) == []


def test_a_name_of_several_is_nobodys_but_that_of_one_without_a_mark_is_theirs() -> None:
    at_work, at_golf = known_entity("Tom from work"), known_entity("Tom from golf")
    assert found("Tom called", at_work, at_golf) == []
    assert found("Tom called", at_work) == ["Tom from work"]
    assert found("Tom called", at_work, known_entity("Tom")) == ["Tom"]


def test_the_user_is_the_subject_and_no_mention() -> None:
    assert found("Alice called", known_entity("Alice", is_user=True)) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("My wife sings", ["my wife Ana"]),
        ("Ana sings", ["Ana"]),
        ("my wife Ana", ["Ana", "my wife Ana"]),
        ("Her wifely duty", []),
    ],
)
def test_a_text_says_a_tie_without_the_name_too(text: str, said: list[str]) -> None:
    assert [
        alias.text for alias in aliases_in_text(known_entity("Ana", tie_alias("wife", "my wife Ana")), text)
    ] == said


@given(
    st.sampled_from(["O'Brien", "Ana-Lena", "Müller", "Mary Ann Lee", "ÅSA", "Dr. Lee", "Иван"]), st.text(max_size=40)
)
def test_what_is_in_a_text_is_looked_up(name: str, around: str) -> None:
    text = f"{around} {name} {around}"
    keys = text_keys([f"{name} {around}"])
    one = known_entity(name)
    if found(text, one):
        assert one.aliases[0].head in keys.heads


def test_what_is_looked_up_is_bounded() -> None:
    long = " ".join(f"{number:03d}" for number in range(900))
    assert len(text_keys([long]).heads) == MAX_WORDS
    many = text_keys([f"{number:05d}" for number in range(5000)] + [long])
    assert len(many.keys) == MAX_LOOKED_UP
    assert text_keys(["x" * 10_000]).heads == {"xxx"}
