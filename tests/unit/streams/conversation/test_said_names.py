"""By what the entities are looked up that a text may name."""

import pytest

from mnemolog.streams.llm.background import MAX_HEADS, names_said_in


@pytest.mark.parametrize(
    ("text", "heads", "ties", "predicates"),
    [
        ("I met Ana Keller", {"i", "met", "ana", "kel"}, (), ()),
        ("ÁNA's dog", {"ana", "s", "dog"}, (), ()),
        ("Al Gore is here", {"al", "gor"}, (), ()),
        ("my wife sings", {"wif", "sin"}, ("@wife",), ("spouse",)),
        ("my son sings", {"son", "sin"}, ("@son",), ("child",)),
        ("田中さん", {"田中さ", "田中", "中さん"}, (), ()),
    ],
)
def test_heads_of_words_and_ties_are_found(
    text: str, heads: set[str], ties: tuple[str, ...], predicates: tuple[str, ...]
) -> None:
    found = names_said_in(text)
    assert heads <= {*found.heads}, found.heads
    assert (found.ties, found.predicates) == (ties, predicates)


def test_words_are_also_told_as_names_are_compared() -> None:
    assert "ana s dog" in names_said_in("ÁNA's dog").text


def test_no_more_heads_than_the_limit() -> None:
    text = " ".join(f"{chr(97 + one)}{chr(97 + two)}q" for one in range(26) for two in range(26))
    assert len(names_said_in(text).heads) == MAX_HEADS
