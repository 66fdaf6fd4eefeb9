"""Words of numbers, dates and units, and quotations of whole words."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemolog.streams.text import tokens
from mnemolog.streams.text.tokens import has_words, without_texts

FOLDER = Path(tokens.__file__).parent
GENERATED = json.loads((FOLDER / "cldr_words.json").read_text(encoding="utf-8"))
BY_HAND = tomllib.loads((FOLDER / "words.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("section", ["numbers", "dates", "units"])
def test_a_word_has_one_meaning_in_a_section_and_only_what_cldr_lacks_is_kept_by_hand(section: str) -> None:
    words = [word for source in (GENERATED, BY_HAND) for words in source[section].values() for word in words.split()]
    assert len(words) == len(set(words))
    assert [word for word in words if word != word.casefold()] == []


def test_tens_and_ones_make_a_number_of_two_words() -> None:
    assert (tokens.TENS["twenty"], tokens.ONES["deux"]) == ("20", "2")
    assert ("ten" in tokens.TENS, "zero" in tokens.ONES) == (False, False)


@pytest.mark.parametrize(
    ("words", "word", "meaning"),
    [
        (tokens.NUMBERS, "septante", "70"),
        (tokens.NUMBERS, "dezasseis", "16"),
        (tokens.NUMBERS, "veintidós", "22"),
        (tokens.DATES, "terça", "weekday 2"),
        (tokens.DATES, "montags", "weekday 1"),
        (tokens.DATES, "sept", "month 9"),
        (tokens.UNITS, "giorni", "day"),
        (tokens.UNITS, "°c", "celsius"),
    ],
)
def test_words_of_each_source_are_there(words: dict[str, str], word: str, meaning: str) -> None:
    assert words[word] == meaning


@pytest.mark.parametrize("word", ["do", "so", "set", "sam", "un", "eine", "in", "pie"])
def test_frequent_words_with_another_meaning_are_left_out(word: str) -> None:
    assert word not in tokens.NUMBERS | tokens.DATES | tokens.UNITS


SIGNS = "ab .-あ漢é1"
WORD_SIGN = r"[^\W\u3040-\u30ff\u3400-\u9fff]"


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        ("i moved to norway, no", "no", True),
        ("norway", "no", False),
        ("casino", "no", False),
        ("私は東京に住む", "東京", True),
        ("anna and ann", "ann", True),
        ("no", "", False),
    ],
)
def test_a_quotation_is_found_as_whole_words(text: str, words: str, expected: bool) -> None:
    assert has_words(text, words) is expected


@given(st.text(SIGNS, max_size=14), st.text("ab-あ漢é1", min_size=1, max_size=4))
def test_a_quotation_is_found_where_no_word_goes_on_over_its_ends(text: str, words: str) -> None:
    before = rf"(?<!{WORD_SIGN})" if re.match(WORD_SIGN, words) else ""
    after = rf"(?!{WORD_SIGN})" if re.match(WORD_SIGN, words[-1]) else ""
    expected = re.search(f"{before}{re.escape(words)}{after}", " ".join(text.split()))
    assert has_words(text, words) is (expected is not None)


def test_copies_of_texts_are_taken_out_and_nothing_grows_together() -> None:
    told = "the dog is called rex"
    assert without_texts(f"{told} {told}, yes, {told}s", [told]) == f"\n \n, yes, {told}s"
