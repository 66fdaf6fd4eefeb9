"""Names as text: one key for one name, and its parts: a proper name, a tie to somebody, an origin."""

# ruff: noqa: RUF001 -- names of many languages

import re
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog.schemas.entities import MAX_NAME
from mnemolog.streams.entities.names import ANY_TIE, TIE_TYPES, described_name, name_key, read_name


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ana", "A\u0301na"),
        ("Ana", "Ａｎａ"),
        ("Ana", "  Ana, "),
        ("Anna-Maria", "Anna Maria"),
        ("O'Brien", "O’Brien"),
        ("Dr. Weiß", "Dr Weiss"),
        ("Jürgen", "Jurgen"),
        ("ｶﾅ", "カナ"),
        ("Siemens (Munich)", "Siemens Munich"),
        ("Ana", "A\u200bn\u00ada\ufe0f"),
        ("Ana", "\u202eAna\u202c"),
        ("Ana Keller", "Ana\u2800Keller"),
        ("Ana", "A\x1bn\x07a"),
    ],
)
def test_the_same_name_has_one_key(one: str, other: str) -> None:
    assert name_key(one) == name_key(other) != ""


@pytest.mark.parametrize(
    ("one", "other"),
    [("Ana", "Anna"), ("Tom", "Tim"), ("かな", "がな"), ("李明", "李民"), ("Jan", "Jana"), ("Ana", "Ana Keller")],
)
def test_other_names_have_other_keys(one: str, other: str) -> None:
    assert name_key(one) != name_key(other)


@pytest.mark.parametrize("sign", ["", " ", "!!!", "...", "\u0301", "\u200b\u200c", "\u3164", "\u2800", "\U000e0041"])
def test_what_is_no_name_has_no_key(sign: str) -> None:
    assert name_key(sign) == ""


@given(st.text(max_size=300))
def test_a_key_is_bounded_and_its_own_key(name: str) -> None:
    key = name_key(name)
    assert len(key) <= MAX_NAME
    assert name_key(key) == key


def test_a_sign_that_stands_for_many_letters_makes_no_endless_key() -> None:
    assert len(name_key("\ufdfa" * 200)) <= MAX_NAME


@pytest.mark.parametrize(
    ("text", "name", "tie", "owner", "origin"),
    [
        ("Ana", "Ana", None, None, None),
        ("my brother-in-law Max", "Max", "brother_in_law", None, None),
        ("Tom, my brother", "Tom", "brother", None, None),
        ("Alice's brother Tom", "Tom", "brother", "Alice", None),
        ("Alice\u2019s brother", None, "brother", "Alice", None),
        ("James' wife", None, "wife", "James", None),
        ("the user's dog", None, "dog", "the user", None),
        ("the sister of Ana", None, "sister", "Ana", None),
        ("Tom from work", "Tom", None, None, "work"),
        ("Ana from the gym", "Ana", None, None, "gym"),
        ("Annas Bruder Tom", "Tom", "brother", "Anna", None),
        ("Tom von der Arbeit", "Tom", None, None, "arbeit"),
        ("mon frère Luc", "Luc", "brother", None, None),
        ("le frère d'Alice", None, "brother", "Alice", None),
        ("la hermana de Ana", None, "sister", "Ana", None),
        ("Tom del trabajo", "Tom", None, None, "trabajo"),
        ("minha mãe", None, "mother", None, None),
        ("mia sorella Giulia", "Giulia", "sister", None, None),
        ("mein verstorbener Mann Karl", "Karl", "husband", None, None),
        ("ma petite amie Zoé", "Zoé", "girlfriend", None, None),
        ("mi difunto marido Karl", "Karl", "husband", None, None),
        ("mi hermana mayor Ana", "Ana", "sister", None, None),
        ("my ex-girlfriend Carol", "Carol", "ex_girlfriend", None, None),
        ("Carol (Alice's girlfriend)", "Carol", "girlfriend", "Alice", None),
        ("Carol, Alice's girlfriend", "Carol", "girlfriend", "Alice", None),
        ("Carol (Alices Freundin)", "Carol", "friend", "Alice", None),
        ("Carol, die Freundin von Alice", "Carol", "friend", "Alice", None),
        ("Carol (la petite amie d'Alice)", "Carol", "girlfriend", "Alice", None),
        ("Carol (la novia de Alice)", "Carol", "girlfriend", "Alice", None),
        ("my New York office", "my New York office", None, None, None),
        ("my New Yorker friend Tom", "my New Yorker friend Tom", None, None, None),
        ("my late shift", "my late shift", None, None, None),
        ("my new office", "my new office", None, None, None),
        ("Paris, France", "Paris, France", None, None, None),
        ("Ana, nurse", "Ana, nurse", None, None, None),
        ("New York (my favourite city)", "New York (my favourite city)", None, None, None),
        ("my partner company", "my partner company", None, None, None),
        ("Thomas Mann", "Thomas Mann", None, None, None),
        ("Ludwig von Beethoven", "Ludwig von Beethoven", None, None, None),
        ("Ana da Silva", "Ana da Silva", None, None, None),
        ("Rio de Janeiro", "Rio de Janeiro", None, None, None),
        ("王小明", "王小明", None, None, None),
    ],
)
def test_a_name_has_its_parts(
    text: str, name: str | None, tie: str | None, owner: str | None, origin: str | None
) -> None:
    found = read_name(text)
    assert found is not None
    assert (found.name, found.tie, found.owner, found.origin) == (name, tie, owner, origin)


@pytest.mark.parametrize("text", ["she", "It", "ils", "nosotros", "", "  ", "...", "\u0301"])
def test_a_pronoun_names_nobody(text: str) -> None:
    assert read_name(text) is None


def test_every_tie_is_of_a_person_an_animal_or_a_group() -> None:
    assert set(TIE_TYPES.values()) == {"person", "animal", "group"}


@pytest.mark.parametrize("text", ["my brother " * 18, "a's " * 50, "s " * 100, "'" * 200, "my " * 66, "x from " * 28])
@pytest.mark.timeout(5)
def test_a_hostile_name_is_read_in_no_time(text: str) -> None:
    read_name(text[:200])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I met my colleague Ana", "my colleague Ana"),
        ("Tom\u2019s sister Ana is here", "Tom's sister Ana"),
        ("Ana from work called", "Ana from work"),
        ("a girl called Ana", "a girl called Ana"),
        ("Ana, my colleague, left", "my colleague Ana"),
        ("Ana's here", None),
        ("Anabel, my colleague, left", None),
        ("Little ana", None),
    ],
)
def test_a_name_is_described_by_the_words_around_it(text: str, expected: str | None) -> None:
    assert described_name("Ana", "Hello.", text) == expected


def test_a_new_name_compiles_no_pattern_of_ties(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each speaker has another name: a pattern of all ties for each took three quarters of a worker's time."""
    compiled: list[str] = []
    compile_pattern = re._compiler.compile  # type: ignore[attr-defined] # the one place that all functions of re use

    def note(pattern: str, *flags: int) -> re.Pattern[str]:
        compiled.append(pattern)
        return cast("re.Pattern[str]", compile_pattern(pattern, *flags))

    monkeypatch.setattr(re._compiler, "compile", note)  # type: ignore[attr-defined] # as above
    for name in ("Zorana", "Quill Ferro"):
        assert described_name(name, f"my colleague {name} is here") == f"my colleague {name}"
    assert compiled
    assert not any(ANY_TIE in pattern for pattern in compiled)
