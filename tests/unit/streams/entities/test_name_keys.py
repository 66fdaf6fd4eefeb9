"""Names that are the same but for case, accents, width and punctuation have one key."""

# ruff: noqa: RUF001 -- names of many languages

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog.schemas.entities import MAX_NAME
from mnemolog.streams.entities.names import name_key


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Ana", "ana"),
        ("Ana", "ÁNA"),
        ("Ana", "A\u0301na"),
        ("Ana", "Ａｎａ"),
        ("Ana", "  Ana, "),
        ("Anna-Maria", "Anna Maria"),
        ("O'Brien", "O’Brien"),
        ("Dr. Weiß", "Dr Weiss"),
        ("Jürgen", "Jurgen"),
        ("Łukasz", "Lukasz"),
        ("Søren", "Soren"),
        ("Алёна", "АЛЕНА"),
        ("Ελένη", "ΕΛΕΝΗ"),
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
