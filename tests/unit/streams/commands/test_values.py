"""The value of an edited fact: read where the texts show it, and else cleared."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog.streams.commands.edits import value_after_edit

LIVES = "Alice lives in Munich."


@pytest.mark.parametrize(
    ("old", "value", "new", "expected"),
    [
        (LIVES, "Munich", "Alice lives in Bonn.", "Bonn"),
        (LIVES, "Munich", "Alice lives in Bonn", "Bonn"),
        (LIVES, "munich", "Alice lives in New York City.", "New York City"),
        ("Alice lives in New York.", "New York", "Alice lives in New Orleans.", "New Orleans"),
        ("Alice lives in New York City.", "New York City", "Alice lives in New York.", "New York"),
        ("Alice pays 900 euros of rent.", "900 euros", "Alice pays 950 euros of rent.", "950 euros"),
        ("Alice is a software engineer.", "software engineer", "Alice is a nurse.", "nurse"),
        ("Alcie lives in Munich.", "Munich", LIVES, "Munich"),
        (LIVES, "Munich", LIVES, "Munich"),
        ("Alice lives in York.", "York", "Alice lives in New York.", "New York"),
        ("Alice's sister is called Eva.", "Eva", "Alice's sister is called Eva Maria.", "Eva Maria"),
        ("Alice's birthday is 3 May.", "3 May", "Alice's birthday is 3 May 1990.", "3 May 1990"),
        (LIVES, "Munich", "Alice lives in Munich, Germany.", "Munich, Germany"),
        (LIVES, "Munich", "Alice lives in Bonn, Germany.", "Bonn, Germany"),
        (LIVES, "Munich", "Alice lives in Munich since 2020.", "Munich"),
        (LIVES, "Munich", "Alice no longer lives in Munich.", None),
        ("Alice does not live in Munich.", "Munich", "Alice does live in Munich.", None),
        (LIVES, "Munich", "Alice lives in Bonn since March.", None),
        (LIVES, "Munich", "Alice lives not in Munich but Bonn.", None),
        (LIVES, "Munich", "Alice moved to Bonn.", None),
        (LIVES, "Munich", "Alice lives in.", None),
        ("Alice lives near the sea.", "Brighton", "Alice lives near the lake.", None),
        ("Ulm is home; Alice loves Ulm.", "Ulm", "Ulm is home; Alice loves Bonn.", None),
        ("Alice lives in Munich.", None, "Alice lives in Bonn.", None),
    ],
)
def test_a_value_is_read_where_the_text_shows_it(old: str, value: str | None, new: str, expected: str | None) -> None:
    assert value_after_edit(old, value, new) == expected


WORDS = st.lists(st.sampled_from(["Alice", "lives", "in", "Rome", "Oslo", "not"]), max_size=6).map(" ".join)


@given(old=WORDS, value=st.none() | WORDS, new=WORDS)
def test_a_value_occurs_in_the_new_text(old: str, value: str | None, new: str) -> None:
    found = value_after_edit(old, value, new)
    assert found is None or f" {found} " in f" {new} "


@given(old=st.text(), value=st.none() | st.text(), new=st.text())
def test_any_text_can_be_edited(old: str, value: str | None, new: str) -> None:
    assert value_after_edit(old, value, new) != ""
    assert value_after_edit(old, value, old) in (value, None)
